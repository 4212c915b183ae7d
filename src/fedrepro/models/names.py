"""Which architectures there are and what samples they expect: readable without importing torch."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Architecture:
    """An architecture: the module of fedrepro.models that builds it, with which options, for which samples."""

    module: str
    input_shape: tuple[int, ...]  # of the paper's experiments: C, H, W of images, or T, the length of windows of text
    options: dict[str, Any] = field(default_factory=dict)
    smallest_batch: int = 1  # 2 with BatchNorm: one sample has no statistics
    smallest_side: int = 1  # below this height or width nothing is left after its poolings
    dropout: bool = False  # its forward pass takes a `key` for masks
    stackable: bool = True  # its operations take weights with a leading client axis; otherwise clients train one by one
    detects: bool = False  # finds objects: it learns from boxes and is judged by mAP50; otherwise it tells classes apart

    @property
    def reads(self) -> str:
        """What a sample is: images, or text."""
        return "text" if len(self.input_shape) == 1 else "images"

    @property
    def metric(self) -> str:
        """What its runs are judged by."""
        return "test_map50" if self.detects else "test_accuracy"


_GREY, _COLOUR = (1, 28, 28), (3, 32, 32)

MODELS: dict[str, Architecture] = {
    "mlp": Architecture("mlp", _GREY, {"hidden": (200, 200)}),
    "mlp_colour": Architecture("mlp", (3, 28, 28), {"hidden": (200, 200)}),
    "two_nn": Architecture("mlp", _GREY, {"hidden": (512, 256)}),
    "logistic": Architecture("mlp", _GREY, {"hidden": ()}),
    "logistic_sigmoid": Architecture("logistic_sigmoid", _GREY),
    "lenet": Architecture("lenet", _GREY, smallest_side=4),
    "mnist_cnn": Architecture("mnist_cnn", _GREY, smallest_side=16),
    "simple_cnn": Architecture("simple_cnn", _COLOUR, smallest_side=18),
    "fedgh_cnn": Architecture("fedgh_cnn", _COLOUR, {"last_relu": False}, smallest_side=10, dropout=True),
    "fedgh_cnn_relu": Architecture("fedgh_cnn", _COLOUR, {"last_relu": True}, smallest_side=10, dropout=True),
    "mcmahan_cifar": Architecture("mcmahan_cifar", _COLOUR, smallest_side=4),
    "reddi_emnist": Architecture("fedgh_cnn", _GREY, {"last_relu": False, "kernel": 3}, smallest_side=6, dropout=True),
    "resnet8": Architecture("resnet", _COLOUR, {"blocks": 1}, smallest_batch=2),
    "resnet20": Architecture("resnet", _COLOUR, {"blocks": 3}, smallest_batch=2),
    "resnet56": Architecture("resnet", _COLOUR, {"blocks": 9}, smallest_batch=2),
    "resnet110": Architecture("resnet", _COLOUR, {"blocks": 18}, smallest_batch=2),
    "wrn56_4": Architecture("resnet", _COLOUR, {"blocks": 9, "widths": (64, 128, 256)}, smallest_batch=2),
    "resnet20_gn": Architecture("resnet", _COLOUR, {"blocks": 3, "groups": 2}),
    "resnet18": Architecture("resnet", (3, 64, 64), {"blocks": 2, "widths": (64, 128, 256, 512), "stem": 7}, smallest_batch=2),
    "densenet121": Architecture("densenet", _COLOUR, {"blocks": (6, 12, 24, 16)}, smallest_batch=2, smallest_side=8),
    "alexnet_cifar": Architecture("alexnet_cifar", _COLOUR, smallest_side=29),
    "fedima_cnn_fmnist": Architecture("fedima_cnn", _GREY, {"width": 32}, smallest_side=16),
    "fedima_cnn_cifar": Architecture("fedima_cnn", _COLOUR, {"width": 64}, smallest_side=16),
    "fedima_cnn_64px": Architecture("fedima_cnn", (3, 64, 64), {"width": 32}, smallest_side=16),
    "fedima_cnn_digits": Architecture("fedima_cnn_digits", (3, 28, 28), smallest_side=8),
    "fedima_resnet18": Architecture("fedima_resnet", _COLOUR),
    "fedima_vgg11": Architecture("fedima_vgg", _COLOUR, smallest_side=32),
    "fedima_alexnet": Architecture("fedima_alexnet", (3, 224, 224), smallest_side=63),
    "char_lstm": Architecture("char_lstm", (80,), {"embedding": 8, "hidden": 64, "layers": 1}),
    "shakespeare_lstm": Architecture("char_lstm", (80,), {"embedding": 8, "hidden": 256, "layers": 2}),
    "grid_detector": Architecture("grid_detector", (3, 64, 64), smallest_side=8, stackable=False, detects=True),
}


def primary_metric(model: str) -> str:
    """What runs of `model` are judged by: test_map50 for a detector, test_accuracy for all others."""
    return MODELS[model].metric if model in MODELS else "test_accuracy"
