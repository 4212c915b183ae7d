"""The global model and clients' own models, tested on samples that each client keeps for tests."""

import dataclasses

import numpy as np
import pytest
import torch

from fedrepro import tree
from fedrepro.engine import client_side
from fedrepro.engine.batches import local_batches
from fedrepro.engine.client_side import spread_of
from fedrepro.engine.cohort import Clients
from fedrepro.engine.evaluate import Tally
from fedrepro.engine.loop import train, train_together
from fedrepro.engine.task import Task, _split_held_out
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from tests import toy

NAMES = ("accuracy", "client_mean", "client_std", "client_worst", "loss")


def make_task(**changes) -> Task:
    """Half of the toy clients' held-out samples are for tests; the other half is for measurements."""
    task = toy.make_task(local_test=0.5, **changes)
    split = [_split_held_out(index.numpy(), 0.5, 8, client) for client, index in enumerate(task.held_out)]
    held_out, own_test = ([torch.from_numpy(part) for part in each] for each in zip(*split, strict=True))
    return dataclasses.replace(task, held_out=held_out, own_test=own_test)


def test_the_split_of_held_out_samples() -> None:
    """The halves are disjoint and together complete, with the test half rounded up, and fixed by (seed, client). Without a
    share nothing changes."""
    index = np.array([3, 5, 6, 9, 12])
    measured, tested = _split_held_out(index, 0.5, 8, 0)
    assert (len(measured), len(tested)) == (2, 3)
    assert sorted([*measured, *tested]) == index.tolist()
    assert all((np.diff(part) > 0).all() for part in (measured, tested))
    assert (_split_held_out(index, 0.5, 8, 0)[1] == tested).all()
    assert len({tuple(_split_held_out(np.arange(40), 0.5, s, c)[1]) for s in range(5) for c in range(5)}) == 25
    assert _split_held_out(index, 0.0, 8, 0)[0] is index
    assert [len(part) for part in _split_held_out(index, 1.0, 8, 0)] == [0, 5]
    assert [len(part) for part in _split_held_out(np.arange(10), 0.3, 8, 0)] == [7, 3]


def test_spread_by_hand() -> None:
    """Three clients have 1 of 2, 3 of 4 and 0 of 4 right: 4 of 10 overall, and 50, 75 and 0 % by client. Of eleven clients the
    worst tenth has two."""
    each = [Tally(2, 1, 0, 2.0), Tally(4, 3, 0, 1.0), Tally(4, 0, 0, 7.0)]
    found = spread_of(each, "local")
    assert set(found) == {f"local_{name}" for name in NAMES}
    assert found["local_accuracy"] == pytest.approx(40)
    assert found["local_loss"] == pytest.approx(1.0)
    assert found["local_client_mean"] == pytest.approx(125 / 3)
    assert found["local_client_std"] == pytest.approx(np.std([50, 75, 0]))
    assert found["local_client_worst"] == 0.0
    many = [Tally(10, right, 0, 0.0) for right in range(11)]
    assert spread_of(many, "x")["x_client_worst"] == pytest.approx(5.0)


def test_the_global_model_on_each_clients_test_samples() -> None:
    """The final model is evaluated. An ordinary method has no personal numbers, and nothing else of the run changes."""
    task, method = make_task(), compose("fedavg")
    found = train(task, method)
    correct, samples = 0, 0
    for client, index in enumerate(task.local_test):
        if len(index) and task.trains(client):
            data = task.train.take(index)
            logits = task.model.forward(found.params, found.buffers, data.x, False)[0]
            correct, samples = correct + int((logits.argmax(-1) == data.y).sum()), samples + len(index)
    assert toy.values_of(found.progress.rows, "local_accuracy")[-1] == pytest.approx(100 * correct / samples)
    names = {name for _, name, _ in found.progress.rows}
    assert not any(name.startswith("personal") for name in names)
    plain = train(toy.make_task(), method)
    assert torch.equal(plain.params.flat, found.params.flat)
    assert names - {name for _, name, _ in plain.progress.rows} == {f"local_{name}" for name in NAMES}


@pytest.mark.parametrize("text", ["per_fedavg", "pfedme", "per_fedavg+elastic"])
def test_engines_and_workers_agree(text: str) -> None:
    """Personal and local numbers have the same bits with workers, and agree to round-off on the vectorised engine."""
    method, tasks = compose(text), [make_task(seed=seed) for seed in (8, 9)]
    wanted = {f"{kind}_{name}" for kind in ("local", "personal") for name in NAMES}
    alone = [train(task, method).progress.rows for task in tasks]
    assert wanted <= {name for _, name, _ in alone[0]}
    assert train(tasks[0], method, workers=2).progress.rows == alone[0]
    for position, found in train_together(tasks, method):
        for (t, name, value), (t0, name0, value0) in zip(found.progress.rows, alone[position], strict=True):
            assert (t, name) == (t0, name0)
            assert value == pytest.approx(value0, abs=1e-8), name


def test_own_models_are_tested_on_their_clients_samples_by_value() -> None:
    """Per-FedAvg makes every client's model by a step on its first batch, also for clients that were in no cohort. The values
    are the accuracy over all samples and the mean of the worst of four clients."""
    task, method = make_task(rounds=1, cohorts=((3,),), batch_size=100), compose("per_fedavg(inner_lr=0.5)")
    found = train(task, method)
    accuracies, correct, samples = [], 0, 0
    for client, index in enumerate(task.local_test):
        if not len(index) or not task.trains(client):
            continue
        data, test = task.train.take(task.client_index[client]), task.train.take(index)
        loss = lambda p, d=data: task.model.loss(task.model.forward(p, task.buffers, d.x, True)[0], d.y)  # noqa: E731
        own = tree.axpy(-0.5, tree.gradient(loss, found.params), found.params)
        right = int((task.model.forward(own, found.buffers, test.x, False)[0].argmax(-1) == test.y).sum())
        accuracies.append(100 * right / len(index))
        correct, samples = correct + right, samples + len(index)
    rows = found.progress.rows
    assert len(accuracies) > 2
    assert toy.values_of(rows, "personal_accuracy") == [pytest.approx(100 * correct / samples)]
    assert toy.values_of(rows, "personal_client_mean") == [pytest.approx(np.mean(accuracies))]
    assert toy.values_of(rows, "personal_client_worst") == [pytest.approx(min(accuracies))]
    assert toy.values_of(rows, "local_accuracy") != toy.values_of(rows, "personal_accuracy")


def test_own_models_see_an_order_of_their_own() -> None:
    """Every sample of client 3 occurs once, and not in the order in which it trains in the same round."""
    task, size = toy.make_task(), toy.TRAIN_SIZES[3]
    own = torch.cat(client_side._batches(task, 3, 0)).tolist()
    trains = torch.cat(local_batches(size, seed=8, client=3, round=0, epochs=1, batch_size=6)).tolist()
    assert sorted(own) == sorted(trains) == list(range(size))
    assert own != trains


def test_a_client_that_has_nothing_to_train_on_has_no_own_model() -> None:
    """Client 2 has none, although only it holds samples out."""
    task, method = toy.make_task(rounds=1), compose("pfedme")
    held_out = [task.held_out[0] if client == 2 else index[:0] for client, index in enumerate(task.held_out)]
    task = dataclasses.replace(task, held_out=held_out)
    assert client_side.local_test_metrics(Clients(task, method), toy.first_state(task, method), 0) == {}


def test_own_models_are_nearer_to_their_data() -> None:
    """If each client knows one or two classes, Per-FedAvg's own models beat its global model after many rounds."""
    task = make_task(rounds=30, by_class=True, client_momentum=0.0)
    held = [index[-4:] for index in task.client_index]  # of the client's classes, unlike the toy's held-out samples
    task = dataclasses.replace(task, own_test=held)
    rows = train(task, compose("per_fedavg(inner_lr=0.5, adapt=1)")).progress.rows
    assert toy.values_of(rows, "personal_accuracy")[-1] > toy.values_of(rows, "local_accuracy")[-1]


def test_bad_shares_are_refused() -> None:
    with pytest.raises(UserError, match=r"^local_test = 1.5: must be at least 0 and at most 1$"):
        toy.make_spec(local_test=1.5)
    bare = dataclasses.replace(make_task(), own_test=[torch.zeros(0, dtype=torch.int64)] * 5)
    with pytest.raises(UserError, match=r"^local_test = 0.5: tests models on held-out samples of clients, and there are none"):
        train(bare, compose("fedavg"))


def test_all_held_out_samples_may_test() -> None:
    """Per-FedAvg measures nothing on held-out samples, so it runs. Elastic aggregation does, and its error says so."""
    task = make_task(rounds=1)
    every = [torch.cat(pair) for pair in zip(task.held_out, task.local_test, strict=True)]
    task = dataclasses.replace(task, held_out=[index[:0] for index in every], own_test=every)
    assert toy.values_of(train(task, compose("per_fedavg")).progress.rows, "personal_accuracy")
    with pytest.raises(UserError, match="needs held-out samples of clients, and they have none"):
        train(task, compose("fedavg+elastic"))
