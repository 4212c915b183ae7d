"""Products in bfloat16: what is rounded and what is not, by hand and for a model of every module."""

import pytest
import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.models import Model, build, initial
from fedrepro.models.dropout import Keys
from fedrepro.models.names import MODELS
from fedrepro.tree import Tree
from fedrepro.types import Batch

# The first model of each module, and resnet with GroupNorm: others have the same layers, but more or wider ones.
EVERY_MODULE = [*{known.module: name for name, known in reversed(MODELS.items())}.values(), "resnet20_gn"]
# The smallest allowed cosine of gradients at the first weights. Rounding errors grow with every BatchNorm that a gradient
# passes: DenseNet-121 measured 0.80. Two unrelated directions would be below 0.01.
DEEP = {"densenet121": 0.6}


def small(name: str, products: str) -> Model:
    """The model for small images or short windows, with the paper's width."""
    known = MODELS[name]
    least = max(16, known.smallest_side)
    shape = (*known.input_shape[:-2], least, least) if len(known.input_shape) == 3 else (12,)
    return build(name, shape, 10, products)


def images(model: Model, count: int) -> Batch:
    """Noise, with as many labels or boxes as the model learns from."""
    generator = torch.Generator().manual_seed(0)
    if model.reads_text:
        return model.random(count, generator)
    x, y = torch.randn((count, *model.input_shape), generator=generator), torch.arange(count) % model.classes
    if model.detects:
        y = torch.tensor([0, 0.5, 0.5, 0.25, 0.25]).expand(count, 1, 5)
    return Batch(x, y)


def forward(model: Model, params: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    key = {"key": Keys(torch.tensor(3)).next()} if model.dropout else {}
    return model.forward(params, model.first_buffers(), x, train, **key)


def test_by_hand() -> None:
    """bfloat16 has 8 significant bits: 1 + 2^-8 becomes 1, and 3 + 2^-6 stays. Sums are exact and then rounded: 4 + 2^-6
    becomes 4.

    Logistic regression on images of two pixels; w = (1 + 2^-8, 1) of the first class, x = (1, 3 + 2^-6), so that w x is
    4 + 2^-6 + 2^-8 in float32. The second class has w = 0 and a bias of 2^-9.
    """
    params = Tree.from_tensors(
        {"fc1.weight": torch.tensor([[1 + 2**-8, 1.0], [0.0, 0.0]]), "fc1.bias": torch.tensor([0.0, 2**-9])}
    )
    x = torch.tensor([1, 3 + 2**-6]).view(1, 1, 1, 2)
    fine, coarse = (build("logistic", (1, 1, 2), 2, products) for products in ("float32", "bf16"))
    assert forward(fine, params, x, True)[0].tolist() == [[4 + 2**-6 + 2**-8, 2**-9]]
    logits = forward(coarse, params, x, True)[0]
    assert logits.dtype == torch.float32
    assert logits.tolist() == [[4.0, 2**-9]]
    assert forward(coarse, params, x, False)[0].tolist() == [[4 + 2**-6 + 2**-8, 2**-9]]


def test_the_closed_form_gradient_is_full_float32() -> None:
    """So a perceptron in bf16 goes without it."""
    fine, coarse = (build("mlp", (1, 4, 4), 10, products) for products in ("float32", "bf16"))
    assert fine.gradient is not None
    assert coarse.gradient is None


@pytest.mark.parametrize("name", EVERY_MODULE)
def test_every_module(name: str) -> None:
    """The gradient differs but has the same direction. Loss, statistics and gradient keep their type, and evaluation keeps its
    bits."""
    fine, coarse = (small(name, products) for products in ("float32", "bf16"))
    params, batch = initial.draw(fine, 8), images(fine, 8)
    found = []
    for model in (fine, coarse):
        outputs, buffers = forward(model, params, batch.x, True)
        assert outputs.dtype == buffers.flat.dtype == torch.float32

        def loss(p: Tree, model: Model = model) -> Tensor:
            return model.loss(forward(model, p, batch.x, True)[0], batch.y)

        found.append(tree.gradient(loss, params).flat)
    assert found[0].dtype == found[1].dtype == torch.float32
    assert not torch.equal(*found)
    assert torch.nn.functional.cosine_similarity(*found, dim=0) > DEEP.get(name, 0.9)
    assert torch.equal(*(forward(model, params, batch.x, False)[0] for model in (fine, coarse)))


@pytest.mark.parametrize("name", ["mlp", "lenet", "mcmahan_cifar", "resnet8", "resnet20_gn", "char_lstm"])
def test_stacked(name: str) -> None:
    """Two stacked clients, the second with padding, equal each client alone, within the 8 bits of bfloat16. One model for each
    kind of layer."""
    model = small(name, "bf16")
    both, batch = tree.stack([initial.draw(model, seed) for seed in (8, 9)]), images(model, 6)
    statistics = tree.stack([model.first_buffers()] * 2)
    valid = {"valid": torch.tensor([6, 4])} if model.buffer_layout.names else {}
    y = batch.y.expand(2, *batch.y.shape).clone()
    y[1, 4:] = -100

    def loss(p: Tree) -> Tensor:
        x = batch.x.expand(2, *batch.x.shape)
        return model.loss(model.forward(p, statistics, x, True, **valid)[0], y)

    together = tree.gradient(loss, both).flat
    assert together.dtype == torch.float32
    for k, count in enumerate((6, 4)):
        own = both.like(both.flat[k])
        alone = tree.gradient(lambda p, n=count: model.loss(forward(model, p, batch.x[:n], True)[0], batch.y[:n]), own)
        assert torch.nn.functional.cosine_similarity(together[k], alone.flat, dim=0) > 0.9
