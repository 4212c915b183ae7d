"""The workflow as files: what a target needs, which seeds a job trains, and that a clone with its evidence trains nothing."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from small_table import make_receipt

from fedrepro.cli import main
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.cost.forecast import Job
from fedrepro.data import arrays
from fedrepro.engine import fingerprints
from fedrepro.engine.artifacts import FOLDERS, SUFFIXES
from fedrepro.errors import UserError
from fedrepro.files import content_of, lock, write_json, write_text
from fedrepro.workflow import graph, session
from fedrepro.workflow import jobs as jobs_of
from fedrepro.workflow.graph import Workflow
from fedrepro.workflow.jobs import jobs

ROOT = Path(__file__).parents[3]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
TABLE = "short/fedlaw/", "table3-cifar10-jpeg"
REPORT = "reports/short/fedlaw/table3-cifar10-jpeg.md"


@pytest.fixture
def _no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a mistake the workflow calls os._exit. Here it raises SystemExit."""

    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that define the workflow, with a params.yaml of their own, as the current folder."""
    for name in ("papers/fedlaw", "rules", "profiles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("Snakefile", "params.yaml", "data/registry.yaml", "papers/scales.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    params = yaml.safe_load((tmp_path / "params.yaml").read_text())
    params["methods"] = {"fedlaw": params["methods"]["fedlaw"]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDREPRO_ERRORS", raising=False)
    return tmp_path


@pytest.fixture
def small(project: Path) -> Path:
    """The project with five of FedLAW's tables and figures, since a page plans every one."""
    for path in project.glob("papers/fedlaw/*/*.yaml"):
        if path.stem not in ("table2", "table3", TABLE[1], "figure15", "figure16"):
            path.unlink()
    return project


def load(**changes) -> Workflow:
    """The workflow of params.yaml with `changes`, as Snakemake's --config applies them."""
    params = yaml.safe_load(Path("params.yaml").read_text()) | {"device": "cpu"} | changes
    dag = SimpleNamespace(forcefiles=set())
    # Snakemake's settings when jobs run on this machine.
    here = SimpleNamespace(remote_exec=False, non_local_exec=False, is_main_process=True, dryrun=False, dag=dag)
    return Workflow(load_project(Path(), params), here)


def groups(paths: list[str]) -> set[str]:
    """The seeds of each job among `paths`."""
    return {Path(path).name for path in paths if Path(path).parent.name == "jobs"}


def test_a_budgets_seeds_are_asked_for_and_no_others(project: Path) -> None:
    """The stand-in at scale short needs only seed 8, other tables need all three seeds. One job trains all seeds of a run."""
    flow = load()
    assert groups(flow.evidence(*TABLE, None)) == {"8"}
    assert groups(flow.evidence("full/fedlaw/", TABLE[1], None)) == {"8-9-10"}
    assert groups(flow.evidence("short/fedlaw/", "table3", None)) == {"8-9-10"}
    both = load(scale="short", tables=["fedlaw/table3", "fedlaw/table3-cifar10-jpeg"], seeds=[9, 10])
    asked = {(re.sub(r"-.*", "", Path(p).parents[1].name), Path(p).name) for p in both.trained(None)}
    assert asked == {("fashion_mnist", "9-10"), ("cifar100", "9-10"), ("cifar10", "9-10"), ("cifar10", "8")}
    assert groups(both.inputs()) == {"9-10", "8"}


def test_many_seeds_are_many_jobs_of_ten(project: Path) -> None:
    """A job trains at most ten seeds. The cores share the jobs, and file names stay below 100 characters."""
    flow = load(seeds=list(range(1000, 1025)), tables=["fedlaw/table3"])
    asked = groups(flow.trained(None))
    assert sorted(len(name.split("-")) for name in asked) == [5, 10, 10]
    assert max(map(len, asked)) < 100


def test_a_marker_says_what_is_there(tmp_path: Path) -> None:
    """The marker is removed if a seed is missing. It is written if all seeds are there, and again if the content of one
    changes, whatever the file times. Otherwise it is left alone."""
    find = lambda seed: path if (path := tmp_path / f"seed{seed}.json").exists() else None  # noqa: E731
    (marker,) = map(Path, jobs(tmp_path, [8, 9], find))
    assert (marker, marker.exists()) == (tmp_path / "jobs/8-9", False)
    for seed in (8, 9):
        (tmp_path / f"seed{seed}.json").write_text("{}")
    jobs(tmp_path, [8, 9], find)
    first, said = marker.stat().st_mtime_ns, marker.read_text()
    os.utime(tmp_path / "seed9.json", (first / 1e9 + 5,) * 2)
    jobs(tmp_path, [8, 9], find)
    assert marker.stat().st_mtime_ns == first
    (tmp_path / "seed9.json").write_text('{"other": 1}')
    os.utime(tmp_path / "seed9.json", (1e9, 1e9))
    jobs(tmp_path, [8, 9], find)
    assert marker.read_text() == content_of([tmp_path / "seed8.json", tmp_path / "seed9.json"]) != said
    (tmp_path / "seed8.json").unlink()
    jobs(tmp_path, [8, 9], find)
    assert not marker.exists()


def test_a_target_plans_itself_and_nothing_else(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the workflow plans no table. A table and its inputs are planned once."""
    made = []
    monkeypatch.setattr(graph, "plan", lambda *asked: made.append(asked[1:]) or plan(*asked))
    flow = load()
    assert flow.reports() == ["reports/table3.md"]
    assert made == []
    for path in flow.evidence("", "table3", None):
        flow.inputs_of(Path(path).parents[1].name, [8])
    assert made == [("fedlaw", "table3", "demo")]


def test_an_edited_configuration_is_written_as_it_was(project: Path) -> None:
    """The next planning of its table restores the file. A job refuses an edited file (test_integrity.py)."""
    load().plan(*TABLE)
    path = sorted(Path("results/configs").glob("*.json"))[0]
    before = path.read_text()
    path.write_text(before.replace('"client_lr": 0.08', '"client_lr": 0.8'))
    assert path.read_text() != before
    load().plan(*TABLE)
    assert path.read_text() == before


def test_a_table_on_text_has_arrays_of_one_dimension(project: Path) -> None:
    """Text windows have 80 characters. The rules accept this length as a shape."""
    shutil.copytree(ROOT / "papers/elastic", project / "papers/elastic")
    flow = load(tables=["elastic/table5"])
    (made,) = {path for path in flow.inputs(drawn=False) if "/arrays/" in path}
    assert Path(made).parent.name == "80"
    (shape,) = re.findall(r' shape=r"(.*)",', Path("Snakefile").read_text())
    assert re.fullmatch(shape, "80")


def dry_run(*arguments: str) -> str:
    """The output of Snakemake's dry run."""
    done = subprocess.run([SNAKEMAKE, "--cores", "2", "-n", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def test_arrays_of_another_entry_are_prepared_again(project: Path) -> None:
    """The draws and trainings behind them are planned too. Arrays of today's entry stay."""
    flow, manifests = load(), [project / f"data/arrays/digits/{shape}/manifest.json" for shape in ("1x8x8", "1x28x28")]
    for manifest in manifests:
        write_json(manifest, {"source": {"entry_sha": flow.project.registry["digits"].sha}})
        for name in arrays.NAMES:
            (manifest.parent / f"{name}.npy").touch()
        assert flow.forget_outdated("digits", manifest.parent.name) == []
        assert manifest.exists()
        write_json(manifest, {"source": {"entry_sha": "of another entry"}})
    planned = counts(dry_run("reports/table3.md"))
    assert planned["arrays"] == 2
    assert {"draw", "train", "table"} <= planned.keys()


def test_what_was_not_synced_is_tracked_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If MLflow cannot be written, the workflow prints a line at its end, still makes every report, and the next command tries
    again."""
    monkeypatch.setenv("FEDREPRO_ERRORS", str(project / "errors.txt"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    done = write_json(jobs_of.TRACKED / "fedlaw/table1.json", {"outcome": "MLflow: 3 runs written"})
    out = jobs_of.TRACKED / "table3.json"
    made = load().plan_file("", "table3")
    assert main(["track", made, "--out", str(out)]) == 0
    assert "not synced: MLflow at http://127.0.0.1:1" in (project / "errors.txt").read_text()
    assert out.exists()
    jobs_of.forget_unsynced()
    assert (out.exists(), done.exists()) == (False, True)


def test_beside_a_running_workflow_nothing_is_written(project: Path) -> None:
    """A dry run would change the plans that the running workflow's jobs read."""
    with lock(session.LOCK, busy=pytest.fail):
        done = subprocess.run([SNAKEMAKE, "--cores", "2", "-n", "reports/table3.md"], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"process {os.getpid()}" in done.stderr.splitlines()[-1]
    assert not (project / "results").exists()


def test_plans_of_a_running_workflow_stay(project: Path) -> None:
    """Jobs of a running workflow read its plans, which --config may have changed. So `fedrepro track` and `ui` write plans only
    if no workflow runs. A workflow that starts during their planning waits."""
    path = load().plan_file("", "table3")
    theirs = Path(path).read_text().replace('"title": "', '"title": "Theirs: ')
    Path(path).write_text(theirs)
    with lock(session.LOCK, busy=pytest.fail):
        assert main(["track"]) == 0
        assert Path(path).read_text() == theirs
    assert main(["track"]) == 0
    assert '"title": "Theirs: ' not in Path(path).read_text()
    with jobs_of.planning() as free:
        assert free
        session._refuse(session.LOCK.read_text())  # returns, so the caller waits for the lock
    with pytest.raises(UserError, match=r"^process 12 on node7 already runs snakemake in this folder; wait for it"):
        session._refuse("12 on node7")


def counts(said: str) -> dict[str, int]:
    """The number of jobs by rule."""
    return {rule: int(number) for rule, number in re.findall(r"^([a-z_]+) +(\d+)$", said, re.MULTILINE)}


def test_a_clone_with_its_evidence_renders_without_training(project: Path) -> None:
    """This holds for params.yaml's three seeds and for evidence of other code. If one receipt is missing, only that seed of
    that run is trained."""
    made = load().plan(*TABLE)
    evidence = project / "reports/short/fedlaw/evidence"
    for run in made.runs.values():
        code = dict.fromkeys(fingerprints.today(run.config), f"{fingerprints.RULE}0")
        write_json(evidence / run.run_id / "seed8.json", make_receipt(run.identity, 8, code=code))
    assert counts(dry_run(REPORT)) == {"table": 1, "track": 1, "total": 2}
    lost = sorted(evidence.glob("*/seed8.json"))[0]
    lost.unlink()
    said = dry_run(REPORT)
    assert f"train {lost.parent.name}, seeds 8" in said
    assert counts(said)["train"] == 1
    jobs = [Job.of(project, run.identity, made.seeds) for run in made.runs.values()]
    assert {job.run["run_id"]: job.to_train for job in jobs if job.to_train} == {lost.parent.name: [8]}


def test_a_figure_is_asked_for_like_a_table(small: Path) -> None:
    """A figure can be named in params.yaml, by its short path, or through the paper's page. Its report is a picture, which the
    summary does not read. It trains the runs of its table. A dry run prints each job's message and the table of counts, and
    with `-p` the commands."""
    flow = load(tables=["fedlaw/table3", "fedlaw/figure15"])
    assert flow.reports() == ["reports/table3.md", "reports/figure15.svg"]
    assert flow.reports("json", figure="") == ["reports/table3.json"]
    assert "results/plans/full/fedlaw/figure15.json" in flow.page("full/fedlaw/")["plans"]
    assert {*flow.evidence("full/fedlaw/", "figure15", None)} < {*flow.evidence("full/fedlaw/", "table3", None)}
    said = dry_run("-p", "reports/figure15.svg", "reports/demo/fedlaw/index.html", "results/summary.json")
    for word in ("train digits-", "reports/table3.md", "Job stats:", "fedrepro data digits --shape 1x28x28 > logs/arrays/"):
        assert word in said
    found = counts(said)
    assert {rule: found[rule] for rule in ("figure", "page", "table", "train")} == {
        "figure": 1,
        "page": 1,
        "table": 1,
        "train": 32,
    }


def test_a_papers_page_under_its_short_name_makes_all_tables_and_figures(small: Path) -> None:
    """A page under a scale's name uses existing evidence. This page trains at the scale of params.yaml and shows every table
    and figure. The plan of a table without a file is deleted."""
    asked = {path.stem for path in small.glob("papers/fedlaw/*/*.yaml")}
    deleted = write_json(small / "results/plans/demo/fedlaw/table99.json", {})
    found = counts(dry_run("reports/fedlaw/index.html"))
    assert found["table"] + found["figure"] == len(asked)
    assert found["page"] == 1
    assert found["train"] >= 32
    assert load().page("demo/fedlaw/")["evidence"] == []
    assert not deleted.exists()


def test_the_announcement_counts_what_will_run(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The line counts the jobs that Snakemake is about to run and leaves out seeds that have a result. If nothing trains there
    is no line. Before a choice between candidates it already counts the trainings that follow the choice, and those of rows
    without candidates."""
    flow = load(tables=["fedlaw/table3"])
    ids = list(flow.plan("", "table3").runs)[:3]

    def said(*jobs: tuple[str, dict[str, str]]) -> str:
        made = [SimpleNamespace(rule=SimpleNamespace(name=rule), wildcards=SimpleNamespace(**marks)) for rule, marks in jobs]
        session.announce(flow, 2, made)
        return capfd.readouterr().err

    trainings = [
        ("train", {"run_id": run_id, "seeds": seeds}) for run_id, seeds in zip(ids, ("8-9-10", "8-9-10", "8"), strict=True)
    ]
    for run_id in (ids[0], ids[2]):
        write_json(Path(f"results/runs/{run_id}/seed8.json"), {})
    assert said(*trainings).startswith(
        "fedrepro: training 2 runs with 5 seeds in all; how long that takes the first ones will tell"
    )
    assert said(trainings[2]) == said() == ""
    shutil.copytree(ROOT / "papers/fedima", project / "papers/fedima")
    flow = load(tables=["fedima/table1"])
    tuned = flow.plan("fedima/", "table1")
    seeds_by_run = {run_id: {*seeds} for run_id, seeds in tuned.seeds_by_run.items()}
    tried = {one.run_id for one in tuned.candidates}
    assert tried
    assert seeds_by_run.keys() - tried
    for one in {(one.row, one.column): one for one in reversed(tuned.candidates)}.values():  # the first counts as chosen
        seeds_by_run.setdefault(one.run_id or "", set()).update(tuned.seeds)
    number = sum(map(len, seeds_by_run.values()))
    assert said(("choice", {"place": "fedima/", "table": "table1"})).startswith(
        f"fedrepro: training {len(seeds_by_run)} runs with {number} seeds in all"
    )


def test_workers_beyond_the_cores_of_a_job_elsewhere_are_told(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The line comes if jobs run on other machines and there is something to train. On this machine --cores is already the
    limit."""
    flow = load(tables=["fedlaw/table3"], workers=4)
    train = SimpleNamespace(rule=SimpleNamespace(name="train"), wildcards=SimpleNamespace(run_id="a", seeds="8"))

    def said(*jobs: SimpleNamespace, elsewhere: bool, cores: int) -> str:
        here = {"remote_exec": False, "non_local_exec": elsewhere, "cores": cores, "global_resources": {"gpu": 1}}
        settings, dag = SimpleNamespace(forcerun=set(), forceall=False), SimpleNamespace(needrun_jobs=lambda: jobs)
        session.begin(flow, SimpleNamespace(touch=False, dag_settings=settings, dag=dag, **here))
        return capfd.readouterr().err

    line = (
        "fedrepro: workers: 4 in params.yaml has no effect beyond 1, since no job gets more cores than --cores; give --cores 4"
    )
    assert line in said(train, elsewhere=True, cores=1)
    for silent in (said(train, elsewhere=True, cores=4), said(train, elsewhere=False, cores=1), said(elsewhere=True, cores=1)):
        assert "workers" not in silent


@pytest.mark.usefixtures("_no_exit")
def test_a_mistake_in_a_table_that_is_not_asked_for_stops_nothing_else(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The workflow of the other tables loads. A request for this table's reports is one line with exit code 2."""
    path = project / "papers/fedlaw/tables/table3-cifar10-jpeg.yaml"
    path.write_text(path.read_text().replace("method: fedavg}", "method: fedavgg}"))
    flow = load()
    assert len(flow.trained(None)) > 10
    with pytest.raises(SystemExit, match=r"^2$"):
        flow.evidence(*TABLE, None)
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("fedrepro: error: papers/fedlaw/tables/table3-cifar10-jpeg.yaml: ")
    assert "did you mean 'fedavg'" in said


@pytest.mark.usefixtures("_no_exit")
def test_config_takes_what_params_yaml_takes(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers inside a mapping stay numbers, and so does `2e-2` in params.yaml. Keys that --config leaves out keep their value
    in params.yaml."""
    path = Path("params.yaml")
    text = path.read_text()
    path.write_text(text.replace("alpha: null", "alpha: 2e-2", 1))  # feddyn's
    assert path.read_text() != text
    dry_run("reports/table3.md", "--config", "settings={rounds: 2}", "seeds=[8]", "methods={fedlaw: {fedprox: {mu: 0.5}}}")
    made = json.loads(Path("results/plans/table3.json").read_text())
    assert {run["config"]["rounds"] for run in made["runs"].values()} == {2}
    for method in ("fedprox(mu=0.5,", "feddyn(alpha=0.02,"):
        assert any(method in run["config"]["method"] for run in made["runs"].values()), method
    monkeypatch.setattr(session, "prepare", lambda wanted: None)
    for settings, words in (
        ({"a": "b: c: d"}, "settings: unknown setting 'a'"),  # from --config settings={a='b: c: d'}
        ({"rounds": "0100"}, "settings.rounds: '0100' is not a whole number"),
    ):
        with pytest.raises(SystemExit, match=r"^2$"):
            Workflow.load(yaml.safe_load(path.read_text()), asked(config={"settings": settings}, configfiles=[]))
        assert f"fedrepro: error: params.yaml with --config settings: {words}" in capsys.readouterr().err


def asked(**given: object) -> SimpleNamespace:
    """Snakemake's workflow for a command with `given` as --config and --configfile."""
    config, cores = SimpleNamespace(**given), SimpleNamespace(cores=1)
    return SimpleNamespace(config_settings=config, is_main_process=False, resource_settings=cores)


@pytest.mark.usefixtures("_no_exit")
def test_a_mistake_in_a_configfile_is_not_blamed_on_params_yaml_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the file, and --config if that was given too. Snakemake prints this one line and exits with code 2 before
    anything is computed."""
    path = project / "mine.yaml"
    path.write_text("scale: huge\n")
    command = [SNAKEMAKE, "--cores", "1", "-n", "reports/table3.md", "--configfile", path.name, "--config", "seeds=[8]"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = [one for one in done.stderr.splitlines() if "error" in one.lower()]
    assert f"params.yaml with --configfile {path} and --config seeds: scale: unknown scale 'huge'" in line
    assert "Traceback" not in done.stderr
    monkeypatch.setattr(session, "prepare", lambda wanted: None)
    with pytest.raises(SystemExit, match=r"^2$"):
        Workflow.load(yaml.safe_load(Path("params.yaml").read_text()) | {"scale": "huge"}, asked(config={}, configfiles=[path]))
    assert f"params.yaml with --configfile {path}: scale: unknown scale 'huge'" in capsys.readouterr().err


def test_what_is_forced_before_the_training_leaves_no_job_out(project: Path) -> None:
    """Nothing is trained, so the report needs every training, whatever else is forced. A file counts as its rule does."""
    table = project / "papers/fedlaw/tables/table3.yaml"
    written = yaml.safe_load(table.read_text())
    table.write_text(yaml.safe_dump(written | {"columns": written["columns"][:1]}))
    flow = load(tables=["fedlaw/table3"])
    table_plan = flow.plan("", "table3")
    assert len(table_plan.runs) > 1
    for run in table_plan.runs.values():
        for kind, seed in itertools.product(FOLDERS, table_plan.seeds):
            for suffix in SUFFIXES[kind]:
                write_text(FOLDERS[kind] / run.inputs[kind] / f"seed{seed}{suffix}", "drawn\n")
        write_json(Path(run.inputs["arrays"], "manifest.json"), {"source": {"entry_sha": run.config["dataset_sha"]}})
        for name in arrays.NAMES:
            Path(run.inputs["arrays"], f"{name}.npy").touch()
    assert "draw" not in counts(dry_run("reports/table3.md"))
    (split,) = flow.drawn("proxy", run.inputs["proxy"], table_plan.seeds)
    for forced in ("draw", split):
        planned = counts(dry_run("reports/table3.md", "--forcerun", forced))
        assert {rule: planned[rule] for rule in ("train", "table")} == {"train": len(table_plan.runs), "table": 1}
        assert planned["draw"] >= 1, forced


@pytest.mark.usefixtures("_no_exit")
def test_params_yaml_is_read_as_other_commands_read_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A duplicate key and a file that is invalid, empty or missing are one line with exit code 2.
    Snakemake's own reader would take the second of two keys and would not name the line. The subprocess shows that our check
    runs before Snakemake reads the file."""
    path = Path("params.yaml")
    text = path.read_text()
    path.write_text(f"{text}\n\tx: 1\n")
    done = subprocess.run([SNAKEMAKE, "-n", "reports/table3.md"], capture_output=True, text=True)
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("fedrepro: error: ")]
    assert "params.yaml: not valid YAML at line " in line
    assert done.returncode == 2
    for wrong, said in (
        (f"{text}\nscale: full\n", "the key 'scale' stands twice"),
        ("", "params.yaml: is empty"),
        (None, "params.yaml: no such file; give this command in the project's root folder"),
    ):
        path.unlink() if wrong is None else path.write_text(wrong)
        with pytest.raises(SystemExit, match=r"^2$"):
            session.require_params()
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("fedrepro: error: ")
        assert said in line


def test_no_cores_are_refused(project: Path) -> None:
    """Snakemake would list the jobs and wait forever."""
    done = subprocess.run([SNAKEMAKE, "--cores", "0", "reports/table3.md"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "fedrepro: error: --cores 0: no job could start; give 1 or more" in done.stderr


@pytest.mark.parametrize("name", ["table3", "fedlaw/table3/x"])
def test_a_name_in_params_yaml_that_is_no_table_is_a_line(name: str, project: Path) -> None:
    with pytest.raises(UserError, match=rf"^params\.yaml: tables: unknown table '{name}'"):
        load(tables=[name])


@pytest.mark.usefixtures("_no_exit")
def test_a_target_that_names_no_table_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line offers the nearest name. The Snakefile's pattern for `place` also matches full/. This place names no paper, so
    the line asks for one."""
    with pytest.raises(SystemExit, match=r"^2$"):
        load().plan("demo/fedlaw/", "table33")
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("fedrepro: error: ")
    assert "'fedlaw/table3'" in said
    for ask, word in (
        (lambda flow: flow.page("full/fedlw/"), "reports/full/fedlw/index.html: unknown paper 'fedlw'; did you mean 'fedlaw'?"),
        (lambda flow: flow.inputs_of("digits-x", [8]), "results/configs/digits-x.json: no such file: no report"),
        (lambda flow: flow.native("partitions", "digits-x"), "results/configs/partitions/digits-x.json: no such file"),
    ):
        with pytest.raises(SystemExit, match=r"^2$"):
            ask(load())
        assert capsys.readouterr().err.startswith(f"fedrepro: error: {word}")
    (place,) = re.findall(r' place=r"(.*)",', Path("Snakefile").read_text())
    assert re.fullmatch(place, "full/")
    with pytest.raises(SystemExit, match=r"^2$"):
        load().plan("full/", "table3")
    assert "which paper?" in capsys.readouterr().err


def test_a_claim_that_names_no_row_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Snakemake and `fedrepro page` print the line before any computation. The plan of a table does not need claims."""
    path = project / "papers/fedlaw/claims.yaml"
    claim = next(one for one in yaml.safe_load(path.read_text()) if one["table"] == "table3" and "pairs" in one)
    path.write_text(yaml.safe_dump([claim | {"pairs": {"fedlwa": "fedavg"}}]))
    load().plan("short/fedlaw/", "table3")
    command = [SNAKEMAKE, "--cores", "1", "reports/short/fedlaw/index.html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert main(["page", "results/plans/short/fedlaw/table3.json"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    for line in (done.stderr.strip().splitlines()[-1], said):
        for word in ("papers/fedlaw/claims.yaml", claim["id"], claim["table"], "'fedlwa'", "'fedlaw'"):
            assert word in line


def test_no_constraint_grows_with_the_tables() -> None:
    """No regular expression of the rules is long, so none lists runs."""
    rules = "".join(path.read_text() for path in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))])
    found = re.findall(r'(?:[a-z_]+)=r?"([^"]*)"', rules.partition("wildcard_constraints:")[2])
    assert found
    assert max(map(len, found)) < 100
    assert rules.count("\n") < 190
