"""What `fedrepro compare` says of two runs: intervals only where seeds pair, rounds to the worst value, what is not shared."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedrepro.cli import compare, main
from fedrepro.config.reading import Last, Reading

ROOT = Path(__file__).parents[3]
INPUTS = {"partition": "p1", "participation": "c1", "proxy": "x1", "init": "i1"}


def run(curves: list[list[float]], inputs: dict[str, str] = INPUTS, **config: Any) -> Any:
    """A run at seeds 8, 9 and so on, with these curves of the test loss."""
    receipts = {
        seed: {"inputs": inputs, "status": "finished", "curves": {"round": [*range(len(curve))], "test_loss": curve}}
        for seed, curve in enumerate(curves, 8)
    }
    usual = {"clients": 20, "participation": 0.5, "cohorts": "drawn", "rounds": len(curves[0]), "dataset": "mnist"}
    return SimpleNamespace(receipts=receipts, config=usual | config, run_id="a", short="a")


@pytest.fixture
def _one_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """All seeds are of today's code."""
    monkeypatch.setattr(compare, "by_code", lambda root, receipts: [("", receipts)])


def test_other_partitions_have_a_difference_and_no_interval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing pairs the seeds of FedAvg at two alphas. FedAvg and FedLAW at one alpha are paired."""
    monkeypatch.chdir(ROOT)
    table = ["compare", "fedlaw/table3", "--scale", "full"]
    for arguments, paired in (
        (["--rows", "fedavg", "--columns", "fashion_mnist-mlp-0.1", "fashion_mnist-mlp-100"], False),
        (["--rows", "fedavg", "fedlaw", "--columns", "fashion_mnist-mlp-100"], True),
    ):
        assert main([*table, *arguments]) == 0
        said = capsys.readouterr().out
        cells = next(line for line in said.splitlines() if line.startswith("B  ") and "±" not in line and "−" in line).split()
        assert (cells[-2] == "–") == (not paired), cells
        assert ("B and A do not share at a seed: partition" in said) == (not paired)


@pytest.mark.usefixtures("_one_code")
def test_of_a_loss_the_rounds_are_counted_to_the_highest_value() -> None:
    """The runs end at 0.5 and 0.2. A falls to 0.5 in round 4, B in round 2."""
    reading = Reading("test_loss", Last(1), "lower", unit="loss")
    runs = {"A": run([[2.0, 1.5, 1.0, 0.5]]), "B": run([[1.0, 0.4, 0.3, 0.2]])}
    lines = [*compare._values(runs, {"A": "first", "B": "second"}, reading)]
    assert [line.split()[-1] for line in lines[2:4]] == ["4", "2"]


@pytest.mark.usefixtures("_one_code")
def test_runs_that_differ_in_rounds_share_their_cohorts() -> None:
    """The cohorts of 30 rounds are the first of those of 50, though the file is another. Of another share of clients they are
    not."""
    long, short = run([[1.0] * 5]), run([[1.0] * 3], INPUTS | {"participation": "c2"})
    assert [*compare._unshared_lines({"A": long, "B": short})] == []
    other = run([[1.0] * 5], INPUTS | {"participation": "c2"}, participation=0.1)
    (line,) = compare._unshared_lines({"A": long, "B": other})
    assert line.startswith("B and A do not share at a seed: cohorts")


@pytest.mark.usefixtures("_one_code")
def test_runs_of_which_the_same_holds_share_a_line() -> None:
    """Three or more in a row are shortened, counted in the order of all runs."""
    first, other = run([[1.0]]), run([[1.0]], INPUTS | {"partition": "p2"})
    runs = {"A": first, "B": other, "C": other, "D": other, "E": first, "F": other, "G": run([[1.0]], INPUTS | {"init": "i2"})}
    assert [line.partition(";")[0] for line in compare._unshared_lines(runs)] == [
        "B to D, F and A do not share at a seed: partition",
        "G and A do not share at a seed: initial model",
    ]
    assert compare._span(["A", "B", "E", "F", "G"], runs) == "A, B, E to G"
