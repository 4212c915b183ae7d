"""The base of detectors: boxes in pixels, detections from scores, and mAP50 by COCO's own code.

mAP50: the area under the precision-recall curve, sampled at 101 recalls, averaged over the classes that occur. A detection
counts if it overlaps an object of its class by an IoU of at least 0.5. Everingham et al., IJCV 2010; the sampling is COCO's
(Lin et al., ECCV 2014, https://arxiv.org/abs/1405.0312). Only runs of detectors import torchvision and pycocotools.
"""

import contextlib
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Detections below this score, above this overlap with a better one, or beyond this number per image are dropped. The number is
# COCO's. A lower score and a higher overlap would raise mAP slightly and cost time (our choice).
LEAST_SCORE, MOST_OVERLAP, MAX_DETECTIONS = 0.01, 0.5, 100


@dataclass(frozen=True)
class Boxes:
    """Objects of B images, at most M in each. A class of -1 is padding."""

    corners: Tensor  # [B, M, 4]: left, top, right, bottom in pixels
    classes: Tensor  # int64 [B, M]

    @classmethod
    def of(cls, y: Tensor, input_shape: tuple[int, int, int]) -> "Boxes":
        """Makes boxes from (class, centre x, centre y, width, height) [B, M, 5], as shares of the image."""
        height, width = input_shape[1:]
        centre, size = y[..., 1:3], y[..., 3:5]
        scale = y.new_tensor([width, height, width, height])
        return cls(torch.cat([centre - size / 2, centre + size / 2], -1) * scale, y[..., 0].long())


@dataclass(frozen=True)
class Detections:
    """The detections in a set of images, image by image, otherwise in no order."""

    images: np.ndarray  # int [n], numbers of the images
    corners: np.ndarray  # [n, 4], pixels
    scores: np.ndarray  # [n], in 0..1
    classes: np.ndarray  # int [n]


def detections(scores: Tensor, corners: Tensor) -> Detections:
    """The best of scores [B, A, C] at places with boxes [B, A, 4]: each place's best class, unless a better one overlaps."""
    from torchvision.ops import batched_nms

    scores, corners = scores.detach().cpu(), corners.detach().cpu()
    best, classes = scores.max(-1)
    # If weights are not finite any more, there are no detections: a comparison with NaN is false.
    image, place = ((best > LEAST_SCORE) & corners.isfinite().all(-1)).nonzero(as_tuple=True)
    boxes, score, label = corners[image, place], best[image, place], classes[image, place]
    kept_index = batched_nms(boxes, score, image * scores.shape[-1] + label, MOST_OVERLAP)
    kept_index = kept_index.sort().values
    return Detections(*(column[kept_index].numpy() for column in (image, boxes, score, label)))


def map50(predictions: Detections, truth: Boxes) -> float:
    """mAP50 in 0..1. 0 if there is no object at all."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    is_object = (truth.classes >= 0).cpu()
    if not is_object.any() or not len(predictions.scores):
        return 0.0
    with contextlib.redirect_stdout(io.StringIO()):  # it reports its progress
        ground_truth: Any = COCO()  # its types do not include keys that may be left out, nor arrays
        ground_truth.dataset = _as_coco(truth, is_object)
        ground_truth.createIndex()
        boxes = np.concatenate([predictions.corners[:, :2], predictions.corners[:, 2:] - predictions.corners[:, :2]], 1)
        rows = np.column_stack([predictions.images, boxes, predictions.scores, predictions.classes]).astype(np.float64)
        evaluator = COCOeval(ground_truth, ground_truth.loadRes(rows), "bbox")
        evaluator.params.iouThrs, evaluator.params.maxDets = np.array([0.5]), [MAX_DETECTIONS]
        evaluator.params.areaRng, evaluator.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluator.evaluate()
        evaluator.accumulate()
    precision = evaluator.eval["precision"]  # [1, recalls, classes, 1, 1]; -1 for a class that does not occur
    return float(precision[precision > -1].mean())


def _as_coco(truth: Boxes, real: Tensor) -> dict[str, list[dict]]:
    """The objects in COCO's format: boxes as left, top, width, height."""
    image, place = real.nonzero(as_tuple=True)
    boxes, classes = truth.corners.cpu()[image, place].double(), truth.classes.cpu()[image, place].tolist()
    sizes = boxes[:, 2:] - boxes[:, :2]
    annotations = [
        {"id": number, "image_id": image_id, "category_id": category_id, "bbox": box, "area": area, "iscrowd": 0}
        for number, (image_id, category_id, box, area) in enumerate(
            zip(image.tolist(), classes, torch.cat([boxes[:, :2], sizes], 1).tolist(), sizes.prod(1).tolist(), strict=True), 1
        )
    ]
    return {
        "images": [{"id": number} for number in range(len(real))],
        "annotations": annotations,
        "categories": [{"id": number} for number in sorted(set(classes))],
    }
