"""A client's momentum that is kept from round to round (FedLAW's authors' code), by hand and through a checkpoint."""

import pytest

from fedrepro.engine.loop import train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.methods.compose import compose
from fedrepro.types import VELOCITY
from tests import toy


def test_a_client_that_sits_out_keeps_its_momentum() -> None:
    """Client 0 trains in rounds 0 and 2, client 1 in round 1; client_lr is 0.1 in all rounds.

    Round 0: w = 0.4771, v_0 = 3.129. Round 1: v_1 = -1 + 0.04771 = -0.95229, w = 0.4771 + 0.095229 = 0.572329.
    Round 2: v_0 = 1.5645 + 2 + 0.0572329 = 3.6217329, w = 0.572329 - 0.36217329 = 0.21015571;
             v_0 = 1.81086645 + 2 + 0.021015571 = 3.831882021, w = 0.21015571 - 0.3831882021 = -0.1730324921.
    """
    task = toy.linear_task(3, ((0,), (1,)), keep_client_momentum=True, client_lr_decay=1.0)
    assert train(task, toy.linear("fedavg")).params.flat.item() == pytest.approx(-0.1730324921, abs=1e-14)


def test_only_kept_when_asked_for() -> None:
    """Without the setting, or for a solver without momentum, nothing is stored. With it every client that took part has a
    velocity, and FedDyn's state beside it."""
    for text, keep, expected in (
        ("fedavg", False, {}),
        ("fedavg", True, {0: {VELOCITY}, 3: {VELOCITY}}),
        ("fedprox(steps=plain)", True, {}),
        ("feddyn", False, {0: {"h"}, 3: {"h"}}),
        ("feddyn", True, {0: {"h", VELOCITY}, 3: {"h", VELOCITY}}),
    ):
        task, method = toy.make_task(cohorts=((0, 2, 3),), keep_client_momentum=keep), compose(text)
        runner = SequentialEngine(task, method)
        runner.run_cohort(method.init(task.params, task.buffers), 0)
        assert {client: set(kept) for client, kept in runner.client_states.items()} == expected


def test_proximal_steps_without_the_settings_momentum_and_decay_by_hand() -> None:
    """FedProx with steps=plain under momentum 0.5, decay 0.1, client_lr 0.1, mu = 1, client 0 (g = 2) alone: w = 1 - 0.2 = 0.8,
    then 0.8 - 0.1 (2 - 0.2) = 0.62. With the setting's steps: v = 2.1, w = 0.79; v = 1.05 + 2 + 0.079 - 0.21 = 2.919, w =
    0.4981."""
    for steps, expected in (("plain", 0.62), ("as_set", 0.4981)):
        outcome = train(toy.linear_task(1, ((0,),)), toy.linear(f"fedprox(mu=1, steps={steps})"))
        assert outcome.params.flat.item() == pytest.approx(expected, abs=1e-14)
