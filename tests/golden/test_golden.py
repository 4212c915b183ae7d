"""Nothing drifts: the committed curves of every preset and part, to 1e-9. To change them on purpose: regenerate.py."""

import copy

import pytest

from tests.golden.regenerate import CASES, FOLDER, METRICS, ROUNDS, compute, differences, stored

HOW = "if that is intended: python -m tests.golden.regenerate --write"


@pytest.mark.parametrize("name", CASES)
def test_curve_is_the_committed_one(name: str) -> None:
    """Accuracy, loss and parameter norm of every round, on the toy task in float64."""
    lines = differences(compute(name), stored(name))
    assert not lines, f"{name}: {'; '.join(lines)}; {HOW}"


def test_no_curve_is_left_over() -> None:
    """A part that goes takes its curve along."""
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)


@pytest.mark.parametrize("metric", METRICS)
def test_a_drift_of_a_billionth_is_seen(metric: str) -> None:
    """The comparison itself: one value of one round moved by 2e-9, or not a number, is named; 5e-10 passes."""
    old = stored("fedavg")
    assert old is not None
    assert len(old[metric]) == ROUNDS
    assert len(set(old[metric])) > 1, "a constant curve guards nothing"
    for shift, seen in ((2e-9, True), (5e-10, False), (float("nan"), True)):
        new = copy.deepcopy(old)
        new[metric][3] += shift
        assert bool(differences(new, old)) == seen
