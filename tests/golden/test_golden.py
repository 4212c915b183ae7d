"""Every preset and part gives its committed curves, to 1e-9. regenerate.py changes them on purpose."""

import copy

import pytest

from tests.golden.regenerate import CASES, FOLDER, METRICS, ROUNDS, compute, differences, stored

HOW = "if that is intended: python -m tests.golden.regenerate --write"


@pytest.mark.parametrize("name", CASES)
def test_curve_is_the_committed_one(name: str) -> None:
    """Accuracy, loss and parameter norm of every round are the committed ones, on the toy task in float64."""
    lines = differences(compute(name), stored(name))
    assert not lines, f"{name}: {'; '.join(lines)}; {HOW}"


def test_no_curve_is_left_over() -> None:
    """Every committed curve belongs to a part. A commit that removes a part also removes its curve."""
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)


@pytest.mark.parametrize("metric", METRICS)
def test_a_drift_of_a_billionth_is_seen(metric: str) -> None:
    """The comparison names a single value that moved by 2e-9 or is not a number. A move of 5e-10 passes."""
    old = stored("fedavg")
    assert old is not None
    assert len(old[metric]) == ROUNDS
    assert len(set(old[metric])) > 1, "a constant curve guards nothing"
    for shift, seen in ((2e-9, True), (5e-10, False), (float("nan"), True)):
        new = copy.deepcopy(old)
        new[metric][3] += shift
        assert bool(differences(new, old)) == seen
