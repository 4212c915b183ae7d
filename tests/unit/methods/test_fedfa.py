"""FedFA's round by hand, and compared with a plain loop of autograd, torch's SGD and torch's Adam."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fedrepro import rng
from fedrepro.engine.loop import start_of, train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.engine.vectorised import VectorisedEngine
from fedrepro.errors import UserError
from fedrepro.methods import anchors
from fedrepro.methods.client.fedfa import FedFa
from fedrepro.methods.compose import ServerState, compose
from fedrepro.models import Model, build
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, ClientContext, LastLayer
from tests import toy

ENGINES = pytest.mark.parametrize("engine", [SequentialEngine, VectorisedEngine])
LAYOUT = Layout.of({"f": (1,), "fc.weight": (2, 1), "fc.bias": (2,)})
ANCHORS = Layout.of({"anchors": (2, 1)})
PLAIN = {"local_epochs": 1, "batch_size": 3, "client_momentum": 0.0, "weight_decay": 0.0, "client_lr_decay": 1.0}


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """f times the only pixel, [..., B, 1]."""
    return params["f"].unsqueeze(-2) * x.flatten(-3), buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """Returns two logits."""
    return h @ params["fc.weight"].mT + params["fc.bias"].unsqueeze(-2)


def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The whole model."""
    h, buffers = features(params, buffers, x, train)
    return head(params, h), buffers


def hand_task(rounds: int, cohort: tuple[int, ...], **changes) -> Task:
    """Client 0 has pixels 2 and 1 of class 0 and 3 of class 1; client 1 has 4 of class 0. f = 1, the last layer is all 0."""
    base = toy.linear_task(rounds, (cohort,), **PLAIN | changes)
    x = torch.tensor([2.0, 1.0, 3.0, 4.0], dtype=torch.float64).reshape(4, 1, 1, 1)
    data = Batch(x, torch.tensor([0, 0, 1, 0]))
    return dataclasses.replace(
        base,
        model=Model("hand", (1, 1, 1), 2, LAYOUT, Layout.of({}), forward, features, head),
        train=data,
        evaluation=data,
        client_index=[torch.tensor([0, 1, 2]), torch.tensor([3])],
        client_sizes=torch.tensor([3.0, 1.0], dtype=torch.float64),
        params=Tree(LAYOUT, torch.tensor([1.0, 0, 0, 0, 0], dtype=torch.float64)),
    )


def after_round(engine: type, task: Task, text: str, round: int) -> ServerState:
    """The server's state after `round`. Before the round the anchors are 0 and 1."""
    method = compose(text)
    state = dataclasses.replace(
        toy.first_state(task, method), shared=Tree(ANCHORS, torch.tensor([0.0, 1.0], dtype=torch.float64))
    )
    cohort, _ = engine(task, method).run_cohort(state, round)
    assert cohort is not None
    return method.apply(state, toy.server_context(task, cohort, round))


@ENGINES
def test_a_round_by_hand(engine: type) -> None:
    """Client 0 alone, round 1 of 2, a single batch, coefficient 0.2, client_lr 0.1.

    Features 2, 1, 3. The anchor term 1/2 ((2^2 + 1^2) / 2 + (3 - 1)^2) has the derivative 1/2 ((8 + 2) / 2 + 12) = 8.5 in f,
    and a last layer of 0 passes nothing back: f = 1 - 0.1 * 0.2 * 8.5 = 0.83. Probabilities are 1/2: the last layer's weights
    have the gradient (-2 - 1 + 3) / 6 = 0, its biases (-1, 1) / 6, so they become 1/60 and -1/60.
    Calibration: at the anchors 0 and 1, class 0 has s = 1 / (1 + exp(-1/30)). Gradients (s / 2, -s / 2) of the weights and
    (s - 1/2, 1/2 - s) of the biases; a first step of Adam is 1e-3 g / (|g| + 1e-8).
    Anchors, momentum 0.5: 0.5 * 0 + 0.5 * 1.5 and 0.5 * 1 + 0.5 * 3.
    """
    s = 1 / (1 + np.exp(-1 / 30))
    weight, bias = (1e-3 * g / (g + 1e-8) for g in (s / 2, s - 0.5))
    state = after_round(engine, hand_task(2, (0,)), "fedfa(coefficient=0.2)", 1)
    expected = [0.83, -weight, weight, 1 / 60 - bias, -1 / 60 + bias]
    assert state.params.flat.tolist() == pytest.approx(expected, abs=1e-12)
    assert state.shared.flat.tolist() == pytest.approx([0.75, 2.0], abs=1e-14)


@ENGINES
def test_round_zero_by_hand(engine: type) -> None:
    """There is no anchor term and, before a quarter of the rounds, no calibration. So f stays, and the anchors still move. If
    calibration starts at once, the last layer is calibrated in round 0 too."""
    state = after_round(engine, hand_task(2, (0,)), "fedfa(coefficient=0.2)", 0)
    assert state.params.flat.tolist() == pytest.approx([1, 0, 0, 1 / 60, -1 / 60], abs=1e-14)
    assert state.shared.flat.tolist() == pytest.approx([0.75, 2.0], abs=1e-14)
    early = after_round(engine, hand_task(2, (0,)), "fedfa(coefficient=0.2, calibrate_from=0)", 0)
    assert early.params.flat.tolist()[:3] == pytest.approx([1, -1e-3, 1e-3], abs=1e-9)


@pytest.mark.parametrize("mix", ["round", "epoch"])
def test_a_plain_loop_with_torchs_optimisers(mix: str) -> None:
    """Four rounds of two clients each, two epochs in batches of six, anchors computed class by class, calibration from round 2
    on. In float64 weights and anchors agree to 1e-10."""
    seen: list[list[Batch]] = []

    class Spy(FedFa):
        def begin(self, ctx: ClientContext) -> dict[str, Tree]:
            seen.append([])
            return super().begin(ctx)

        def step(self, params: Tree, batch: Batch, local: dict, ctx: ClientContext) -> tuple[Tree, dict]:
            seen[-1].append(batch)
            return super().step(params, batch, local, ctx)

    task = toy.make_task(rounds=4, cohorts=((0, 3), (1, 3), (0, 4), (1, 4)), by_class=True)
    method = dataclasses.replace(compose("fedavg"), client=Spy(0.3, 0.4, 0.5, mix))
    engine, state = SequentialEngine(task, method), toy.first_state(task, method)
    a_server = state.shared["anchors"].clone()
    w_server = {name: one.clone() for name, one in task.params.items()}
    for round in range(4):
        cohort, _ = engine.run_cohort(state, round)
        assert cohort is not None
        state = method.apply(state, toy.server_context(task, cohort, round))
        ends, total, a_sum = dict.fromkeys(w_server, 0.0), 0.0, torch.zeros_like(a_server)
        for client, batches in zip(cohort.clients, seen[-len(cohort.clients) :], strict=True):
            w, a = a_loop(w_server, a_server, batches, 0.1 * 0.9**round, round, mix)
            size = float(task.client_sizes[client])
            ends, total, a_sum = {name: ends[name] + size * w[name] for name in w}, total + size, a_sum + size * a
        w_server, a_server = {name: end / total for name, end in ends.items()}, a_sum / total
        torch.testing.assert_close(state.shared["anchors"], a_server, rtol=0, atol=1e-10)
        for name, expected in w_server.items():
            torch.testing.assert_close(state.params[name], expected, rtol=0, atol=1e-10)


def a_loop(received: dict, a: Tensor, batches: list[Batch], lr: float, round: int, mix: str) -> tuple[dict, Tensor]:
    """(weights, anchors) of a client after its batches, half of them in each of two epochs."""
    w = {name: one.clone().requires_grad_() for name, one in received.items()}
    solver = torch.optim.SGD(w.values(), lr=lr, momentum=0.5, weight_decay=1e-3)
    adam = torch.optim.Adam([w["fc2.weight"], w["fc2.bias"]])
    mine, per_epoch = a.clone(), len(batches) // 2
    sums, present, count = torch.zeros_like(a), set(), 0
    for number, batch in enumerate(batches):
        h = torch.relu(batch.x.flatten(1) @ w["fc1.weight"].T + w["fc1.bias"])
        loss = F.cross_entropy(h @ w["fc2.weight"].T + w["fc2.bias"], batch.y)
        if round > 0:
            labels = batch.y.tolist()
            for i, label in enumerate(labels):
                loss = loss + 0.3 / 3 * (h[i] - a[label]).square().sum() / labels.count(label)
        solver.zero_grad()
        loss.backward()
        solver.step()
        if round >= 2:
            adam.zero_grad()
            F.cross_entropy(a @ w["fc2.weight"].T + w["fc2.bias"], torch.arange(3)).backward()
            adam.step()
        for label in set(batch.y.tolist()):
            sums[label] += h.detach()[batch.y == label].mean(0)
            present.add(label)
        count += 1
        if number + 1 == (len(batches) if mix == "round" else per_epoch * (1 + number // per_epoch)):
            for label in present:
                mine[label] = 0.4 * mine[label] + 0.6 * sums[label] / count
            sums, present, count = torch.zeros_like(a), set(), 0
    return {name: one.detach() for name, one in w.items()}, mine


def test_the_first_anchors() -> None:
    """They are different rows of the identity, chosen by the seed, and rows of length 1 if there are more classes than
    features."""
    like = torch.zeros(1)
    few = anchors.initial_anchors(LastLayer(LAYOUT, (12,), 5), like, rng.stream(8, "a"))["anchors"]
    assert few.dtype == torch.float32
    assert torch.equal(few.sum(1), torch.ones(5))
    assert torch.equal(few @ few.T, torch.eye(5))
    other = anchors.initial_anchors(LastLayer(LAYOUT, (12,), 5), like, rng.stream(9, "a"))["anchors"]
    assert not torch.equal(few, other)
    many = anchors.initial_anchors(LastLayer(LAYOUT, (3,), 5), like.double(), rng.stream(8, "a"))["anchors"]
    torch.testing.assert_close(many.square().sum(1), torch.ones(5, dtype=torch.float64), rtol=0, atol=1e-14)
    assert len(many.unique(dim=0)) == 5
    task = toy.make_task()
    first, second = (
        compose("fedfa").init(one.params, one.buffers, start_of(one)).shared for one in (task, toy.make_task(seed=9))
    )
    assert torch.equal(first.flat, toy.first_state(task, compose("fedfa")).shared.flat)
    assert not torch.equal(first.flat, second.flat)


def test_without_its_terms_it_keeps_nothing_and_any_model_will_do() -> None:
    """It is FedAvg to the bit, also on a model without features, and clients send and receive nothing more."""
    text = "fedfa(coefficient=0, calibrate_from=1)"
    task = toy.linear_task(2, ((0, 1),))
    found, expected = (train(task, compose(one)) for one in (text, "fedavg"))
    assert torch.equal(found.params.flat, expected.params.flat)
    for engine in ("sequential", "plain", "vectorised"):
        mlp = toy.make_task(model=build("mlp", (1, 4, 4), 3))  # its gradient has a closed form
        found, expected = (train(mlp, compose(one), engine=engine) for one in (text, "fedavg"))
        assert torch.equal(found.params.flat, expected.params.flat)


def test_mistakes_are_one_line() -> None:
    """Values out of range, and models whose features cannot have anchors."""
    for text, what in (
        ("coefficient=-1", "coefficient = -1"),
        ("momentum=2", "momentum = 2"),
        ("calibrate_from=1.5", "calibrate_from = 1.5"),
        ("mix=batch", "mix = .*round or epoch"),
    ):
        with pytest.raises(UserError, match=f"fedfa: {what}"):
            compose(f"fedfa({text})")
    with pytest.raises(UserError, match="one_weight: has no last layer"):
        train(toy.linear_task(1), compose("fedfa"))
    for name, shape in (("char_lstm", (20,)), ("logistic_sigmoid", (1, 4, 4))):
        task = toy.make_task(model=build(name, shape, 3))
        with pytest.raises(UserError, match="fedfa: needs one vector of features a sample"):
            train(task, compose("fedfa"))
