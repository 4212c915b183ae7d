"""Client rules with their own steps, state, models and measurements: engines, workers, kill and resume agree."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fedrepro import tree
from fedrepro.engine.batches import local_orders, stream_of
from fedrepro.engine.loop import Checkpoints, train, train_together
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.errors import UserError
from fedrepro.methods.client.per_fedavg import PerFedAvg
from fedrepro.methods.client.pfedme import PFedMe
from fedrepro.methods.compose import compose
from fedrepro.models import ops
from tests import toy
from tests.contract.test_engines import assert_close, tasks
from tests.contract.test_methods import make_task, same

EVERY = pytest.mark.parametrize(
    "text", ["scaffold", "igfl_c", "gh+per_fedavg(variant=hessian_free)", "feddyn+elastic", "pfedme"]
)


@EVERY
def test_workers_kill_and_resume_change_no_bit(text: str, tmp_path: Path) -> None:
    """With BatchNorm and kept momentum, three runs give the same weights, statistics and recorded numbers: one process
    undisturbed, two workers, and two workers that are killed after round 2 of 4 and resumed."""
    task, method = make_task("norm", rounds=4, keep_client_momentum=True, cohorts=toy.PARTIAL), compose(text)
    whole, checkpoints = train(task, method), Checkpoints(tmp_path / "seed8.pt", "key", every_s=0)
    with pytest.raises(toy.Stopped):
        train(task, method, checkpoints=checkpoints, report=toy.stop_at(2), workers=2)
    begun: list[int] = []
    resumed = train(task, method, checkpoints=checkpoints, report=lambda t, _: begun.append(t), workers=2)
    assert begun == [2, 3]
    for found in (resumed, train(task, method, workers=2)):
        assert same([found.params, found.buffers, found.progress.rows], [whole.params, whole.buffers, whole.progress.rows])


@EVERY
def test_the_vectorised_engine_resumes(text: str, tmp_path: Path) -> None:
    """Two seeds that are killed in round 2 and resumed give the same bits. Chunks of one client give the same numbers."""
    several, method = tasks(rounds=3)[:2], compose(text)
    whole = dict(train_together(several, method))
    checkpoints = [Checkpoints(tmp_path / f"seed{task.seed}.pt", "key", every_s=0) for task in several]
    with pytest.raises(toy.Stopped):
        list(train_together(several, method, checkpoints=checkpoints, reports=[toy.stop_at(2), None]))
    resumed, chunks = (
        dict(train_together(several, method, checkpoints=checkpoints)),
        train_together(several, method, chunk_mib=1e-6),
    )
    for i, found in chunks:
        assert same([resumed[i].params, resumed[i].progress.rows], [whole[i].params, whole[i].progress.rows])
        assert_close(found, whole[i], 1e-12)


def test_probes_see_held_out_samples_and_the_received_model() -> None:
    """The probe of each client equals a loop over batches of 6 of its held-out samples, in evaluation mode."""
    task, method = make_task("norm"), compose("elastic")
    cohort, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    for k, client in enumerate(cohort.clients):
        expected = torch.zeros_like(task.params.flat)
        for index_B in task.held_out[client].split(6):
            x = task.train.x[index_B]
            loss = lambda p, x=x: (task.model.forward(p, task.buffers, x, False)[0] ** 2).sum(-1).mean()  # noqa: E731
            expected = 0.95 * expected + 0.05 * tree.gradient(loss, task.params).flat.abs()
        torch.testing.assert_close(cohort.probes["elastic"].flat[k], expected, rtol=0, atol=1e-14)
    assert [len(index) for index in task.held_out] == [3, 5, 0, 8, 2]


def test_personal_models_are_evaluated_on_held_out_samples() -> None:
    """Accuracy and loss are over all held-out samples, each with its client's model. A client without data has no model."""

    class Itself(PFedMe):
        def personalise(self, batches, ctx):
            return ctx.client_state["theta"]

    task, method = toy.make_task(rounds=1), replace(compose("pfedme"), client=Itself())
    runner, state = SequentialEngine(task, method), method.init(task.params, task.buffers)
    runner.run_cohort(state, 0)
    correct, loss = 0, 0.0
    for client, index in enumerate(task.held_out):
        if len(index):
            held = task.train.take(index)
            logits = task.model.forward(runner.client_states[client]["theta"], task.buffers, held.x, False)[0]
            correct += int((logits.argmax(-1) == held.y).sum())
            loss += float(ops.cross_entropy(logits, held.y)) * len(index)
    rows = train(task, method).progress.rows
    assert toy.values_of(rows, "personal_accuracy") == [pytest.approx(100 * correct / 18)]
    assert toy.values_of(rows, "personal_loss") == [pytest.approx(loss / 18)]


@pytest.mark.parametrize("text", ["pfedme", "elastic"])
def test_methods_that_need_held_out_samples_say_so(text: str) -> None:
    """The error says that there are no held-out samples and to raise local_validation."""
    task = toy.make_task()
    bare = replace(task, held_out=[index[:0] for index in task.held_out])
    with pytest.raises(UserError, match=r"held-out samples of clients, and the(y have|re are) none; raise local_validation"):
        train(bare, compose(text))


def test_batches_of_one_step_by_hand() -> None:
    """The first batches of the steps are FedAvg's; the second ones have another order. Both cover all samples in every epoch.

    With the loss w * mean(x) the gradient on a batch is its mean for every w, so a round moves w by -client_lr times the sum of
    those means. Over an epoch in batches of one that is the sum of all samples, and FedAvg ends at the same place.
    """
    seen: list[list[list[float]]] = []

    class Spy(PerFedAvg):
        loss = toy.Linear.loss

        def direction(self, params, batch, ctx):
            seen.append([one.x.flatten().tolist() for one in (batch, *batch.others)])
            return super().direction(params, batch, ctx)

    task = toy.linear_task(1, ((0,),), client_momentum=0.0, weight_decay=0.0)
    x = torch.arange(1.0, 8.0, dtype=torch.float64).reshape(7, 1, 1, 1)
    data = toy.Batch(x, torch.zeros(7, dtype=torch.int64))
    task = replace(task, train=data, client_index=[torch.arange(7), torch.arange(0)], held_out=[torch.arange(1)] * 2)
    outcome = train(task, replace(compose("per_fedavg"), client=Spy()))
    first, second = ([step[number] for step in seen[:7]] for number in (0, 1))
    assert sorted(x for (x,) in first) == sorted(x for (x,) in second) == list(range(1, 8))
    assert first != second
    orders: list[list[float]] = []

    class Plain(toy.Linear):
        def direction(self, params, batch, ctx):
            orders.append(batch.x.flatten().tolist())
            return super().direction(params, batch, ctx)

    alone = train(task, replace(compose("fedavg"), client=Plain()))
    assert orders == first
    assert outcome.params.flat.item() == pytest.approx(alone.params.flat.item(), abs=1e-12)
    assert outcome.params.flat.item() == pytest.approx(1 - 0.1 * 28, abs=1e-12)
    assert (outcome.progress.samples, alone.progress.samples) == (14, 7)


def test_a_third_batch_is_independent_too() -> None:
    """A client's samples have three different orders. The batches of one step have the same size."""
    several: list[list[int]] = []

    class Spy(PerFedAvg):
        def direction(self, params, batch, ctx):
            several.append([len(one) for one in (batch, *batch.others)])
            return super().direction(params, batch, ctx)

    task = toy.make_task(cohorts=((3,),), rounds=1, local_epochs=1)
    train(task, replace(compose("fedavg"), client=Spy(variant="hessian_free")))
    assert several[:4] == [[6, 6, 6]] * 3 + [[2, 2, 2]]
    orders = [local_orders(20, seed=8, client=3, round=0, epochs=1, purpose=stream_of("batches", n)) for n in (1, 2, 3)]
    assert len({tuple(order[0]) for order in orders}) == 3


def test_augmented_batches_of_one_step_agree() -> None:
    """Crops and flips of the second and third batch draw from their own streams, which are the same on both engines."""
    several, method = tasks(augment="crop(padding=1)+flip"), compose("per_fedavg(variant=hessian_free)")
    found = dict(train_together(several, method))
    for i, task in enumerate(several):
        assert_close(found[i], train(task, method), 1e-9)
