"""A client's round, by hand and in both forms; the order of its batches."""

import dataclasses

import pytest
import torch
from torch import Tensor

from fedrepro.engine import sequential
from fedrepro.engine.batches import local_batches
from fedrepro.engine.local import FORMS
from fedrepro.engine.loop import train
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.models import Model
from fedrepro.types import Cohort
from tests import toy


@pytest.mark.parametrize("engine", FORMS)
def test_two_rounds_by_hand(engine: str) -> None:
    """v <- 0.5 v + (g + 0.1 w), w <- w - lr v, v = 0 at the start of each round; then the mean with weights 2/3 and 1/3.

    Round 0, lr 0.1, w = 1.
      client 0, g = 2:  v = 2 + 0.1 = 2.1                      w = 1 - 0.21 = 0.79
                        v = 1.05 + 2 + 0.079 = 3.129           w = 0.79 - 0.3129 = 0.4771
      client 1, g = -1: v = -1 + 0.1 = -0.9                    w = 1.09
      server: (2 * 0.4771 + 1.09) / 3 = 0.6814
    Round 1, lr 0.05, w = 0.6814, momentum again from zero.
      client 0:         v = 2 + 0.06814 = 2.06814              w = 0.6814 - 0.103407 = 0.577993
                        v = 1.03407 + 2 + 0.0577993 = 3.0918693   w = 0.577993 - 0.154593465 = 0.423399535
      client 1:         v = -1 + 0.06814 = -0.93186            w = 0.6814 + 0.046593 = 0.727993
      server: (2 * 0.423399535 + 0.727993) / 3 = 1.57479207 / 3 = 0.52493069
    """
    for rounds, expected in ((1, 0.6814), (2, 0.52493069)):
        outcome = train(toy.linear_task(rounds), toy.linear("fedavg"), engine=engine)
        torch.testing.assert_close(outcome.params.flat, torch.tensor([expected], dtype=torch.float64), rtol=0, atol=1e-14)
    assert toy.values_of(outcome.progress.rows, "client_lr") == [0.1, 0.05]
    # The updates -0.5229 and 0.09 have the weighted mean -0.3186; in round 1 it is 0.52493069 - 0.6814.
    assert toy.values_of(outcome.progress.rows, "update_norm") == pytest.approx([0.3186, 0.15646931], abs=1e-14)
    assert outcome.progress.samples == 2 * 3


def test_cohort_says_who_how_much_and_how_long() -> None:
    """The cohort has the clients with data, ascending; p_k from the full sizes (10 of 62, ...); T_k = 2 epochs * ceil(n_k / 6);
    K/N, where N counts the four clients with data."""
    task, method = toy.make_task(), compose("fedavg")
    state = method.init(task.params, task.buffers)
    cohort, samples = sequential.SequentialEngine(task, method).run_cohort(state, 0)
    assert cohort is not None
    assert cohort.clients == [0, 1, 3, 4]
    torch.testing.assert_close(cohort.weights, torch.tensor([10, 17, 28, 7], dtype=torch.float64) / 62)
    assert cohort.num_steps.tolist() == [4, 4, 8, 2]
    assert cohort.fraction == 4 / 4
    assert samples == 2 * (7 + 12 + 20 + 5)
    assert cohort.updates.flat.shape == (4, task.model.parameters)
    assert torch.equal(cohort.anchor.flat, task.params.flat)


@pytest.mark.parametrize(
    ("text", "round", "momentum", "expected"),
    [
        ("fedavg", 0, 0.5, [2.5, 1.0]),  # 1 + 1.5
        ("fedprox(mu=1)", 1, 0.0, [1.95, 1.0]),  # 1 + (1 - 0.05), at round 1's rate of 0.05
    ],
)
def test_cohort_says_what_its_steps_are_worth(text: str, round: int, momentum: float, expected: list[float]) -> None:
    """Client 0 takes two steps and client 1 one. The setting's momentum counts, and so does the rate of the round."""
    task, method = toy.linear_task(2, client_momentum=momentum), toy.linear(text)
    cohort, _ = sequential.SequentialEngine(task, method).run_cohort(toy.first_state(task, method), round)
    assert cohort is not None
    assert cohort.effective_steps.tolist() == pytest.approx(expected, abs=1e-14)


def norm_cohort(task: Task) -> Cohort:
    """What the clients send in round 0 of FedAvg."""
    method = compose("fedavg")
    cohort, _ = sequential.SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    return cohort


def test_a_batch_of_one_is_left_out_where_there_is_batch_norm() -> None:
    """Client 0 has 7 samples, 6 + 1 per epoch, and takes one step instead of two. The others (12, 20 = 3 * 6 + 2, 5) lose
    nothing."""
    assert norm_cohort(toy.make_task(model=toy.norm_model())).num_steps.tolist() == [2, 4, 8, 2]
    assert norm_cohort(toy.make_task()).num_steps.tolist() == [4, 4, 8, 2]
    lone = local_batches(7, seed=8, client=0, round=0, epochs=2, batch_size=6, smallest=2)
    every = local_batches(7, seed=8, client=0, round=0, epochs=2, batch_size=6)
    assert [b.tolist() for b in lone] == [every[0].tolist(), every[2].tolist()]


def test_a_client_with_one_sample_takes_no_part_where_there_is_batch_norm() -> None:
    """Client 4 keeps one of its 5 samples. It is not in the cohort, and neither the weights nor N count it. A model without
    BatchNorm uses it."""

    def fewer(model: Model) -> Task:
        task = toy.make_task(model=model)
        return dataclasses.replace(task, client_index=[*task.client_index[:4], task.client_index[4][:1]])

    cohort = norm_cohort(fewer(toy.norm_model()))
    assert cohort.clients == [0, 1, 3]
    torch.testing.assert_close(cohort.weights, torch.tensor([10, 17, 28], dtype=torch.float64) / 55)
    assert cohort.fraction == 1.0
    assert norm_cohort(fewer(toy.tiny_model())).clients == [0, 1, 3, 4]
    empty = dataclasses.replace(fewer(toy.norm_model()), cohorts=torch.tensor([[2, 4]] * 3))
    assert torch.equal(train(empty, compose("fedavg")).params.flat, empty.params.flat)


@pytest.mark.parametrize(
    ("text", "setting", "refused"),
    [
        ("fedavg", {"batch_size": 1}, "batch_size = 1"),
        ("server_ft", {"proxy_batch_size": 1}, "proxy_batch_size = 1"),
        ("fedavg", {"proxy_batch_size": 1}, None),
        ("fedavg", {"batch_size": 2}, None),
    ],
)
def test_batches_of_one_are_refused_where_nothing_would_be_trained(text: str, setting: dict, refused: str | None) -> None:
    """A model with BatchNorm skips every batch of one sample. A batch size of one would train nothing, so it is an error."""
    task = toy.make_task(model=toy.norm_model(), rounds=1, **setting)
    if refused:
        with pytest.raises(UserError, match=f"^{refused}: tiny_norm has BatchNorm"):
            train(task, compose(text))
    else:
        assert not torch.equal(train(task, compose(text)).params.flat, task.params.flat)
    train(toy.make_task(rounds=1, **setting), compose(text))


def test_clients_start_from_the_global_statistics_and_keep_none() -> None:
    """In each round, running statistics start from those of the global model. They equal the result of a loop of training
    passes over the client's batches, in which a client_lr of 1e-300 keeps the weights."""
    task = toy.make_task(model=toy.norm_model(), client_lr=1e-300, weight_decay=0.0)
    method, state = compose("fedavg"), compose("fedavg").init(task.params, task.buffers)
    runner = sequential.SequentialEngine(task, method)
    for round in range(2):
        cohort, _ = runner.run_cohort(state, round)
        assert cohort is not None
        for k, client in enumerate(cohort.clients):
            data, buffers = task.train.take(task.client_index[client]), state.buffers
            order = {"seed": 8, "client": client, "round": round, "epochs": 2, "batch_size": 6, "smallest": 2}
            for index_B in local_batches(len(data), **order):
                _, buffers = task.model.forward(task.params, buffers, data.x[index_B], True)
            torch.testing.assert_close(cohort.buffers.flat[k], buffers.flat, rtol=0, atol=1e-12)
        state = method.apply(state, toy.server_context(task, cohort, round))
        torch.testing.assert_close(state.buffers.flat, cohort.weights @ cohort.buffers.flat, rtol=0, atol=1e-14)


# --- batches -------------------------------------------------------------------------------------------------------------


def flat(batches: list[Tensor]) -> list[int]:
    return torch.cat(batches).tolist()


def test_batches_cover_each_epoch_once_and_keep_the_partial_one() -> None:
    """14 samples in batches of 6 give 6, 6, 2 in each of 2 epochs. Every sample occurs once per epoch, in another order the
    second time."""
    batches = local_batches(14, seed=8, client=1, round=2, epochs=2, batch_size=6)
    assert [len(b) for b in batches] == [6, 6, 2, 6, 6, 2]
    first, second = flat(batches[:3]), flat(batches[3:])
    assert sorted(first) == sorted(second) == list(range(14))
    assert first != second


def test_batches_are_fixed_by_seed_client_and_round() -> None:
    """Equal arguments give equal batches; another seed, client or round gives another order. More epochs begin with the same
    batches, and another batch size splits the same order at other places."""
    same = {"seed": 8, "client": 1, "round": 2}
    order = flat(local_batches(14, **same, epochs=1, batch_size=6))
    assert flat(local_batches(14, **same, epochs=1, batch_size=6)) == order
    assert flat(local_batches(14, **same, epochs=3, batch_size=6))[:14] == order
    assert flat(local_batches(14, **same, epochs=1, batch_size=5)) == order
    for key in same:
        assert flat(local_batches(14, **same | {key: 3}, epochs=1, batch_size=6)) != order


@pytest.mark.parametrize("text", ["fedavg", toy.part_text("fedlaw")])
@pytest.mark.parametrize("engine", FORMS)
def test_every_method_and_engine_sees_the_same_batches(text: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches of a client do not depend on the method, the engine, or the other clients of the cohort."""

    def record(cohorts: tuple[tuple[int, ...], ...]) -> dict:
        seen = {}

        def spy(samples: int, **where) -> list[Tensor]:
            batches = local_batches(samples, **where)
            seen[where["client"], where["round"]] = flat(batches)
            return batches

        monkeypatch.setattr(sequential, "local_batches", spy)
        train(toy.make_task(cohorts=cohorts), compose(text), engine=engine)
        return seen

    everybody, partial = record(toy.EVERYBODY), record(toy.PARTIAL)
    assert set(partial) == {(0, 0), (3, 0), (1, 1), (4, 2)}
    assert all(everybody[key] == order for key, order in partial.items())
    reference = {
        (c, t): flat(local_batches(toy.TRAIN_SIZES[c], seed=8, client=c, round=t, epochs=2, batch_size=6)) for c, t in everybody
    }
    assert everybody == reference
