"""ResNets of basic blocks. He, Zhang, Ren, Sun, CVPR 2016, https://arxiv.org/abs/1512.03385.

A norm follows every convolution, and no convolution has a bias. There are stages of `blocks` basic blocks each, all but the
first at half the resolution of the one before; then the average over all places; linear. Shortcuts that change shape are
projections (1x1 convolution and norm). The norm is BatchNorm or, with `groups`, GroupNorm over `groups` groups: the same
parameters, no statistics, and samples do not affect each other. Two groups, as in Reddi et al., ICLR 2021,
https://arxiv.org/abs/2003.00295, appendix C.

stem 3, widths 16, 32, 64 (section 4.2, depth 6 * blocks + 2, for 32x32 images): conv k3. The networks of FedLAW's tables:
78,042 parameters at 1 block (ResNet-8, FedDF's model), 272,474 at 3 (ResNet-20), 855,770 at 9 (ResNet-56) and 1,730,714 at 18
(ResNet-110), 10 classes. With widths 64, 128, 256 and 9 blocks it is WRN56-4: 13,628,234.
stem 7, widths 64 to 512, 2 blocks (table 1, ResNet-18): conv k7 and a 3x3 maximum, both with stride 2. FedGH's network for
Tiny-ImageNet: 11,279,112 parameters at 200 classes, as it prints (11.27M).
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.batch_norm import BatchNorms
from fedrepro.models.group_norm import GroupNorms
from fedrepro.tree import Tree

SMALL = (16, 32, 64)


def shapes(
    input_shape: tuple[int, int, int],
    classes: int,
    blocks: int,
    widths: tuple[int, ...] = SMALL,
    stem: int = 3,
    groups: int = 0,
) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order. `widths`: channels of each stage. `stem`: 3 or 7. `groups`: of GroupNorm, 0 for BatchNorm.
    Any height and width is allowed."""
    param_shapes: dict[str, tuple[int, ...]] = {}
    for conv, norm, (channels, width, size) in _layers(blocks, widths, stem):
        param_shapes[f"{conv}.weight"] = (width, channels or input_shape[0], size, size)
        param_shapes |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
    return param_shapes | {"fc.weight": (classes, widths[-1]), "fc.bias": (classes,)}


def buffer_shapes(blocks: int, widths: tuple[int, ...] = SMALL, stem: int = 3, groups: int = 0) -> dict[str, tuple[int, ...]]:
    """Shapes of the running statistics, in the order of the forward pass; GroupNorm has none."""
    if groups:
        return {}
    sizes = {norm: width for _, norm, (_, width, _) in _layers(blocks, widths, stem)}
    return {f"{norm}.{kind}": (width,) for norm, width in sizes.items() for kind in ("running_mean", "running_var")}


def features(
    params: Tree,
    buffers: Tree,
    x: Tensor,
    train: bool,
    blocks: int,
    widths: tuple[int, ...] = SMALL,
    stem: int = 3,
    groups: int = 0,
    valid: Tensor | None = None,
) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, F], for images x [..., B, C, H, W], and the running statistics after this pass.

    `valid` [K]: how many of each client's samples are real. The rest is padding behind them.
    """
    norms = GroupNorms(params, buffers, groups) if groups else BatchNorms(params, buffers, train, valid)

    def conv_norm(h: Tensor, conv: str, norm: str, stride: int = 1, padding: int = 1) -> Tensor:
        return norms(norm, ops.conv2d(h, params[f"{conv}.weight"], stride=stride, padding=padding))

    if stem == 3:
        h = conv_norm(x, "conv", "bn").relu_()
    else:
        h = ops.max_pool2d(conv_norm(x, "conv", "bn", stride=2, padding=3).relu_(), 3, stride=2, padding=1)
    for name, channels, width in _blocks(blocks, widths):
        stride = 2 if width > channels else 1
        residual = conv_norm(h, f"{name}.conv1", f"{name}.bn1", stride).relu_()
        residual = conv_norm(residual, f"{name}.conv2", f"{name}.bn2")
        if stride > 1:
            h = conv_norm(h, f"{name}.conv3", f"{name}.bn3", stride, padding=0)
        h = residual.add_(h).relu_()
    return h.mean((-2, -1)), norms.after()


def head(params: Tree, h: Tensor, **_: Any) -> Tensor:
    """Logits [..., B, classes] of features [..., B, F]."""
    return ops.linear(h, params["fc.weight"], params["fc.bias"])


def _blocks(blocks: int, widths: tuple[int, ...]) -> Iterator[tuple[str, int, int]]:
    """(name, channels in, channels out) of every basic block."""
    channels = widths[0]
    for stage, width in enumerate(widths, 1):
        for block in range(1, blocks + 1):
            yield f"stage{stage}.block{block}", channels, width
            channels = width


def _layers(blocks: int, widths: tuple[int, ...], stem: int) -> Iterator[tuple[str, str, tuple[int, int, int]]]:
    """(convolution, its norm, (channels in, channels out, kernel size)), in the order of the forward pass; 0: the image's
    channels."""
    yield "conv", "bn", (0, widths[0], stem)
    for name, channels, width in _blocks(blocks, widths):
        yield f"{name}.conv1", f"{name}.bn1", (channels, width, 3)
        yield f"{name}.conv2", f"{name}.bn2", (width, width, 3)
        if width > channels:
            yield f"{name}.conv3", f"{name}.bn3", (channels, width, 1)
