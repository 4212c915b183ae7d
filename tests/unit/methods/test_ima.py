"""Moving averages of global models by hand, on one weight; what they do not change; and how a run continues with them."""

import dataclasses
import math
from typing import Any

import pytest
import torch

from fedrepro import rounds
from fedrepro.engine.loop import train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method, ServerState, compose
from fedrepro.methods.parts import PARTS
from fedrepro.registry import parse
from fedrepro.tree import Tree
from fedrepro.types import Cohort
from tests import toy

BASES = ("fedadam", "scaffold", "fedprox+gh+fixed_gamma")


def window(text: str, handed: list[float], of: int) -> list[float]:
    """The weights that the average `text` makes of its inputs, round by round, in a run of `of` rounds."""
    part, found = compose(text).averages[0], []
    task, state = toy.make_task(rounds=of), part.init(toy.one_weight(0.0))
    for round, w in enumerate(handed):
        x, state = part(toy.one_weight(w), state, toy.server_context(task, round=round))
        found.append(x.flat.item())
    return found


def serve(text: str, updates: list[float], of: int) -> list[ServerState]:
    """The server's states from w = 1, if one client sends the given updates in a run of `of` rounds."""
    method, task = compose(text), toy.linear_task(of)
    states = [method.init(toy.one_weight(1.0), task.buffers)]
    one = torch.ones(1, dtype=torch.float64)
    for round, update in enumerate(updates):
        anchor = states[-1].params
        sent = anchor.like(torch.tensor([[update]], dtype=torch.float64))
        buffers = task.buffers.like(task.buffers.flat.expand(1, -1))
        cohort = Cohort([0], sent, one, one, one, 1.0, 1, anchor, buffers)
        states.append(method.apply(states[-1], toy.server_context(task, cohort, round)))
    return states


def states_of(text: str, task: Task, method: Method | None = None, state: ServerState | None = None, begin: int = 0) -> list:
    """The server's state before each round from `begin` on, and after the last one."""
    method = method or compose(text)
    runner, found = SequentialEngine(task, method), [state or method.init(task.params, task.buffers)]
    for round in range(begin, task.spec.rounds):
        cohort, _ = runner.run_cohort(found[-1], round)
        assert cohort is not None
        found.append(method.apply(found[-1], toy.server_context(task, cohort, round)))
    return found


def same(left: Any, right: Any) -> bool:
    """Whether two states of parts have the same bits."""
    if isinstance(left, Tree):
        return torch.equal(left.flat, right.flat)
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def test_the_mean_of_a_window_by_hand() -> None:
    """The inputs are 1, 2, 4, ..., and three of them are averaged from the middle of 8 rounds on: (4 + 8 + 16) / 3, (8 + 16 +
    32) / 3, ... The window has the inputs, also of the rounds before the start, and no means."""
    found = window("ima(window=3, start=0.5)", [1, 2, 4, 8, 16, 32, 64, 128], 8)
    assert found == [1, 2, 4, 8, 28 / 3, 56 / 3, 112 / 3, 224 / 3]
    assert window("ima(window=3, start=4)", [1, 2, 4, 8, 16], 8) == found[:5]


def test_with_fewer_rounds_than_the_window_the_mean_is_of_those_there_are() -> None:
    """1; (1 + 2) / 2; (1 + 2 + 6) / 3; then three of four."""
    assert window("ima(window=3, start=0)", [1, 2, 6, 10], 8) == [1, 1.5, 3, 6]


def test_clients_start_from_the_mean_by_hand() -> None:
    """Client 0 moves down by two steps of 0.1 * 2 from any start: -0.4. Three rounds are averaged from round 2 on.

    u = 0.6, 0.2, -0.2, whose mean is 0.2; from there u = -0.2, mean (0.2 - 0.2 - 0.2) / 3 = -0.2 / 3; from there
    u = -0.2 / 3 - 0.4, mean (-0.2 - 0.2 - 0.2 / 3 - 0.4) / 3 = -2.6 / 9.
    """
    plain = {"client_momentum": 0.0, "weight_decay": 0.0, "client_lr_decay": 1.0}
    for rounds_, expected in ((1, 0.6), (2, 0.2), (3, 0.2), (4, -0.2 / 3), (5, -2.6 / 9)):
        task = toy.linear_task(rounds_, cohorts=((0,),), **plain)
        assert train(task, toy.linear("ima(window=3, start=2)")).params.flat.item() == pytest.approx(expected, abs=1e-15)


def test_averages_before_the_servers_step_by_hand() -> None:
    """v <- 0.5 v + update, w <- w + v from w = 1; windows of two from round 1 on; clients move by 1, 4 and 2.

    Round 0: u = 2, v = 1, w = 2. Round 1: u = 6, mean 4, update 2; v starts over: w = 2 + 2 = 4, and v stays 1.
    Round 2: u = 6, mean 6, update 2; v = 0.5 + 2 = 2.5, w = 6.5. Round 3: u = 6.5 + 1, mean 6.75, update 0.25; v = 1.5, w = 8.
    """
    states = serve("ima_averages(window=2, start=1)+fedavgm(beta=0.5)", [1, 4, 2, 1], 4)
    assert [state.params.flat.item() for state in states] == [1, 2, 4, 6.5, 8]
    assert [state.parts["server_opt"][0].flat.item() for state in states] == [0, 1, 1, 2.5, 1.5]


def test_moments_of_adam_survive_the_call_that_does_without_them() -> None:
    """beta1 = beta2 = 0.5, tau = 0.1, server_lr = 1.

    Round 0, update 1: u = 1 + 1 = 2, m = 0.5, v = 0.5, w = 1 + 0.5 / (sqrt(0.5) + 0.1).
    Round 1, update 4: u = w + 4, so the step is along g = (2 + w + 4) / 2 - w = 3 - w / 2, with m = g / 2 and v = g^2 / 2 from
    zero. Round 2 starts with the moments of round 0.
    """
    states = serve("ima_averages(window=2, start=1)+fedadam(beta1=0.5, beta2=0.5, tau=0.1, server_lr=1)", [1, 4], 4)
    w = 1 + 0.5 / (math.sqrt(0.5) + 0.1)
    g = 3 - w / 2
    found = [state.params.flat.item() for state in states[1:]]
    assert found == pytest.approx([w, w + g / 2 / (g / math.sqrt(2) + 0.1)], abs=1e-15)
    assert [[moment.flat.item() for moment in state.parts["server_opt"][0]] for state in states[1:]] == [[0.5, 0.5]] * 2


@pytest.mark.parametrize("text", BASES)
@pytest.mark.parametrize("average", ["ima", "ima_averages"])
def test_nothing_changes_before_the_start(average: str, text: str) -> None:
    """In the first 5 of 6 rounds, 3/4 rounded up, weights and the state of all other parts are the same to the bit. Then they
    differ."""
    task = toy.make_task(rounds=6)
    base, found = (states_of(one, task) for one in (text, f"{text}+{average}"))
    slot = PARTS.get(average).slot
    for t in range(6):
        assert torch.equal(found[t].params.flat, base[t].params.flat)
        left, right = (
            [one.shared, [one.parts[other] for other in sorted(one.parts.keys() - {slot})]] for one in (found[t], base[t])
        )
        assert same(left, right)
    assert not torch.equal(found[6].params.flat, base[6].params.flat)


@pytest.mark.parametrize("base", ["fedavg", "fedadam"])
@pytest.mark.parametrize("at", [1, 4])
@pytest.mark.parametrize("size", [1, 3, 9])
def test_a_run_without_it_is_gone_on_with(base: str, at: int, size: int) -> None:
    """Its state at any round before the start can be made of the global weights of the last `remembers` rounds. From there on
    states and bits are the same."""
    task, method = toy.make_task(rounds=6), compose(f"{base}+ima(window={size}, start=4)")
    part, whole, without = method.averages[0], states_of("", task, method), states_of(base, task)
    assert part.begins(6) == 4
    assert part.remembers(6) == min(size - 1, 4)
    weights = [state.params for state in without[1 : at + 1]]
    inherited = part.inherit(weights[max(0, len(weights) - part.remembers(6)) :])
    assert same(inherited, whole[at].parts["average"][0])
    state = dataclasses.replace(without[at], parts=without[at].parts | {"average": (inherited,)})
    for found, expected in zip(states_of("", task, method, state, at), whole[at:], strict=True):
        assert torch.equal(found.params.flat, expected.params.flat)
        assert same(found.parts["average"], expected.parts["average"])


def test_others_change_something_from_the_first_round_on() -> None:
    """Only IMA can be left out at the beginning of a run. `ima_averages` stores weights that are not the global model's."""
    parts = [PARTS.make(parse(toy.part_text(name))[0]) for name in PARTS.names()]
    assert [part.name for part in parts if part.begins(8) is not None] == ["ima"]


def test_rounds_and_shares_keep_their_kind_in_names() -> None:
    """A share is not a number of rounds. Each keeps its meaning in runs of every length."""
    assert "ima(window=5, start=0.75)" in str(compose("ima"))
    assert "ima(window=5, start=3)" in str(compose("ima(start=3)"))
    assert [rounds.first_round(0.75, of) for of in (1, 2, 3, 4, 10, 300, 400)] == [0, 1, 2, 3, 8, 225, 300]
    assert rounds.first_round(0.07, 100) == 7
    assert [rounds.first_round(3, of) for of in (2, 3, 4)] == [3, 3, 3]
