"""Tests that every part must pass, and every pair of parts. A registered part takes part in them automatically."""

import dataclasses
import inspect
import math
import re
from functools import cache
from pathlib import Path

import pytest
import torch

from fedrepro.engine.client_side import local_test_metrics
from fedrepro.engine.cohort import Clients
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.loop import Checkpoints, Outcome, train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash
from fedrepro.methods.compose import ServerState, compose
from fedrepro.methods.parts import PARTS, SLOTS, Part
from fedrepro.tree import Tree
from tests import toy

PARTS_NAMES = PARTS.names()
CASES = pytest.mark.parametrize(("text", "model"), toy.ALONE_CASES)
PAIRS = pytest.mark.parametrize(("text", "model"), toy.CASES)
# One method of each client rule, and two whose server needs the clients' numbers of steps or pairwise inner products.
TUNED = {text for text in toy.ALONE_METHODS if compose(text).client != compose("fedavg").client} | {"fedavg", "gh", "fednova"}
NEEDY = [text for text in toy.ALONE_METHODS if "proxy" in compose(text).needs]


def make_task(model: str, **changes) -> Task:
    """The toy task with the toy model of this name."""
    return toy.make_task(model=toy.MODELS[model](), **changes)


def tensors_of(task: Task) -> list[torch.Tensor]:
    """Every tensor that a run is given."""
    assert task.proxy is not None
    return [task.params.flat, task.buffers.flat, task.train.x, task.proxy.x, task.evaluation.x, task.client_sizes]


def run(text: str, task: Task, **options) -> Outcome:
    """Trains the method `text` to its last round."""
    return train(task, compose(text), **options)


@cache
def finished(text: str, model: str) -> Outcome:
    """A run of three rounds that other runs are compared with."""
    return run(text, make_task(model))


def flatten(value) -> list:
    """Every tensor and plain value of a state, in order."""
    if isinstance(value, Tree):
        return [value.flat]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [leaf for field in dataclasses.fields(value) for leaf in flatten(getattr(value, field.name))]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in [key, *flatten(value[key])]]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flatten(item)]
    return [value]


def clones(value) -> list:
    """The values of `flatten`, with each tensor copied."""
    return [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in flatten(value)]


def same(a, b) -> bool:
    """Whether all bits agree. NaN is unequal to everything."""
    left, right = flatten(a), flatten(b)
    return len(left) == len(right) and all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("name", PARTS_NAMES)
def test_a_part_is_a_frozen_dataclass_in_a_known_slot(name: str) -> None:
    """A part is immutable and comparable by value, so that equal parts are equal runs. `needs` names only inputs that a run can
    provide."""
    cls = PARTS.get(name)
    assert issubclass(cls, Part)
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
    assert cls.slot in SLOTS
    assert cls.needs <= {"proxy", "held_out"}


@pytest.mark.parametrize("name", PARTS_NAMES)
def test_a_part_opens_with_its_source_and_states_its_limit(name: str) -> None:
    """The module's docstring begins with a publication and a place in it. A part with arguments states its limiting case."""
    cls = PARTS.get(name)
    text = " ".join((inspect.getdoc(inspect.getmodule(cls)) or "").split())
    opening = " ".join(text.split()[:60])
    assert re.search(r"(19|20)\d\d", opening), "no year in the opening sentences"
    assert re.search(r"https?://|section \d|Algorithm \d|equation \d", opening), "no address, section, algorithm or equation"
    own = f"{text} {' '.join((cls.__doc__ or '').split())}"
    if dataclasses.fields(cls):
        assert re.search(r"[Ll]imiting case", own), "has arguments but no limiting case"


@pytest.mark.parametrize("name", PARTS_NAMES)
def test_a_part_lies_in_the_package_of_its_slot_and_is_short(name: str) -> None:
    """A part is in methods/<slot>/<file>.py, which has under 100 lines."""
    path = Path(inspect.getfile(PARTS.get(name)))
    assert path.parent.name == PARTS.get(name).slot
    assert len(path.read_text().splitlines()) < 100


@pytest.mark.parametrize("text", toy.METHODS)
def test_canonical_name_parses_back(text: str) -> None:
    """str(method) spells out every part and argument and composes to the same method, with the same string."""
    method = compose(text)
    assert compose(str(method)) == method
    assert str(compose(str(method))) == str(method)
    for part in method.parts:
        for field in dataclasses.fields(type(part)):  # pyright: ignore[reportArgumentType]
            assert f"{field.name}=" in str(method)


@CASES
def test_three_rounds_are_finite_and_recorded(text: str, model: str) -> None:
    """Every weight and every recorded scalar is a finite float, every round is recorded, and running variances stay positive.
    Shape and precision stay as they were. The test of interruptions shows that two runs have the same bits."""
    first, start = finished(text, model), make_task(model)
    for found, given in ((first.params, start.params), (first.buffers, start.buffers)):
        assert (found.layout, found.flat.shape, found.flat.dtype) == (given.layout, given.flat.shape, given.flat.dtype)
    assert torch.isfinite(first.buffers.flat).all()
    assert all((value > 0).all() for name, value in first.buffers.items() if name.endswith("running_var"))
    assert first.status == "finished"
    assert torch.isfinite(first.params.flat).all()
    assert all(type(value) is float and math.isfinite(value) for _, _, value in first.progress.rows)
    assert {round for round, name, _ in first.progress.rows if name == "test_accuracy"} == {0, 1, 2}
    assert not torch.equal(first.params.flat, start.params.flat), "the method left the model as it was"


@pytest.mark.parametrize(("text", "model"), [case for case in toy.ALONE_CASES if case[0] in ("fedavg", *toy.PART_METHODS)])
def test_single_precision_stays_single(text: str, model: str) -> None:
    """In float32, every tensor of the server's state and of what clients keep is float32 after two rounds. The result differs
    from that of float64 by less than a hundredth of the distance that training moved."""
    task, method = make_task(model, dtype=torch.float32, keep_client_momentum=True, rounds=2), compose(text)
    runner, state = SequentialEngine(task, method), toy.first_state(task, method)
    for round in range(2):
        cohort, _ = runner.run_cohort(state, round)
        assert cohort is not None
        state = method.apply(state, toy.server_context(task, cohort, round))
    leaves = [leaf for leaf in flatten([state, runner.client_states]) if isinstance(leaf, torch.Tensor)]
    assert {leaf.dtype for leaf in leaves} == {torch.float32}
    exact = two_rounds(text, model).params.flat
    moved = torch.linalg.vector_norm(exact - task.params.flat.double())
    assert torch.linalg.vector_norm(state.params.flat.double() - exact) < 0.01 * moved


@CASES
def test_any_cohort_will_do(text: str, model: str) -> None:
    """A round with one client gives finite values. If no client has data, the model does not change. (The test of interruptions
    has cohorts of two of five clients.)"""
    task = make_task(model, cohorts=toy.ALONE)
    outcome, without = run(text, task), run(text, make_task(model, cohorts=toy.EMPTY, rounds=2))
    assert outcome.status == without.status == "finished"
    assert not same(outcome.params, task.params)
    assert same([without.params, without.buffers], [task.params, task.buffers])


@cache
def two_rounds(text: str, model: str) -> ServerState:
    """The server's state after two rounds in float64, of which none modifies what it is given."""
    task, method = make_task(model, keep_client_momentum=True, rounds=2), compose(text)
    kept = [t.clone() for t in tensors_of(task)]
    runner = SequentialEngine(task, method)
    state = toy.first_state(task, method)
    for round in range(2):
        before, own = clones(state), dict(runner.client_states)
        own_before = clones(own)
        cohort, _ = runner.run_cohort(state, round)
        assert cohort is not None
        assert same(before, flatten(state)), "a client rule changed the server's state"
        assert same(own_before, flatten(own)), "a client rule changed what the client had kept"
        sent = clones(cohort)
        next_state = method.apply(state, toy.server_context(task, cohort, round))
        assert same(sent, flatten(cohort)), "a server part changed what the cohort sent"
        assert same(before, flatten(state)), "a server part changed the state it was given"
        own_before = clones(runner.client_states)
        local_test_metrics(Clients(task, method, runner.client_states), next_state, round)
        assert same(own_before, flatten(runner.client_states)), "the making of own models changed what clients keep"
        state = next_state
    assert same(kept, tensors_of(task))
    return state


@PAIRS
def test_nothing_handed_in_is_modified(text: str, model: str) -> None:
    """Hooks are pure: a round does not modify initial weights and statistics, data, the cohort, what clients keep or the
    server's state."""
    two_rounds(text, model)


@CASES
def test_what_travels_is_declared(text: str, model: str) -> None:
    """A message has as many vectors as `sends` says. Clients read shared state only if the rule `receives` it, and keep what
    `init_client_state` names. Their statistics matter to the server exactly if a part has `reads_buffers`."""
    task, method = make_task(model), compose(text)
    runner, state = SequentialEngine(task, method), toy.first_state(task, method)
    cohort, _ = runner.run_cohort(state, 0)
    assert cohort is not None
    named = method.client.init_client_state(task.params).keys()
    assert all(kept.keys() == named for kept in runner.client_states.values())
    sent = 0 if cohort.messages is None else cohort.messages.flat.numel()
    more, receives_more = method.client.numbers(TrainingNetwork(task.model, task.buffers))
    assert sent == method.client.sends * cohort.updates.flat.numel() + more * len(cohort.clients)
    if isinstance(state.shared, Tree) and not (method.client.receives or receives_more):
        unknown = dataclasses.replace(state, shared=state.shared.like(torch.full_like(state.shared.flat, math.nan)))
        assert same(SequentialEngine(task, method).run_cohort(unknown, 0)[0], cohort)
    lost = dataclasses.replace(cohort, buffers=cohort.buffers.like(torch.full_like(cohort.buffers.flat, math.nan)))
    served = [method.apply(state, toy.server_context(task, one)) for one in (cohort, lost)]
    used = model == "norm" and any(part.reads_buffers for part in method.parts)
    assert same(served[0], served[1]) != used


@CASES
def test_interrupted_twice_and_resumed_is_bit_identical(text: str, model: str, tmp_path: Path) -> None:
    """A run that is killed in round 1, and again in round 2, continues each time from the checkpoint of the round before. It
    ends with the weights, statistics and records of an undisturbed run. Clients 0 and 3 come twice, with what they keep."""
    task = make_task(model, cohorts=((0, 3), (1, 3), (0, 4)), keep_client_momentum=True)
    whole = run(text, task)
    checkpoints, seen = Checkpoints(tmp_path / "seed8.pt", canonical_hash(text), every_s=0), list[int]()
    for last in (1, 2):
        with pytest.raises(toy.Stopped):
            run(text, task, checkpoints=checkpoints, report=toy.stop_at(last, seen))
    resumed = run(text, task, checkpoints=checkpoints, report=lambda t, _: seen.append(t))
    assert seen == [0, 1, 1, 2, 2], "resumed at another round than the last one saved"
    assert same([resumed.params, resumed.buffers], [whole.params, whole.buffers])
    assert resumed.progress.rows == whole.progress.rows
    assert resumed.progress.samples == whole.progress.samples


@pytest.mark.parametrize("text", NEEDY)
def test_a_method_that_needs_the_proxy_set_refuses_to_run_without(text: str) -> None:
    """One line names the method and the proxy set before the first round."""
    with pytest.raises(UserError, match="proxy") as caught:
        run(text, toy.make_task(proxy=False), report=lambda *_: pytest.fail("a round was trained"))
    assert "\n" not in str(caught.value)
    assert str(compose(text)) in str(caught.value)


@pytest.mark.parametrize(("text", "model"), [(text, model) for text, model in toy.ALONE_CASES if text not in NEEDY])
def test_a_method_that_declares_no_need_runs_without_the_proxy_set(text: str, model: str) -> None:
    """`needs` is complete: a method that does not name the proxy set gives the same result without it."""
    without, given = run(text, make_task(model, proxy=False)), finished(text, model)
    assert same([without.params, without.buffers], [given.params, given.buffers])


@pytest.mark.parametrize(("text", "model"), [case for case in toy.ALONE_CASES if case[0] in TUNED])
def test_tuned_client_round_equals_the_plain_one(text: str, model: str) -> None:
    """The in-place form and the readable form of a client's round agree to round-off after 3 rounds in float64. Round-off is
    larger with BatchNorm, where some gradients are almost zero and Adam divides by their size."""
    tuned, plain = finished(text, model), run(text, make_task(model), engine="plain")
    atol = 1e-8 if model == "norm" else 1e-12
    torch.testing.assert_close(tuned.params.flat, plain.params.flat, rtol=0, atol=atol)
    torch.testing.assert_close(tuned.buffers.flat, plain.buffers.flat, rtol=0, atol=atol)
    assert toy.values_of(tuned.progress.rows, "test_accuracy") == toy.values_of(plain.progress.rows, "test_accuracy")
