"""Diagnostics of clients' weights, data and updates in FedLAW, compared with numbers worked out by hand."""

import dataclasses
import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from fedrepro.diagnostics.diagnostic import make
from fedrepro.diagnostics.server_learning import settles
from fedrepro.engine import corrupted
from fedrepro.engine.kept import Global, RoundModels
from fedrepro.engine.measurements import Value
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch
from tests import toy

LAYOUT, NONE = Layout.of({"w": (2,)}), Layout.of({})


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def kept(rows: list[list[float]], weights: list[float], clients: list[int] | None = None, **server: Tensor) -> RoundModels:
    """The global model is (1, 1) before and after; `rows` are the clients' updates."""
    ends = Global(Tree(LAYOUT, doubles(1, 1)), Tree(NONE, doubles()))
    flat = torch.tensor(rows, dtype=torch.float64).reshape(-1, 2) + 1
    own = Tree(LAYOUT, flat), Tree(NONE, torch.zeros(len(rows), 0, dtype=torch.float64))
    return RoundModels(5, ends, ends, clients or list(range(len(rows))), *own, doubles(*weights), dict(server))


def measured(text: str, of: RoundModels, task: Task | None = None) -> list[Value]:
    def load() -> Task:
        assert task is not None
        return task

    return list(make(text).measure(of, load))


def numbers(values: list[Value]) -> dict[str, float | None]:
    return {v.metric: v.value for v in values if v.x is None and v.client is None}


# --- coherence ----------------------------------------------------------------------------------------------------------------

UPDATES = [[1.0, 0.0], [1.0, 1.0], [0.0, -2.0], [-3.0, 0.0]]
ROOT = math.sqrt(0.5)
# Cosines between the four directions 0, 45, -90 and 180 degrees.
COSINES = {(0, 1): ROOT, (0, 2): 0.0, (0, 3): -1.0, (1, 2): -ROOT, (1, 3): -ROOT, (2, 3): 0.0}


def test_coherence_by_hand() -> None:
    """(1/4) sum over ordered pairs of p_i p_j c(i, j), also for the groups {0, 1} and {2, 3}, each with weights that sum to 1.
    Beside it are the plain mean and the matrix between clients by id. The sign of the global gradient and all lengths do not
    matter."""
    p = [0.4, 0.3, 0.2, 0.1]
    of = kept(UPDATES, p, [1, 3, 7, 9])
    values = measured("coherence(groups=5)", of)
    found = numbers(values)
    assert found["coherence"] == pytest.approx(2 * sum(p[i] * p[j] * c for (i, j), c in COSINES.items()) / 4, rel=1e-14)
    assert found["coherence_first"] == pytest.approx(2 * (4 / 7) * (3 / 7) * ROOT / 2, rel=1e-14)
    assert found["coherence_second"] == pytest.approx(0, abs=1e-15)
    assert found["mean_cosine"] == pytest.approx(sum(COSINES.values()) / 6, rel=1e-14)
    matrix = {(v.x, v.y): v.value for v in values if v.metric == "coherence_pairs"}
    assert len(matrix) == 16
    assert matrix[1.0, 9.0] == matrix[9.0, 1.0] == pytest.approx(-1)
    assert matrix[3.0, 7.0] == pytest.approx(-ROOT)
    mixed = numbers(measured("coherence(groups=5)", kept(UPDATES, p, [1, 7, 9, 3])))  # groups {0, 3} and {1, 2}
    assert mixed["coherence_first"] == pytest.approx(2 * 0.8 * 0.2 * -1 / 2, rel=1e-14)
    assert mixed["coherence_second"] == pytest.approx(2 * 0.6 * 0.4 * -ROOT / 2, rel=1e-14)
    learned = kept(UPDATES, p, [1, 3, 7, 9], **{"lambda": doubles(0.5, 0.5, 0, 0)})
    assert numbers(measured("coherence(weights=learned)", learned))["coherence"] == pytest.approx(2 * 0.25 * ROOT / 4)


def test_what_has_no_coherence() -> None:
    """One client and a group of one have no coherence. A client that did not move has no direction."""
    assert measured("coherence", kept(UPDATES[:1], [1.0])) == []
    found = numbers(measured("coherence(groups=1)", kept(UPDATES[:3], [0.4, 0.3, 0.3])))
    assert set(found) == {"coherence", "coherence_second", "mean_cosine"}
    still = numbers(measured("coherence", kept([[0.0, 0.0], [1.0, 0.0]], [0.5, 0.5])))["coherence"]
    assert math.isnan(still or 0)


# --- classes and weights ------------------------------------------------------------------------------------------------------


def labelled(labels: list[list[int]], sizes: list[float]) -> Task:
    """Clients with these labels of three classes."""
    flat = [label for own in labels for label in own]
    bounds = [sum(map(len, labels[:k])) for k in range(len(labels) + 1)]
    index = [torch.arange(a, b) for a, b in pairwise(bounds)]
    data = Batch(torch.zeros(len(flat), 1, 4, 4, dtype=torch.float64), torch.tensor(flat))
    changes: dict[str, Any] = {"train": data, "client_index": index, "client_sizes": doubles(*sizes), "host_index": None}
    return dataclasses.replace(toy.make_task(rounds=1), **changes)


# D_0 = (1/2, 1/4, 1/4), D_1 = (0, 1, 0), client 2 has no data, D_3 = (1/2, 0, 1/2); sizes are 8 : 4 : 9 : 4.
TASK = labelled([[0, 0, 1, 2], [1, 1], [], [0, 2]], [8, 4, 9, 4])


def test_heterogeneity_by_hand() -> None:
    """All clients have (8 D_0 + 4 D_1 + 4 D_3) / 16 = (3/8, 3/8, 1/4) without the empty one. Clients 0 and 1 have (1/3, 1/2,
    1/6) by size, so 1/8 of the mass differs. With lambda = (3/4, 1/4) it is (3/8, 7/16, 3/16), and 1/16 differs."""
    values = measured("heterogeneity", kept(UPDATES[:2], [2 / 3, 1 / 3], **{"lambda": doubles(0.75, 0.25)}), TASK)
    found = numbers(values)
    assert found["heterogeneity_coherence"] == pytest.approx(7 / 8, rel=1e-14)
    assert found["heterogeneity_coherence_weighted"] == pytest.approx(15 / 16, rel=1e-14)
    p, q = doubles(3 / 8, 3 / 8, 1 / 4), doubles(1 / 3, 1 / 2, 1 / 6)
    assert found["heterogeneity_cosine"] == pytest.approx(float(p @ q / p.norm() / q.norm()), rel=1e-14)
    shares = {(v.metric, v.x): v.value for v in values if v.x is not None}
    assert [shares["class_share", float(c)] for c in range(3)] == pytest.approx(q.tolist())
    assert [shares["class_share_weighted", float(c)] for c in range(3)] == pytest.approx([3 / 8, 7 / 16, 3 / 16])
    plain = numbers(measured("heterogeneity", kept(UPDATES[:3], [0.5, 0.25, 0.25], [0, 1, 3]), TASK))
    assert plain["heterogeneity_coherence"] == pytest.approx(1)
    assert set(plain) == {"heterogeneity_coherence", "heterogeneity_cosine"}
    assert measured("heterogeneity", kept([], []), TASK) == []


def test_weights_of_clients() -> None:
    """The values are each client's weight and the summed weight of the first group's clients in the cohort. Without learned
    weights the data sizes count."""
    of = kept(UPDATES[:3], [0.4, 0.3, 0.3], [1, 4, 6], **{"lambda": doubles(0.5, 0.25, 0.25)})
    values = measured("client_weights(groups=5)", of)
    assert [(v.client, v.value) for v in values[:-1]] == [(1, 0.5), (4, 0.25), (6, 0.25)]
    assert numbers(values) == {"weight_first": 0.75}
    plain = measured("client_weights", kept(UPDATES[:3], [0.4, 0.3, 0.3], [1, 4, 6]))
    assert [v.value for v in plain] == [0.4, 0.3, 0.3]
    assert measured("client_weights", kept([], [])) == []


def test_weights_of_corrupted_clients() -> None:
    """One of two corrupted clients takes part. It has lambda 0.1 where its data share is 0.4, and the others 0.9 where it is
    0.6, so the ratio is a sixth. By data size it is 1. If no client or all clients of a round are corrupted, there is no
    value."""
    task = dataclasses.replace(TASK, spec=toy.make_spec(clients=4, classes=3, corrupted_clients=0.5))
    first, second = corrupted.draw_class_pairs(0.5, 4, 3, task.seed)
    good, other = (client for client in range(4) if client not in (first, second))
    clients, lambdas = [first, good, other], doubles(0.1, 0.2, 0.7)
    values = measured("corrupted_weights", kept(UPDATES[:3], [0.4, 0.3, 0.3], clients, **{"lambda": lambdas}), task)
    assert numbers(values) == {"corrupted_weight": pytest.approx((0.1 / 0.4) / (0.9 / 0.6), rel=1e-14)}
    plain = measured("corrupted_weights", kept(UPDATES[:3], [0.4, 0.3, 0.3], clients), task)
    assert numbers(plain) == {"corrupted_weight": pytest.approx(1, rel=1e-14)}
    for alike in ([first, second], [good, other]):
        assert measured("corrupted_weights", kept(UPDATES[:2], [0.5, 0.5], alike), task) == []
    with pytest.raises(UserError, match=r"^corrupted_weights: corrupted_clients = 0: no client is corrupted"):
        measured("corrupted_weights", kept(UPDATES[:1], [1.0]), TASK)


def test_correlations_by_hand() -> None:
    """Clients 0, 1 and 3 have summed weights 3, 1 and 1 over 6, 4 and 2 rounds: 1/2, 1/4, 1/2. Sizes are 8, 4, 4. Variances of
    their classes are 1/72, 2/9 and 1/18, so HD = 72, 9/2 and 18. The empty client is left out, whatever its weight is."""
    of = kept(UPDATES[:1], [1.0], lambda_sum=doubles(3, 1, 99, 1), lambda_rounds=doubles(6, 4, 3, 2))
    found = numbers(measured("weight_correlation", of, TASK))
    weights, sizes, degrees = doubles(0.5, 0.25, 0.5), doubles(8, 4, 4), doubles(72, 4.5, 18)
    for metric, of_clients in (("size", sizes), ("heterogeneity", degrees), ("both", sizes * degrees)):
        expected = float(torch.corrcoef(torch.stack([weights, of_clients]))[0, 1])
        assert found[f"correlation_{metric}"] == pytest.approx(expected, rel=1e-12)
    assert found["correlation_size"] == pytest.approx(0.5)
    never = kept(UPDATES[:1], [1.0], lambda_sum=doubles(1, 1, 0, 0), lambda_rounds=doubles(1, 2, 0, 0))
    assert numbers(measured("weight_correlation", never, TASK))["correlation_size"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("coherence(weights=learned)", "leaves no learned weights"),
        ("weight_correlation", "leaves no lambda_sum and no lambda_rounds"),
    ],
)
def test_methods_that_learn_no_weights(text: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        measured(text, kept(UPDATES[:2], [0.5, 0.5]), TASK)


def test_boxes_have_no_classes() -> None:
    boxes = dataclasses.replace(TASK, model=dataclasses.replace(TASK.model, detects=True))
    with pytest.raises(UserError, match="learns boxes, not classes"):
        measured("heterogeneity", kept(UPDATES[:2], [0.5, 0.5]), boxes)


# --- the server's learning ----------------------------------------------------------------------------------------------------


def served(
    text: str, dtype: torch.dtype, rounds: int = 2, build: Any = toy.tiny_model
) -> tuple[Task, RoundModels, dict[str, float]]:
    """A task, the last kept round of a run of some rounds, and the server's notes of that round."""
    task = toy.make_task(rounds=rounds, method=text, dtype=dtype, model=build())
    method = compose(text)
    states, engine, ctx = [method.init(task.params, task.buffers)], SequentialEngine(task, method), toy.server_context(task)
    for round in range(rounds):
        cohort, _ = engine.run_cohort(states[-1], round)
        ctx = toy.server_context(task, cohort, round)
        states.append(method.apply(states[-1], ctx))
    before, after = (Global(one.params, one.buffers) for one in states[-2:])
    of = ctx.cohort
    return (
        task,
        RoundModels(rounds, before, after, of.clients, of.models, of.buffers, of.weights, dict(ctx.diagnostics)),
        ctx.notes,
    )


LEARNING = "server_epochs=5, halve_every=2, server_lr=0.05"


@pytest.mark.parametrize("build", [toy.tiny_model, toy.norm_model])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("part", ["fedlaw", "fedlaw_only"])
def test_learning_ends_where_the_run_did(part: str, dtype: torch.dtype, build: Any) -> None:
    """The last point is FedLAW's recorded gamma and lambda, to the bit. The curve starts at 1 and the data sizes, and changes
    in each of five epochs."""
    task, of, notes = served(f"{part}({LEARNING})", dtype, build=build)
    values = measured("server_learning", of, task)
    gammas = {v.x: v.value for v in values if v.metric == "learning_gamma" and v.x is not None}
    lambdas = {(v.client, v.x): v.value for v in values if v.metric == "learning_lambda"}
    assert list(gammas) == [0, 1, 2, 3, 4, 5]
    assert gammas[0.0] == 1
    assert gammas[5.0] == notes["gamma"] == numbers(values)["learning_gamma"]
    assert [lambdas[client, 5.0] for client in of.clients] == of.server["lambda"].tolist()
    assert [lambdas[client, 0.0] for client in of.clients] == pytest.approx(of.weights.tolist(), rel=1e-6)
    assert len(set(gammas.values())) == 6


@pytest.mark.parametrize(
    ("distances", "epochs"),
    [([4.0, 1.0, 0.3, 0.0], 2.0), ([1.0, 5.0, 0.4, 0.6, 0.0], 4.0), ([0.0, 0.0], 0.0), ([9.0, 0.9, 0.0], 1.0)],
)
def test_when_something_has_settled(distances: list[float], epochs: float) -> None:
    """A curve has settled from the epoch after which it stays within a tenth of the largest distance. A curve that leaves this
    band again has not settled."""
    assert settles(distances, 0.1) == epochs


def test_learning_of_weights_alone() -> None:
    """In a later round, after attentive LAW has summed weights over rounds, the curve ends at its lambda to the bit; gamma
    stays at 1. LAW with SWA over one epoch ends at the same values."""
    task, of, _ = served(f"attentive_law({LEARNING})", torch.float32)
    values = measured("server_learning", of, task)
    assert {v.value for v in values if v.metric == "learning_gamma"} == {1.0}
    assert [v.value for v in values if v.metric == "learning_lambda" and v.x == 5] == of.server["lambda"].tolist()
    task, of, _ = served(f"law_swa({LEARNING}, swa_start=4)", torch.float64)
    last = [v.value for v in measured("server_learning", of, task) if v.metric == "learning_lambda" and v.x == 5]
    assert last == pytest.approx(of.server["lambda"].tolist(), rel=1e-12)


def test_learning_of_gamma_alone_and_in_two_stages() -> None:
    """Adaptive GWS has no lambda, also after a server step. FedLAW-SWA has two epochs of each. Both end at the recorded
    gamma."""
    for text in (f"adaptive_gws({LEARNING})", f"fedlaw_swa({LEARNING})", f"server_sgd(server_lr=0.5)+adaptive_gws({LEARNING})"):
        task, of, notes = served(text, torch.float64)
        values = measured("server_learning", of, task)
        assert numbers(values)["learning_gamma"] == pytest.approx(notes["gamma"], rel=1e-12)
        assert any(v.metric == "learning_lambda" for v in values) == ("swa" in text)
        assert max(v.x or 0 for v in values) == (4 if "swa" in text else 5)
    assert measured("server_learning", kept([], []), task) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [("fedavg", "has 0 parts of"), (f"fedlaw({LEARNING})+adaptive_gws({LEARNING})", "has 2 parts of")]
    + [(f"{state}+adaptive_gws({LEARNING})", "keeps a state between rounds") for state in ("fedavgm", "feddyn")]
    + [(f"gh+fedlaw({LEARNING})", "gh reads what is not kept"), (f"elastic+adaptive_gws({LEARNING})", "elastic reads what")]
    + [(f"fednova+adaptive_gws({LEARNING})", "fednova reads what is not kept")],
)
def test_learning_that_cannot_be_made_again(text: str, word: str) -> None:
    task, of, _ = served(text, torch.float64, rounds=1)
    with pytest.raises(UserError, match=word):
        measured("server_learning", of, task)
