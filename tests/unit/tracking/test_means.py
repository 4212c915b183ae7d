"""The mean over a run's seeds, with the seeds below it."""

from pathlib import Path

import pytest
from small_table import make_plan, make_receipt, with_settings, write_result, write_results
from tracked import all_in, means_in, opened, runs_in

from fedrepro.config import grid
from fedrepro.config.places import natural
from fedrepro.config.project import load_project
from fedrepro.config.reading import FirstReaching, Jumps, Last, Reading
from fedrepro.engine import fingerprints
from fedrepro.engine.fingerprints import RULE
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.files import write_json, write_text
from fedrepro.looks import look_of
from fedrepro.store import Store
from fedrepro.tracking import planned_runs, sync
from fedrepro.tracking.content import COLOUR, NOTE, PARENT, _reported, by_people
from fedrepro.tracking.planned_runs import PlannedRun
from fedrepro.typed import text

ROOT = Path(__file__).parents[3]
SMALL = {"seeds": [8, 9]}


def test_seeds_hang_below_their_mean(root):
    """The mean run has the averages of curves, table values and cost, and the deviation of table values. If the seeds change,
    the next sync writes the mean again."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    run = plan["runs"][plan["cells"][0]["run_id"]]
    write_result(root, run, 9, 90.0)
    sync([path], root)
    (mean,) = means_in(root)[run["run_id"]]
    seeds = {seed: runs_in(root)[f"{run['run_id']}/seed{seed}"][0] for seed in (8, 9)}
    assert [seed.data.tags[PARENT] for seed in seeds.values()] == [mean.info.run_id] * 2
    assert PARENT not in mean.data.tags
    assert (mean.info.run_name, mean.data.tags["seed"]) == ("FedAvg α100", "mean of 8, 9")
    shown = {"accuracy/mean": 89.0, "accuracy/std": 1.4142, "accuracy/curve": 89.5, "system/wall_s": 2.5}
    assert shown.items() <= mean.data.metrics.items()
    with opened(root) as client:
        histories = [client.get_metric_history(one.info.run_id, "accuracy/curve") for one in (mean, *seeds.values())]
    for of_mean, *of_seeds in zip(*histories, strict=True):
        assert of_mean.value == pytest.approx(sum(one.value for one in of_seeds) / 2)
        client.set_tag(mean.info.run_id, NOTE, "look at round 3")
        client.set_tag(mean.info.run_id, "checked by", "me")
    (root / "results" / "runs" / run["run_id"] / "seed9.json").rename(root / "kept.json")
    sync([path], root)
    (part,) = means_in(root)[run["run_id"]]
    assert (part.info.run_name, part.data.tags["seed"]) == ("FedAvg α100 (1 of 2 seeds)", "mean of 8")
    assert by_people(part.data.tags) == {NOTE: "look at round 3", "checked by": "me"}, "what a person wrote stays"
    assert [by_people(one.data.tags) for ones in runs_in(root).values() for one in ones] == [{}] * 10
    (root / "kept.json").rename(root / "results" / "runs" / run["run_id"] / "seed9.json")
    write_json(path, make_plan(seeds=[8]))
    sync([path], root)
    (fewer,) = means_in(root)[run["run_id"]]
    assert (fewer.data.tags["seed"], fewer.data.metrics["accuracy/mean"]) == ("mean of 8", 88.0)
    assert fewer.info.run_name == "FedAvg α100"
    assert "accuracy/std" not in fewer.data.metrics
    assert {runs[0].data.tags[PARENT] for key, runs in runs_in(root).items() if run["run_id"] in key} == {fewer.info.run_id}


def test_a_seed_of_other_code_does_not_enter_the_mean(root):
    """As in the table, unless all seeds are of other code. Its tag says so."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    run = plan["runs"][plan["cells"][0]["run_id"]]
    (part, today), *_ = (
        (name, value) for name, value in fingerprints.today(run["config"], "cpu").items() if name.startswith("part ")
    )
    write_result(root, run, 8, code={part: today})
    write_result(root, run, 9, 90.0, code={part: f"{RULE}other"})
    sync([path], root)
    (mean,), (seed,), (other,) = means_in(root)[run["run_id"]], *(runs_in(root)[f"{run['run_id']}/seed{n}"] for n in (8, 9))
    assert (mean.data.tags["seed"], mean.data.metrics["accuracy/mean"]) == ("mean of 8", 88.0)
    assert (seed.data.tags["code"], other.data.tags["code"]) == ("today's", f"other than today's: {part}")


def test_the_duration_of_a_mean_is_that_of_its_seeds(root):
    """A seed trains for two seconds, another one three days later for six. MLflow shows four, up to the later end."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    run = plan["runs"][plan["cells"][0]["run_id"]]
    for seed, times in (
        (8, ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:02+00:00")),
        (9, ("2026-01-04T00:00:00+00:00", "2026-01-04T00:00:06+00:00")),
    ):
        write_result(
            root, run, seed, cost=make_receipt(run, seed)["cost"] | dict(zip(("started_at", "finished_at"), times, strict=True))
        )
    sync([path], root)
    (mean,), (later,) = means_in(root)[run["run_id"]], runs_in(root)[f"{run['run_id']}/seed9"]
    assert (mean.info.end_time, mean.info.end_time - mean.info.start_time) == (later.info.end_time, 4000)


def test_the_mean_is_over_the_seeds_of_the_first_table(root):
    """A later table has more seeds of the run and another reading. These seeds hang below the mean but do not enter it."""
    plan, more = make_plan(**SMALL), make_plan(table="table3-seeds", seeds=[8, 9, 10])
    path = write_results(root, plan)
    write_results(root, more)
    run = plan["runs"][plan["cells"][0]["run_id"]]
    write_result(root, run, 9, 90.0)
    write_result(root, run, 10, 20.0)
    for cell in more["cells"]:
        cell["read"] = cell["run_id"] and "last()"
    write_json(path.with_name("table3-seeds.json"), more)
    sync([path, path.with_name("table3-seeds.json")], root)
    (mean,) = means_in(root)[run["run_id"]]
    assert (mean.info.run_name, mean.data.tags["seed"]) == ("FedAvg α100", "mean of 8, 9")
    assert {"accuracy/mean": 89.0, "accuracy/std": 1.4142}.items() <= mean.data.metrics.items()
    assert "accuracy/mean_last1" in mean.data.metrics
    below = [runs[0].data.tags[PARENT] for key, runs in runs_in(root).items() if run["run_id"] in key]
    assert below == [mean.info.run_id] * 3


def test_means_are_the_published_tables_numbers(tmp_path):
    """Three tables of Elastic aggregation share runs, with other seeds and readings. In MLflow a run has the mean and deviation
    of the cell in the first table that shows it."""
    for name in ("papers", "data", "reports", "params.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    project = load_project(ROOT).as_published("full")
    plans = [grid.plan(project, "elastic", f"table3{more}", "full") for more in ("", "-sigmoid", "-variants")]
    for made in plans:
        write_text(tmp_path / "results/plans/full/elastic" / f"{made.table}.json", text(made))
    sync(planned_runs.plan_files(tmp_path), tmp_path)
    means = means_in(tmp_path, "elastic/full")
    firsts: dict[str, tuple[str, str]] = {}
    for made in sorted(plans, key=lambda made: natural(made.table)):
        for cell in Exhibit.of(made, Store.of(ROOT)).cells:
            if not cell.run_id or cell.place.diagnostic or cell.mean is None or cell.mixed:
                continue
            if firsts.setdefault(cell.run_id, (made.table, cell.place.read)) == (made.table, cell.place.read):
                name, (run,) = cell.metric.name.removeprefix("test_"), means[cell.run_id]
                shown = [run.data.metrics.get(f"{name}/{kind}") for kind in ("mean", "std")]
                if not cell.place.reading.derived:
                    assert shown == pytest.approx([cell.mean, cell.std], abs=6e-5), (made.table, cell.run_id)
    assert len(firsts) > 10


def test_rounds_and_jumps_never_have_the_metrics_plain_name(root):
    """They are other quantities than accuracy, whatever their windows."""
    receipt = make_receipt(make_plan()["runs"][make_plan()["cells"][0]["run_id"]], 8, 88.0)
    calls = [(FirstReaching(80.0), "lower"), (Jumps(0.5), "lower"), (Last(2), "higher")]
    reported = [Reading("test_accuracy", call, better) for call, better in calls]
    found = _reported(PlannedRun("fedlaw", "full", None, 8, reported=reported), receipt)
    assert found["accuracy/mean"] == Reading("test_accuracy", Last(2)).of(receipt)
    assert {*found} - {"accuracy/mean"} <= {"accuracy/mean_rounds_to_80", "accuracy/mean_jumps0.5"}


def test_trials_hang_below_the_mean_of_their_cell(root):
    """The chosen candidate's mean represents the cell. The other candidates are nested below it, name the values they try, and
    have the method's colour. They are sorted as in the table."""
    plan = make_plan(seeds=[8])
    cell = plan["cells"][0]
    chosen = plan["runs"][cell["run_id"]]
    other = with_settings(chosen, client_lr=0.5)
    plan["runs"][other["run_id"]] = other
    for run in (chosen, other):
        trial = {"run_id": run["run_id"], "read": "last()", "seeds": [8]}
        values = {"client_lr": run["config"]["client_lr"], "fedprox.mu": 1}
        plan["candidates"].append(cell | {"run_id": run["run_id"], "tuned": True, "values": values, "trial": trial})
    plan["cells"][0] = cell | {"run_id": None, "tuned": True, "reason": "not chosen yet"}
    path = write_results(root, plan)
    write_result(root, other, 8, 70.0)
    sync([path], root)
    (mean,), (seed,), (trial,) = (
        all_in(root)[key] for key in (chosen["run_id"], f"{chosen['run_id']}/seed8", f"{other['run_id']}/seed8")
    )
    assert other["run_id"] not in means_in(root)
    assert trial.data.tags[PARENT] == seed.data.tags[PARENT] == mean.info.run_id
    assert trial.info.run_name == "FedAvg α100 · lr=0.5 · seed 8"
    assert (trial.data.tags["level"], seed.data.tags["level"], mean.data.tags["level"]) == ("trial", "seed", "mean")
    assert (trial.data.tags["tries"], seed.data.tags["tries"]) == ("lr=0.5", "lr=0.08")
    assert {run.data.tags[COLOUR] for run in (mean, seed, trial)} == {look_of("FedAvg").colour}
    assert [run.data.tags["order"] for run in (mean, seed, trial)] == ["000.000.000.000"] * 2 + ["000.000.000.001"]
    write_result(root, other, 8, 95.0)
    sync([path], root)
    (mean,), (trial,) = all_in(root)[other["run_id"]], all_in(root)[f"{chosen['run_id']}/seed8"]
    assert trial.data.tags[PARENT] == mean.info.run_id
    assert chosen["run_id"] not in means_in(root)


def test_a_mean_with_a_diverged_seed_shows_no_number(root):
    """The mean of a diverged seed and a finished one is FAILED and has no number, as in the report. Its curve ends at the last
    round of the diverged seed."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    run = next(iter(plan["runs"].values()))
    write_result(root, run, 9, None)
    sync([path], root)
    (mean,) = means_in(root)[run["run_id"]]
    assert (mean.info.status, mean.data.tags["status"]) == ("FAILED", "diverged")
    assert not {"accuracy/mean", "accuracy/std"} & mean.data.metrics.keys()
    with opened(root) as client:
        assert [point.step for point in client.get_metric_history(mean.info.run_id, "accuracy/curve")] == [1, 2, 3]
