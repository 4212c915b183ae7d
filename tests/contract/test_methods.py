"""What every part and every chain of parts owes, whatever it computes. Registering a part enrols it."""

import dataclasses
import inspect
import math
import re
from pathlib import Path

import pytest
import torch

from fedrepro.engine import checkpoint
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.loop import Checkpoints, Outcome, train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS, SLOTS, Part
from fedrepro.methods.presets import DEFAULTS, PRESETS
from fedrepro.tree import Tree
from tests import toy

PARTS_NAMES = PARTS.names()
NEEDY = [text for text in toy.METHODS if compose(text).needs]


def run(text: str, task: Task, **options) -> Outcome:
    """A run of the method `text` to its last round."""
    return train(task, compose(text), **options)


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


def same(a, b) -> bool:
    """Bit for bit, NaN unequal to everything."""
    left, right = flatten(a), flatten(b)
    return len(left) == len(right) and all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("name", PARTS_NAMES)
def test_a_part_is_a_frozen_dataclass_in_a_known_slot(name: str) -> None:
    """Immutable and comparable by value, so that equal parts are equal runs; `needs` names only what runs can provide."""
    cls = PARTS.get(name)
    assert issubclass(cls, Part)
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
    assert cls.slot in SLOTS
    assert cls.needs <= {"proxy"}


@pytest.mark.parametrize("name", PARTS_NAMES)
def test_a_part_opens_with_its_source_and_states_its_limit(name: str) -> None:
    """The module's docstring begins with a publication and a place in it; a part with arguments says what they reduce to."""
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
    """methods/<slot>/<file>.py, under 100 lines."""
    path = Path(inspect.getfile(PARTS.get(name)))
    assert path.parent.name == PARTS.get(name).slot
    assert len(path.read_text().splitlines()) < 100


@pytest.mark.parametrize("text", [*PRESETS, *toy.METHODS])
def test_canonical_name_parses_back(text: str) -> None:
    """str(method) spells every part and argument and means the same method; spelling it again changes nothing."""
    method = compose(text)
    assert compose(str(method)) == method
    assert str(compose(str(method))) == str(method)
    for part in method.parts:
        for field in dataclasses.fields(type(part)):  # pyright: ignore[reportArgumentType]
            assert f"{field.name}=" in str(method)


@pytest.mark.parametrize("name", sorted(set(DEFAULTS.values())))
def test_spelling_out_a_default_changes_nothing(name: str) -> None:
    """`local_sgd`, `mean` and `server_sgd` are what an empty slot means."""
    assert compose(name) == compose("fedavg")


@pytest.mark.parametrize("text", toy.METHODS)
def test_three_rounds_are_deterministic_finite_and_recorded(text: str) -> None:
    """The same seed twice: the same bits. Every weight and every noted scalar is a finite float, every round is recorded."""
    first, second = run(text, toy.make_task()), run(text, toy.make_task())
    assert same(first.params, second.params)
    assert first.progress.rows == second.progress.rows
    assert first.status == "finished"
    assert torch.isfinite(first.params.flat).all()
    assert all(type(value) is float and math.isfinite(value) for _, _, value in first.progress.rows)
    assert {round for round, name, _ in first.progress.rows if name == "test_accuracy"} == {0, 1, 2}
    assert not torch.equal(first.params.flat, toy.make_task().params.flat), "the method left the model as it was"


@pytest.mark.parametrize("text", toy.METHODS)
def test_two_seeds_differ(text: str) -> None:
    """A seed decides initial model, parts and batches."""
    assert not same(run(text, toy.make_task(seed=8)).params, run(text, toy.make_task(seed=9)).params)


@pytest.mark.parametrize("text", toy.METHODS)
@pytest.mark.parametrize("cohorts", [toy.PARTIAL, toy.ALONE, toy.EMPTY], ids=["partial", "alone", "empty"])
def test_any_cohort_will_do(text: str, cohorts: tuple[tuple[int, ...], ...]) -> None:
    """Two of five clients (one of them without data), one alone, or nobody with data: all finite; no training, no change."""
    task = toy.make_task(cohorts=cohorts)
    outcome = run(text, task)
    assert outcome.status == "finished"
    assert same(outcome.params, task.params) == (cohorts == toy.EMPTY)


@pytest.mark.parametrize("text", toy.METHODS)
def test_nothing_handed_in_is_modified(text: str) -> None:
    """Hooks are pure: initial weights, data, the cohort and the server's state are the same before and after a round."""
    task, method = toy.make_task(), compose(text)
    kept = [t.clone() for t in (task.params.flat, task.train.x, task.proxy.x, task.evaluation.x, task.client_sizes)]  # type: ignore[union-attr]
    runner = SequentialEngine(task, method)
    state = method.init(task.params, task.buffers)
    for round in range(2):
        before = [x.clone() if isinstance(x, torch.Tensor) else x for x in flatten(state)]
        cohort, _ = runner.run_cohort(state, round)
        assert cohort is not None
        assert same(before, flatten(state)), "a client rule changed the server's state"
        sent = [x.clone() if isinstance(x, torch.Tensor) else x for x in flatten(cohort)]
        next_state = method.apply(state, cohort, toy.server_context(task, round))
        assert same(sent, flatten(cohort)), "a server part changed what the cohort sent"
        assert same(before, flatten(state)), "a server part changed the state it was given"
        state = next_state
    after = [task.params.flat, task.train.x, task.proxy.x, task.evaluation.x, task.client_sizes]  # type: ignore[union-attr]
    assert same(kept, after)


@pytest.mark.parametrize("text", toy.METHODS)
def test_state_survives_a_checkpoint(text: str, tmp_path: Path) -> None:
    """What `save` writes, `load` gives back bit for bit, states of parts and of clients included."""
    task, method = toy.make_task(), compose(text)
    runner = SequentialEngine(task, method)
    state = method.init(task.params, task.buffers)
    cohort, _ = runner.run_cohort(state, 0)
    assert cohort is not None
    state = method.apply(state, cohort, toy.server_context(task))
    progress = Progress(1, [(0, "test_accuracy", 12.5)], 0.5, 44, "2026-01-01T00:00:00+00:00")
    path = tmp_path / "seed8.pt"
    checkpoint.save(path, "key", state, runner.own, progress)
    found = checkpoint.load(path, "key")
    assert found is not None
    assert same(found[0], state)
    assert same(found[1], runner.own)
    assert found[2] == progress
    assert checkpoint.load(path, "another run") is None


class Interrupted(Exception):
    """Stands for a killed process."""


@pytest.mark.parametrize("text", toy.METHODS)
@pytest.mark.parametrize("at", [1, 2])
def test_interrupted_and_resumed_is_bit_identical(text: str, at: int, tmp_path: Path) -> None:
    """Killed in round `at` and started again: weights and records of an undisturbed run, and the checkpoint was really used."""
    whole = run(text, toy.make_task(rounds=4, cohorts=toy.PARTIAL))
    checkpoints = Checkpoints(tmp_path / "seed8.pt", canonical_hash(text), every_s=0)
    seen = []

    def stop(round: int, progress: Progress) -> None:
        seen.append(round)
        if round == at and len(seen) == at + 1:
            raise Interrupted

    task = toy.make_task(rounds=4, cohorts=toy.PARTIAL)
    with pytest.raises(Interrupted):
        run(text, task, checkpoints=checkpoints, report=stop)
    resumed = run(text, task, checkpoints=checkpoints, report=stop)
    assert seen == [*range(at + 1), *range(at, 4)], "resumed at another round than the last one saved"
    assert same(resumed.params, whole.params)
    assert resumed.progress.rows == whole.progress.rows
    assert resumed.progress.samples == whole.progress.samples


@pytest.mark.parametrize("text", NEEDY)
def test_a_method_that_needs_the_proxy_set_refuses_to_run_without(text: str) -> None:
    """One line that names the method and what is missing, before the first round."""
    with pytest.raises(UserError, match="proxy") as caught:
        run(text, toy.make_task(proxy=False), report=lambda *_: pytest.fail("a round was trained"))
    assert "\n" not in str(caught.value)
    assert str(compose(text)) in str(caught.value)


@pytest.mark.parametrize("text", [text for text in toy.METHODS if text not in NEEDY])
def test_a_method_that_declares_no_need_runs_without_the_proxy_set(text: str) -> None:
    """`needs` is complete: what does not name the proxy set does not touch it."""
    assert same(run(text, toy.make_task(proxy=False)).params, run(text, toy.make_task()).params)


@pytest.mark.parametrize("text", toy.METHODS)
def test_tuned_client_round_equals_the_plain_one(text: str) -> None:
    """The in-place form and the readable form of a client's round agree to round-off, over 3 rounds in float64."""
    tuned, plain = run(text, toy.make_task()), run(text, toy.make_task(), engine="plain")
    torch.testing.assert_close(tuned.params.flat, plain.params.flat, rtol=0, atol=1e-12)
    assert toy.values_of(tuned.progress.rows, "test_accuracy") == toy.values_of(plain.progress.rows, "test_accuracy")
