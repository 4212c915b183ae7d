"""Schedules that were written for another number of rounds than a run has."""

import pytest

from fedrepro.engine import schedule
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose, for_rounds
from tests import toy
from tests.helpers.one_line import one_line

LATE = "exponential+cyclic(start=300, period=20, lowest=5e-5)"


@pytest.mark.parametrize(
    ("text", "rounds", "expected"),
    [
        (LATE, 400, LATE),
        (LATE, 40, "exponential(start=0, factor=null)+cyclic(start=30, period=2, lowest=5e-05)"),
        (LATE, 800, "exponential(start=0, factor=null)+cyclic(start=600, period=40, lowest=5e-05)"),
        (LATE, 8, "exponential(start=0, factor=null)+cyclic(start=6, period=2, lowest=5e-05)"),  # the period is at least 2
        ("constant+stage(start=70, every=30)", 40, "constant(start=0, value=null)+stage(start=7, every=3, factor=0.5)"),
        ("constant+stage(start=71, every=31)", 40, "constant(start=0, value=null)+stage(start=8, every=4, factor=0.5)"),
        ("stage(every=20)", 4, "stage(start=0, every=1, factor=0.5)"),
        # Two phases never start in the same round, and each gets at least one round.
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
        (
            "constant+constant(start=301, value=0.1)+constant(start=302, value=0.2)",
            40,
            "constant(start=0, value=null)+constant(start=31, value=0.1)+constant(start=32, value=0.2)",
        ),
        ("constant+constant(start=1, value=0.1)", 2, "constant+constant(start=1, value=0.1)"),
        # Shares and starts at the method's start stay. Lengths and other starts are scaled.
        ("exponential+constant(start=0.75)", 40, "exponential+constant(start=0.75)"),
        (
            "exponential+stage(start=0.75, every=20)",
            40,
            "exponential(start=0, factor=null)+stage(start=0.75, every=2, factor=0.5)",
        ),
        (
            "exponential+constant(start=200)+exponential(start=method, factor=0.97)",
            40,
            "exponential(start=0, factor=null)+constant(start=20, value=null)+exponential(start=method, factor=0.97)",
        ),
        # No argument of these is a number of rounds.
        ("exponential", 40, "exponential"),
        ("cosine(half=false)", 40, "cosine(half=false)"),
        ("exponential(factor=0.5)", 1, "exponential(factor=0.5)"),
    ],
)
def test_written_for_400_rounds(text: str, rounds: int, expected: str) -> None:
    """Starts keep their share of `rounds`, rounded up, and every phase is reached."""
    found = schedule.scaled(text, "schedule", rounds, 400)
    assert found == expected
    assert schedule.phases(schedule.of_method(found, "schedule", "fedavg"), "schedule", rounds)[-1][0] < rounds


def test_epochs_written_for_400_rounds() -> None:
    expected = "constant(start=0, value=null)+fewer(start=30, every=2, by=1)"
    assert schedule.scaled("constant+fewer(start=300)", "epochs", 40, 400) == expected


def test_epochs_are_rounded_down_but_for_errors_of_floating_point() -> None:
    """100 * 0.7 * 0.7 is 48.99999999999999 there."""
    assert [schedule.epochs("stage(every=1, factor=0.7)", 100, round, 4) for round in range(4)] == [100, 70, 49, 34]


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


LENGTHS = (2, 3, 7, 99, 100, 400)


def begins(text: str, rounds: int) -> int:
    """The round from which the only average of the method has an effect."""
    (average,) = compose(text).averages
    found = average.begins(rounds)
    assert found is not None
    return found


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("start", ["0.75", "0.07", "0.3333333333333333"])
def test_a_share_is_the_same_round_in_a_schedule_and_in_a_method(start: str, rounds: int) -> None:
    """The phase may repeat the share or say `start=method`."""
    method = str(compose(f"ima(start={start})"))
    for phase in (start, "method"):
        spec = toy.make_spec(schedule=f"constant+constant(start={phase}, value=0.01)", rounds=rounds, method=method)
        late = [t for t in range(rounds) if spec.client_lr_at(t) == 0.01]
        assert late == list(range(begins(method, rounds), rounds))
        assert late
        assert toy.RunSpec(**spec.as_dict()) == spec


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("start", [1, 225, 399])
def test_a_round_of_400_is_the_same_one_in_a_schedule_and_in_a_method(start: int, rounds: int) -> None:
    """The round is scaled to another number of rounds, and comes before the end."""
    method = for_rounds(compose(f"fedadam+ima(start={start})"), rounds, lambda name: 400)
    text = schedule.scaled(f"constant+constant(start={start}, value=0.01)", "schedule", rounds, 400)
    assert schedule.phases(text, "schedule", rounds)[-1][0] == begins(str(method), rounds) < rounds


def test_a_round_that_is_never_reached_stays_so() -> None:
    """A method's start of 400 in 400 rounds becomes 40 in 40 rounds, and the run never reaches it."""
    assert begins(str(for_rounds(compose("ima(start=400)"), 40, lambda name: 400)), 40) == 40
    shared = compose("ima(start=0.75)")
    assert for_rounds(shared, 40, lambda name: 400) is shared


def test_without_a_methods_start_the_schedule_before_goes_on() -> None:
    """A method without a start drops the phase `start=method`: the run has the run_id of the schedule without it."""
    text = "exponential+exponential(start=method, factor=0.97)"
    assert toy.make_spec(schedule=text, method=str(compose("fedadam"))) == toy.make_spec(method=str(compose("fedadam")))
    own = str(compose("pfedme"))  # its start is a word
    assert toy.make_spec(schedule=text, method=own) == toy.make_spec(method=own)
    late = toy.make_spec(schedule=text, rounds=4, method=str(compose("ima")), client_lr=0.1, client_lr_decay=0.9)
    assert [late.client_lr_at(t) for t in range(4)] == pytest.approx([0.1, 0.09, 0.081, 0.0729])  # from round 3 on 0.97
    longer = toy.make_spec(schedule=text, rounds=6, method=str(compose("ima(start=3)")), client_lr=0.1, client_lr_decay=0.9)
    assert [longer.client_lr_at(t) for t in range(3, 6)] == pytest.approx([0.0729, 0.0729 * 0.97, 0.0729 * 0.97**2])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("constant+constant(start=1.5)", "constant: start = 1.5: must be a round"),
        ("constant+constant(start=late)", "constant: start = 'late': must be a round, a share of the rounds or method"),
        ("constant(start=method)", "starts at rounds ['method']; the first must start at 0"),
        ("constant+constant(start=0.7)+constant(start=0.5)", "starts at rounds [0, 0.7, 0.5]; the first must start at 0"),
        ("constant+constant(start=0.5)+constant(start=2)", "starts at rounds [0, 2, 2]; the first must start at 0"),
    ],
)
def test_mistakes_are_one_line(text: str, says: str) -> None:
    with one_line() as caught:
        toy.make_spec(schedule=text, rounds=4, method=str(compose("ima")))
    assert says in str(caught.value)


def test_a_phase_of_the_methods_needs_one_to_be_asked_for_a_rate() -> None:
    with pytest.raises(UserError, match="start = method: there is no method here to start with; give a round"):
        schedule.rate("constant+constant(start=method)", 0.1, 1.0, 0, 4)
