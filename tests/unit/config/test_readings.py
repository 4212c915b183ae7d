"""Readings of a run's curve. The expected values are worked out by hand."""

import pytest

from fedrepro.config.reading import READINGS, Reading, make
from fedrepro.errors import UserError

CURVE = [50.0, None, 60.0, 80.0, 70.0, 90.0, 64.0, 66.0]  # eight rounds; the second has no evaluation


def value(text: str, better: str = "higher", status: str = "finished") -> float | None:
    return Reading("m", make(text), better).of({"status": status, "curves": {"round": [*range(8)], "m": CURVE}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("last(1)", 66.0),
        ("last(3)", (90 + 64 + 66) / 3),
        ("last(100)", (50 + 60 + 80 + 70 + 90 + 64 + 66) / 7),
        ("share(0.25)", 65.0),
        ("share(0.01)", 66.0),  # at least one round
        ("at(4)", 80.0),
        ("at(4, mean=2)", 70.0),
        ("at(4, 3)", 70.0),  # of rounds 2 to 4 the second has no evaluation
        ("at(2)", 50.0),  # no evaluation there: the value before it
        ("at(100)", 66.0),
        ("mean(3, 5)", 70.0),
        ("mean(1, 2)", 50.0),
        ("best()", 90.0),
        ("jumps(0.5)", (20 + 26 + 2) / 3),  # of 70, 90, 64, 66
        ("jumps(1)", (10 + 20 + 10 + 20 + 26 + 2) / 6),  # skips the round without an evaluation
        ("jumps(0.01)", 2.0),  # at least two rounds
        ("first_reaching(64)", 4),
        ("first_reaching(50)", 1),
        ("first_reaching(91)", None),
        ("first_reaching(50, falling=true)", 1),
        ("first_reaching(49, falling=true)", None),
    ],
)
def test_a_reading_of_a_curve(text: str, expected: float | None) -> None:
    """Rounds count from 1. A round without an evaluation is skipped."""
    assert value(text) == (expected if expected is None else pytest.approx(expected))


def test_the_best_is_the_lowest_where_lower_is_better() -> None:
    """For example a loss."""
    assert value("best()", better="lower") == 50.0


@pytest.mark.parametrize("text", ["last(1)", "share(0.25)", "best()", "first_reaching(64)", "at(8)", "at(100)", "mean(3, 8)"])
def test_a_run_that_diverged_has_no_value_whatever_it_reached_before(text: str) -> None:
    """The run diverged in its eighth and last round."""
    assert value(text, status="diverged") is None


@pytest.mark.parametrize("text", ["at(4)", "at(7)", "at(7, mean=3)", "mean(3, 7)"])
def test_rounds_before_it_diverged_are_read(text: str) -> None:
    """A reading that ends before the run diverged has the value of a finished run."""
    assert value(text, status="diverged") == value(text)


@pytest.mark.parametrize(
    ("text", "rounds", "said"),
    [
        ("last(10)", 200, "mean of the last 10 of 200 rounds"),
        ("last(1)", 5, "the last of 5 rounds"),
        ("last(10)", 8, "mean of all 8 rounds"),
        ("last(8)", 8, "mean of all 8 rounds"),
        ("last(10)", 2, "mean of both rounds"),
        ("last(10)", 1, "the only round"),
        ("share(0.1)", 200, "mean of the last 20 of 200 rounds"),
        ("at(100)", 500, "after 100 of 500 rounds"),
        ("at(100, mean=5)", 500, "after 100 of 500 rounds, mean of 5"),
        ("mean(90, 110)", 200, "mean of rounds 90 to 110 of 200"),
        ("best()", 50, "the best of 50 rounds"),
        ("jumps(0.25)", 200, "mean jump from one measured round to the next, over the last 50 of 200 rounds"),
        ("first_reaching(64)", 50, "rounds until it is at least 64, of 50"),
        ("first_reaching(0.5, falling=true)", 50, "rounds until it is at most 0.5, of 50"),
    ],
)
def test_it_says_what_it_reads(text: str, rounds: int, said: str) -> None:
    assert Reading("m", make(text)).over({"rounds": rounds}) == said


def test_rounds_are_the_same_share_of_a_shorter_run() -> None:
    """A tenth of 200 rounds: round 95 becomes round 10 of 20, and rounds 90 to 110 become rounds 9 to 11. A target does not
    scale."""
    scaled = {text: str(READINGS.canonical(make(text).scaled(0.1))) for text in ("at(95)", "mean(90, 110)", "last(3)")}
    assert str(READINGS.canonical(make("at(100, mean=20)").scaled(0.1))) == "at(round=10, mean=2)"
    assert scaled == {"at(95)": "at(round=10, mean=1)", "mean(90, 110)": "mean(first=9, last=11)", "last(3)": "last(rounds=1)"}
    for text in ("share(0.1)", "best()", "first_reaching(64)"):
        assert make(text).scaled(0.1) == make(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lats(10)", ["unknown reading 'lats'", "'last'"]),
        ("last(0)", ["rounds = 0", "at least 1"]),
        ("last(1, 2)", ["takes 1 arguments"]),
        ("at()", ["'round' is missing"]),
        ("at(3, round=4)", ["'round' is given twice"]),
        ("mean(9, 3)", ["must not lie before first"]),
        ("last(1)+best()", ["one reading"]),
        ("share(2)", ["at most 1"]),
    ],
)
def test_a_mistake_says_what(text: str, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        make(text)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("text", "rounds", "every", "said"),
    [
        ("share(0.1)", 40, 8, "round 40 of 40, the only one of the last 4 that was measured"),
        ("last(10)", 40, 4, "mean of the 3 measured of the 10 rounds up to round 40 of 40"),
        ("last(10)", 40, 1, "mean of the last 10 of 40 rounds"),
        ("at(9)", 40, 4, "round 8 of 40, the last one measured before round 9"),
        ("best()", 40, 8, "the best of the 5 measured of 40 rounds"),
        ("last()", 8, 2, "the last of 8 rounds"),
    ],
)
def test_it_says_which_rounds_were_measured(text: str, rounds: int, every: int, said: str) -> None:
    """A run evaluated in every eighth round has only one value in its last four rounds."""
    assert Reading("m", make(text)).over({"rounds": rounds, "evaluate_every": every}) == said
