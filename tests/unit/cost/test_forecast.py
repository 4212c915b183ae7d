"""The forecast of a command: what it would train and how long it takes."""

from pathlib import Path

import pytest

from fedrepro.cost.forecast import Forecast, Job, makespan
from fedrepro.cost.rates import Rates, image_counts
from fedrepro.data.registry import load_registry
from fedrepro.engine import checkout
from fedrepro.files import write_json
from fedrepro.methods.compose import compose

ROOT = Path(__file__).parents[3]


def forecast(jobs: dict[str, list[int]], device: str = "cpu") -> Forecast:
    """The forecast for runs a, b, ... A seed of `a` takes 1,000 s and one of `b` 2,000 s. Other runs have no known time."""
    known = {"a": 1000.0, "b": 2000.0}
    rates = Rates(ROOT, {})
    rates.published = lambda config, device="cpu": known.get(config["model"])  # type: ignore[method-assign]
    usual = {"method": str(compose("fedavg")), "dataset": "mnist", "input_shape": [1], "partition": "iid", "rounds": 5}
    runs = {name: {"run_id": name, "method": usual["method"], "config": usual | {"model": name}} for name in jobs}
    kept = lambda seeds: {} if seeds else {8: "receipt"}  # noqa: E731
    return Forecast([Job(runs[name], seeds, kept(seeds), []) for name, seeds in jobs.items()], rates, device)


def test_a_fresh_training_ignores_what_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "fedrepro.cost.forecast.receipts.existing", lambda root, run_id, seed, config: "receipt" if seed == 8 else None
    )
    run = {"run_id": "a", "config": {}, "forks": [{"round": 3, "runs": ["b"]}]}
    (tmp_path / "results/checkpoints/a").mkdir(parents=True)
    (tmp_path / "results/checkpoints/a/seed9.pt").touch()
    plain, again, fresh = (Job.of(tmp_path, run, [8, 9], *how) for how in ((), (True,), (False, True)))
    assert (plain.to_train, plain.kept, plain.begun, len(plain.run["forks"])) == ([9], {8: "receipt"}, [9], 1)
    assert (again.to_train, again.kept, again.begun, len(again.run["forks"])) == ([8, 9], {}, [9], 0)
    assert (fresh.to_train, fresh.kept, fresh.begun, len(fresh.run["forks"])) == ([8, 9], {}, [], 0)


def test_a_line_before_any_training() -> None:
    """The line says how much trains, how long it takes, and how many runs have unknown length."""
    assert forecast({"a": []}).announcement(2) == ""
    known = "training 2 runs with 3 seeds in all: about 1.1 core-hours, 33 min 22 s with 2 cores, by published runs"
    assert forecast({"a": [8, 9], "b": [8]}).announcement(2) == known
    assert forecast({"a": [8, 9], "b": [8], "c": []}).announcement(None).endswith("about 1.1 core-hours, by published runs")
    assert (
        forecast({"a": [8], "x": [8]})
        .announcement(1)
        .endswith("16 min 42 s on one core, by published runs, and 1 run of unknown length")
    )
    unknown = "training 1 run with 1 seed in all; how long that takes the first ones will tell: "
    assert forecast({"x": [8]}).announcement(2) == unknown + "nothing like them is published or trained here"
    assert "about 139 core-hours, 139 h" in forecast({"a": range(500)}).announcement(2)
    assert "about 16 min 42 s on the GPU, one run after another" in forecast({"a": [8]}, "cuda").announcement(2)


def test_cores_without_a_run_are_told_how_to_help() -> None:
    """Two runs for eight cores get the advice. There is none with enough workers, with as many runs as cores, without a
    training or a known time, or on a GPU."""
    both = forecast({"a": [8, 9], "b": [8], "c": []})
    advice = "`workers: 4` in params.yaml shares out the clients of each among 4 processes and changes no result"
    assert both.spare(8, 1) == both.spare(9, 3).replace("9 cores", "8 cores") == f"2 runs for 8 cores: {advice}"
    assert both.spare(8, 4) == both.spare(3, 1) == both.spare(None, 1) == forecast({"a": []}).spare(8, 1) == ""
    assert forecast({"a": [8]}, "cuda").spare(8, 1) == forecast({"x": [8]}).spare(8, 1) == ""


def test_long_trainings_that_cannot_be_published_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed of `a` takes 1,000 s. Short and unknown ones, and sources as committed, get no line."""
    monkeypatch.setattr(checkout, "objection", lambda: "git is not installed")
    assert forecast({"a": [8]}).unpublishable() == "what these sources train cannot be published: git is not installed"
    assert forecast({"a": []}).unpublishable() == forecast({"x": [8]}).unpublishable() == ""
    monkeypatch.setattr(checkout, "objection", lambda: None)
    assert forecast({"a": [8]}).unpublishable() == ""


def test_a_dry_run_has_a_line_a_run_and_totals() -> None:
    """Runs that train come first. Runs of unknown length are named."""
    shared, _, *table, _, count, total, left = forecast({"k": [], "a": [8, 9], "x": [8]}).lines(1)
    assert shared.startswith("all have method fedavg, dataset mnist, partition iid, ")
    assert table == [
        "model  train seeds  each          kept seeds",
        "a      8, 9         16 min 40 s",
        "x      8            unknown time",
        "k                                 8 (receipt)",
    ]
    assert count == "2 runs to train with 3 seeds in all, 1 seed kept"
    assert total == "about 33 min 22 s on one core, by published runs"
    assert left == "not counted: 1 run, since nothing like x on mnist with about as much work is published or trained here"


def test_lines_say_what_tells_runs_apart() -> None:
    """There is a column for each setting in which the runs differ. The total names the command that uses these cores."""
    made = forecast({"a": [8], "b": [8]})
    for job, client_lr in zip(made.jobs, (0.1, 0.05), strict=True):
        job.run["config"] = job.run["config"] | {"client_lr": client_lr, "clients": 20}
    _, _, *table, _, _, total = made.lines(2)
    assert [line.split()[:2] for line in table] == [["model", "client_lr"], ["a", "0.1"], ["b", "0.05"]]
    assert total == "about 50 min 04 s on one core, 33 min 22 s with snakemake --cores 2, by published runs"


def test_measuring_is_told_after_training() -> None:
    """Two measured rounds of two seeds take 30 s each."""
    made = forecast({"a": [8, 9]})
    made.jobs[0].run.update(keep=[1, 2, 3], measures={"plane": [1, 2]})
    made.rates.measuring = lambda config, call, device="cpu": 30.0  # type: ignore[method-assign]
    assert made.lines(1)[-1].endswith("by published runs, then about 2 min 00 s to measure kept models")
    assert made.announcement(1).endswith("then about 2 min 00 s to measure kept models")


def test_rounds_that_runs_share_count_once() -> None:
    """`b` forks from `a` at round 4 of five: `a` takes 1,000 s and `b` a fifth of 2,000 s. Alone, `b` trains all rounds."""
    both, alone = forecast({"a": [8], "b": [8]}), forecast({"b": [8]})
    for made in (both, alone):
        for job in made.jobs:
            job.run["forks"] = [{"round": 4, "models": 1, "runs": ["a", "b"]}]
    assert both.seconds == {"a": 1000.0, "b": pytest.approx(400.0)}
    assert alone.seconds == {"b": 2000.0}


def test_what_follows_is_counted_in_seeds_of_the_run() -> None:
    """The first run takes 1,000 s a seed, the second 2,000 s, the third an unknown time. Each has two seeds."""
    assert forecast({"a": [8, 9], "b": [8, 9], "c": [8, 9], "d": []}).later() == {"a": 4.0, "b": 0.0, "c": 0.0}


@pytest.mark.parametrize(("slots", "seconds"), [(1, 18.0), (2, 10.0), (3, 7.0), (9, 7.0)])
def test_makespan_by_hand(slots: int, seconds: float) -> None:
    """7, 5, 3, 3 in two slots: 7 + 3 and 5 + 3. The makespan is never shorter than the longest job."""
    assert makespan([3.0, 7.0, 3.0, 5.0], slots) == seconds
    assert makespan([], slots) == 0


def test_how_many_images_there_are(tmp_path: Path) -> None:
    """The counts are from the registry, otherwise from prepared arrays of any shape, otherwise unknown."""
    entry = load_registry(ROOT / "data" / "registry.yaml")["digits"]
    assert image_counts(tmp_path, entry) == (1297, 500)
    silent = entry.model_copy(update={"images": None})
    assert image_counts(tmp_path, silent) is None
    write_json(tmp_path / "data/arrays/digits/1x28x28/manifest.json", {"counts": {"train": 7, "test": 3}})
    assert image_counts(tmp_path, silent) == (7, 3)
