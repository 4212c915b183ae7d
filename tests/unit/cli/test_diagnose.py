"""`fedrepro run --keep` keeps models of chosen rounds, and `fedrepro diagnose` measures them."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import real_papers
import yaml

from fedrepro.cli import diagnose, main
from fedrepro.engine import measurements
from fedrepro.engine import run as engine_run
from fedrepro.engine.measurements import Value
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.store import Store

RUN = ["run", "fedlaw/table3", "--rows", "fedavg", "--columns", "fashion_mnist-mlp-0.1", "--set", "rounds=4", "clients=4"]
CALL = "client_distance(to=after, relative=false)"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with FedAvg trained for one seed and four rounds, without kept models."""
    root = tmp_path_factory.mktemp("keep")
    with pytest.MonkeyPatch.context() as patch:
        real_papers.enter(root, patch, "scale: demo\nseeds: [8]\n", "fedlaw")
        assert main(RUN) == 0
    return root


@pytest.fixture
def project(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `trained`, as the current folder."""
    return real_papers.go(shutil.copytree(trained, tmp_path / "copy"), monkeypatch)


def run_id(project: Path) -> str:
    return next((project / "results/runs").glob("*/")).name


def below(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes and the modification time of every file except config.json."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "config.json")
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def contents(folder: Path) -> dict[str, bytes]:
    return {name: content for name, (content, _) in below(folder).items()}


def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the last round of every further training."""
    found, train = [], engine_run.train

    def counted(*args, **options):
        outcome = train(*args, **options)
        found.append(outcome.progress.round)
        return outcome

    monkeypatch.setattr(engine_run, "train", counted)
    return found


def test_a_finished_seed_is_trained_again_as_far_as_needed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To keep rounds 1 and 3 of four, three rounds are trained, and the results do not change. Kept rounds are not trained
    again. A training from the start keeps the same bytes. The next command measures the kept models."""
    before, seen = below(project / "results/runs"), trainings(monkeypatch)
    assert main([*RUN, "--keep", "1", "3"]) == 0
    assert seen == [3]
    assert capsys.readouterr().out.endswith(f'\nnext: fedrepro diagnose "client_distance()" {run_id(project)[-8:]}\n')
    after, metrics = below(project / "results/runs"), f"{run_id(project)}/seed8/metrics.parquet"
    assert {n: c for n, (c, _) in after.items()} == {n: c for n, (c, _) in before.items()}
    assert after[metrics] == before[metrics], "not written again"
    assert not list(project.glob("results/checkpoints/*/*.pt"))
    kept = contents(project / "results/kept")
    assert main([*RUN, "--keep", "3"]) == 0
    assert seen == [3]
    assert main([*RUN, "--keep", "2"]) == 0
    assert seen == [3, 2]
    index = json.loads((project / "results/kept" / run_id(project) / "seed8.json").read_text())
    assert [*index["rounds"]] == ["1", "2", "3"]
    shutil.rmtree(project / "results")
    assert main([*RUN, "--keep", "1", "3"]) == 0
    assert seen == [3, 2, 4]
    assert contents(project / "results/kept") == kept
    same = ("metrics.parquet", "model.safetensors")
    again = contents(project / "results/runs")
    assert {n: c for n, c in again.items() if n.endswith(same)} == {n: c for n, (c, _) in before.items() if n.endswith(same)}


def test_values_of_other_models_are_measured_again(tmp_path: Path) -> None:
    """Round 1 has the model that was measured, round 2 another one, and round 3 none any more."""
    target = measurements.measurements_path(tmp_path, "a", CALL, 8)
    values = [Value(number, "client_distance", 0.5) for number in (1, 2, 3)]
    about = {"run_id": "a", "seed": 8, "diagnostic": CALL, "reached": 4}
    measurements.write(target, about | {"models": {"1": "a", "2": "b", "3": "c"}}, values)
    assert diagnose._previous_values(target, {"1": "a", "2": "other"}) == {1: values[:1]}


def test_an_interrupted_second_training_goes_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second training writes a checkpoint after each round and is interrupted in round 3. The next command computes the
    rest, and the models equal those of an undisturbed training."""
    whole = project / "whole"
    assert main([*RUN, "--keep", "1", "4"]) == 0
    shutil.move(project / "results/kept", whole)
    original, seen = engine_run.kept.first_difference, []

    def die(receipt, rows, round: int) -> str:
        seen.append(round)
        if seen == [0, 1, 2]:
            raise KeyboardInterrupt
        return original(receipt, rows, round)

    monkeypatch.setattr(engine_run.kept, "first_difference", die)
    assert main([*RUN, "--keep", "1", "4", "--checkpoint-seconds", "0"]) == 130
    assert main([*RUN, "--keep", "1", "4"]) == 0
    assert seen == [0, 1, 2, 2, 3]
    assert contents(project / "results/kept") == contents(whole)


def test_a_training_that_gives_other_numbers_keeps_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The receipt has another accuracy in round 2: one line, exit code 2, and no models from round 2 on."""
    path = project / "results/runs" / run_id(project) / "seed8.json"
    content = json.loads(path.read_text())
    content["curves"]["test_accuracy"][1] += 1
    shutil.rmtree(path.with_suffix(""))
    evidence = project / "reports/short/fedlaw/evidence" / run_id(project) / "seed8.json"
    evidence.parent.mkdir(parents=True)
    evidence.write_text(json.dumps(seal(content)))
    path.unlink()
    assert main([*RUN, "--keep", "1", "3"]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert "test_accuracy of round 2 is" in line
    assert str(path.relative_to(project)) in line
    assert [path.name for path in (project / "results/kept").rglob("*") if path.is_file()] == ["round1.safetensors"]


def test_rounds_are_measured_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call measures only the rounds it asks for, and only those not yet measured on the same models. The file keeps all
    rounds and has the bytes of a single call."""
    assert main([*RUN, "--keep", "1", "2", "4"]) == 0
    name, path = run_id(project), measurements.measurements_path(Path(), run_id(project), CALL, 8)
    assert main(["diagnose", CALL, name]) == 0
    whole = path.read_bytes()
    path.unlink()
    seen, measure = [], diagnose._measure
    monkeypatch.setattr(diagnose, "_measure", lambda what, rounds, *more: seen.append(rounds) or measure(what, rounds, *more))
    for asked in (["4"], ["1", "4"], ["1", "4"], []):
        assert main(["diagnose", CALL, name, *(["--rounds", *asked] if asked else [])]) == 0
        assert Store.of().measured(name, CALL, 8, map(int, asked)) == path
    assert seen == [[4], [1], [], [2]]
    assert path.read_bytes() == whole
    assert main(["diagnose", CALL, name, "--rounds", "1", "9"]) == 2
    assert main(["diagnose", CALL, name, "--rounds", "1"]) == 0
    assert path.read_bytes() == whole


def test_diagnose_by_hand(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run_id and a configuration file give the same bytes for all kept rounds. The store returns the file if every requested
    round is measured. If the file is damaged, the store returns the published copy, or fails with one line if there is no
    copy."""
    assert main([*RUN, "--keep", "1", "4"]) == 0
    assert main(["diagnose", "client_distance", run_id(project)]) == 0
    path = measurements.measurements_path(Path(), run_id(project), CALL, 8)
    found, content = measurements.read(path), path.read_bytes()
    assert [(one.round, one.client) for one in found.values] == [(r, c) for r in (1, 4) for c in (None, 0, 1, 2, 3, None)]
    assert main(["diagnose", CALL, f"results/runs/{run_id(project)}/config.json", "--seeds", "8"]) == 0
    assert path.read_bytes() == content
    store = Store.of()
    assert store.measured(run_id(project), CALL, 8, [1, 4]) == path
    assert store.measured(run_id(project), CALL, 8, [1, 2]) is None
    copy = Path("reports/short/fedlaw/evidence", *path.parts[2:])
    copy.parent.mkdir(parents=True)
    shutil.copy(path, copy)
    path.write_bytes(content[:-8])
    assert Store.of().measured(run_id(project), CALL, 8, [1, 4]) == copy
    assert measurements.read(copy) == found
    copy.unlink()
    with pytest.raises(UserError, match="not a readable file of diagnostics; delete it and run the same command again"):
        store.measured(run_id(project), CALL, 8, [1, 4])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", *RUN[1:], "--keep", "5"], "--keep 5: digits-mlp"),
        (["diagnose", "client_distnce", "RUN"], "did you mean 'client_distance'"),
        (["diagnose", "client_distance", "digits"], "no run in results/runs"),
        (["diagnose", "client_distance", "RUN"], "no models are kept"),
        (["diagnose", "client_distance", "RUN", "--seeds", "9"], "no models are kept"),
        (["diagnose", "client_distance", "RUN", "--train"], "--train: names no seeds; add --seeds"),
    ],
)
def test_mistakes(arguments: list[str], words: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistake is one line with exit code 2."""
    assert main([run_id(project) if one == "RUN" else one for one in arguments]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert words in line


def test_a_job_of_the_workflow_trains_what_is_missing_and_measures(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process trains a finished seed as far as the models need and measures them. A second call does nothing."""
    path = project / "config.json"
    run = json.loads((project / "results/runs" / run_id(project) / "config.json").read_text())
    path.write_text(json.dumps(run | {"keep": [2]}))
    seen = trainings(monkeypatch)
    job = ["diagnose", CALL, str(path), "--train", "--seeds", "8", "--rounds", "2", "--log", "job.log"]
    assert main(job) == 0
    assert seen == [2]
    measured = measurements.measurements_path(project, run_id(project), CALL, 8)
    assert {value.round for value in measurements.read(measured).values} == {2}
    words = Path("job.log").read_text()
    assert "models of round 2 trained again" in words
    assert f"{CALL} of 1 round" in words
    assert main(job) == 0
    assert seen == [2]


def test_a_table_of_diagnostics_by_hand(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`fedrepro run` keeps the models that the table needs and names the command that measures them."""
    path = Path("papers/fedlaw/tables/table3.yaml")
    content = yaml.safe_load(path.read_text())
    metric = {"name": "client_distance", "unit": "norm", "description": "distance", "diagnostic": "client_distance"}
    del content["published"]
    content |= {"columns": [{**content["columns"][2], "metric": metric}], "keep": [50, 200], "variant_of": None}
    del content["columns"][0]["published"]
    path.with_stem("table90").write_text(yaml.safe_dump(content))
    capsys.readouterr()
    assert main(["run", "fedlaw/table90", "--rows", "fedavg", *RUN[-3:]]) == 0
    assert f'fedrepro diagnose "{CALL}" {run_id(project)}' in capsys.readouterr().out
    index = json.loads((project / "results/kept" / run_id(project) / "seed8.json").read_text())
    assert [*index["rounds"]] == ["1", "4"]
    assert main(["runs", "fedlaw/table3"]) == 0
    assert "test accuracy" in capsys.readouterr().out


def test_measurements_are_published_after_their_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A published table of accuracies gets an additional column of distances. `publish` requires the distances and adds only
    them. Published values of fewer rounds are replaced if the new ones include them; other values are refused."""
    path = project / "papers/scales.yaml"
    scales = yaml.safe_load(path.read_text())
    small = {"dataset": "digits", "rounds": 2, "clients": 4, "local_epochs": 1, "average_last": 1}
    scales["full"] |= {"published_seeds": [8], "settings": small}
    path.write_text(yaml.safe_dump(scales))
    evidence = project / "reports/full/fedlaw/evidence"
    metric = {"name": "client_distance", "unit": "norm", "description": "distance", "diagnostic": "client_distance"}

    def write_table(keep: list[int], **columns: dict) -> None:
        table = project / "papers/fedlaw/tables/table3.yaml"
        content = {k: v for k, v in yaml.safe_load(table.read_text()).items() if k not in ("published", "remarks")}
        column = {key: value for key, value in content["columns"][2].items() if key != "published"}
        rows = [row for row in content["rows"] if row["key"] == "fedavg"]
        content |= {"rows": rows, "columns": [column | {"key": key, "label": key} | more for key, more in columns.items()]}
        content |= {"companions": [], "keep": keep, "source": "Our table"}
        table.with_stem("table90").write_text(yaml.safe_dump(content))

    def published(code: int = 0) -> str:
        capsys.readouterr()
        assert main(["publish", "fedlaw/table90", "--scale", "full"]) == code
        return "".join(capsys.readouterr())

    def below(pattern: str) -> dict[str, bytes]:
        return {str(path.relative_to(evidence)): path.read_bytes() for path in sorted(evidence.glob(pattern))}

    write_table([200], accuracy={})
    for words in (["init", "-q"], ["add", "papers", "params.yaml", "data/registry.yaml"], ["commit", "-qm", "as it is"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)
    run = ["run", "fedlaw/table90", "--scale", "full"]
    assert main(run) == 0
    assert "1 files published" in published()
    receipts = below("*/*.json")
    assert len(receipts) == 1

    write_table([1, 200], accuracy={}, first={"metric": metric, "read": "at(1)"}, last={"metric": metric})
    refused = published(code=2)
    assert f"{CALL} of " in refused
    assert "run `snakemake --cores 8 reports/full/fedlaw/table90.md` first" in refused
    assert main(run) == 0  # keeps the models
    assert main(["diagnose", CALL, Path(*receipts).parent.name]) == 0
    assert "1 files published" in published()
    measured = below("*/*/*.parquet")
    assert len(measured) == 1

    path = evidence / next(iter(measured))
    found = measurements.read(path)
    assert {value.round for value in found.values} == {1, 2}  # at(200) is the second of two
    last, about = [value for value in found.values if value.round == 2], {"models": {"2": found.about["models"]["2"]}}
    measurements.write(path, found.about | about, last)
    assert "1 files published" in published()
    assert below("*/*/*.parquet") == measured
    assert below("*/*.json") == receipts
    measurements.write(path, found.about | about, [value._replace(value=0.5) for value in last])
    assert "has other values than" in published(code=2)


def test_a_diagnostic_of_several_rounds(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """`line` measures the loss between the models of neighbouring rounds. The file names round 1, which has none before
    it, and round 4, and has values for round 4. Round 3 is not named, since round 2 is not kept; once that is kept, a later
    call measures it. The losses at both ends equal the recorded test losses bit for bit, and a second call gives the same
    bytes. If other rounds are missing, one line names them."""
    assert main([*RUN, "--keep", "1", "3", "4"]) == 0
    name = run_id(project)
    assert main(["diagnose", "line(points=3)", name]) == 0
    (path,) = project.glob("results/diagnostics/*/line-*/seed8.parquet")
    content, found = path.read_bytes(), measurements.read(path)
    assert [*found.about["models"]] == ["1", "4"]
    assert {value.round for value in found.values} == {4}
    numbers = {value.metric: value.value for value in found.values if value.x is None}
    losses = json.loads((project / f"results/runs/{name}/seed8.json").read_text())["curves"]["test_loss"]
    assert [numbers["line_loss/first"], numbers["line_loss/last"]] == losses[2:]
    path.unlink()
    assert main(["diagnose", "line(points=3)", name]) == 0
    assert path.read_bytes() == content
    capsys.readouterr()
    assert main(["diagnose", "line(apart=2)", name]) == 0  # round 3 has a kept model 2 rounds earlier, round 4 has none
    (other,) = set(project.glob("results/diagnostics/*/line-*/seed8.parquet")) - {path}
    assert {value.round for value in measurements.read(other).values} == {3}
    assert main([*RUN, "--keep", "1", "2", "3", "4"]) == 0
    assert main(["diagnose", "line(points=3)", name, "--rounds", "3"]) == 0
    assert {value.round for value in measurements.read(path).values} == {3, 4}
    shutil.rmtree(project / "results/kept")
    assert main([*RUN, "--keep", "4"]) == 0
    capsys.readouterr()
    assert main(["diagnose", "plane(through=rounds)", name]) == 2
    assert "round 4 of " in (said := capsys.readouterr().err)
    assert "is measured with others, and 2 3 not kept; `fedrepro run --keep`" in said


def test_what_is_measured_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each round shows the numbers of the file."""
    assert main([*RUN, "--keep", "1", "3"]) == 0
    capsys.readouterr()
    assert main(["diagnose", "client_distance", run_id(project)[-8:]]) == 0
    (first, last) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("seed 8, round "))
    (path,) = project.glob("results/diagnostics/*/*/seed8.parquet")
    values = {(v.round, v.metric): v.value for v in measurements.read(path).values if v.client is None}
    for line, number in ((first, 1), (last, 3)):
        mean, largest = (values[number, metric] for metric in ("client_distance", "client_distance_max"))
        assert line == f"seed 8, round {number}: client_distance {mean:.6g}, client_distance_max {largest:.6g}"


def test_models_of_another_training_count_as_not_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a training with other numbers the kept models are not measured, and neither is what was measured on them used. The
    line says how to keep them again."""
    assert main([*RUN, "--keep", "2", "3"]) == 0
    name = run_id(project)
    assert main(["diagnose", CALL, name]) == 0
    path = measurements.measurements_path(Path(), name, CALL, 8)
    assert Store.of().measured(name, CALL, 8, [2]) == path
    index = Path(f"results/kept/{name}/seed8.json")
    old_index = index.read_text()
    assert main([*RUN, "--fresh", "--engine", "vectorised"]) == 0
    assert json.loads(index.read_text())["rounds"] == {}
    assert not path.exists()
    for content in (index.read_text(), old_index):  # a version of before left the old list
        index.write_text(content)
        capsys.readouterr()
        assert main(["diagnose", CALL, name, "--seeds", "8", "--rounds", "2"]) == 2
        assert "the models of round 2 are damaged, or of another training than results/runs" in (
            said := capsys.readouterr().err
        )
        assert "`fedrepro run` with --keep 2 keeps them again" in said
    again = ["--engine", "vectorised", "--keep", "2"]
    assert main([*RUN, *again]) == 0
    capsys.readouterr()
    assert main(["diagnose", CALL, name]) == 0  # round 2 alone
    assert "the models of round 3 are damaged, or of another" in capsys.readouterr().err
    assert Store.of().measured(name, CALL, 8, [2]) == path
    assert [*measurements.read(path).about["models"]] == ["2"]
