"""What the contract offers to client rules to come, on toy methods: both engines, workers, kill and resume agree."""

import math
from pathlib import Path

import pytest
import torch

from fedrepro import tree
from fedrepro.engine.batches import local_orders, stream_of
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.client_side import personal
from fedrepro.engine.cohort import Clients
from fedrepro.engine.loop import Checkpoints, Outcome, train, train_together
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.errors import UserError
from fedrepro.methods.compose import Method
from fedrepro.models import ops
from tests import toy
from tests.client_rules import METHODS, Meta, OwnMomentum
from tests.contract.test_engines import assert_close, tasks
from tests.contract.test_methods import clones, flatten, make_task, same, tensors_of

EVERY = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
MODELS = pytest.mark.parametrize("model", ["tiny", "norm"])
KEPT = {"keep_client_momentum": True, "cohorts": toy.PARTIAL}


class Killed(Exception):
    """Stands for a killed process."""


def killed_and_resumed(method: Method, model: str, path: Path, **options) -> Outcome:
    """Killed after round 2 of 4, and gone on with."""
    checkpoints, task = Checkpoints(path / "seed8.pt", "key", every_s=0), make_task(model, rounds=4, **KEPT)

    def kill(round: int, progress: Progress) -> None:
        if round == 2:
            raise Killed

    with pytest.raises(Killed):
        train(task, method, checkpoints=checkpoints, report=kill, **options)
    begun: list[int] = []
    resumed = train(task, method, checkpoints=checkpoints, report=lambda t, _: begun.append(t), **options)
    assert begun == [2, 3]
    return resumed


@EVERY
@MODELS
def test_workers_kill_and_resume_change_no_bit(method: Method, model: str, tmp_path: Path) -> None:
    """One process undisturbed, two workers, killed and resumed, both at once: weights, statistics and every recorded number."""
    whole = train(make_task(model, rounds=4, **KEPT), method)
    others = [train(make_task(model, rounds=4, **KEPT), method, workers=2)]
    for workers in (1, 2):
        (folder := tmp_path / str(workers)).mkdir()
        others.append(killed_and_resumed(method, model, folder, workers=workers))
    for found in others:
        assert same([found.params, found.buffers, found.progress.rows], [whole.params, whole.buffers, whole.progress.rows])


@EVERY
@MODELS
@pytest.mark.parametrize("chunk_mib", [None, 1e-6], ids=["together", "one by one"])
def test_engines_agree_in_float64(method: Method, model: str, chunk_mib: float | None) -> None:
    """Three seeds at once, with momentum that goes on, and the plain form, against each alone: 1e-12, 1e-8 behind BatchNorm."""
    several, atol = tasks(model, keep_client_momentum=True), 1e-12 if model == "tiny" else 1e-8
    found = dict(train_together(several, method, chunk_mib=chunk_mib))
    for i, task in enumerate(several):
        alone = train(task, method)
        assert_close(found[i], alone, atol)
        assert_close(train(task, method, engine="plain"), alone, atol)


@EVERY
def test_the_vectorised_engine_resumes(method: Method, tmp_path: Path) -> None:
    """Killed in round 1 of two seeds and gone on with: the same bits."""
    several = tasks(rounds=3)[:2]
    whole = dict(train_together(several, method))
    checkpoints = [Checkpoints(tmp_path / f"seed{task.seed}.pt", "key", every_s=0) for task in several]

    def kill(round: int, progress: Progress) -> None:
        if round == 2:
            raise Killed

    with pytest.raises(Killed):
        list(train_together(several, method, checkpoints=checkpoints, reports=[kill, None]))
    resumed = dict(train_together(several, method, checkpoints=checkpoints))
    for i in range(2):
        assert same([resumed[i].params, resumed[i].progress.rows], [whole[i].params, whole[i].progress.rows])


@EVERY
@MODELS
def test_nothing_handed_in_is_modified(method: Method, model: str) -> None:
    """Hooks are pure: data, the server's state and what clients keep are the same after a round and an evaluation."""
    task = make_task(model, keep_client_momentum=True)
    given, runner, state = tensors_of(task), SequentialEngine(task, method), method.init(task.params, task.buffers)
    given = [tensor.clone() for tensor in given]
    for round in range(2):
        before, own, kept = clones(state), dict(runner.own), clones(runner.own)
        cohort, _ = runner.run_cohort(state, round)
        assert cohort is not None
        assert same(before, flatten(state))
        assert same(kept, flatten(own))
        sent = clones(cohort)
        after = method.apply(state, toy.server_context(task, cohort, round))
        assert same(sent, flatten(cohort))
        assert same(before, flatten(state))
        kept = clones(runner.own)
        personal(Clients(task, method, runner.own), after, round)
        assert same(kept, flatten(runner.own))
        state = after
    assert same(given, tensors_of(task))


def test_a_step_of_its_own_by_hand() -> None:
    """Gradient 2, client_lr 0.1, no momentum, no decay; client 0 alone takes two steps, cohort size 1, mean from 0.

    Step 1: moved -0.2, mean -0.1, w = 1 - 0.2 - 0.1 = 0.7. Step 2: moved -0.2, mean -0.15, w = 0.7 - 0.2 - 0.15 = 0.35.
    Round 1, the server moved by -0.65, of which each step takes 0.1 / 2: moved -0.2, mean -0.175, w = 0.35 - 0.375 - 0.0325 =
    -0.0575; mean -0.1875, w = -0.0575 - 0.3875 - 0.0325 = -0.4775.
    """

    class Rule(OwnMomentum):
        loss = toy.Linear.loss

    task = toy.linear_task(2, ((0,),), client_momentum=0.0, weight_decay=0.0, client_lr_decay=1.0)
    method = toy.dataclasses.replace(METHODS["own_momentum"], client=Rule())
    outcome = train(task, method)
    assert outcome.params.flat.item() == pytest.approx(-0.4775, abs=1e-14)
    assert toy.values_of(outcome.progress.rows, "own_momentum") == pytest.approx([0.15, 0.1875], abs=1e-14)
    assert toy.values_of(outcome.progress.rows, "times") == [1.0, 2.0]


def test_notes_of_clients_are_recorded() -> None:
    """Mean, least and largest over the cohort, in every round."""
    rows = train(toy.make_task(cohorts=((0, 1), (1, 3), (0, 1))), METHODS["own_momentum"]).progress.rows
    assert [toy.values_of(rows, name) for name in ("times", "times_min", "times_max")] == [[1, 1.5, 2.5], [1, 1, 2], [1, 2, 3]]
    least, mean, largest = (toy.values_of(rows, f"own_momentum{end}") for end in ("_min", "", "_max"))
    assert all(a < b < c for a, b, c in zip(least, mean, largest, strict=True))


def test_probes_see_held_out_samples_and_the_received_model() -> None:
    """Of each client of the cohort, by hand: batches of 6 of its own held-out samples, in evaluation mode."""
    task, method = make_task("norm"), METHODS["sensitivity"]
    cohort, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    for k, client in enumerate(cohort.clients):
        expected = torch.zeros_like(task.params.flat)
        for index_B in task.held_out[client].split(6):
            x = task.train.x[index_B]
            loss = lambda p, x=x: (task.model.forward(p, task.buffers, x, False)[0] ** 2).sum(-1).mean()  # noqa: E731
            expected = 0.95 * expected + 0.05 * tree.gradient(loss, task.params).flat.abs()
        assert torch.equal(cohort.probes["sensitivity"].flat[k], expected)
    assert [len(index) for index in task.held_out] == [3, 5, 0, 8, 2]


def test_personal_models_are_evaluated_on_held_out_samples() -> None:
    """Accuracy and loss over all held-out samples, each by its own client's model; a client without data has none."""

    class Itself(METHODS["personal"].client.__class__):
        def personalise(self, batches, ctx):
            return ctx.own["theta"]

    task, method = toy.make_task(rounds=1), toy.dataclasses.replace(METHODS["personal"], client=Itself())
    runner, state = SequentialEngine(task, method), method.init(task.params, task.buffers)
    runner.run_cohort(state, 0)
    correct, loss = 0, 0.0
    for client, index in enumerate(task.held_out):
        if len(index):
            held = task.train.take(index)
            logits = task.model.forward(runner.own[client]["theta"], task.buffers, held.x, False)[0]
            correct += int((logits.argmax(-1) == held.y).sum())
            loss += float(ops.cross_entropy(logits, held.y)) * len(index)
    rows = train(task, method).progress.rows
    assert toy.values_of(rows, "personal_accuracy") == [pytest.approx(100 * correct / 18)]
    assert toy.values_of(rows, "personal_loss") == [pytest.approx(loss / 18)]
    fitted = toy.values_of(train(toy.make_task(rounds=3), METHODS["personal"]).progress.rows, "personal_loss")
    assert all(math.isfinite(value) for value in fitted)
    assert fitted[-1] < fitted[0]


@pytest.mark.parametrize("name", ["personal", "sensitivity"])
def test_methods_that_need_held_out_samples_say_so(name: str) -> None:
    """One line before the first round."""
    task = toy.make_task()
    bare = toy.dataclasses.replace(task, held_out=[index[:0] for index in task.held_out])
    with pytest.raises(UserError, match=r"held-out samples of clients, and the(y have|re are) none; raise local_validation"):
        train(bare, METHODS[name])


def test_what_travels_counts_every_part() -> None:
    """A probe goes up, the server's last weights go down."""
    assert METHODS["sensitivity"].traffic(10, 0) == (20, 10)
    assert METHODS["own_momentum"].traffic(10, 0) == (10, 20)


class Echo(Meta):
    """The loss of `toy.Linear`: its gradient is the mean of the batch, here the second."""

    loss = toy.Linear.loss


def test_batches_of_one_step_by_hand() -> None:
    """The first batches of the steps are FedAvg's, the others orders of their own; every epoch each of them covers all samples.

    With the loss w * mean(x) the gradient on the second batch is its mean, wherever it is taken, so a round moves w by
    -client_lr times the sum of those means: over an epoch in batches of one, of all samples, and FedAvg ends at the same place.
    """
    seen: list[list[list[float]]] = []

    class Spy(Echo):
        def direction(self, params, batch, ctx):
            seen.append([one.x.flatten().tolist() for one in (batch, *batch.others)])
            return super().direction(params, batch, ctx)

    task = toy.linear_task(1, ((0,),), client_momentum=0.0, weight_decay=0.0)
    x = torch.arange(1.0, 8.0, dtype=torch.float64).reshape(7, 1, 1, 1)
    data = toy.Batch(x, torch.zeros(7, dtype=torch.int64))
    task = toy.dataclasses.replace(task, train=data, client_index=[torch.arange(7), torch.arange(0)])
    method = toy.dataclasses.replace(METHODS["meta"], client=Spy(hessian_free=False))
    outcome = train(task, method)
    first, second = ([step[number] for step in seen] for number in (0, 1))
    assert sorted(x for (x,) in first) == sorted(x for (x,) in second) == list(range(1, 8))
    assert first != second
    orders: list[list[float]] = []

    class Plain(toy.Linear):
        def direction(self, params, batch, ctx):
            orders.append(batch.x.flatten().tolist())
            return super().direction(params, batch, ctx)

    alone = train(task, toy.dataclasses.replace(METHODS["meta"], client=Plain()))
    assert orders == first
    assert outcome.params.flat.item() == pytest.approx(alone.params.flat.item(), abs=1e-12)
    assert outcome.params.flat.item() == pytest.approx(1 - 0.1 * 28, abs=1e-12)
    assert (outcome.progress.samples, alone.progress.samples) == (14, 7)


def test_a_third_batch_is_independent_too() -> None:
    """Three orders of a client's samples, each step's batches of one size."""
    several: list[list[int]] = []

    class Spy(Meta):
        def direction(self, params, batch, ctx):
            several.append([len(one) for one in (batch, *batch.others)])
            return super().direction(params, batch, ctx)

    task = toy.make_task(cohorts=((3,),), rounds=1, local_epochs=1)
    train(task, toy.dataclasses.replace(METHODS["meta"], client=Spy(hessian_free=True)))
    assert several == [[6, 6, 6]] * 3 + [[2, 2, 2]]
    orders = [local_orders(20, seed=8, client=3, round=0, epochs=1, purpose=stream_of("batches", n)) for n in (1, 2, 3)]
    assert len({tuple(order[0]) for order in orders}) == 3


def test_augmented_batches_of_one_step_agree() -> None:
    """Crops and flips of the second and third batch have streams of their own, the same on both engines."""
    several = tasks(augment="crop(padding=1)+flip")
    found = dict(train_together(several, METHODS["meta_hessian_free"]))
    for i, task in enumerate(several):
        assert_close(found[i], train(task, METHODS["meta_hessian_free"]), 1e-11)
