"""The traffic of a real deployment, by hand."""

import dataclasses
from dataclasses import dataclass

import pytest

from fedrepro.engine.traffic import traffic
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import LocalRule
from tests import toy


@dataclass(frozen=True)
class Chatty(LocalRule):
    """A rule that sends one more vector and receives two more."""

    sends = 1
    receives = 2


def test_bytes_follow_from_the_cohorts_and_the_sizes_of_the_model() -> None:
    """Cohorts are (0, 3), (1, 2), (2, 4), and client 2 has no data: 2 + 1 + 1 client-rounds, with 4 bytes per parameter in each
    direction."""
    task = toy.make_task(cohorts=toy.PARTIAL)
    each = 4 * task.params.flat.numel()
    assert traffic(task, compose("fedavg"), 3) == {"client_rounds": 4, "bytes_up": 4 * each, "bytes_down": 4 * each}
    assert traffic(task, compose("fedavg"), 1) == {"client_rounds": 2, "bytes_up": 2 * each, "bytes_down": 2 * each}
    assert traffic(task, compose("fedavg"), 0) == {"client_rounds": 0, "bytes_up": 0, "bytes_down": 0}


def test_a_rule_that_sends_and_receives_more_costs_more() -> None:
    """Clients send the model and one vector, and receive the model and two vectors."""
    task = toy.make_task(cohorts=((0,),), rounds=1)
    method = dataclasses.replace(compose("fedavg"), client=Chatty())
    each = 4 * task.params.flat.numel()
    assert traffic(task, method, 1) == {"client_rounds": 1, "bytes_up": 2 * each, "bytes_down": 3 * each}


def test_numbers_that_are_no_vectors_count_as_they_are() -> None:
    """FedFA's anchors are 3 classes by 6 features in both directions. With coefficient 0 and no calibration there are no
    anchors to send."""
    task = toy.make_task(cohorts=((0,),), rounds=1)
    parameters = task.params.flat.numel()
    for text, more in (("fedfa", 18), ("fedfa(coefficient=0, calibrate_from=1)", 0)):
        each = 4 * (parameters + more)
        assert traffic(task, compose(text), 1) == {"client_rounds": 1, "bytes_up": each, "bytes_down": each}


@pytest.mark.parametrize(
    ("text", "travel"),
    [("fedavg", True), ("feddyn", True), ("fedavg+server_buffers", False), ("fedavg+server_buffers+feddf", True)],
)
def test_running_statistics_count_where_they_travel(text: str, travel: bool) -> None:
    """FedAvg averages them. The server's own statistics do not travel, unless its teachers are evaluated with the clients'."""
    task = toy.make_task(model=toy.MODELS["norm"](), cohorts=((0,),), rounds=1)
    numbers = task.params.flat.numel() + (task.buffers.flat.numel() if travel else 0)
    assert task.buffers.flat.numel() > 0
    assert traffic(task, compose(text), 1) == {"client_rounds": 1, "bytes_up": 4 * numbers, "bytes_down": 4 * numbers}
