"""ResNet for 32x32 images. He, Zhang, Ren, Sun, CVPR 2016, https://arxiv.org/abs/1512.03385, section 4.2, of depth 6k + 2.

conv 3-16 k3; three stages of k basic blocks with 16, 32, 64 channels, the second and third at half the resolution; average over
all places; linear. BatchNorm after every convolution, no convolution has a bias. Shortcuts that change shape are projections
(1x1 convolution and BatchNorm), as in the networks of FedLAW's tables: 78,042 parameters at k = 1 (ResNet-8, FedDF's model) and
272,474 at k = 3 (ResNet-20), 10 classes.
"""

from collections.abc import Iterator

from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.batch_norm import BatchNorms
from fedrepro.tree import Tree

WIDTHS = (16, 32, 64)


def shapes(input_shape: tuple[int, int, int], classes: int, blocks: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order; `blocks` is k. Any height and width will do."""
    found: dict[str, tuple[int, ...]] = {}
    for conv, norm, (channels, width, size) in _layers(blocks):
        found[f"{conv}.weight"] = (width, channels or input_shape[0], size, size)
        found |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
    return found | {"fc.weight": (classes, WIDTHS[-1]), "fc.bias": (classes,)}


def buffer_shapes(blocks: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the running statistics, in the order of the forward pass."""
    sizes = {norm: width for _, norm, (_, width, _) in _layers(blocks)}
    return {f"{norm}.{kind}": (width,) for norm, width in sizes.items() for kind in ("running_mean", "running_var")}


def forward(
    params: Tree, buffers: Tree, x: Tensor, train: bool, blocks: int, valid: Tensor | None = None
) -> tuple[Tensor, Tree]:
    """Logits [..., B, classes] of images x [..., B, C, H, W], and the running statistics after this pass.

    `valid` [K]: how many of each client's samples are real, the rest being padding behind them.
    """
    norms = BatchNorms(params, buffers, train, valid)

    def conv_bn(h: Tensor, conv: str, norm: str, stride: int = 1, padding: int = 1) -> Tensor:
        return norms(norm, ops.conv2d(h, params[f"{conv}.weight"], stride=stride, padding=padding))

    h = ops.relu(conv_bn(x, "conv", "bn"))
    for name, channels, width in _blocks(blocks):
        stride = 2 if width > channels else 1
        inner = ops.relu(conv_bn(h, f"{name}.conv1", f"{name}.bn1", stride))
        inner = conv_bn(inner, f"{name}.conv2", f"{name}.bn2")
        if stride > 1:
            h = conv_bn(h, f"{name}.conv3", f"{name}.bn3", stride, padding=0)
        h = ops.relu(inner + h)
    return ops.linear(h.mean((-2, -1)), params["fc.weight"], params["fc.bias"]), norms.after()


def _blocks(blocks: int) -> Iterator[tuple[str, int, int]]:
    """(name, channels in, channels out) of every basic block."""
    channels = WIDTHS[0]
    for stage, width in enumerate(WIDTHS, 1):
        for block in range(1, blocks + 1):
            yield f"stage{stage}.block{block}", channels, width
            channels = width


def _layers(blocks: int) -> Iterator[tuple[str, str, tuple[int, int, int]]]:
    """(convolution, its norm, (channels in, channels out, kernel size)), as the pass meets them; 0: the image's channels."""
    yield "conv", "bn", (0, WIDTHS[0], 3)
    for name, channels, width in _blocks(blocks):
        yield f"{name}.conv1", f"{name}.bn1", (channels, width, 3)
        yield f"{name}.conv2", f"{name}.bn2", (width, width, 3)
        if width > channels:
            yield f"{name}.conv3", f"{name}.bn3", (channels, width, 1)
