"""Architectures compared with torch.nn modules that this file builds from the papers' descriptions."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from fedrepro import tree
from fedrepro.errors import UserError
from fedrepro.models import Model, build, initial, ops
from fedrepro.models import fedima_alexnet as fedima_alexnet_model
from fedrepro.models.names import MODELS
from fedrepro.tree import Tree
from tests.toy import normal


class Block(nn.Module):
    """Two 3x3 convolutions with a shortcut. If the shape changes, the first has stride 2 and the shortcut is projected."""

    def __init__(self, channels: int, width: int, norm: Callable[[int], nn.Module] = nn.BatchNorm2d) -> None:
        super().__init__()
        stride = 1 if channels == width else 2
        self.inner = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False),
            norm(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            norm(width),
        )
        projection = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), norm(width))
        self.shortcut = nn.Identity() if stride == 1 else projection

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.inner(x) + self.shortcut(x))


def resnet18(classes: int = 10) -> nn.Sequential:
    """7x7 stem and 3x3 maximum, both with stride 2; four stages of two blocks with 64 to 512 channels."""
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    body = [Block(before, after) for before, after in pairwise([64, 64, 64, 128, 128, 256, 256, 512, 512])]
    return nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def fedgh_cnn(*last: nn.Module) -> nn.Sequential:
    """Two 5x5 convolutions without padding and one pooling, then 9216-128-10, as FedGH prints it. Dropout is tested
    separately."""
    convolutions = [nn.Conv2d(3, 32, 5), nn.ReLU(), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*convolutions, nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10), *last)


def mcmahan_cifar() -> nn.Sequential:
    """TensorFlow's tutorial network. torch divides alpha by the window, so alpha / 9 per element is 0.001 in TensorFlow."""
    norm = lambda: nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1.0)  # noqa: E731
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)  # noqa: E731
    first = [nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), pool(), norm()]
    second = [nn.Conv2d(64, 64, 5, padding=2), nn.ReLU(), norm(), pool(), nn.Flatten()]
    return nn.Sequential(*first, *second, *linears(4096, 384, 192, 10))


def reddi_emnist() -> nn.Sequential:
    """Two 3x3 convolutions without padding on 28x28 grey images, one pooling, 9216-128-10. Dropout is tested separately."""
    convolutions = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*convolutions, *linears(9216, 128, 10))


def fedima_cnn(channels: int, width: int, flat: int) -> nn.Sequential:
    """Two 5x5 convolutions without padding, each with ReLU and 2x2 pooling, then 384-128-10."""
    return nn.Sequential(*pooled(channels, width, 5), *pooled(width, width, 5), nn.Flatten(), *linears(flat, 384, 128, 10))


def normed(channels: int, width: int, size: int, groups: int, stride: int = 1) -> list[nn.Module]:
    """A convolution that keeps the size of an image (k11 with stride 4: padding 2), GroupNorm, ReLU."""
    padding = 2 if size == 11 else size // 2
    return [nn.Conv2d(channels, width, size, stride, padding), nn.GroupNorm(groups, width), nn.ReLU()]


def fedima_cnn_digits() -> nn.Sequential:
    """Three 5x5 convolutions, each normalised and pooled, then 1152-384-128-10, without ReLU after the 128, the feature."""
    layers = [[*normed(before, after, 5, 2), nn.MaxPool2d(2)] for before, after in ((3, 64), (64, 64), (64, 128))]
    last = [nn.Linear(1152, 384), nn.ReLU(), nn.Linear(384, 128), nn.Linear(128, 10)]
    return nn.Sequential(*layers[0], *layers[1], *layers[2], nn.Flatten(), *last)


def fedima_resnet18(classes: int = 10) -> nn.Sequential:
    """3x3 stem, four stages of two blocks with 64 to 512 channels, GroupNorm of two groups; 512-128-classes without ReLU."""
    norm = lambda width: nn.GroupNorm(2, width)  # noqa: E731
    stem = [nn.Conv2d(3, 64, 3, padding=1, bias=False), norm(64), nn.ReLU()]
    body = [Block(before, after, norm) for before, after in pairwise([64, 64, 64, 128, 128, 256, 256, 512, 512])]
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 128), nn.Linear(128, classes)]
    return nn.Sequential(*stem, *body, *last)


def fedima_vgg11() -> nn.Sequential:
    """64, M, 128, M, 256, 256, M, 512, 512, M, 512, 512, M; 512-128-10 without ReLU."""
    layers: list[nn.Module] = []
    channels = 3
    for width in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):
        layers += normed(channels, width, 3, 2) if width else [nn.MaxPool2d(2)]
        channels = width or channels
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 128), nn.Linear(128, 10))


def fedima_alexnet() -> nn.Sequential:
    """torchvision's convolutions with GroupNorm of 32 groups; 9216-1024-512-10, no dropout."""
    pool = lambda: nn.MaxPool2d(3, 2)  # noqa: E731
    first = [*normed(3, 64, 11, 32, stride=4), pool(), *normed(64, 192, 5, 32), pool()]
    second = [*normed(192, 384, 3, 32), *normed(384, 256, 3, 32), *normed(256, 256, 3, 32), pool()]
    return nn.Sequential(*first, *second, nn.AdaptiveAvgPool2d(6), nn.Flatten(), *linears(9216, 1024, 512, 10))


def pooled(channels: int, width: int, size: int, padding: int = 0) -> list[nn.Module]:
    """A convolution, ReLU, and the maximum of 2x2."""
    return [nn.Conv2d(channels, width, size, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]


def linears(*widths: int) -> list[nn.Module]:
    """Linear layers with ReLU between them."""
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return layers[:-1]


def resnet(blocks: int, norm: Callable[[int], nn.Module] = nn.BatchNorm2d) -> nn.Sequential:
    """3x3 stem, three stages of 16, 32 and 64 channels, average over all places, linear."""
    widths = [16] * (blocks + 1) + [32] * blocks + [64] * blocks
    stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), norm(16), nn.ReLU()]
    body = [Block(before, after, norm) for before, after in pairwise(widths)]
    return nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Dense(nn.Module):
    """A layer of a dense block: norm, ReLU, 1x1 to 128; norm, ReLU, 3x3 to 32, joined to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        narrow = [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 128, 1, bias=False)]
        self.inner = nn.Sequential(*narrow, nn.BatchNorm2d(128), nn.ReLU(), nn.Conv2d(128, 32, 3, padding=1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.inner(x)], 1)


def densenet121() -> nn.Sequential:
    """3x3 stem of 64; 6, 12, 24 and 16 dense layers; between them 1x1 to half the channels and 2x2 means."""
    layers, channels = [nn.Conv2d(3, 64, 3, padding=1, bias=False)], 64
    for count in (6, 12, 24, 16):
        layers += [Dense(channels + 32 * layer) for layer in range(count)]
        channels += 32 * count
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        if count != 16:
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def alexnet_cifar() -> nn.Sequential:
    """64 k11 stride 4 padding 5, M, 192 k5 padding 2, M, 384, 256, 256 k3 padding 1, M; linear 256-10."""
    first = [nn.Conv2d(3, 64, 11, 4, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 192, 5, padding=2), nn.ReLU()]
    second = [nn.MaxPool2d(2), nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(), nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()]
    third = [nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*first, *second, *third, nn.Linear(256, 10))


# FedLAW: MLP 784-200-200-10; "LeNet" conv 16 and 32, k5 pad 2, each with ReLU and 2x2 pooling, then linear 1568-10; "SimpleCNN"
# conv 32, 64, 64, k3 without padding, the first two pooled, then 1024-64-10.
REFERENCES: dict[str, Callable[[], nn.Sequential]] = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), *linears(784, 200, 200, 10)),
    "mlp_colour": lambda: nn.Sequential(nn.Flatten(), *linears(2352, 200, 200, 10)),
    "two_nn": lambda: nn.Sequential(nn.Flatten(), *linears(784, 512, 256, 10)),
    "logistic": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10)),
    "logistic_sigmoid": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.Sigmoid()),
    "mnist_cnn": lambda: nn.Sequential(*pooled(1, 32, 5), *pooled(32, 64, 5), nn.Flatten(), *linears(1024, 512, 10)),
    "lenet": lambda: nn.Sequential(*pooled(1, 16, 5, 2), *pooled(16, 32, 5, 2), nn.Flatten(), nn.Linear(1568, 10)),
    "simple_cnn": lambda: nn.Sequential(
        *pooled(3, 32, 3), *pooled(32, 64, 3), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), *linears(1024, 64, 10)
    ),
    "resnet8": lambda: resnet(1),
    "resnet20": lambda: resnet(3),
    "resnet56": lambda: resnet(9),
    "resnet20_gn": lambda: resnet(3, lambda width: nn.GroupNorm(2, width)),
    "densenet121": densenet121,
    "alexnet_cifar": alexnet_cifar,
    "resnet18": resnet18,
    "fedgh_cnn": fedgh_cnn,
    "fedgh_cnn_relu": lambda: fedgh_cnn(nn.ReLU()),
    "mcmahan_cifar": mcmahan_cifar,
    "reddi_emnist": reddi_emnist,
    "fedima_cnn_fmnist": lambda: fedima_cnn(1, 32, 512),
    "fedima_cnn_cifar": lambda: fedima_cnn(3, 64, 1600),
    "fedima_cnn_64px": lambda: fedima_cnn(3, 32, 5408),
    "fedima_cnn_digits": fedima_cnn_digits,
    "fedima_resnet18": fedima_resnet18,
    "fedima_vgg11": fedima_vgg11,
    "fedima_alexnet": fedima_alexnet,
}
# mlp 784*200 + 200 + 200*200 + 200 + 200*10 + 10; lenet (25 + 1)*16 + (16*25 + 1)*32 + 1568*10 + 10; simple_cnn (27 + 1)*32 +
# (288 + 1)*64 + (576 + 1)*64 + 1025*64 + 65*10; each class of the last three costs 65. On grey 28x28 images SimpleCNN's flat
# features shrink to 64*3*3 (28, 26, 13, 11, 5, 3) and its first layer to (9 + 1)*32. A ResNet loses 2*9*16 in its first layer
# and does not depend on the size.
PARAMETERS = [
    ("mlp", (1, 28, 28), 10, 199_210),
    ("mlp_colour", (3, 28, 28), 10, 512_810),  # 2352 x 200 + 200 + 40,200 + 2,010
    ("two_nn", (1, 28, 28), 10, 535_818),
    ("logistic", (1, 28, 28), 10, 7_850),
    ("logistic_sigmoid", (1, 28, 28), 10, 7_850),
    ("mnist_cnn", (1, 28, 28), 10, 26 * 32 + 801 * 64 + 1025 * 512 + 513 * 10),
    ("lenet", (1, 28, 28), 10, 28_938),
    ("simple_cnn", (3, 32, 32), 10, 122_570),
    ("simple_cnn", (3, 32, 32), 100, 128_420),
    ("simple_cnn", (1, 28, 28), 10, 122_570 - 18 * 32 - 64 * 64 * 7),
    ("resnet8", (3, 32, 32), 10, 78_042),
    ("resnet8", (3, 32, 32), 100, 78_042 + 90 * 65),
    ("resnet8", (1, 28, 28), 10, 78_042 - 288),
    ("resnet8", (3, 64, 64), 10, 78_042),
    ("resnet20", (3, 32, 32), 10, 272_474),
    ("resnet20", (3, 32, 32), 100, 278_324),
    ("resnet56", (3, 32, 32), 10, 855_770),
    ("resnet110", (3, 32, 32), 10, 1_730_714),
    ("wrn56_4", (3, 32, 32), 10, 13_628_234),
    ("densenet121", (3, 32, 32), 10, 6_956_298),
    ("densenet121", (1, 28, 29), 100, 6_956_298 - 2 * 9 * 64 + 90 * 1025),
    ("alexnet_cifar", (3, 32, 32), 10, 2_472_266),
    ("alexnet_cifar", (3, 64, 64), 100, 2_472_266 + 90 * 257 + 300 * 256),  # 64 -> 16 -> 8 -> 4 -> 2: four places
    ("resnet20_gn", (3, 32, 32), 10, 272_474),
    ("resnet20_gn", (3, 32, 32), 100, 278_324),
    ("resnet18", (3, 64, 64), 200, 11_279_112),
    ("fedgh_cnn", (3, 32, 32), 10, 1_234_762),
    ("fedgh_cnn_relu", (3, 32, 32), 10, 1_234_762),
    ("mcmahan_cifar", (3, 32, 32), 10, 1_756_426),
    ("mcmahan_cifar", (3, 24, 24), 10, 1_068_298),
    ("reddi_emnist", (1, 28, 28), 62, 1_206_590),
    ("reddi_emnist", (1, 28, 28), 10, 1_199_882),
    ("fedima_cnn_fmnist", (1, 28, 28), 10, 274_026),
    ("fedima_cnn_cifar", (3, 32, 32), 10, 772_682),
    ("fedima_cnn_64px", (3, 64, 64), 7, 2_155_303),
    ("fedima_cnn_digits", (3, 28, 28), 10, 806_090),
    ("fedima_resnet18", (3, 32, 32), 10, 11_235_786),
    ("fedima_resnet18", (3, 32, 32), 100, 11_247_396),
    ("fedima_vgg11", (3, 32, 32), 100, 9_304_548),
    ("fedima_alexnet", (3, 224, 224), 7, 12_438_599),
]
SMALL = {
    "mlp": (1, 4, 4),
    "mlp_colour": (3, 4, 4),
    "two_nn": (1, 2, 3),
    "logistic": (2, 3, 3),
    "mnist_cnn": (1, 16, 18),
    "lenet": (1, 8, 8),
}
SMALL |= {
    "logistic_sigmoid": (2, 3, 3),
    "simple_cnn": (2, 18, 20),
    "resnet8": (2, 9, 12),
    "resnet20": (1, 8, 8),
    "resnet20_gn": (2, 8, 10),
    "resnet18": (1, 32, 35),
}
SMALL |= {"fedgh_cnn": (1, 10, 13), "fedgh_cnn_relu": (1, 10, 13), "mcmahan_cifar": (2, 6, 9), "reddi_emnist": (1, 6, 9)}
SMALL |= {"fedima_cnn_fmnist": (1, 16, 20), "fedima_cnn_cifar": (2, 16, 20)}
SMALL |= {"fedima_cnn_64px": (1, 16, 17), "fedima_cnn_digits": (2, 8, 17)}
SMALL |= {
    "fedima_resnet18": (1, 8, 9),
    "fedima_vgg11": (1, 32, 35),
    "fedima_alexnet": (1, 63, 66),
}
SMALL |= dict.fromkeys(("resnet56", "resnet110", "wrn56_4"), (1, 8, 8)) | {
    "densenet121": (2, 16, 19),
    "alexnet_cifar": (2, 29, 61),
}
NORMS = ["resnet8", "resnet20", "resnet56", "resnet110", "wrn56_4", "resnet18", "densenet121"]
# Smaller images for models whose paper's images would take long in float64.
SHAPES = {name: known.input_shape for name, known in MODELS.items()}
SHAPES |= dict.fromkeys(("resnet56", "densenet121"), (3, 16, 16)) | {"fedima_resnet18": (3, 8, 8)}
SHAPES |= {"fedima_alexnet": (3, 63, 66)}
SMALLEST = {
    "mlp": 1,
    "mnist_cnn": 16,
    "lenet": 4,
    "simple_cnn": 18,
    "resnet8": 1,
    "resnet20": 1,
    "resnet20_gn": 1,
    "densenet121": 8,
    "alexnet_cifar": 29,
    "resnet18": 1,
    "fedgh_cnn": 10,
    "mcmahan_cifar": 4,
    "reddi_emnist": 6,
    "fedima_cnn_fmnist": 16,
    "fedima_cnn_cifar": 16,
    "fedima_cnn_64px": 16,
    "fedima_cnn_digits": 8,
    "fedima_vgg11": 32,
    "fedima_alexnet": 63,
}
CLASSIFIERS = [name for name, known in MODELS.items() if not known.detects and known.reads == "images"]
# Training and evaluation differ with BatchNorm or dropout.
BOTH_MODES = [(name, True) for name in REFERENCES]
BOTH_MODES += [(name, False) for name in ("resnet8", "densenet121", "fedgh_cnn")]
# One model for each module, and for each kind of norm.
EVERY_MODULE = [*{MODELS[name].module: name for name in CLASSIFIERS if name != "resnet18"}.values(), "resnet8"]


def statistics(model: Model, *clients: int) -> Tree:
    """Running statistics that are not 0 and 1, with positive variances."""
    flat = normal(*clients, model.buffer_layout.size, seed=5)
    buffers = Tree(model.buffer_layout, flat)
    for name, view in buffers.items():
        if name.endswith("running_var"):
            view.copy_(0.5 + view.abs())
    return buffers


def test_every_model_has_a_reference_here() -> None:
    """A new architecture needs a line here. Detectors have their own tests. Two without a reference are ResNet-56 with more
    blocks or channels, which their numbers of parameters show."""
    assert set(CLASSIFIERS) == {*REFERENCES, "resnet110", "wrn56_4"} == {name for name, *_ in PARAMETERS} == set(SMALL)


@pytest.mark.parametrize(("name", "shape", "classes", "expected"), PARAMETERS)
def test_parameter_count(name: str, shape: tuple[int, int, int], classes: int, expected: int) -> None:
    """Counts are as published, and right for other numbers of classes and images."""
    assert build(name, shape, classes).parameters == expected


def as_module(name: str, params: Tree, buffers: Tree) -> nn.Sequential:
    """The reference with the given weights and statistics. It is built without initial weights."""
    with torch.device("meta"):
        module = REFERENCES[name]()
    module = module.double().to_empty(device="cpu")
    for parameter, (_, value) in zip(module.parameters(), params.items(), strict=True):
        assert parameter.shape == value.shape
        parameter.data.copy_(value.detach())
    running = [(key, b) for key, b in module.named_buffers() if not key.endswith("num_batches_tracked")]
    for (key, buffer), (kind, value) in zip(running, buffers.items(), strict=True):
        assert key.split(".")[-1] == kind.split(".")[-1]
        buffer.copy_(value)
    return module


def running_of(module: nn.Module) -> Tensor:
    """The module's running statistics as one vector."""
    kept = [b.flatten() for key, b in module.named_buffers() if not key.endswith("num_batches_tracked")]
    return torch.cat(kept) if kept else torch.zeros(0, dtype=torch.float64)


def passed(model: Model, params: Tree, buffers: Tree, x: Tensor, y: Tensor, train: bool = True) -> tuple[Tensor, Tree, Tensor]:
    """Logits and statistics of one pass, and in training the gradient that follows from it."""
    if not train:
        return *model.forward(params, buffers, x, train), torch.zeros(0)
    found: list[tuple[Tensor, Tree]] = []

    def loss(p: Tree) -> Tensor:
        found.append(model.forward(p, buffers, x, train))
        return ops.cross_entropy(found[0][0], y)

    gradient = tree.gradient(loss, params).flat
    ((logits, after),) = found
    return logits.detach(), after, gradient


@pytest.mark.parametrize(("name", "train"), BOTH_MODES)
def test_forward_gradient_and_statistics_equal_the_module(name: str, train: bool) -> None:
    """With the same weights and images, in float64: logits, the running statistics after two passes, and in training gradients
    agree. Evaluation returns the buffers that it was given, and no argument is modified."""
    model = build(name, SHAPES[name], 10)
    params = Tree(model.layout, initial.draw(model, 8).flat.double() + 0.01 * normal(model.parameters))
    buffers = statistics(model)
    kept = buffers.flat.clone()
    module = as_module(name, params, buffers).train(train)
    x, y = normal(3, *SHAPES[name]), torch.tensor([0, 3, 9])
    logits, after, gradient = passed(model, params, buffers, x, y, train)
    for number in range(2 if name in NORMS else 1):
        if number == 1:
            logits, after = model.forward(params, after, x, train)
        expected = module(x)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
        torch.testing.assert_close(after.flat, running_of(module), rtol=0, atol=1e-10)
        if train and number == 0:
            theirs = torch.autograd.grad(nn.functional.cross_entropy(expected, y), list(module.parameters()))
            torch.testing.assert_close(gradient, torch.cat([g.flatten() for g in theirs]), rtol=0, atol=1e-10)
    assert torch.equal(buffers.flat, kept)
    assert (after is buffers) == (not train or not model.buffer_layout.names)


@pytest.mark.parametrize(
    ("name", "train"), [(name, True) for name in EVERY_MODULE] + [("resnet8", False), ("fedgh_cnn", False)]
)
def test_clients_side_by_side_equal_each_alone(name: str, train: bool) -> None:
    """Weights, statistics and images have a leading axis of two clients. Logits, gradients and statistics agree to 1e-10."""
    model = build(name, SMALL[name], 5)
    params = Tree(model.layout, 0.1 * normal(2, model.parameters) + initial.draw(model, 8).flat.double())
    buffers = statistics(model, 2)
    x, y = normal(2, 4, *SMALL[name], seed=1), torch.arange(8).reshape(2, 4) % 5
    logits, after, together = passed(model, params, buffers, x, y, train)
    for k in range(2):
        mine, own = Tree(model.layout, params.flat[k]), Tree(model.buffer_layout, buffers.flat[k])
        alone, left, gradient = passed(model, mine, own, x[k], y[k], train)
        # Random weights make the logits of a deep network large, in the thousands. So they agree to a few units in the last
        # place.
        torch.testing.assert_close(logits[k], alone, rtol=1e-12, atol=1e-10)
        torch.testing.assert_close(after.flat[k], left.flat, rtol=0, atol=1e-10)
        torch.testing.assert_close(together[k] if train else together, gradient, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("name", ["resnet8", "densenet121"])
def test_padding_has_no_part(name: str) -> None:
    """Two clients have batches of five, and the second has only three real samples. Its logits and statistics are those of the
    three."""
    model = build(name, SMALL[name], 5)
    params, buffers = initial.draw(model, 8), statistics(model, 2)
    both, x = Tree(model.layout, params.flat.double().expand(2, -1)), normal(2, 5, *SMALL[name])
    logits, after = model.forward(both, buffers, x, True, valid=torch.tensor([5, 3]))
    for k, real in enumerate((5, 3)):
        own = Tree(model.buffer_layout, buffers.flat[k])
        alone, left = model.forward(both.like(both.flat[k]), own, x[k, :real], True)
        torch.testing.assert_close(logits[k, :real], alone, rtol=0, atol=1e-10)
        torch.testing.assert_close(after.flat[k], left.flat, rtol=0, atol=1e-10)


@pytest.mark.parametrize("places", [*range(1, 15), 20])
def test_alexnet_means_over_windows_as_torch(places: int) -> None:
    """Means and gradients are those of torch's adaptive pooling to 6 x 6, for maps of one to twenty places per side."""
    x = normal(2, 3, places, 7).requires_grad_()
    found = fedima_alexnet_model._windows(fedima_alexnet_model._windows(x, -2), -1)
    expected = nn.functional.adaptive_avg_pool2d(x, 6)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    pull = normal(2, 3, 6, 6, seed=1)
    (mine,), (theirs,) = (torch.autograd.grad(y, x, pull) for y in (found, expected))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_statistics_before_any_training(name: str) -> None:
    """Means are 0 and variances 1, in float32. Models without BatchNorm have none; models with it take no batch of one
    sample."""
    model = build(name, MODELS[name].input_shape, 10)
    assert model.first_buffers().flat.dtype == torch.float32
    assert bool(model.buffer_layout.names) == (name in NORMS)
    assert model.smallest_batch == MODELS[name].smallest_batch == (2 if name in NORMS else 1)
    for kind, values in model.first_buffers().items():
        assert (values == (1 if kind.endswith("running_var") else 0)).all()


@pytest.mark.parametrize("name", NORMS)
def test_one_sample_is_too_few(name: str) -> None:
    """With one place per image a batch of one has no variance, and the error says so. Evaluation works."""
    side = max(4, MODELS[name].smallest_side)
    model = build(name, (1, side, side), 3)
    params, x = initial.draw(model, 8), torch.ones(1, 1, side, side)
    with pytest.raises(ValueError, match="more than one value a channel"):
        model.forward(params, model.first_buffers(), x, True)
    assert torch.isfinite(model.forward(params, model.first_buffers(), x, False)[0]).all()


@pytest.mark.parametrize(("name", "smallest"), [*SMALLEST.items()])
def test_the_smallest_image(name: str, smallest: int) -> None:
    """SimpleCNN: 18, 16, 8, 6, 3, 1; MNIST's CNN: 16, 12, 6, 2, 1; LeNet: 4, 2, 1. With this side the output depends on the
    image. One pixel less in height or width gives an error of one line."""
    model = build(name, (1, smallest, smallest), 3)
    params, x = initial.draw(model, 8), normal(2, 1, 1, smallest, smallest).float()
    first, second = (model.forward(params, model.first_buffers(), image, False)[0] for image in x)
    assert not torch.equal(first, second)
    for shape in ((1, smallest - 1, 32), (1, 32, smallest - 1)) if smallest > 1 else ():
        says = f"^{name}: images of {shape[1]}x{shape[2]} are too small; it needs at least {smallest} each way"
        with pytest.raises(UserError, match=says):
            build(name, shape, 3)


@pytest.mark.parametrize("name", ["mlp", "two_nn", "logistic", "logistic_sigmoid"])
def test_closed_form_gradient(name: str) -> None:
    """The closed form of perceptrons equals autograd in float64 to 1e-12, and no argument is modified."""
    model = build(name, (1, 4, 4), 5)
    params = Tree(model.layout, initial.draw(model, 8).flat.double())
    x, y = normal(7, 1, 4, 4), torch.tensor([0, 4, 4, 1, 2, 3, 0])
    kept = params.flat.clone(), x.clone(), y.clone()
    assert model.gradient is not None
    expected = tree.gradient(lambda p: ops.cross_entropy(model.forward(p, model.first_buffers(), x, True)[0], y), params)
    torch.testing.assert_close(model.gradient(params, x, y).flat, expected.flat, rtol=0, atol=1e-12)
    assert all(torch.equal(a, b) for a, b in zip(kept, (params.flat, x, y), strict=True))
