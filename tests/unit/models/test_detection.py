"""The grid detector and mAP50: losses and scores by hand, an independent reference, gradients."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedrepro import tree
from fedrepro.models import build, grid_detector, initial
from fedrepro.models.detection import Boxes, Detections, detections, map50
from fedrepro.tree import Tree
from tests.toy import normal

SHAPE = (3, 16, 16)  # a grid of 2 x 2 places, with centres at 4 and 12
LN2 = math.log(2)


def reference() -> nn.Sequential:
    """3-16-32-64-64-64, k3, the first three with strides, GroupNorm of 8 groups and ReLU after each; then k1 to 1 + 4."""
    layers: list[nn.Module] = []
    for before, after, stride in ((3, 16, 2), (16, 32, 2), (32, 64, 2), (64, 64, 1), (64, 64, 1)):
        layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.GroupNorm(8, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(64, 5, 1)).double()


def test_forward_and_gradient_equal_a_module() -> None:
    """98,005 parameters: (27 * 16 + 144 * 32 + 288 * 64 + 2 * 576 * 64) + 2 * 240 + 65 * 5. Outputs are the module's: the logit
    less ln 99, which is a probability of 0.01 at 0; distances 8 * softplus. Row by row, in float64."""
    model = build("grid_detector", (3, 64, 64), 1)
    assert model.parameters == 98_005
    params = Tree(model.layout, initial.draw(model, 8).flat.double() + 0.01 * normal(model.parameters))
    module = reference()
    for parameter, (_, value) in zip(module.parameters(), params.items(), strict=True):
        parameter.data.copy_(value)
    x = normal(2, 3, 64, 64, seed=1)
    raw = module(x)  # [2, 5, 8, 8]
    outputs, _ = model.forward(params, model.first_buffers(), x, True)
    assert outputs.shape == (2, 64, 5)
    row, column = 3, 5
    torch.testing.assert_close(outputs[:, 8 * row + column, 0], raw[:, 0, row, column] - math.log(99))
    torch.testing.assert_close(outputs[:, 8 * row + column, 1:], 8 * torch.log1p(raw[:, 1:, row, column].exp()))
    found = tree.gradient(lambda p: model.forward(p, model.first_buffers(), x, True)[0].square().sum(), params)
    wide = torch.cat([raw[:, :1] - math.log(99), 8 * nn.functional.softplus(raw[:, 1:])], 1)
    expected = torch.autograd.grad(wide.square().sum(), list(module.parameters()))
    torch.testing.assert_close(found.flat, torch.cat([g.flatten() for g in expected]), rtol=1e-9, atol=1e-9)


def test_clients_side_by_side_equal_each_alone() -> None:
    """Weights and images have a leading axis of three clients."""
    model = build("grid_detector", (3, 16, 24), 2)
    params = Tree(model.layout, 0.1 * normal(3, model.parameters) + initial.draw(model, 8).flat.double())
    x = normal(3, 2, 3, 16, 24, seed=1)
    together, _ = model.forward(params, model.first_buffers(), x, True)
    for k in range(3):
        alone, _ = model.forward(Tree(model.layout, params.flat[k]), model.first_buffers(), x[k], True)
        torch.testing.assert_close(together[k], alone, rtol=0, atol=1e-10)


# --- loss ----------------------------------------------------------------------------------------------------------------


def outputs_of(*sides: tuple[float, float, float, float], classes: int = 1) -> Tensor:
    """Four places with all logits 0. Distances are as given, and 1 for the rest."""
    found = torch.zeros(1, 4, classes + 4, dtype=torch.float64)
    found[..., -4:] = 1
    for place, side in enumerate(sides):
        found[0, place, -4:] = torch.tensor(side, dtype=torch.float64)
    return found


def boxes(*rows: tuple[float, ...], shape: tuple[int, int, int] = SHAPE) -> Tensor:
    """y [1, M, 5] from (class, left, top, right, bottom) in pixels."""
    height, width = shape[1:]
    found = [(c, (x + r) / 2 / width, (y + b) / 2 / height, (r - x) / width, (b - y) / height) for c, x, y, r, b in rows]
    return torch.tensor([found], dtype=torch.float64)


# At logit 0 the focal loss (alpha 0.25, gamma 2) of a positive is 0.25 * 0.5^2 * ln 2, of a negative 0.75 * 0.5^2 * ln 2.
POSITIVE, NEGATIVE = 0.0625 * LN2, 0.1875 * LN2
LOSSES = [
    # A perfect box in the first place: the focal loss of one positive and three negatives.
    (outputs_of((4, 4, 4, 4)), boxes((0, 0, 0, 8, 8)), POSITIVE + 3 * NEGATIVE),
    # Twice as wide: IoU 1/2, and the hull is the union, so 1 - GIoU = 1/2.
    (outputs_of((4, 4, 12, 4)), boxes((0, 0, 0, 8, 8)), POSITIVE + 3 * NEGATIVE + 0.5),
    # An IoU of 1/4, shifted by half: intersection 4 x 4 = 16, union 64 + 64 - 16 = 112, hull 12 x 12 = 144.
    (outputs_of((0, 0, 8, 8)), boxes((0, 0, 0, 8, 8)), POSITIVE + 3 * NEGATIVE + 1 - (16 / 112 - 32 / 144)),
    # No object, only padding: four negatives, divided by 1.
    (outputs_of(), torch.full((1, 3, 5), -1.0, dtype=torch.float64), 4 * NEGATIVE),
    # Padding beside an object changes nothing.
    (
        outputs_of((4, 4, 4, 4)),
        torch.cat([boxes((0, 0, 0, 8, 8)), torch.full((1, 2, 5), -1.0, dtype=torch.float64)], 1),
        POSITIVE + 3 * NEGATIVE,
    ),
    # Two classes: the wrong one is a negative too, so the four places have 1 positive and 7 negatives.
    (outputs_of((4, 4, 4, 4), classes=2), boxes((1, 0, 0, 8, 8)), POSITIVE + 7 * NEGATIVE),
    # One object over the whole image: the centres at 4 and 12 are 4 from the middle of 16 x 16, within half of its half sides.
    # So all four places are positive, and each predicts the whole image.
    (outputs_of((4, 4, 12, 12), (12, 4, 4, 12), (4, 12, 12, 4), (12, 12, 4, 4)), boxes((0, 0, 0, 16, 16)), POSITIVE),
]


@pytest.mark.parametrize(("outputs", "y", "expected"), LOSSES)
def test_loss_by_hand(outputs: Tensor, y: Tensor, expected: float) -> None:
    """The loss is a sum over places, divided by the number of positive ones."""
    assert float(grid_detector.loss(outputs, y, SHAPE)) == pytest.approx(expected, abs=1e-6)


def test_the_smaller_of_two_objects_owns_a_place() -> None:
    """Two objects have one centre. The place there belongs to the small one, and its neighbours within reach to the large
    one."""
    truth = Boxes.of(boxes((0, 0, 0, 24, 24), (0, 8, 8, 16, 16), shape=(3, 24, 24)), (3, 24, 24))
    centres = torch.tensor([[4.0, 4.0], [12.0, 4.0], [12.0, 12.0], [20.0, 12.0]], dtype=torch.float64)
    owner, positive = grid_detector.assign(truth, centres)
    assert positive.tolist() == [[False, False, True, False]]
    assert owner[0, 2] == 1
    near = torch.tensor([[7.0, 12.0], [12.0, 17.5]], dtype=torch.float64)  # 5 and 5.5 from the centre: beyond 4, within 6
    owner, positive = grid_detector.assign(truth, near)
    assert positive.tolist() == [[True, True]]
    assert owner.tolist() == [[0, 0]]


def test_every_object_has_a_place() -> None:
    """An object of any size at any position has one: the nearest place is within half a stride in each direction."""
    generator = np.random.default_rng(0)
    for x, y in generator.uniform(0.5, 63.5, (50, 2)):
        truth = Boxes.of(boxes((0, x - 0.5, y - 0.5, x + 0.5, y + 0.5), shape=(3, 64, 64)), (3, 64, 64))
        centres = grid_detector._centres(torch.zeros(1, 64, 5, dtype=torch.float64), (3, 64, 64))
        assert grid_detector.assign(truth, centres)[1].any()


def test_gradient_of_the_loss() -> None:
    """It agrees with finite differences with respect to the outputs, in float64, for three images, one of them without an
    object."""
    y = torch.cat([boxes((0, 1, 2, 9, 12), (0, 6, 6, 15, 15)), boxes((0, 3, 1, 14, 9), (-1, 0, 0, 0, 0)), -torch.ones(1, 2, 5)])
    outputs = torch.cat([normal(3, 4, 1), 2 + normal(3, 4, 4, seed=1).abs()], -1).requires_grad_()
    assert torch.autograd.gradcheck(lambda o: grid_detector.loss(o, y, SHAPE), (outputs,), atol=1e-6)


# --- mAP50 ---------------------------------------------------------------------------------------------------------------


def found_at(*rows: tuple[float, ...]) -> Detections:
    """Detections from (image, left, top, right, bottom, score, class)."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 7)
    return Detections(table[:, 0].astype(int), table[:, 1:5], table[:, 5], table[:, 6].astype(int))


TWO = torch.cat([boxes((0, 2, 2, 10, 10)), boxes((0, 4, 4, 12, 12))])  # two images with one object each
HIT, OTHER = (0, 2, 2, 10, 10), (1, 4, 4, 12, 12)
SCORES = [
    ("perfect", TWO, [(*HIT, 0.9, 0), (*OTHER, 0.3, 0)], 1.0),
    ("nothing found", TWO, [], 0.0),
    ("nothing right", TWO, [(0, 20, 20, 30, 30, 0.9, 0)], 0.0),
    # Precision is 1 up to a recall of 1/2, then 0. Of the recalls 0, 0.01 ... 1 the first 51 count.
    ("one of two", TWO, [(*HIT, 0.9, 0)], 51 / 101),
    # The better score is wrong: precision is 1/2 at every recall up to 1/2. With the second hit (2 of 3 right) it is 2/3
    # throughout.
    ("a better wrong one", TWO, [(0, 20, 20, 30, 30, 0.95, 0), (*HIT, 0.9, 0)], 0.5 * 51 / 101),
    ("two of three right", TWO, [(0, 20, 20, 30, 30, 0.95, 0), (*HIT, 0.9, 0), (*OTHER, 0.8, 0)], 2 / 3),
    # A second detection of the same object is wrong, but costs nothing after all objects are found.
    ("one twice", TWO, [(*HIT, 0.9, 0), (*OTHER, 0.8, 0), (*HIT, 0.7, 0)], 1.0),
    # 8 x 8 against 8 x 4 within it has an IoU of exactly 1/2, which counts; 8 x 3.9 does not.
    ("half of it", TWO[:1], [(0, 2, 2, 10, 6, 0.9, 0)], 1.0),
    ("less than half", TWO[:1], [(0, 2, 2, 10, 5.9, 0.9, 0)], 0.0),
    # Two classes, one of them found: the result is their mean. The third class does not occur and does not count.
    ("one of two classes", torch.cat([TWO[:1], boxes((1, 4, 4, 12, 12))]), [(*HIT, 0.9, 0), (*OTHER, 0.9, 2)], 0.5),
    ("no object anywhere", -torch.ones(2, 1, 5), [(*HIT, 0.9, 0)], 0.0),
]


@pytest.mark.parametrize(("truth", "rows", "expected"), [case[1:] for case in SCORES], ids=[case[0] for case in SCORES])
def test_map50_by_hand(truth: Tensor, rows: list[tuple[float, ...]], expected: float) -> None:
    """As in COCO, precision is made monotone, read at 101 recalls, and averaged over the classes that occur."""
    assert map50(found_at(*rows), Boxes.of(truth, SHAPE)) == pytest.approx(expected, abs=1e-9)


def test_detections_keep_the_better_of_two_that_overlap() -> None:
    """This holds only within an image and a class. The smallest score is 0.01."""
    corners = torch.tensor([[[0.0, 0, 8, 8], [0, 0, 8, 7], [20, 20, 28, 28], [0, 0, 8, 8]]]).repeat(2, 1, 1)
    scores = torch.tensor([[[0.6, 0.1], [0.9, 0.1], [0.009, 0.0], [0.1, 0.5]], [[0.0, 0.0]] * 3 + [[0.02, 0.01]]])
    found = detections(scores, corners)
    assert found.images.tolist() == [0, 0, 1]
    assert found.corners.tolist() == [[0, 0, 8, 7], [0, 0, 8, 8], [0, 0, 8, 8]]
    assert found.classes.tolist() == [0, 1, 0]
    assert found.scores == pytest.approx([0.9, 0.5, 0.02])


def test_metrics_of_outputs() -> None:
    """Perfect outputs give 1, outputs without any confidence 0, and broken ones 0 without an error."""
    y = boxes((0, 0, 0, 8, 8), (0, 8, 8, 16, 16))
    perfect = outputs_of((4, 4, 4, 4), (1, 1, 1, 1), (1, 1, 1, 1), (4, 4, 4, 4))
    perfect[0, :, 0] = torch.tensor([5.0, -9, -9, 4])
    assert grid_detector.metrics(perfect, y, SHAPE) == {"test_map50": pytest.approx(1.0)}
    silent = perfect.clone()
    silent[..., 0] = -9
    assert grid_detector.metrics(silent, y, SHAPE) == {"test_map50": 0.0}
    assert grid_detector.metrics(torch.full_like(perfect, math.nan), y, SHAPE) == {"test_map50": 0.0}
