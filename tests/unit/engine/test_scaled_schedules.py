"""Schedules written for other rounds than a run has."""

import pytest

from fedrepro.engine import schedule
from fedrepro.errors import UserError

LATE = "exponential+cyclic(start=300, period=20, lowest=5e-5)"


@pytest.mark.parametrize(
    ("text", "rounds", "expected"),
    [
        (LATE, 400, LATE),
        (LATE, 40, "exponential(start=0, factor=null)+cyclic(start=30, period=2, lowest=5e-05)"),
        (LATE, 800, "exponential(start=0, factor=null)+cyclic(start=600, period=40, lowest=5e-05)"),
        (LATE, 8, "exponential(start=0, factor=null)+cyclic(start=6, period=2, lowest=5e-05)"),  # a period of 2 at least
        ("constant+stage(start=70, every=30)", 40, "constant(start=0, value=null)+stage(start=7, every=3, factor=0.5)"),
        ("constant+stage(start=71, every=31)", 40, "constant(start=0, value=null)+stage(start=8, every=4, factor=0.5)"),
        ("stage(every=20)", 4, "stage(start=0, every=1, factor=0.5)"),
        # A round apart, and the last phase has one, the others as few as that leaves them.
        (
            "constant+constant(start=300, value=0.1)+constant(start=301, value=0.2)",
            40,
            "constant(start=0, value=null)+constant(start=30, value=0.1)+constant(start=31, value=0.2)",
        ),
        (
            "constant+constant(start=398, value=0.1)+constant(start=399, value=0.2)",
            8,
            "constant(start=0, value=null)+constant(start=6, value=0.1)+constant(start=7, value=0.2)",
        ),
        ("constant+constant(start=1, value=0.1)", 2, "constant+constant(start=1, value=0.1)"),
        # Nothing in these is a number of rounds.
        ("exponential", 40, "exponential"),
        ("cosine(half=false)", 40, "cosine(half=false)"),
        ("exponential(factor=0.5)", 1, "exponential(factor=0.5)"),
    ],
)
def test_written_for_400_rounds(text: str, rounds: int, expected: str) -> None:
    """The same share of `rounds`, rounded up; the rate then reaches every phase."""
    found = schedule.scaled(text, "schedule", rounds, 400)
    assert found == expected
    assert schedule.schedules(found)[-1].start < rounds


def test_epochs_written_for_400_rounds() -> None:
    expected = "constant(start=0, value=null)+fewer(start=30, every=2, by=1)"
    assert schedule.scaled("constant+fewer(start=300)", "epochs", 40, 400) == expected


@pytest.mark.parametrize(
    ("rounds", "of", "says"),
    [
        (40, 300, "start = 300 is never reached in 300 rounds; make it less than 300"),
        (1, 400, "2 phases do not fit into 1 rounds; give it fewer, or more rounds"),
    ],
)
def test_phases_that_have_no_round_are_refused(rounds: int, of: int, says: str) -> None:
    with pytest.raises(UserError) as caught:
        schedule.scaled(LATE, "schedule", rounds, of)
    assert str(caught.value) == f"schedule = {LATE!r}: {says}"
