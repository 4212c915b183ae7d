"""Rounds that runs share are trained once: which rounds these are, and that both ways give the same bits."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fedrepro.engine import forks
from fedrepro.engine.fork_point import ForkPoint
from fedrepro.engine.forks import Fork
from fedrepro.engine.kept import Keeper
from fedrepro.engine.loop import Checkpoints, Outcome, train
from fedrepro.engine.run import _inherits
from fedrepro.methods.compose import compose
from tests import toy

ROUNDS, START = 6, 4
LATE = f"ima(window=3, start={START})"


def config(method: str, **changes) -> dict:
    """Settings of a run, as a plan has them."""
    return replace(toy.make_spec(rounds=ROUNDS, **changes), method=str(compose(method))).as_dict()


def test_a_run_without_anything_that_starts_late_parts_from_none() -> None:
    assert forks.starts(config("fedavg")) == []


def test_averages_and_phases_start() -> None:
    assert forks.starts(config(f"fedavg+{LATE}", schedule="exponential+constant(start=2)")) == [2, START]


def test_the_rounds_before_the_start_are_those_of_the_base() -> None:
    base = config("fedprox(mu=0.1)", schedule="exponential")
    late = config(f"fedprox(mu=0.1)+{LATE}", schedule=f"exponential+exponential(start={START}, factor=0.5)")
    assert forks.trunk(late, START) == forks.trunk(base, START) == base
    assert forks.trunk(late, START + 1) == late


class Planned:
    """A run, with only the fields that forks read."""

    def __init__(self, method: str, **changes) -> None:
        self.config = config(method, **changes)


def test_runs_share_what_all_of_them_do() -> None:
    runs = {
        "other": Planned("fedavgm"),
        "base": Planned("fedavg"),
        "late": Planned(f"fedavg+{LATE}"),
        "later": Planned("fedavg+ima(window=2, start=5)"),
        "prox": Planned("fedprox(mu=0.1)"),
        "early": Planned("fedprox(mu=0.1)+ima(window=2, start=3)"),  # the others share nothing new in round 3
    }
    found = forks.find_forks(runs)
    needs = lambda text: compose(text).averages[0].remembers(ROUNDS)  # noqa: E731
    both, one = needs(LATE), needs("ima(window=2, start=5)")
    assert 0 < one < both
    assert found["base"] == [Fork(4, both, ["base", "late", "later"]), Fork(5, one, ["base", "later"])]
    assert found["late"] == found["base"][:1]
    assert found["later"] == found["base"]
    assert "other" not in found
    assert [fork.round for fork in found["prox"]] == [3]


def test_runs_that_differ_from_the_start_share_nothing() -> None:
    assert forks.find_forks({"a": Planned("fedavg"), "b": Planned(f"fedavg+{LATE}", client_lr=0.5)}) == {}


def test_plans_that_share_a_round_are_joined() -> None:
    joined = forks.merge_forks([Fork(4, 3, ["a", "b"]), Fork(2, 1, ["a", "d"]), Fork(4, 5, ["a", "c"])])
    assert joined == [Fork(2, 1, ["a", "d"]), Fork(4, 5, ["a", "b", "c"])]


BASES = ["scaffold", "fedprox(mu=0.1)+fedadam"]


def run(path: Path, method: str, models: int = 3, keeper: Keeper | None = None, **how) -> Outcome:
    """Trains the toy task. The state of round 4 is stored in `path`, if it exists."""
    point = ForkPoint(START, models, path / "fork.pt", "the same rounds")
    task = toy.make_task(rounds=ROUNDS, cohorts=toy.PARTIAL)
    own = Checkpoints(path / f"{method[:4]}-own.pt", "own", every_s=1e9, forks=(point,))
    return train(task, compose(method), checkpoints=own, keeper=keeper, **how)


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize("base", BASES)
def test_both_ways_give_the_same_bits(base: str, engine: str, tmp_path: Path) -> None:
    run(tmp_path, base, engine=engine)
    forked = run(tmp_path, f"{base}+{LATE}", engine=engine)
    (tmp_path / "fork.pt").unlink()
    alone = run(tmp_path / "alone", f"{base}+{LATE}", engine=engine)
    assert forked.progress.shared == START
    assert alone.progress.shared == 0
    assert torch.equal(forked.params.flat, alone.params.flat)
    assert forked.progress.rows == alone.progress.rows
    assert forked.progress.samples == alone.progress.samples


def test_the_late_run_may_come_first(tmp_path: Path) -> None:
    run(tmp_path, f"fedadam+{LATE}")
    forked, alone = run(tmp_path, "fedadam"), run(tmp_path / "alone", "fedadam")
    assert forked.progress.shared == START
    assert forked.progress.rows == alone.progress.rows


def test_a_longer_window_than_was_kept_starts_over(tmp_path: Path) -> None:
    run(tmp_path, "fedavg", models=2)
    assert run(tmp_path, f"fedavg+{LATE}", models=3).progress.shared == 0


def test_an_average_behind_which_another_has_begun_parts_from_nothing(tmp_path: Path) -> None:
    """The average that starts later comes first in the chain. Its inputs should be the models before averaging. After a shared
    start they would be the other average's means."""
    behind = compose("fedavg+ima(window=2, start=4)+ima(window=3, start=2)")
    before = compose("fedavg+ima(window=3, start=2)+ima(window=2, start=4)")
    assert [_inherits(method, START, ROUNDS) for method in (behind, before)] == [False, True]
    both = "fedavg+ima(window=3, start=2)+ima(window=2, start=4)"
    run(tmp_path, "fedavg+ima(window=3, start=2)")
    forked, alone = run(tmp_path, both), run(tmp_path / "alone", both)
    assert forked.progress.shared == START
    assert torch.equal(forked.params.flat, alone.params.flat)


def test_a_round_that_is_kept_is_not_passed_over(tmp_path: Path) -> None:
    run(tmp_path, "fedavg")
    keeper = Keeper(tmp_path, "late", 8, frozenset({START - 1}))
    assert run(tmp_path, f"fedavg+{LATE}", keeper=keeper).progress.shared == 0
