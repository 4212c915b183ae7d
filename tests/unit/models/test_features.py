"""Features and the last layer together are the model."""

import pytest
import torch

from fedrepro.engine.local import TrainingNetwork
from fedrepro.errors import UserError
from fedrepro.models import build, initial
from fedrepro.models.names import MODELS

CLASSIFIERS = [name for name in MODELS if not MODELS[name].detects]
WIDTHS = {
    "mlp": 200,
    "mlp_colour": 200,
    "two_nn": 256,
    "logistic": 784,
    "logistic_sigmoid": 10,  # its last layer is the sigmoid
    "lenet": 1568,
    "mnist_cnn": 512,
    "simple_cnn": 64,
    "resnet8": 64,
    "resnet20": 64,
    "resnet20_gn": 64,
    "resnet56": 64,
    "resnet110": 64,
    "wrn56_4": 256,
    "densenet121": 1024,
    "alexnet_cifar": 256,
    "resnet18": 512,
    "fedgh_cnn": 128,
    "fedgh_cnn_relu": 128,
    "mcmahan_cifar": 192,
    "reddi_emnist": 128,
    "fedima_cnn_fmnist": 128,
    "fedima_cnn_cifar": 128,
    "fedima_cnn_64px": 128,
    "fedima_cnn_digits": 128,
    "fedima_resnet18": 128,
    "fedima_vgg11": 128,
    "fedima_alexnet": 512,
    "char_lstm": 64,
    "shakespeare_lstm": 256,
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_last_layer_of_the_features_is_the_model(name: str) -> None:
    """The outputs are equal to the bit, with statistics. Features have the width of the last layer's input. Logits depend on
    each named tensor of the last layer and on no other tensor. The numbers of features and classes are the model's."""
    model = build(name, MODELS[name].input_shape, 10)
    params, x = initial.draw(model, 8), model.random(3, torch.Generator().manual_seed(1)).x
    whole, parts = (TrainingNetwork(model, model.first_buffers()) for _ in range(2))
    logits, features = whole(params, x), parts.features(params, x)
    assert torch.equal(parts.head(params, features), logits)
    assert torch.equal(parts.buffers.flat, whole.buffers.flat)
    assert (features.shape[0], features.shape[-1]) == (3, WIDTHS[name])
    assert features.shape[-1] != 10 or name == "logistic_sigmoid"
    assert features.shape != logits.shape or not torch.equal(features, logits)

    layer = model.last_layer
    h, _ = model.features(params, model.first_buffers(), x, False)
    assert layer.features == h.shape[1:]
    assert layer.classes == 10
    for lost in (None, *layer.parameters.names):
        without = params.like(torch.full_like(params.flat, torch.nan))
        for one in layer.parameters.names:
            if one != lost:
                without[one].copy_(params[one])
        assert torch.isnan(model.head(without, h)).any() == (lost is not None), lost
    assert [params[one].shape for one in layer.parameters.names] == list(layer.parameters.shapes)


def test_a_detector_has_none() -> None:
    """One line names the model."""
    model = build("grid_detector", (3, 64, 64), 1)
    network = TrainingNetwork(model, model.first_buffers())
    with pytest.raises(UserError, match="grid_detector: has no last layer"):
        network.features(initial.draw(model, 8), torch.zeros(1, 3, 64, 64))
    with pytest.raises(UserError, match="grid_detector: has no last layer"):
        _ = network.last_layer
