"""Planes and lines between models: a quadratic in closed form, real networks compared with the run's own evaluation."""

import dataclasses
import math
from collections.abc import Callable

import pytest
import torch
from bowl import NONE, bowl, kept, measured, numbers, quadratic
from torch import Tensor

from fedrepro.diagnostics.diagnostic import make, spaced
from fedrepro.diagnostics.plane import Basis
from fedrepro.engine.evaluate import evaluate
from fedrepro.engine.evaluate_many import combine, samples_of, stack
from fedrepro.engine.kept import Global, RoundModels
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.models import Model
from fedrepro.tree import Layout, Tree
from tests import toy

ROWS = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [9.0, 9.0, 9.0]]


def test_a_plane_of_a_quadratic() -> None:
    """w_1 = 0, u goes along the first axis and v along the second, so (x, y) is the model (x, y, 0). The fourth client takes no
    part."""
    values = measured("plane(points=5, margin=0.5)", kept(ROWS, [1.0, 1.0, 4.0]), quadratic())
    surface = {(v.x, v.y): v.value for v in values if v.metric == "plane_loss"}
    assert {x for x, _ in surface} == {-1.0, 0.0, 1.0, 2.0, 3.0}
    assert {y for _, y in surface} == {-1.5, 0.0, 1.5, 3.0, 4.5}
    for (x, y), value in surface.items():
        assert value == pytest.approx(bowl(torch.tensor([x, y, 0.0])), rel=1e-14)
    found = numbers(values)
    own = [bowl(torch.tensor(row)) for row in ROWS[:3]]
    average = bowl(torch.tensor([1.0, 1.0, 0.0]))
    assert [found[f"plane_loss/model_{n}"] for n in (1, 2, 3)] == pytest.approx(own, rel=1e-14)
    assert found["plane_loss/average"] == pytest.approx(average, rel=1e-14)
    assert found["plane_loss/gain"] == pytest.approx(min(own) - average, rel=1e-13)
    assert found["plane_loss/global"] == pytest.approx(bowl(torch.tensor([1.0, 1.0, 4.0])), rel=1e-14), "not its projection"
    assert found["plane_loss/lowest"] == min(surface.values()) == surface[1.0, 1.5]
    places = {v.metric: (v.x, v.y) for v in values if v.metric.startswith("plane_loss/") and v.x is not None}
    assert places["plane_loss/model_3"] == (1.0, 3.0)
    assert places["plane_loss/average"] == places["plane_loss/global"] == (1.0, 1.0)
    assert places["plane_loss/lowest"] == (1.0, 1.5)
    # The logits are the same for every sample, so the error is the share of samples whose label is not that of the largest
    # weight.
    y = quadratic().evaluation.y
    errors = {(v.x, v.y): v.value for v in values if v.metric == "plane_error"}
    assert errors[3.0, 1.5] == pytest.approx(100 * float((y != 0).double().mean()))
    assert errors[0.0, 4.5] == pytest.approx(100 * float((y != 1).double().mean()))


def test_the_plane_is_the_papers() -> None:
    """u = w_2 - w_1, v = (w_3 - w_1) - <w_3 - w_1, u> u / ||u||^2, both as unit vectors. A weighted mean of the models has the
    same coordinates."""
    first, second, third = torch.randn((3, 40), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    basis = Basis.through([first, second, third])
    assert basis is not None
    u = second - first
    v = (third - first) - (third - first) @ u * u / (u @ u)
    assert float(u @ v) == pytest.approx(0, abs=1e-12)
    models = Tree(Layout.of({"w": (40,)}), torch.stack([first, second, third]))
    for x, y in ((0.3, -2.0), *basis.places):
        point = first + x * u / u.norm() + y * v / v.norm()
        weights = torch.tensor([basis.weights(x, y)], dtype=torch.float64)
        assert torch.allclose(weights @ models.flat, point, atol=1e-12)
        assert basis.project(point) == pytest.approx((x, y), abs=1e-12)
    assert torch.allclose(third, first + basis.places[2][0] * u / u.norm() + basis.places[2][1] * v / v.norm(), atol=1e-12)
    assert Basis.through([first, second, first + 2 * u]) is None, "on a line"
    assert Basis.through([first, first, third]) is None


def test_planes_through_rounds_and_through_means() -> None:
    """The plane goes through the global models of three rounds, or through the means of the clients' models: here (0,0,0),
    (2,0,0), (1,3,0), and means at twice these coordinates. The oldest comes first."""
    rounds = [kept([[2 * w for w in row]] * 2, row, number) for number, row in zip((1, 3, 5), ROWS, strict=False)]
    last = dataclasses.replace(rounds[2], others={1: rounds[0], 3: rounds[1]})
    task = quadratic()
    found = numbers(measured("plane(through=rounds, apart=2, points=2)", last, task))
    assert found["plane_loss/model_1"] == pytest.approx(bowl(torch.zeros(3)))
    assert found["plane_loss/model_2"] == pytest.approx(bowl(torch.tensor(ROWS[1])))
    assert found["plane_loss/model_3"] == found["plane_loss/global"] == pytest.approx(bowl(torch.tensor(ROWS[2])))
    values = measured("plane(through=means, apart=2, points=2)", last, task)
    assert numbers(values)["plane_loss/model_3"] == pytest.approx(bowl(2 * torch.tensor(ROWS[2])))
    (place,) = [(v.x, v.y) for v in values if v.metric == "plane_loss/global" and v.x is not None]
    assert place == pytest.approx((1.0, 3.0)), "the global model itself lies at half of its mean"
    assert make("plane(through=rounds, apart=2)").earlier(5, 10) == (1, 3)
    assert make("plane").earlier(5, 10) == ()


def test_what_has_no_plane() -> None:
    """These have no plane: fewer than three models, models on a line, and an earlier round that the run does not have."""
    task = quadratic()
    assert measured("plane", kept(ROWS[:2], ROWS[0]), task) == []
    assert measured("plane", kept([[0.0, 0, 0], [1.0, 1, 1], [2.0, 2, 2]], ROWS[0]), task) == []
    assert measured("plane(through=rounds)", kept(ROWS, ROWS[0]), task) == []
    assert measured("line", kept(ROWS, ROWS[0]), task) == []
    for text in ("line(between=client)", "line(between=mean)"):
        assert measured(text, kept([], ROWS[0]), task) == []


def test_a_line_of_a_quadratic() -> None:
    """From (0, 0, 0) to (2, 4, 1), which lies as far behind the centre, the line is a parabola with its minimum 0 at a =
    1/2."""
    others = {1: kept([], [0.0, 0.0, 0.0], 1)}
    values = measured("line(apart=4, points=9)", kept([], [2.0, 4.0, 1.0], 5, others), quadratic())
    curve = {v.x: v.value for v in values if v.metric == "line_loss" and v.x is not None}
    assert list(curve) == [-0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
    for a, value in curve.items():
        assert value == pytest.approx((1 - 2 * a) ** 2 * bowl(torch.zeros(3)), abs=1e-14)
    end = bowl(torch.zeros(3))
    found = numbers(values)
    assert found["line_loss/first"] == found["line_loss/last"] == pytest.approx(end)
    assert found["line_loss/lowest"] == pytest.approx(0, abs=1e-14)
    assert found["line_loss/gain"] == pytest.approx(end)
    assert "line_loss/gain" not in numbers(
        measured("line(apart=4, points=2)", kept([], [2.0, 4.0, 1.0], 5, others), quadratic())
    )


def test_a_line_that_only_rises_loses() -> None:
    """From the centre to (2, 4, 1) all points between the ends are above the first end, so the gain is negative."""
    others = {1: kept([], [1.0, 2.0, 0.5], 1)}
    found = numbers(measured("line(apart=4, points=9)", kept([], [2.0, 4.0, 1.0], 5, others), quadratic()))
    assert found["line_loss/gain"] == pytest.approx(-bowl(torch.zeros(3)) / 16)  # at a quarter of the way


@pytest.mark.parametrize(
    ("between", "first", "last"), [("client", [1.0, 1, 1], ROWS[0]), ("mean", [3.0, 3, 2.25], [1.0, 1, 1])]
)
def test_other_lines(between: str, first: list[float], last: list[float]) -> None:
    """Mean of (0,0,0), (2,0,0), (1,3,0), (9,9,9): (3, 3, 2.25)."""
    found = numbers(measured(f"line(between={between}, points=3)", kept(ROWS, [1.0, 1.0, 1.0]), quadratic()))
    ends = [bowl(torch.tensor(end)) for end in (first, last)]
    assert [found["line_loss/first"], found["line_loss/last"]] == pytest.approx(ends)


@pytest.mark.parametrize("build", [toy.tiny_model, toy.norm_model, toy.lenet_model])
def test_marks_are_what_the_run_records(build: Callable[[], Model]) -> None:
    """With real networks and running statistics, the loss and accuracy of marks are those of `evaluate`, to the bit. Two
    measurements give the same values."""
    task = toy.make_task(rounds=1, model=build())
    method = compose("fedavg")
    state = method.init(task.params, task.buffers)
    cohort, _ = SequentialEngine(task, method).run_cohort(state, 0)
    assert cohort is not None
    after = Global(cohort.models.like(cohort.models.flat.mean(0)), cohort.buffers.like(cohort.buffers.flat.mean(0)))
    of = RoundModels(1, after, after, cohort.clients, cohort.models, cohort.buffers, cohort.weights)
    values = measured("plane(points=3)", of, task)
    found = numbers(values)
    for number in range(3):
        params, buffers = (tree.like(tree.flat[number]) for tree in (of.params, of.buffers))
        expected = evaluate(task.model, params, buffers, task.evaluation)
        assert found[f"plane_loss/model_{number + 1}"] == expected["test_loss"]
        assert found[f"plane_error/model_{number + 1}"] == 100 - expected["test_accuracy"]
    assert found["plane_loss/global"] == evaluate(task.model, after.params, after.buffers, task.evaluation)["test_loss"]
    assert measured("plane(points=3)", of, task) == values
    assert len({v.value for v in values if v.metric == "plane_loss"}) > 1


def test_a_weight_of_one_is_the_model_itself() -> None:
    """The combination equals that model to the bit, also in float32."""
    flat = torch.randn((3, 50), generator=torch.Generator().manual_seed(1))
    models = Global(Tree(Layout.of({"w": (50,)}), flat), Tree(NONE, torch.zeros(3, 0)))
    found = combine(torch.eye(3, dtype=torch.float64), models)
    assert torch.equal(found.params.flat, flat)
    assert torch.equal(stack([Global(models.params.like(w), models.buffers.like(w[:0])) for w in flat]).params.flat, flat)


def test_samples_are_evenly_spaced() -> None:
    """Samples come from the test set or from all training samples of clients. A number above the total returns all samples."""
    task = toy.make_task(rounds=1)
    count = len(task.evaluation.x)
    some = samples_of(task, "test", 4)
    assert torch.equal(some.x, task.evaluation.x[[k * count // 4 for k in range(4)]])
    assert samples_of(task, "test", count + 1) is task.evaluation
    assert len(samples_of(task, "train", None).x) == sum(toy.TRAIN_SIZES)


@pytest.mark.parametrize(("apart", "expected"), [(1.0, (8, 9)), (3.0, (4, 7)), (0.25, (0, 5)), (0.125, (4, 7)), (0.01, (8, 9))])
def test_earlier_rounds(apart: float, expected: tuple[int, ...]) -> None:
    """`earlier` is a number of rounds or a share of the run's 20, rounded half up (2.5 to 3) and at least one."""
    assert spaced(10, 20, apart, 2) == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("plane(through=clinets)", "must be clients, rounds or means"),
        ("plane(apart=1.5)", "whole number of rounds, or a share"),
        ("plane(apart=0)", "whole number of rounds"),
        ("plane(on=proxy)", "must be test or train"),
        ("plane(samples=0)", "at least 1, or null"),
        ("plane(points=1)", "at least 2"),
        ("line(start=1, stop=0)", "above start"),
        ("line(between=models)", "must be rounds, client or mean"),
    ],
)
def test_mistakes(text: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        make(text)


def test_a_model_without_class_labels_has_no_error() -> None:
    """The error is one line."""
    task = quadratic()
    boxes = dataclasses.replace(task, model=dataclasses.replace(task.model, metrics=lambda outputs, y: {}))
    with pytest.raises(UserError, match="has no classification error"):
        measured("plane", kept(ROWS, ROWS[0]), boxes)


def test_a_loss_that_is_no_number_stays_out() -> None:
    """A point far from the models has such a loss. The lowest point is still found. Where one of the three models has it, the
    gain is that of the best other, in any order."""
    task = quadratic()

    def loss(logits: Tensor, y: Tensor) -> Tensor:
        whole = task.model.loss(logits, y)
        return whole if float(logits[0, 0]) < 2.5 else whole * math.nan

    odd = dataclasses.replace(task, model=dataclasses.replace(task.model, loss=loss))
    values = measured("plane(points=5, margin=0.5)", kept(ROWS, ROWS[0]), odd)
    assert sum(math.isnan(v.value or 0) for v in values if v.metric == "plane_loss") == 5
    assert numbers(values)["plane_loss/lowest"] == pytest.approx(bowl(torch.tensor([1.0, 1.5, 0.0])))
    rows = [[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [1.0, 3.0, 0.0]]  # the second has no loss
    for models in (rows, [rows[1], rows[0], rows[2]]):
        found = numbers(measured("plane", kept(models, rows[0]), odd))
        best = min(found["plane_loss/model_3"], bowl(torch.tensor(rows[0])))
        assert found["plane_loss/gain"] == pytest.approx(best - found["plane_loss/average"], rel=1e-12)
