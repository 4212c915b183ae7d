"""The command line: output, exit codes, one line for a mistake."""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import real_papers

from fedrepro.cli import main, parser
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.engine.fingerprints import RULE
from fedrepro.engine.records import numbers, seal
from fedrepro.errors import UserError
from fedrepro.files import sha256_file, write_json
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS, SLOTS
from fedrepro.methods.presets import PRESETS
from fedrepro.store import Store
from fedrepro.typed import plain
from fedrepro.workflow.jobs import write_plan

FEDREPRO = Path(sys.executable).with_name("fedrepro")
CELL = ["--rows", "fedavg", "--columns", "fashion_mnist-mlp-100"]
PARAMS = "scale: demo\nseeds: [8]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with the real tables and default parameters, as the current folder."""
    return real_papers.enter(tmp_path, monkeypatch, PARAMS, "fedlaw")


def run(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


# --- information ---------------------------------------------------------------------------------------------------------


def test_methods_lists_every_part_under_its_slot(capsys: pytest.CaptureFixture[str]) -> None:
    """Slots come in the order of a round, with one line for each part. Recipes come last."""
    assert run("list", "methods") == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    slots = [line.split(" (")[0] for line in lines if not line.startswith(" ")]
    assert slots == [*SLOTS, "recipes"]
    found, slot = {}, ""
    for line in lines:
        if line.startswith("  "):
            found[line.split()[0]] = slot
        else:
            slot = line.split(" (")[0]
    assert {name: PARTS.get(name).slot for name in PARTS.names()}.items() <= found.items()
    assert {name for name, slot in found.items() if slot == "recipes"} == set(PRESETS)


def test_describe_spells_out_canonical_name_source_and_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """The canonical name comes first, then each part with its paper, its arguments with values and defaults, and what it
    needs."""
    assert run("describe", "fedprox(mu=0.5)+adaptive_gws") == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == str(compose("fedprox(mu=0.5)+adaptive_gws"))
    for word in (
        "fedprox (client)",
        "Li et al., MLSys 2020",
        "mu = 0.5 (default 0.001)",
        "adaptive_gws (refine)",
        "needs: proxy",
    ):
        assert word in out


def test_every_command_has_a_function() -> None:
    """Each command of the parser names a function that exists."""
    commands = next(a for a in parser()._actions if a.dest == "command").choices
    assert isinstance(commands, dict)
    for name, command in commands.items():
        module = importlib.import_module(f"fedrepro.cli.{command.get_default('module')}")
        assert callable(getattr(module, command.get_default("function"))), name


def test_help_lists_the_commands_for_people_with_an_example_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands are grouped by purpose, and each example parses. Commands that only the workflow calls are not listed, but they
    work."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run("--help")
    said = capsys.readouterr().out
    commands = next(a for a in parser()._actions if a.dest == "command").choices
    listed = re.findall(r"^  ([a-z]+) ", said, re.MULTILINE)
    known = ["run", "sweep", "verify", "publish", "runs", "compare", "diagnose", "ui", "list", "describe", "doctor", "new"]
    assert listed == [*known, "data", "report", "track", "spread"]  # the commands that README and docs use
    examples = re.findall(r"^ +\$ fedrepro (.*)$", said, re.MULTILINE)
    assert [example.split()[0] for example in examples] == listed
    for example in examples:
        parser().parse_args(shlex.split(example))
    assert all(len(line) <= 80 for line in said.splitlines() if "$" not in line)
    for name in ("draw", "track", "report"):
        assert name in commands
        with pytest.raises(SystemExit) as end:
            run(name, "--help")
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: fedrepro {name} ")
    with pytest.raises(SystemExit) as end:
        run("rnus")
    assert end.value.code == 2
    assert "unknown command 'rnus'; did you mean 'runs'? Known: run, sweep, verify" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        run("runs", "--seeds", "8")
    assert end.value.code == 2
    assert "runs: unrecognized arguments: --seeds; see `fedrepro runs --help`" in capsys.readouterr().err
    for word, meant in (("--datset", "; did you mean --dataset?"), ("--client_lr=0.3", "; --set client_lr=0.3 sets it")):
        with pytest.raises(SystemExit):
            run("run", "fedlaw/table3", word)
        assert f"run: unrecognized arguments: {word}{meant}; see `fedrepro run --help`" in capsys.readouterr().err
    for seeds, wrong in (("8,nine", "nine"), ("-1", "-1")):
        with pytest.raises(SystemExit) as end:
            run("run", "fedlaw/table3", "--seeds", seeds)
        assert end.value.code == 2
        said = capsys.readouterr().err
        assert said.startswith(f"fedrepro: error: run: argument --seeds: {wrong}: a seed is a whole number")
        assert said.endswith("; see `fedrepro run --help`\n")
        assert said.count("\n") == 1


# --- mistakes ------------------------------------------------------------------------------------------------------------

MISTAKES = [
    (["describe", "fedprox(nu=1)"], ["'nu'", "mu"]),
    (["run", "fedlaw/tabel3"], ["'fedlaw/tabel3'", "'fedlaw/table3'"]),
    (["run", "fedlaw"], ["'fedlaw'; that is a paper; write fedlaw/table", "`fedrepro list tables`"]),
    (["run", "table3"], ["'table3'; write ", "fedlaw/table3"]),
    (["run", "fedpaw/tabel33/x"], ["'fedpaw/tabel33/x'; ", "`fedrepro list tables`"]),
    (["describe", "client_distanc"], ["unknown diagnostic 'client_distanc'; did you mean 'client_distance'?"]),
    (["describe", "resnet20+gh"], ["resnet20 is a model", "describe resnet20 alone"]),
    (["describe", "mlp(x=1)"], ["mlp is a model"]),
    (["describe", "shards(nope=2)"], ["unknown argument 'nope'"]),
    (["describe", "client_distance(to=nowhere)"], ["nowhere"]),
    (
        ["report", "papers/fedlaw/paper.yaml"],
        ["papers/fedlaw/paper.yaml: not valid JSON", "; name a file"],
    ),
    (["draw", "papers/fedlaw/changed.json", "--seeds", "8"], ["papers/fedlaw/changed.json: no such file"]),
    (["runs", "fedlaw/table3", "--prune", "--dry-run"], ["runs --prune", "a table or a run limits nothing"]),
    (["runs", "--scale", "full", "--prune"], ["runs --prune", "--scale limits nothing"]),
    (["runs", "--dataset", "mnits"], ["--dataset mnits: unknown data set 'mnits'; did you mean 'mnist'?"]),
    (["runs", "--model", "lennet"], ["--model lennet: unknown model 'lennet'; did you mean 'lenet'?"]),
    (["runs", "fedlaw/table3", "--scale", "huge"], ["--scale huge: unknown scale 'huge'"]),
    (["run", "fedlaw/table3", "--cores", "3"], ["--cores 3", "goes with --dry-run"]),
    (["run", "fedlaw/table3", "--set", "dataset=cifar10"], ["'cifar10'", "has 3 channels, but mlp reads 1"]),
    (["run", "fedlaw/table3", "--scale", "dmeo"], ["'dmeo'", "'demo'"]),
    (
        [
            "run",
            "fedlaw/table3-cifar10-jpeg",
            "--scale",
            "short",
            *("--rows", "feddyn", "--columns", "cifar10-jpeg-resnet20-100"),
        ],
        ["nothing to run", "not in the budget of the table at scale short"],
    ),
    (["run", "fedlaw/table3", "--set", "rounds"], ["--set rounds", "key=value"]),
    (["run", "fedlaw/table3", "--set", "rounds=["], ["--set rounds=["]),
    (["run", "fedlaw/table3", "--set", "products=fp16"], ["products = 'fp16'", "float32, tf32, bf16"]),
    (["run", "results/plans/demo/fedlaw/table3.json"], ["results/plans/demo/fedlaw/table3.json", "no such file"]),
    (["report", "results/plans/x/table3.json"], ["results/plans/x/table3.json", "no such file"]),
    (["data", "digits", "--shape", "28x28"], ["--shape 28x28"]),
]


@pytest.mark.parametrize(
    ("arguments", "words"), MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else None
)
def test_a_users_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], words: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr names what is wrong. With --debug the error is raised with its traceback."""
    assert run(*arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("fedrepro: error: ")
    assert err.count("\n") == 1
    assert all(word in err for word in words), err
    with pytest.raises(UserError):
        run("--debug", *arguments)
    assert not (project / "results").exists()


@pytest.mark.parametrize("kind", ["partitoin", ["partition"]])
def test_a_definition_of_an_unknown_kind_is_one_line(kind: Any, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The workflow writes these files, but a user may damage one or make one by hand."""
    Path("one.json").write_text(json.dumps({"kind": kind, "definition": {}}))
    assert run("draw", "one.json", "--seeds", "8") == 2
    assert capsys.readouterr().err.startswith("fedrepro: error: one.json: defines nothing that is drawn")


def test_a_folder_in_the_place_of_a_file_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the folder `papers` and no temporary file."""
    for arguments in (["report", "papers"], ["summary", "--out", "papers"]):
        assert run(*arguments) == 2
        assert capsys.readouterr().err == "fedrepro: error: papers: is a directory\n"


def test_a_bug_is_one_line_too_but_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the error's type and says how to see the traceback."""

    def broken(options):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("fedrepro.cli.info.doctor", broken)
    assert run("doctor") == 1
    err = capsys.readouterr().err
    assert "RuntimeError: two lines" in err
    assert "--debug" in err
    assert err.count("\n") == 1


def test_an_error_is_left_for_the_workflow(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$FEDREPRO_ERRORS collects the lines of all jobs."""
    monkeypatch.setenv("FEDREPRO_ERRORS", str(project / "errors.txt"))
    run("describe", "fedporx")
    run("describe", "fedlav")
    lines = (project / "errors.txt").read_text().splitlines()
    assert len(lines) == 2
    assert "'fedporx'" in lines[0]


def test_a_jobs_log_has_the_traceback_of_a_bug(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's log has the traceback, so nobody has to reproduce the bug to read it. The workflow repeats only one line."""

    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setenv("FEDREPRO_ERRORS", str(project / "errors.txt"))
    monkeypatch.setattr("fedrepro.cli.runs.run", broken)
    monkeypatch.setattr("fedrepro.console._log", project / "job.log")
    assert run("run", "fedlaw/table3") == 1
    log = (project / "job.log").read_text()
    assert "Traceback" in log
    assert 'raise RuntimeError("boom")' in log
    assert (project / "errors.txt").read_text().count("\n") == 1


def test_as_a_process() -> None:
    """The shell gets the exit code and the line. --debug shows the traceback. Nothing else is printed."""
    plain = subprocess.run([FEDREPRO, "describe", "fedporx"], capture_output=True, text=True)
    assert (plain.returncode, plain.stdout) == (2, "")
    assert plain.stderr.startswith("fedrepro: error: unknown method 'fedporx'")
    assert plain.stderr.count("\n") == 1
    debug = subprocess.run([FEDREPRO, "--debug", "describe", "fedporx"], capture_output=True, text=True)
    assert debug.returncode not in (0, 2)
    assert "Traceback" in debug.stderr
    assert debug.stderr.strip().splitlines()[-1].startswith("fedrepro.errors.UserError: unknown method 'fedporx'")


# --- plans and runs ------------------------------------------------------------------------------------------------------


def test_a_plan_is_written_as_it_is_made(project: Path) -> None:
    """The file below results/plans has the whole plan. At scale full it is comparable."""
    made = plan(load_project(project), "fedlaw", "table3", "demo")
    written = write_plan("demo/fedlaw/", made)
    assert written == Path("results/plans/demo/fedlaw/table3.json")
    assert json.loads(written.read_text()) == plain(made)
    full = write_plan("full/fedlaw/", plan(load_project(project), "fedlaw", "table3", "full"))
    assert json.loads(full.read_text())["comparable"] is True


def test_a_dry_run_says_what_would_train_and_leaves_no_trace(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output has one line for each run with its seeds and time, the seeds that have begun, the seeds that are kept
    (receipt, folder or committed evidence), and the totals. It needs no data. The time is unknown if no similar run was
    published or trained here."""
    before = sorted(project.rglob("*"))
    command = ["run", "fedlaw/table3", "--rows", "fedavg", "fedlaw", "--columns", "fashion_mnist-mlp-100", "--dry-run"]
    assert run(*command, "--seeds", "8", "9") == 0
    assert sorted(project.rglob("*")) == before
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "2 runs to train with 4 seeds in all, 0 seeds kept",
        "not counted: 2 runs, since nothing like mlp on digits with about as much work is published or trained here",
    ]
    made = {c.row: c.run_id for c in plan(load_project(project), "fedlaw", "table3", "demo").cells[::4]}
    for path in (f"results/runs/{made['fedavg']}/seed8.json", f"reports/short/fedlaw/evidence/{made['fedlaw']}/seed8.json"):
        (project / path).parent.mkdir(parents=True)
        (project / path).write_text("{}")
    publish(project, plan(load_project(project), "fedlaw", "table3", "demo").runs[made["fedlaw"]].config)
    (project / f"results/runs/{made['fedavg']}/seed9").mkdir()
    (project / f"results/runs/{made['fedavg']}/seed9/manifest.json").write_text("{}")
    (project / f"results/checkpoints/{made['fedlaw']}").mkdir(parents=True)
    (project / f"results/checkpoints/{made['fedlaw']}/seed9.pt").touch()
    assert run(*command, "--seeds", "8", "9", "--cores", "3") == 0
    shared, _, heading, law, avg, _, count, total = capsys.readouterr().out.splitlines()
    assert shared.startswith("all have dataset digits, model mlp, partition dirichlet_per_class(alpha=100.0), clients 10,")
    assert heading.split() == ["method", "train", "seeds", "each", "begun", "kept", "seeds"]
    assert re.fullmatch(r"fedlaw  9            \S+ s  9      8 \(evidence\)", law)
    assert re.fullmatch(r"fedavg {30,}8 \(receipt\), 9 \(result folder\)", avg)
    assert count == "1 run to train with 1 seed in all, 3 seeds kept"
    assert re.fullmatch(r"about 14\.0 s on one core, by published runs", total)


def publish(project: Path, config: dict) -> None:
    """Publishes a seed of this config that took 12 seconds."""
    path = project / f"reports/full/fedlaw/evidence/{config['dataset']}-{config['model']}-other/seed8.json"
    path.parent.mkdir(parents=True)
    cost, curves = {"wall_s": 12.0, "peak_rss_mib": 500.0}, {"round": [*range(config["rounds"])]}
    path.write_text(json.dumps({"config": config, "cost": cost, "curves": curves, "environment": {"device": "cpu"}}))


def test_trained_again(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished seed that is trained again gives the same numbers, and nothing is written. If a kept number differs, there is
    one line and exit code 2, and the kept result stays. A workflow asks for this by FEDREPRO_AGAIN."""
    command = ["run", "fedlaw/table3", *CELL, "--set", "rounds=3", "clients=4", "local_epochs=1", "batch_size=64"]
    assert run(*command) == 0
    (receipt,) = project.glob("results/runs/*/seed8.json")
    before, manifest = receipt.read_text(), receipt.with_suffix("") / "manifest.json"
    capsys.readouterr()
    assert run(*command, "--again") == 0
    assert "seed 8 trained again, identical" in capsys.readouterr().err
    assert receipt.read_text() == before
    other, metrics = json.loads(before), manifest.with_name("metrics.parquet")
    table = pq.read_table(metrics)
    rows = list(zip(*(table[column].to_pylist() for column in ("round", "metric", "value")), strict=True))
    rows = [(t, name, value + 0.25 * ((t, name) == (1, "test_accuracy"))) for t, name, value in rows]
    pq.write_table(table.set_column(2, "value", pa.array([value for _, _, value in rows])), metrics)
    other |= numbers(rows, other["config"]["model"], "finished")
    other["files"]["metrics.parquet"] = sha256_file(metrics)
    for path in (receipt, manifest):
        path.write_text(json.dumps(seal(other)))
    monkeypatch.setenv("FEDREPRO_AGAIN", "1")
    assert run(*command) == 2
    said = capsys.readouterr().err
    assert re.search(
        r"seed8\.json: trained again, test_accuracy of round 1 is .*, kept is .*; the kept result stays, and `fed", said
    )
    assert json.loads(receipt.read_text())["curves"] == other["curves"]

    other |= {"code": other["code"] | {"engine": f"{RULE}0"}, "environment": other["environment"] | {"arithmetic": "native"}}
    environment = json.loads((env := manifest.with_name("env.json")).read_text()) | {"arithmetic": "native"}
    env.write_text(json.dumps(environment))
    other["files"]["env.json"] = sha256_file(env)
    for path in (receipt, manifest):
        write_json(path, seal(other))
    assert run(*command) == 2
    said = capsys.readouterr().err
    assert "(other code of engine, native arithmetic, which is now portable, another machine" in said, said
    part = next(name for name in other["code"] if "fedavg" in name or "mean" in name)
    other["code"][part] = f"{RULE}0"
    for path in (receipt, manifest):
        write_json(path, seal(other))
    assert run(*command) == 0  # a stale result is replaced without a comparison
    assert "changed since seed 8 was trained; training it again" in capsys.readouterr().err
    assert json.loads(receipt.read_text())["curves"] == json.loads(before)["curves"]


def test_run_keep_and_lose(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One cell in an empty project: the command prepares data, draws and trains. A second call restores a deleted receipt and
    trains only the new seed. `runs` lists both. Damaged input is refused."""
    small = ["--set", "rounds=3", "clients=4", "local_epochs=1", "batch_size=64", "--log", "log.txt"]
    command = ["run", "fedlaw/table3", *CELL, *small]
    assert run(*command) == 0
    err = capsys.readouterr().err
    assert "seed 8 trained" in err
    assert err.splitlines()[0].startswith("training 1 run with 1 seed in all; how long that takes the first ones will tell")
    assert "seed 8 trained" in (project / "log.txt").read_text()
    (receipt,) = project.glob("results/runs/*/seed8.json")
    evidence = json.loads(receipt.read_text())
    assert evidence["status"] == "finished"
    assert evidence["config"]["rounds"] == 3
    assert set(evidence["inputs"]) == {"arrays", "partition", "participation", "proxy", "init"}
    assert len(evidence["curves"]["test_accuracy"]) == 3
    assert {"commit", "torch", "device", "engine"} <= set(evidence["environment"])
    assert not list(project.glob("results/checkpoints/**/*.pt"))
    model = receipt.with_suffix("") / "model.safetensors"
    first, folder = model.read_bytes(), receipt.parent

    receipt.unlink()
    assert run(*command, "--seeds", "8", "9") == 0
    assert "seed 8 kept, seed 9 trained" in capsys.readouterr().err
    assert json.loads(receipt.read_text()) == evidence
    assert model.read_bytes() == first
    assert Store.of(project).find(folder.name, 8) == receipt
    assert Store.of(project).find(folder.name, 10) is None
    capsys.readouterr()
    assert run("runs") == 0
    assert "fedlaw/table3" in capsys.readouterr().out
    assert run("runs", folder.name[-8:]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "fedlaw/table3, scale demo: 1 run, trained here, seeds 8, 9"
    assert "test accuracy in %, mean of all 3 rounds" in lines
    assert re.fullmatch(rf"  +\d+\.\d\d ± \d+\.\d\d  {folder.name[-8:]}  .*rounds 3 \(table: 8\).*", lines[-2])

    shutil.rmtree(folder)
    path = next(project.glob("data/partitions/*/seed8.npz"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    capsys.readouterr()
    assert run(*command) == 2
    assert str(path.relative_to(project)) in capsys.readouterr().err


NATIVE = """
from fedrepro import arithmetic
arithmetic.use("native")
from fedrepro.cli import main
cell = ["--rows", "fedavg", "--columns", "fashion_mnist-lenet-100", "--device", "cpu", "--arithmetic", "native"]
for products in ([], ["products=float32"], ["products=bf16"]):
    assert main(["run", "fedlaw/table3", *cell, "--set", "rounds=1", "clients=4", *products]) == 0
"""


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Receipts in native arithmetic, made in a separate process: float32 (by default and by name) and bf16."""
    root = real_papers.copy(tmp_path_factory.mktemp("native"), PARAMS, "fedlaw")
    environment = {key: value for key, value in os.environ.items() if key != "FEDREPRO_ARITHMETIC"}
    done = subprocess.run([sys.executable, "-c", NATIVE], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [json.loads(path.read_text()) for path in root.glob("results/runs/digits-lenet-*/seed8.json")]
    return sorted(found, key=lambda receipt: "products" in receipt["config"])


def test_reduced_precision_products_are_another_run(
    native: list[dict[str, Any]], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bf16 run trains beside the float32 run, which keeps its name. Config and environment record it. A CPU refuses TF32."""
    fine, coarse = native
    assert "products" not in fine["config"]
    assert coarse["config"] == fine["config"] | {"products": "bf16"}
    assert [receipt["environment"]["products"] for receipt in (fine, coarse)] == ["float32", "bf16"]
    assert fine["inputs"] == coarse["inputs"]
    assert fine["curves"]["test_loss"] != coarse["curves"]["test_loss"]
    assert fine["curves"]["test_loss"] == pytest.approx(coarse["curves"]["test_loss"], rel=0.05)
    cell = ["--rows", "fedavg", "--columns", "fashion_mnist-lenet-100", "--device", "cpu"]
    small = ["run", "fedlaw/table3", *cell, "--set", "rounds=1", "clients=4"]
    assert run(*small, "products=tf32") == 2
    assert "products = 'tf32' (a setting of params.yaml or --set): a CPU has none" in capsys.readouterr().err
    assert run(*small, "products=tf32", "--dry-run") == 2
    assert run(*small, "products=bf16") == 2
    assert "products = 'bf16': portable arithmetic has none; set arithmetic: native" in capsys.readouterr().err


def test_prune_plans_again_before(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table is gone, but its plan is still there: prune removes its result and the plan. It also removes the result of a
    setting that params.yaml no longer has."""
    for path in project.glob("papers/fedlaw/*/*.yaml"):
        if path.parent.name in ("tables", "figures") and path.stem != "table3":
            path.unlink()
    now = plan(load_project(project), "fedlaw", "table3", "demo")
    (project / "params.yaml").write_text(PARAMS + "settings: {rounds: 3}\n")
    old = plan(load_project(project), "fedlaw", "table3", "demo")
    (project / "params.yaml").write_text(PARAMS)
    write_plan("", old)
    gone = write_plan("sweep_gone/", old)
    kept, doomed = (project / "results/runs" / next(iter(one.runs)) for one in (now, old))
    for folder in (kept, doomed):
        write_json(folder / "seed8.json", {})
    assert run("runs", "--prune", "--dry-run") == 0
    assert f"{doomed.relative_to(project)}: 3 B\n" in capsys.readouterr().out
    assert run("runs", "--prune") == 0
    assert f"{doomed.relative_to(project)}: 3 B\nin all: 3 B of results, 0 runs in MLflow\n" in capsys.readouterr().out
    assert not doomed.exists()
    assert not gone.exists()
    assert kept.exists()
    assert run("runs", "--prune") == 0
    assert capsys.readouterr().out == "nothing to remove: plans ask for all that is there\n"


def test_spread_without_evidence_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what to do first."""
    path = project / "papers/fedlaw/spread.json"
    before = path.read_text()
    assert run("spread", "fedlaw") == 2
    said = capsys.readouterr().err
    assert "fedlaw: there is no published evidence of it at scale full, so nothing was written; give `fedrepro publish" in said
    assert path.read_text() == before
