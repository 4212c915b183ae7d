"""A small anchor-free detector in place of FedGH's YOLOv8n, trained from scratch; 98,005 parameters for one class.

Five convolutions k3 (3-16-32-64-64-64, the first three with stride 2), each with GroupNorm and ReLU, then one of k1 to a score
for each class and four distances at every place of a grid of stride 8: 64 places for a 64x64 image. From FCOS (Tian, Shen,
Chen, He, ICCV 2019, https://arxiv.org/abs/1904.01355): distances to the sides of the box, positive places near its centre, the
smaller of two objects if both claim a place, focal loss (Lin et al., ICCV 2017, https://arxiv.org/abs/1708.02002). Ours: one
grid, generalised IoU loss (Rezatofighi et al., CVPR 2019, https://arxiv.org/abs/1902.09630), no centredness.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.detection import Boxes, detections, map50
from fedrepro.tree import Tree

WIDTHS, STRIDES, GROUPS = (16, 32, 64, 64, 64), (2, 2, 2, 1, 1), 8
STRIDE = math.prod(STRIDES)
# A place starts with this probability of an object (Lin et al., section 3.3). It is a constant here, so that every model's
# initial weights are drawn alike.
PRIOR = 0.01
# Positive places lie within this share of the box's sides around its centre, or are the nearest to it (our choice).
REACH = 0.5


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    param_shapes: dict[str, tuple[int, ...]] = {}
    channels = input_shape[0]
    for layer, width in enumerate(WIDTHS, 1):
        param_shapes[f"conv{layer}.weight"] = (width, channels, 3, 3)
        param_shapes |= {f"norm{layer}.weight": (width,), f"norm{layer}.bias": (width,)}
        channels = width
    return param_shapes | {"head.weight": (classes + 4, channels, 1, 1), "head.bias": (classes + 4,)}


def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """Outputs [..., B, A, classes + 4] for images x [..., B, C, H, W] at A = ceil(H/8) * ceil(W/8) places, row by row.

    For each place: the classes' logits, then the distances in pixels, > 0, from its centre to the box's left, top, right and
    bottom. The model has no buffers.
    """
    h = x
    for layer, stride in enumerate(STRIDES, 1):
        h = ops.conv2d(h, params[f"conv{layer}.weight"], stride=stride, padding=1)
        h = ops.relu(ops.group_norm(h, GROUPS, params[f"norm{layer}.weight"], params[f"norm{layer}.bias"]))
    outputs = ops.conv2d(h, params["head.weight"], params["head.bias"]).flatten(-2).mT
    scores, sides = outputs[..., :-4], outputs[..., -4:]
    # This is softplus. Of so few numbers in a row torch's own takes log1p from the C library, whose versions round differently.
    positive_sides = -F.logsigmoid(-sides)
    return torch.cat([scores - math.log(1 / PRIOR - 1), STRIDE * positive_sides], -1), buffers


def loss(outputs: Tensor, y: Tensor, input_shape: tuple[int, int, int]) -> Tensor:
    """Focal loss of all places plus generalised IoU loss of the positive ones. Both are sums over the batch, divided by the
    number of positives (1 if there is none). Outputs [B, A, classes + 4], boxes y [B, M, 5]."""
    from torchvision.ops import generalized_box_iou_loss, sigmoid_focal_loss

    logits, truth = outputs[..., :-4], Boxes.of(y, input_shape)
    owner, positive = assign(truth, _centres(outputs, input_shape))
    classes = truth.classes.gather(1, owner)  # [B, A]
    class_targets = F.one_hot(classes.clamp_min(0), logits.shape[-1]) * positive.unsqueeze(-1)
    focal_loss = sigmoid_focal_loss(logits, class_targets.to(logits.dtype), reduction="sum")
    box_targets = truth.corners.gather(1, owner.unsqueeze(-1).expand(-1, -1, 4))
    iou_loss = generalized_box_iou_loss(corners(outputs, input_shape)[positive], box_targets[positive], reduction="sum")
    return (focal_loss + iou_loss) / positive.sum().clamp_min(1)


def metrics(outputs: Tensor, y: Tensor, input_shape: tuple[int, int, int]) -> dict[str, float]:
    """test_map50, a share in 0..1, for outputs [B, A, classes + 4] and boxes y [B, M, 5]."""
    predictions = detections(outputs[..., :-4].sigmoid(), corners(outputs, input_shape))
    return {"test_map50": map50(predictions, Boxes.of(y, input_shape))}


def corners(outputs: Tensor, input_shape: tuple[int, int, int]) -> Tensor:
    """Predicted boxes [B, A, 4] as left, top, right, bottom in pixels."""
    centres, sides = _centres(outputs, input_shape), outputs[..., -4:]
    return torch.cat([centres - sides[..., :2], centres + sides[..., 2:]], -1)


def assign(truth: Boxes, centres: Tensor) -> tuple[Tensor, Tensor]:
    """(owner, positive) [B, A]: which of an image's M boxes belongs to each place [A, 2], and whether any does."""
    low, high = truth.corners[..., :2], truth.corners[..., 2:]
    reach = (REACH * (high - low) / 2).clamp_min(STRIDE / 2)  # the nearest place is at most half a stride away
    distance = (centres[None, :, None] - ((low + high) / 2)[:, None]).abs()  # [B, A, M, 2]
    is_claimed = (distance <= reach[:, None]).all(-1) & (truth.classes >= 0)[:, None]
    area = (high - low).prod(-1)[:, None].expand_as(is_claimed)
    return area.masked_fill(~is_claimed, math.inf).argmin(-1), is_claimed.any(-1)


def _centres(outputs: Tensor, input_shape: tuple[int, int, int]) -> Tensor:
    """Centres (x, y) of the places in pixels, [A, 2]."""
    rows, columns = (-(-side // STRIDE) for side in input_shape[1:])
    axis = lambda count: (torch.arange(count, dtype=outputs.dtype, device=outputs.device) + 0.5) * STRIDE  # noqa: E731
    y, x = torch.meshgrid(axis(rows), axis(columns), indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], -1)
