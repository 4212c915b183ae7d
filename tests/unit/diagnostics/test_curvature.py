"""Size and curvature of models and the loss around them: a quadratic in closed form, networks compared with autograd's
Hessian."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from bowl import bowl, kept, measured, numbers, quadratic
from torch import Tensor

from fedrepro import tree
from fedrepro.diagnostics.curvature import Hessian
from fedrepro.diagnostics.diagnostic import make
from fedrepro.diagnostics.simplex import CORNERS, lattice
from fedrepro.engine import evaluate_many
from fedrepro.engine.evaluate import evaluate
from fedrepro.engine.evaluate_many import Evaluation, samples_of
from fedrepro.engine.kept import Global
from fedrepro.errors import UserError
from fedrepro.models import Model, ops
from fedrepro.tree import Tree
from tests import toy


def trained(build: Callable[[], Model], dtype: torch.dtype = torch.float64) -> tuple:
    """A task and a kept round, whose global model has random weights and running statistics."""
    task = toy.make_task(rounds=1, model=build(), dtype=dtype)
    draw = torch.Generator().manual_seed(2)
    noise = torch.randn(len(task.params.flat), generator=draw).to(dtype)
    buffers = task.buffers.like(task.buffers.flat + torch.rand(len(task.buffers.flat), generator=draw).to(dtype))
    after = Global(task.params.like(task.params.flat + 0.3 * noise), buffers)
    return task, dataclasses.replace(kept([], [0.0, 0.0, 0.0]), after=after)


# --- size ---------------------------------------------------------------------------------------------------------------------


def test_weights_by_hand() -> None:
    """In (3, -4, 0.001) a third has |w| < 0.0015. Four bins of width 2 go from -4 to 4, and -4 is in the first."""
    values = measured("weights(near=0.0015, reach=4, bins=4)", kept([], [3.0, -4.0, 0.001]), quadratic())
    found = numbers(values)
    assert found["weight_norm"] == pytest.approx(math.sqrt(25.000001), rel=1e-9)
    assert found["near_zero"] == pytest.approx(1 / 3)
    assert [(v.x, v.value) for v in values if v.x is not None] == [(-3, 1), (-1, 0), (1, 1), (3, 1)]
    assert sum(v.value or 0 for v in measured("weights(reach=3.5)", kept([], [3.0, -4.0, 0.0]), quadratic())[2:]) == 2


def test_rescaled_weights_of_a_quadratic() -> None:
    values = measured("rescaled(low=-1, high=2, points=4)", kept([], [2.0, 4.0, 1.0]), quadratic())
    curve = {v.x: v.value for v in values if v.metric == "rescaled_loss"}
    assert list(curve) == [-1, 0, 1, 2]
    for factor, value in curve.items():
        assert value == pytest.approx(bowl((factor or 0) * torch.tensor([2.0, 4.0, 1.0])), rel=1e-14)


def test_running_statistics_are_not_rescaled() -> None:
    """The weights are halved and the statistics kept. At factor 1 the values are those that the run records, to the bit, also
    in float32."""
    for dtype in (torch.float32, torch.float64):
        task, of = trained(toy.norm_model, dtype)
        found = {(v.metric, v.x): v.value for v in measured("rescaled(points=3)", of, task)}
        for factor in (0.5, 1.0):
            params = of.after.params.like(factor * of.after.params.flat)
            expected = evaluate(task.model, params, of.after.buffers, task.evaluation)
            assert found["rescaled_loss", factor] == expected["test_loss"]
            assert found["rescaled_error", factor] == 100 - expected["test_accuracy"]


# --- curvature ----------------------------------------------------------------------------------------------------------------


def exact(task, of) -> Tensor:
    """The Hessian of the mean loss on all training samples, [D, D], by autograd."""
    data = samples_of(task, "train", None)

    def loss(flat: Tensor) -> Tensor:
        outputs, _ = task.model.forward(of.after.params.like(flat), of.after.buffers, data.x, False)
        return task.model.loss(outputs, data.y)

    return torch.autograd.functional.hessian(loss, of.after.params.flat)  # type: ignore[return-value]


@pytest.mark.parametrize("build", [toy.tiny_model, toy.norm_model])
def test_the_top_of_the_exact_hessian(build: Callable[[], Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """Products with any vector, eigenvalues and eigenvectors agree with it in evaluation mode, with data in parts of unequal
    size."""
    monkeypatch.setattr("fedrepro.diagnostics.curvature.AT_ONCE", 16)
    task, of = trained(build)
    whole = exact(task, of)
    hessian = Hessian(task.model, of.after, samples_of(task, "train", None))
    vector = np.random.default_rng(0).standard_normal(len(whole))
    assert hessian.times(vector) == pytest.approx(whole.numpy() @ vector, rel=1e-9, abs=1e-12)
    expected = torch.linalg.eigvalsh(whole).flip(0)
    values = measured("hessian(top=6, samples=null)", of, task)
    assert [v.value for v in values if v.x is not None] == pytest.approx(expected[:6].tolist(), rel=1e-5)
    found = numbers(values)
    assert found["hessian_ratio"] == pytest.approx(float(expected[0] / expected[4]), rel=1e-5)
    assert (found["hessian_top1"], found["hessian_top5"]) == (values[3].value, values[7].value)
    assert measured("hessian(top=6, samples=null)", of, task) == values, "the same bits again"
    (_, vectors) = hessian.top(1, 8, 1)
    assert whole.numpy() @ vectors[:, 0] == pytest.approx(float(expected[0]) * vectors[:, 0], abs=1e-3 * float(expected[0]))
    assert np.linalg.norm(vectors[:, 0]) == pytest.approx(1)


def test_a_product_behind_poolings() -> None:
    """LeNet has too many weights for the whole matrix. Its product is compared with a central difference of gradients."""
    task, of = trained(toy.lenet_model)
    data = samples_of(task, "train", 20)
    vector = np.random.default_rng(0).standard_normal(len(of.after.params.flat))

    def gradient(step: float) -> Tensor:
        at = of.after.params.like(of.after.params.flat + step * torch.from_numpy(vector))
        loss = lambda p: task.model.loss(task.model.forward(p, of.after.buffers, data.x, False)[0], data.y)  # noqa: E731
        return tree.gradient(loss, at).flat

    found = Hessian(task.model, of.after, data).times(vector)
    expected = ((gradient(1e-6) - gradient(-1e-6)) / 2e-6).numpy()
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


def test_the_line_along_the_steepest_way() -> None:
    """The bowl's curvatures are 1, 3 and 2, so the line goes along the second axis in its positive direction."""
    of = kept([], [0.5, 1.0, 0.0])
    values, vectors = Hessian(quadratic().model, of.after, quadratic().evaluation).top(2, 8, 1)
    assert values == pytest.approx([3, 2])
    assert vectors[:, 0] == pytest.approx([0, 1, 0], abs=1e-6)
    curve = {v.x: v.value for v in measured("eigenvector_line(reach=2, points=5)", of, quadratic())}
    assert list(curve) == [-2, -1, 0, 1, 2]
    for x, value in curve.items():
        assert value == pytest.approx(bowl(torch.tensor([0.5, 1 + (x or 0), 0.0])), rel=1e-6)


def test_the_line_goes_through_the_global_model() -> None:
    """At 0 the value is the one that the run records, to the bit, also in float32 and with running statistics. The line's
    curvature is the eigenvalue."""
    task, of = trained(toy.norm_model, torch.float32)
    on_test = [v.value for v in measured("eigenvector_line(points=3, on=test)", of, task)]
    assert on_test[1] == evaluate(task.model, of.after.params, of.after.buffers, task.evaluation)["test_loss"]
    task, of = trained(toy.norm_model)
    low, middle, high = (v.value or 0 for v in measured("eigenvector_line(reach=0.001, points=3, samples=null)", of, task))
    top = numbers(measured("hessian(samples=null)", of, task))["hessian_top1"]
    assert (low - 2 * middle + high) / 0.001**2 == pytest.approx(top, rel=1e-3)


def test_the_way_is_that_of_the_training_loss() -> None:
    """The loss on the test set is measured along the eigenvector of the training loss."""
    task, of = trained(toy.tiny_model)
    _, vectors = Hessian(task.model, of.after, samples_of(task, "train", 1000)).top(1, task.seed, of.round)
    params = of.after.params.like(of.after.params.flat + torch.from_numpy(vectors[:, 0].copy()))
    values = [v.value for v in measured("eigenvector_line(reach=1, points=3, on=test)", of, task)]
    assert values[2] == pytest.approx(evaluate(task.model, params, of.after.buffers, task.evaluation)["test_loss"], rel=1e-9)


def test_a_fifth_eigenvalue_of_zero_leaves_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hessian, "top", lambda *_: (np.array([3.0, 2.0, 1.0, 0.5, 0.0]), np.zeros((3, 5))))
    task, of = trained(toy.tiny_model)
    ratios = [v.value for v in measured("hessian", of, task) if v.metric == "hessian_ratio"]
    assert len(ratios) == 1
    assert math.isnan(ratios[0])


def test_what_has_no_hessian() -> None:
    """A model with fewer weights than eigenvalues has no Hessian values. Neither has a model with a layer that lacks a second
    derivative."""
    with pytest.raises(UserError, match="bowl: has 3 weights, too few for 5"):
        measured("hessian", kept([], [0.0, 0.0, 0.0]), quadratic())
    task, of = trained(toy.tiny_model)
    plain = task.model.forward

    def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        outputs, after = plain(params, buffers, x, train)
        return ops.local_response_norm(outputs[..., None, None])[..., 0, 0], after

    odd = dataclasses.replace(task, model=dataclasses.replace(task.model, forward=forward))
    with pytest.raises(UserError, match="tiny: has a layer without a second derivative"):
        measured("hessian", of, odd)


@pytest.mark.parametrize("weight", [float("nan"), 1e308])
def test_a_round_that_diverged_has_no_curvature(weight: float) -> None:
    """No error is raised, and a table shows an empty value. Finite weights can have products that are not finite."""
    of = kept([], [0.5, weight, 0.0])
    values = [v.value for v in measured("eigenvector_line(reach=2, points=5)", of, quadratic())]
    top, vectors = Hessian(quadratic().model, of.after, quadratic().evaluation).top(2, 8, 1)
    assert all(value is None or math.isnan(value) for value in values)
    assert np.isnan(top).all()
    assert np.isnan(vectors).all()


# --- the simplex --------------------------------------------------------------------------------------------------------------

ROWS = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [1.0, 4.0, 2.0], [9.0, 9.0, 9.0]]


def test_the_simplex_of_a_quadratic() -> None:
    """Fifteen points of a triangle, with the losses of the three models and of their mean by data (1/2, 1/4, 1/4). The best
    point is lambda = (1/4, 1/4, 1/2), which is (1, 2, 1), the nearest to the centre. The fourth client takes no part."""
    of = dataclasses.replace(kept(ROWS, [0.0, 0.0, 0.0]), weights=torch.tensor([0.4, 0.2, 0.2, 0.2]).double())
    values = measured("simplex(points=5)", of, quadratic())
    rows = torch.tensor(ROWS[:3]).double()
    surface = {(v.x, v.y): v.value for v in values if v.metric == "simplex_loss"}
    assert len(surface) == 15
    corners = np.concatenate([CORNERS.T, np.ones((1, 3))])
    for (x, y), value in surface.items():
        weights = torch.from_numpy(np.linalg.solve(corners, [x, y, 1.0]))
        assert value == pytest.approx(bowl(weights @ rows), rel=1e-12, abs=1e-12)
    found = numbers(values)
    assert [found[f"simplex_loss/model_{n}"] for n in (1, 2, 3)] == pytest.approx([bowl(row) for row in rows])
    assert found["simplex_loss/average"] == pytest.approx(bowl(torch.tensor([0.5, 0.25, 0.25]).double() @ rows))
    assert found["simplex_loss/lowest"] == min(surface.values())
    assert [found[f"simplex_best_{which}"] for which in ("first", "second", "third")] == [0.25, 0.25, 0.5]
    places = {v.metric: (v.x, v.y) for v in values if "/" in v.metric and v.x is not None}
    assert places["simplex_loss/model_3"] == pytest.approx((0.5, math.sqrt(3) / 2))
    assert places["simplex_loss/lowest"] == pytest.approx((0.5, math.sqrt(3) / 4))
    assert measured("simplex", kept(ROWS[:2], ROWS[0]), quadratic()) == []
    assert make("simplex(points=5)").passes(3)[0].models == len(lattice(4)) + 4


def test_a_point_without_a_loss_is_not_the_lowest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first point of the triangle has a loss that is no number, and the third one is lowest."""
    of = dataclasses.replace(kept(ROWS, [0.0, 0.0, 0.0]), weights=torch.ones(4).double() / 4)
    losses = iter([9.0] * 4 + [math.nan, 5.0, 1.0] + [7.0] * 12)
    monkeypatch.setattr(
        evaluate_many, "evaluate_sums", lambda model, weights, *_: [Evaluation(next(losses), 0.0) for _ in weights]
    )
    values = measured("simplex(points=5)", of, quadratic())
    third = [v for v in values if v.metric == "simplex_loss"][2]
    (lowest,) = (v for v in values if v.metric == "simplex_loss/lowest" and v.x is not None)
    assert (lowest.x, lowest.y, lowest.value) == (third.x, third.y, 1.0)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("hessian(top=4)", "at least 5"),
        ("weights(near=0)", "greater than 0"),
        ("rescaled(low=2)", "above low"),
        ("eigenvector_line(on=proxy)", "must be test or train"),
        ("coherence(groups=-1)", "number of clients in the first group"),
        ("coherence(weights=fedlaw)", "size or learned"),
    ],
)
def test_mistakes(text: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        make(text)
