"""Cohorts that are chosen after all clients have trained (FedLAW's Algorithm 1), by hand and compared with drawn cohorts."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from fedrepro.cost.rates import Rates
from fedrepro.data import participation
from fedrepro.data.registry import load_registry
from fedrepro.engine.loop import Outcome, make_engine, train
from fedrepro.engine.task import Task
from fedrepro.engine.traffic import traffic
from fedrepro.errors import UserError
from fedrepro.methods.compose import Method, compose
from tests import toy

WAYS = [("sequential", 1), ("sequential", 2), ("plain", 1), ("vectorised", 1)]
KEEP_NOTHING = ["fedavg+elastic", "fedavg", "fedprox(mu=0.1)+gh", "fedlaw(server_epochs=2)"]
KEEP = ["feddyn", "igfl", "pfedme"]


def trained(method: Method, way: tuple[str, int], task: Task) -> Outcome:
    return train(task, method, engine=way[0], workers=way[1])


def late(task: Task, when: str = "late") -> Task:
    """The task with cohorts chosen `when`."""
    return dataclasses.replace(task, spec=dataclasses.replace(task.spec, participation=0.4, cohorts=when))


def make_task(when: str, cohorts: tuple[tuple[int, ...], ...] = toy.PARTIAL, **changes: Any) -> Task:
    return late(toy.make_task(cohorts=cohorts, **changes), when)


@pytest.mark.parametrize("way", WAYS[:3])
def test_three_rounds_of_kept_momentum_by_hand(way: tuple[str, int]) -> None:
    """The task is `linear_task`. Client 0 is taken in rounds 0 and 2, client 1 in round 1; client_lr is 0.1. Both always train.

    Round 0, w = 1: v_0 = 2.1, w_0 = 0.79; v_0 = 1.05 + 2.079 = 3.129, w_0 = 0.4771, taken. v_1 = -0.9.
    Round 1: v_1 = -0.45 - 1 + 0.04771 = -1.40229, w_1 = 0.4771 + 0.140229 = 0.617329, taken.
             v_0 = 1.5645 + 2 + 0.04771 = 3.61221, w_0 = 0.115879; v_0 = 1.806105 + 2 + 0.0115879 = 3.8176929.
    Round 2: v_0 = 1.90884645 + 2 + 0.0617329 = 3.97057935, w_0 = 0.220271065;
             v_0 = 1.985289675 + 2 + 0.0220271065 = 4.0073167815, w_0 = -0.18046061315, taken.
    """
    task = late(toy.linear_task(3, ((0,), (1,)), keep_client_momentum=True, client_lr_decay=1.0))
    found = trained(toy.linear("fedavg"), way, task)
    assert found.params.flat.item() == pytest.approx(-0.18046061315, abs=1e-14)
    assert found.progress.samples == 3 * 3  # both clients, in each of three rounds


@pytest.mark.parametrize("way", WAYS[:3])
def test_rules_read_how_many_are_taken_and_not_how_many_train(way: tuple[str, int]) -> None:
    """IGFL takes client 0 of two that train, so |S| = 1: two steps of 0.1 * 2 * (1 + 1 / 1) down from w = 1."""
    task = late(toy.linear_task(1, ((0,),), client_momentum=0.0, weight_decay=0.0))
    assert trained(toy.linear("igfl_c"), way, task).params.flat.item() == pytest.approx(0.2, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "way"), [*((KEEP_NOTHING[0], way) for way in WAYS), *((text, WAYS[3]) for text in KEEP_NOTHING[1:])]
)
def test_clients_that_keep_nothing_give_the_same_models(text: str, way: tuple[str, int]) -> None:
    """Late and drawn cohorts give the same bits, running statistics included. The vectorised engine agrees to round-off,
    because last bits depend on which clients are computed together."""
    method, changes = compose(text), {"model": toy.norm_model(), "rounds": 2}
    before, after = (trained(method, way, make_task(when, **changes)) for when in ("drawn", "late"))
    if way[0] == "vectorised":
        assert (after.params.flat - before.params.flat).abs().max() < 1e-12
    else:
        assert after.params.flat.equal(before.params.flat)
        assert after.progress.rows == before.progress.rows


@pytest.mark.parametrize(("text", "way"), [*((KEEP[0], way) for way in WAYS[1:]), *((text, WAYS[1]) for text in KEEP[1:])])
def test_states_of_all_clients_move(text: str, way: tuple[str, int]) -> None:
    """Engines and workers agree on what clients keep. The weights differ from those of a run whose cohort alone trains."""
    method = compose(text)
    before, after = (trained(method, WAYS[0], make_task(when)) for when in ("drawn", "late"))
    assert not after.params.flat.equal(before.params.flat)
    other = trained(method, way, make_task("late"))
    if way == ("sequential", 2):
        assert other.params.flat.equal(after.params.flat)
        assert other.progress.rows == after.progress.rows
    assert (other.params.flat - after.params.flat).abs().max() < 1e-9


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize("text", ["feddyn", "igfl"])
def test_a_cohort_without_data(text: str, engine: str) -> None:
    """The server receives nothing and the model stays, but the clients have trained."""
    task, method = make_task("late", toy.EMPTY), compose(text)
    runner = make_engine(engine, task, method)
    cohort, samples = runner.run_cohort(toy.first_state(task, method), 0)
    assert cohort is None
    assert samples == 2 * sum(toy.TRAIN_SIZES)
    assert sorted(runner.client_states) == [0, 1, 3, 4]
    assert all(math.isfinite(float(one.flat.sum())) for kept in runner.client_states.values() for one in kept.values())


def test_a_rule_whose_messages_must_all_arrive_is_refused() -> None:
    """SCAFFOLD's server needs the control-variate change of every client that trained, so late cohorts are refused."""
    line = (
        "^cohorts = 'late': clients of scaffold send what changed of their states, and the server must take all of it; set it"
    )
    with pytest.raises(UserError, match=line):
        train(make_task("late"), compose("scaffold"))


def test_one_name_with_full_participation_and_the_cohorts_of_drawn() -> None:
    """The cohort file is the same as for drawn cohorts. With full participation the run is the same too."""
    assert toy.make_spec(cohorts="late") == toy.make_spec()
    drawn = toy.make_spec(participation=0.4)
    assert toy.make_spec(participation=0.4, cohorts="late").as_dict() == drawn.as_dict() | {"cohorts": "late"}
    ids = {participation.artifact_id(participation.definition(5, 0.4, 3, when)) for when in ("drawn", "late")}
    assert len(ids) == 1


def test_what_travels_and_what_it_costs() -> None:
    """Four clients have data. All receive the model; the two that are taken in round 0 send theirs. The forecast's work is that
    of full participation."""
    task = make_task("late", rounds=1)
    each = 4 * task.params.flat.numel()
    assert traffic(task, compose("fedavg"), 1) == {"client_rounds": 4, "bytes_up": 2 * each, "bytes_down": 4 * each}
    registry = Path(__file__).parents[3] / "data/registry.yaml"
    rates = Rates(Path(), load_registry(registry))
    spec = toy.make_spec(dataset="mnist", participation=0.1)
    changes: list[dict[str, Any]] = [{}, {"cohorts": "late"}, {"participation": 1.0}]
    drawn, taken_late, everybody = (rates.work(spec.as_dict() | more) or 0.0 for more in changes)
    assert taken_late == everybody > 5 * drawn > 0
