"""FedAvg's mean under its three weightings, by hand and in a run."""

import pytest
import torch

from fedrepro.engine.loop import train
from fedrepro.methods.compose import compose
from tests import toy

COHORT = toy.cohort([[4.0, 0.0], [0.0, 1.0]], [0.75, 0.25], clients=[0, 3], fraction=0.5, population=8)


@pytest.mark.parametrize(("weighting", "expected"), [("size", [3.0, 0.25]), ("uniform", [2.0, 0.5]), ("all", [0.5, 0.125])])
def test_by_hand(weighting: str, expected: list[float]) -> None:
    """3/4 and 1/4; 1/2 each; 1/8 each, since six of eight clients are absent and count with w."""
    update, _ = compose(f"mean(weighting={weighting})").aggregate(COHORT, None, toy.server_context(toy.make_task()))
    assert update.flat.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("cohorts", "share"), [(((0, 1, 2, 3, 4),), 4 / 5), (((0, 1), (3, 4)), 2 / 5)])
def test_all_scales_the_uniform_mean(cohorts: tuple[tuple[int, ...], ...], share: float) -> None:
    """The factor is K/N. One of the toy's five clients has no training data and counts as absent."""
    task = toy.make_task(cohorts=cohorts)
    every = train(task, compose("mean(weighting=all)")).params.flat
    scaled = train(task, compose(f"mean(weighting=uniform)+server_sgd(server_lr={share})")).params.flat
    torch.testing.assert_close(every, scaled, rtol=0, atol=1e-12)
