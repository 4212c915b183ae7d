"""Shared labels found by attention: small matrices by hand, and the full path from a training to the values."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from fedrepro.diagnostics.diagnostic import canonical, make
from fedrepro.diagnostics.label_sharing import distances, nearest, owned_labels, sharing, threshold
from fedrepro.engine import kept
from fedrepro.engine.kept import Keeper, RoundModels
from fedrepro.engine.loop import train
from fedrepro.engine.records import curves
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.types import Batch
from tests import toy

Rule = Callable[[np.ndarray, np.ndarray], tuple[float, float]]

# Clients 0 and 1 share a label, 1 and 2 another; 3 is alone.
SHARED = sharing([{0, 1}, {1, 2}, {2, 3}, {4}])
FOUND = np.array([[9.0, 5.0, 1.0, 0.0], [5.0, 9.0, 4.0, 6.0], [1.0, 4.0, 9.0, 7.0], [0.0, 6.0, 7.0, 9.0]])


def test_who_shares() -> None:
    """A client shares no label with itself."""
    assert SHARED.astype(int).tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


def test_the_others_share_nothing_and_are_not_oneself() -> None:
    assert distances(SHARED).astype(int).tolist() == [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]]


def test_nearest_by_hand() -> None:
    """k = 1, 2, 1, 0. Client 0 marks 1 (5), which is right. Client 1 marks 3 (6) and 0 (5), of which one is right. Client 2
    marks 3 (7), which is wrong. So two of four are right; by chance it is 1/3 + 4/3 + 1/3."""
    assert nearest(FOUND, SHARED) == (pytest.approx(50), pytest.approx(100 * 2 / 4))


def test_threshold_by_hand() -> None:
    """Two pairs share a label. The two highest pairs are (2, 3) and (1, 3), and neither is right; (0, 1) with 5 comes next. By
    chance 2 of 6."""
    assert threshold(FOUND, SHARED) == (0, pytest.approx(100 / 3))
    for one_way in ((0, 1), (1, 0)):  # the mean of both directions counts
        better = FOUND.copy()
        better[one_way] = 20
        assert threshold(better, SHARED)[0] == pytest.approx(50)


def test_clients_that_never_met_come_last() -> None:
    """A pair that was never in one cohort ranks behind the lowest score."""
    holes = np.where(np.isin(FOUND, (6.0, 7.0)), np.nan, FOUND)
    assert nearest(holes, SHARED)[0] == pytest.approx(100)
    assert threshold(holes, SHARED)[0] == pytest.approx(100)


@pytest.mark.parametrize("rule", [nearest, threshold])
def test_chance_is_the_mean_over_random_matrices(rule: Rule) -> None:
    """Ten clients share labels with few or many others. The mean over 2,000 random matrices is within four standard errors."""
    draw = np.random.default_rng(3)
    shared = sharing(
        [{int(label) for label in draw.choice(10, size, replace=False)} for size in (1, 1, 2, 2, 2, 2, 3, 3, 4, 1)]
    )
    found, chances = np.array([rule(draw.random((10, 10)), shared) for _ in range(2000)]).T
    assert np.ptp(chances) == 0
    assert abs(found.mean() - chances[0]) < 4 * found.std() / np.sqrt(2000)


@pytest.mark.parametrize("rule", [nearest, threshold])
def test_the_diagonal_does_not_count(rule: Rule) -> None:
    """A client's attention to itself changes no value. If sharing clients have the highest scores, all are found."""
    low = FOUND - 99 * np.eye(4)
    assert rule(low, SHARED) == rule(FOUND, SHARED)
    assert rule(SHARED.astype(float), SHARED)[0] == pytest.approx(100)


def test_a_label_takes_a_tenth_of_a_clients_samples() -> None:
    """A client with 100 samples has a label from ten samples on; nine are too few."""
    task = toy.make_task()
    labels = torch.tensor([0] * 91 + [1] * 9 + [0] * 90 + [1] * 10)
    data = Batch(torch.zeros(200, 1, 4, 4), labels)
    task = dataclasses.replace(task, train=data, client_index=[torch.arange(100), torch.arange(100, 200)])
    assert owned_labels(task) == [{0}, {0, 1}]


def keep(root: Path, text: str, **changes) -> tuple[RoundModels, toy.Task]:
    """The kept models of the third round of a toy run, read back from the file."""
    task = toy.make_task(by_class=True, **changes)
    outcome = train(task, compose(text), keeper=Keeper(root, "toy", 8, frozenset({3})))
    kept.write_index(root, {"run_id": "toy", "seed": 8, "curves": curves(outcome.progress.rows, 3)})
    return kept.load_round(root, "toy", 8, 3, kept.load_index(root, "toy", 8)["rounds"]["3"]), task


def test_the_matrix_is_the_mean_over_the_rounds(tmp_path: Path) -> None:
    """The matrix is the mean over the rounds in which two clients both took part, of the softmax of inner products of their
    updates."""
    text = "igfl_c+attention(kind=self)"
    found, task = keep(tmp_path, text, cohorts=toy.PARTIAL)
    method = compose(text)
    engine, state, weights = SequentialEngine(task, method), method.init(task.params, task.buffers), {}
    for round in range(3):
        cohort, _ = engine.run_cohort(state, round)
        assert cohort is not None
        scores = cohort.updates.flat @ cohort.updates.flat.mT
        for i, x in enumerate(cohort.clients):
            for j, y in enumerate(cohort.clients):
                weights.setdefault((x, y), []).append(float(scores[i].softmax(0)[j]))
        state = method.apply(state, toy.server_context(task, cohort, round))
    measured = [*make("label_sharing").measure(found, lambda: task)]
    surface = {(int(v.x), int(v.y)): v.value for v in measured if v.metric == "attention"}
    assert len(surface) == toy.CLIENTS**2
    for place, value in surface.items():
        if place in weights:
            assert value == pytest.approx(sum(weights[place]) / len(weights[place]), abs=1e-12)
        else:
            assert math.isnan(value)
    of = {v.metric: v.value for v in measured if v.x is None}
    matrix, shared = found.server["attention_weights"].numpy(), sharing(owned_labels(task))
    means = {}
    for metric, fields in (("attention_shared", shared), ("attention_apart", distances(shared))):
        known = [value for value in matrix[fields] if not math.isnan(value)]
        means |= {metric: pytest.approx(sum(known) / len(known), abs=1e-12)} if known else {}  # never in one cohort: no mean
    assert "attention_apart" in means
    assert {name: value for name, value in of.items() if name.startswith("attention_")} == means
    assert of.keys() == {"label_pairs_found", "label_pairs_by_chance", *means}
    assert of["label_pairs_found"] == pytest.approx(
        nearest(found.server["attention_weights"].numpy(), sharing(owned_labels(task)))[0]
    )


def test_other_attention_has_no_pairs(tmp_path: Path) -> None:
    """One line names the alternative, attention(kind=self)."""
    found, task = keep(tmp_path, "attention(kind=global)")
    with pytest.raises(UserError, match=r"no self-attention; take attention\(kind=self\)"):
        [*make("label_sharing").measure(found, lambda: task)]


def test_where_no_pair_shares_a_label_nothing_is_found(tmp_path: Path) -> None:
    """The only metric is then the attention matrix."""
    found, task = keep(tmp_path, "attention(kind=self)")
    alone = dataclasses.replace(task, client_index=[index[:1] for index in task.client_index[:2]])
    alone = dataclasses.replace(alone, train=Batch(task.train.x, torch.arange(len(task.train.y))))
    assert {v.metric for v in make("label_sharing").measure(found, lambda: alone)} == {"attention"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label_sharing(of=weight)", "of = 'weight': must be weights or scores"),
        ("label_sharing(rule=best)", "rule = 'best': must be nearest or threshold"),
    ],
)
def test_mistakes_are_one_line(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        canonical(text)


def test_scores_and_the_other_rule_are_read_too(tmp_path: Path) -> None:
    """Both are computed from their matrices, each by its rule."""
    found, task = keep(tmp_path, "attention(kind=self)")
    shared = sharing(owned_labels(task))
    values = {}
    for of in ("weights", "scores"):
        for name, rule in (("nearest", nearest), ("threshold", threshold)):
            matrix = torch.rand(5, 5, generator=torch.Generator().manual_seed(len(values)))
            found.server[f"attention_{of}"] = matrix
            first = next(make(f"label_sharing(of={of}, rule={name})").measure(found, lambda: task))
            values[of, name] = first.value
            assert first.value == rule(matrix.numpy(), shared)[0]
    assert len({*values.values()}) > 1


def test_fedlaws_weights_are_kept_with_the_models(tmp_path: Path) -> None:
    """gamma has shape [] and lambda [K], which sums to 1."""
    found, _ = keep(tmp_path, toy.part_text("fedlaw"))
    assert found.server["lambda"].shape == (len(found.clients),)
    assert float(found.server["lambda"].sum()) == pytest.approx(1)
    assert float(found.server["gamma"]) > 0
