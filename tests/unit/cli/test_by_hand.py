"""`fedrepro run` with its closing lines, `fedrepro runs` and `fedrepro compare`."""

import json
import re
import shutil
import statistics
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
import real_papers
import torch
import yaml

from fedrepro.cli import main, outcome
from fedrepro.cli.listing import seed_list
from fedrepro.cli.outcome import Conclusion
from fedrepro.cli.stored_runs import find, stored_runs
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.config.run_differences import changes, method_names
from fedrepro.engine import run as engine_run
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.records import KEYS, SCHEMA, seal
from fedrepro.errors import UserError
from fedrepro.files import write_json
from fedrepro.methods.compose import compose

ROOT = Path(__file__).parents[3]
COLUMN, OTHER = "fashion_mnist-mlp-0.1", "fashion_mnist-mlp-100"
ALONE = ["--columns", "fashion_mnist-mlp-100", "--seeds", "8", "--dry-run"]
CELLS = ["run", "fedlaw/table3", "--rows", "fedavg,fedprox", "--columns", COLUMN]


def make_project(root: Path) -> Path:
    left_out = ("figures", "table[!3s]*", "table3-*")  # `fedrepro runs` plans every table, so fewer tables save time
    return real_papers.copy(root, "scale: demo\nseeds: [8, 9]\n", "fedlaw", without=left_out)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FedAvg and FedProx for two seeds and three rounds, and FedAvg for one seed with the table's own settings."""
    root = make_project(tmp_path_factory.mktemp("by_hand"))
    with pytest.MonkeyPatch.context() as patch:
        real_papers.go(root, patch)
        assert main([*CELLS, "--set", "rounds=3", "clients=4"]) == 0
        assert main([*CELLS[:3], "fedavg", *CELLS[4:], "--seeds", "8"]) == 0
    return root


@pytest.fixture
def project(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `trained`, as the current folder."""
    return real_papers.go(shutil.copytree(trained, tmp_path / "copy"), monkeypatch)


def ids(project: Path) -> dict[tuple[str, int], str]:
    """The run_id of each (method, rounds)."""
    found = [json.loads(path.read_text()) for path in project.glob("results/runs/*/config.json")]
    return {(one["method_label"], one["config"]["rounds"]): one["run_id"] for one in found}


def last_three(project: Path, run_id: str, seed: int) -> float:
    """The value of a seed at scale demo: the mean of its last three rounds."""
    curve = json.loads((project / f"results/runs/{run_id}/seed{seed}.json").read_text())["curves"]["test_accuracy"]
    return statistics.fmean(curve[-3:])


def out(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    capsys.readouterr()
    assert main([*arguments]) == 0
    return capsys.readouterr().out.splitlines()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main([*arguments]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


def test_set_wins_over_params_yaml(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "params.yaml").write_text("scale: demo\nsettings: {rounds: 5, clients: 4}\n")
    lines = out(capsys, *CELLS[:3], "fedavg", *CELLS[4:], "--seeds", "8", "--set", "rounds=6", "--dry-run")
    assert lines[0].startswith("all have method fedavg, dataset digits,")
    assert ", rounds 6" in lines[0]


def test_a_list_of_seeds() -> None:
    """More than three are shortened if none is missing between them."""
    assert [seed_list(seeds) for seeds in ([10, 8, 9], range(8, 15), [8, 9, 10, 15])] == ["8, 9, 10", "8–14", "8, 9, 10, 15"]


def test_a_run_ends_with_mean_printed_number_folder_and_next_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The closing lines give mean and deviation over seeds as the table reads them, the changed settings, the reason why the
    printed number does not apply, the folder and the next command. The log has them too. After an unchanged run the next
    command is `fedrepro runs`."""
    run_id = ids(project)["fedavg", 3]
    values = [last_three(project, run_id, seed) for seed in (8, 9)]
    lines = out(capsys, *CELLS, "--set", "rounds=3", "clients=4", "--log", "log.txt")
    first = (
        f"fedavg, digits mlp dirichlet_per_class(alpha=0.1): {statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}"
    )
    assert lines[:4] == [
        f"{first} over seeds 8, 9",
        "  test accuracy in %, mean of all 3 rounds; changed: clients 4 (table: 10), rounds 3 (table: 8)",
        "  printed 85.11: not comparable (scale demo, clients and rounds changed)",
        f"  results/runs/{run_id}",
    ]
    assert lines[4].startswith("fedprox, digits mlp ")
    others = [ids(project)[key][-8:] for key in (("fedavg", 8), ("fedavg", 3), ("fedprox", 3))]
    assert lines[-1] == f"next: fedrepro compare {' '.join(others)}"
    assert (project / "log.txt").read_text().splitlines()[-len(lines) :] == lines
    lines = out(capsys, *CELLS[:3], "fedavg", *CELLS[4:], "--seeds", "8")
    assert re.fullmatch(r"fedavg, .*: \d+\.\d\d at seed 8", lines[0])
    assert lines[1] == "  test accuracy in %, mean of the last 3 of 8 rounds"
    assert lines[-1] == "next: fedrepro runs fedlaw/table3"


def test_many_cells_end_in_a_table(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a line for each cell, with its mean, its printed number, its run and the changed settings."""
    monkeypatch.setattr(outcome, "MOST_BLOCKS", 1)
    lines = out(capsys, *CELLS, "--set", "rounds=3", "clients=4")
    assert lines[0].startswith("all have dataset digits, model mlp, ")
    assert lines[1:4] == ["", "test accuracy in %, mean of all 3 rounds", lines[3]]
    assert lines[3].split() == ["method", "mean", "run"]
    cells = [re.split(r" {2,}", line.strip()) for line in lines[4:6]]
    changed = "clients 4 (table: 10), rounds 3 (table: 8)"
    for (name, mean, printed, run, notes), (method, number) in zip(
        cells, {"fedavg": 85.11, "fedprox": 84.33}.items(), strict=True
    ):
        assert (name, run, notes) == (method, ids(project)[method, 3][-8:], changed)
        assert re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d over seeds 8, 9", mean)
        assert printed == f"printed {number}: not comparable (scale demo, clients and rounds changed)"
    assert (lines[6], len(lines)) == ("", 8)


def test_cells_that_set_makes_the_same_are_one_block(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two columns differ only in the partition. If --set gives both the same partition, the user's row has one block of
    lines. It names the changed settings, though the table has no such row."""
    columns = f"{COLUMN},{COLUMN.replace('0.1', '100')}"
    asked = ("--rows", "fedprox(mu=1)", "--columns", columns, "--set", "partition=iid", "rounds=1", "clients=4", "--seeds", "8")
    lines = out(capsys, "run", "fedlaw/table3", *asked)
    assert len([line for line in lines if line.startswith("  results/runs/")]) == 1
    assert len(lines) == len(set(lines))
    assert "clients 4 (table: 10)" in next(line for line in lines if "; changed: " in line)


def test_at_full_scale_the_difference_to_the_printed_number(project: Path) -> None:
    """An unchanged run shows its mean minus the printed number, otherwise the reason why not. A diverged seed leaves no
    mean."""
    loaded = load_project(project)
    made = plan(loaded, "fedlaw", "table3", "full")
    cell = next(c for c in made.cells if (c.row, c.column) == ("fedavg", COLUMN))
    run = made.run(cell)
    for seed, status in ((8, "finished"), (9, "finished"), (10, "diverged")):
        curve = [85.0 + seed / 10] * run.config["rounds"]
        receipt = {key: {} for key in KEYS} | {"schema": SCHEMA, "run_id": cell.run_id, "seed": seed, "status": status}
        receipt |= {key: run.identity[key] for key in ("config", "method", "method_label")} | {
            "curves": {"test_accuracy": curve}
        }
        write_json(project / f"results/runs/{cell.run_id}/seed{seed}.json", seal(receipt))
    printed = cell.printed
    assert printed is not None
    lines = Conclusion(loaded, made, [cell], [8, 9]).lines()
    assert lines[2] == f"  printed {printed:.2f}, difference {85.85 - printed:+.2f}".replace("-", "−")
    cheap = Conclusion(loaded, replace(made, on_budget=True), [cell], [8, 9]).lines()
    assert cheap[2] == f"  printed {printed:.2f}: not comparable (the table runs on a budget)"
    lines = Conclusion(loaded, made, [cell], [8, 9, 10]).lines()
    assert lines[0].endswith(": diverged at seed 10 of 8, 9, 10")
    assert lines[2] == f"  printed {printed:.2f}: diverged at a seed"
    params = {"scale": "full", "settings": {"average_last": 1}}
    edited = load_project(project, params)
    lines = Conclusion(edited, plan(edited, "fedlaw", "table3", "full"), [cell], [8, 9]).lines()
    assert lines[1].endswith("; changed: average_last 1 (table: 10)")
    assert lines[2] == f"  printed {printed:.2f}: not comparable (average_last changed)"


def test_runs_lists_tables_and_of_a_table_its_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`fedrepro runs` has a line for each table. For one table it lists the table's runs and the changed ones (by --set or
    params.yaml) with what was changed."""
    heading, line, *_ = out(capsys, "runs")
    assert heading.split() == ["table", "scale", "runs", "changed", "trials", "seeds"]
    assert line.split("  ")[0] == "fedlaw/table3"
    assert line.split()[1:5] == ["demo", "1", "2", "–"]
    listed = out(capsys, "runs", "fedlaw/table3")
    assert listed[0] == "fedlaw/table3, scale demo: 3 runs, trained here"
    assert "test accuracy in %, mean of all 3 rounds" in listed
    assert "test accuracy in %, mean of the last 3 of 8 rounds" in listed
    changed = next(line for line in listed if ids(project)["fedprox", 3][-8:] in line)
    assert re.match(r"  fedprox +\d+\.\d\d ± \d+\.\d\d  8, 9 ", changed)
    assert changed.endswith("  clients 4 (table: 10), rounds 3 (table: 8)")
    own = next(line for line in listed if ids(project)["fedavg", 8][-8:] in line)
    assert re.fullmatch(r"  +\d+\.\d\d  8      \w{8}", own)
    (project / "params.yaml").write_text("scale: demo\nseeds: [8]\nmethods: {fedlaw: {fedprox: {mu: 0.5}}}\n")
    assert main([*CELLS[:3], "fedprox", *CELLS[4:]]) == 0
    (line,) = [line for line in out(capsys, "runs", "fedlaw", "--set", "fedprox.mu=0.5") if "fedprox.mu" in line]
    assert line.endswith("  fedprox.mu 0.5 (table: 0.001)")
    shutil.rmtree("results/runs")
    (line,) = out(capsys, "runs")
    assert "nothing has been trained or published here" in line


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--rows", "fedprox"], {("fedprox", 3)}),
        (["--method", "fedavg"], {("fedavg", 3), ("fedavg", 8)}),
        (["--method", "fedprox", "fedavg", "--rounds", "3"], {("fedavg", 3), ("fedprox", 3)}),
        (["--set", "clients=10"], {("fedavg", 8)}),
        (["--partition", "dirichlet_per_class(alpha=0.1)", "--dataset", "digits", "--columns", COLUMN], None),
    ],
)
def test_runs_and_compare_take_those_that_fit(
    asked: list[str], expected: set[tuple[str, int]] | None, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both commands select runs by row and column of the table, parts of the method, and settings."""
    wanted = {run_id[-8:] for key, run_id in ids(project).items() if expected is None or key in expected}
    lines = out(capsys, "runs", "fedlaw/table3", *asked)
    assert {word for line in lines for word in line.split() if re.fullmatch("[0-9a-f]{8}", word)} == wanted
    if len(wanted) > 1:
        lines = out(capsys, "compare", "fedlaw/table3", *asked)
        assert {line.split()[-1][-8:] for line in lines[1 : 1 + len(wanted)]} == wanted
    else:
        assert "one run; compare takes two or more" in refused(capsys, "compare", "fedlaw/table3", *asked)


def test_rows_of_ours_run_without_the_printed_ones(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row of ours has no printed number and needs none. A row of the paper needs one."""
    path = Path(shutil.copy(ROOT / "papers/fedlaw/tables/table3-control.yaml", "papers/fedlaw/tables"))
    assert any("1 run to train" in line for line in out(capsys, "run", "fedlaw/table3-control", "--rows", "factor", *ALONE))
    path.write_text(path.read_text().replace("MLP, alpha", "MPL, alpha"))
    assert "no printed number for column" in refused(capsys, "run", "fedlaw/table3-control", "--rows", "fedlaw", *ALONE)


def test_what_does_not_exist_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown table, row or setting is refused, and so is a query that no run matches."""
    assert "did you mean 'fedlaw/table3'?" in refused(capsys, "runs", "fedlaw/tabel3")
    assert "unknown row 'fedavgg'; did you mean 'fedavg'?" in refused(capsys, "runs", "fedlaw/table3", "--rows", "fedavgg")
    assert "unknown setting 'cleints'; did you mean 'clients'?" in refused(capsys, "runs", "--set", "cleints=3")
    assert "no run is like that" in refused(capsys, "runs", "--dataset", "mnist")


def test_a_table_with_a_mistake_is_left_out_and_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`runs` warns that it leaves out the invalid table. Without the warning the user would not notice that another table's
    reading applies to the runs. A query for this table alone is refused."""
    tables = project / "papers/fedlaw/tables"
    (tables / "table98.yaml").write_text((tables / "table3.yaml").read_text().replace("model: mlp", "modell: mlp"))
    said = "papers/fedlaw/tables/table98.yaml: "
    assert main(["runs", "fedlaw"]) == 0
    printed = capsys.readouterr()
    assert f"left out: {said}" in printed.err
    assert "fedlaw/table3, scale demo: 3 runs" in printed.out
    assert refused(capsys, "runs", "fedlaw/table98").startswith(f"fedrepro: error: {said}")
    (tables / "table97.yaml").write_text((tables / "table98.yaml").read_text())
    assert main(["runs", "--model", "mlp"]) == 0
    assert f"left out: 2 mistakes in other tables, the first: {said[:-8]}" in capsys.readouterr().err


@pytest.mark.drawn
def test_compare_two_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compare` takes parts of run_ids. It shows what differs, each seed's value as the table reads it, the paired difference
    with its interval, the rounds to the lower of the two values, the costs, and the curves as a picture."""
    a, b = ids(project)["fedavg", 3], ids(project)["fedprox", 3]
    lines = out(capsys, "compare", a[-8:], f"results/runs/{b}/", "--plot", "new/curves.svg")
    assert [line.split() for line in lines[:3]] == [["method", "run"], ["A", "fedavg", a], ["B", "fedprox", b]]
    assert lines[3].startswith("all have dataset digits, model mlp, partition ")
    start = lines.index("test accuracy in %, mean of all 3 rounds")
    values = {run_id: [last_three(project, run_id, seed) for seed in (8, 9)] for run_id in (a, b)}
    gaps = [second - first for first, second in zip(*values.values(), strict=True)]
    targets = [min(pair) for pair in zip(*values.values(), strict=True)]
    for line, (run_id, own) in zip(lines[start + 2 : start + 4], values.items(), strict=True):
        middle = [f"{statistics.fmean(own):.2f}", f"{statistics.stdev(own):.2f}"]
        assert line.split()[2:6] == [f"{own[0]:.2f}", f"{own[1]:.2f}", *middle]
        rounds = []
        for seed, target in zip((8, 9), targets, strict=True):
            curve = json.loads(Path(f"results/runs/{run_id}/seed{seed}.json").read_text())["curves"]["test_accuracy"]
            rounds.append(next((t for t, value in enumerate(curve, start=1) if value >= target), 4))
        assert line.split()[-1] == f"{statistics.fmean(rounds):.3g}"
    assert lines[start + 3].split()[6] == f"{statistics.fmean(gaps):+.2f}".replace("-", "−")
    assert lines[start + 3].split()[8] == "to"
    assert any(line.startswith("   wall time a seed ") for line in lines)
    assert lines[-1] == "curves: new/curves.svg"
    drawn = Path("new/curves.svg").read_text()
    assert "A  fedavg" in drawn
    assert "test accuracy in %" in drawn
    assert max(map(len, lines)) < 130


def test_compare_says_what_is_not_shared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compare` names settings with both values, different numbers of rounds, a seed that only one run has, and inputs that the
    two runs of a seed do not share."""
    a, b = ids(project)["fedavg", 8], ids(project)["fedavg", 3]
    lines = out(capsys, "compare", a, b)
    assert [line.split() for line in lines[:3]] == [["clients", "rounds", "run"], ["A", "10", "8", a], ["B", "4", "3", b]]
    assert "test accuracy in %, mean of the last 3 of 8 rounds; B: mean of all 3 rounds" in lines
    assert any(re.fullmatch(r"A  clients 10, rounds 8 +\d+\.\d\d +– .*", line) for line in lines)
    assert "− A: over the seeds that both have: B 8" in lines
    assert "B and A do not share at a seed: partition, cohorts; the pairs share less than they could" in lines
    assert any(re.fullmatch(r"B  clients 4, rounds 3 .* [+−]\d+\.\d\d +– +\d+", line) for line in lines), "an interval"
    path = project / f"results/runs/{b}/seed8.json"
    receipt = json.loads(path.read_text())
    write_json(path, seal(receipt | {"status": "diverged", "environment": receipt["environment"] | {"torch": "1.0"}}))
    lines = out(capsys, "compare", a, b)
    assert any(re.fullmatch(r"B  clients 4, rounds 3 +diverged +\d+\.\d\d +– +– +– +– +–", line) for line in lines)
    assert "no seed has a value in all of them" in lines
    assert "− A: over the seeds that both have: B none" in lines
    assert any(line.startswith("torch: A 2") and "; B 1.0, 2" in line for line in lines)


def test_compare_has_no_difference_where_a_seed_has_no_value(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both runs have seeds 8 and 9, and one diverged at seed 9. A difference at seed 8 alone would make the diverged run look
    better than it is."""
    a, b = ids(project)["fedavg", 3], ids(project)["fedprox", 3]
    path = project / f"results/runs/{b}/seed9.json"
    write_json(path, seal(json.loads(path.read_text()) | {"status": "diverged"}))
    lines = out(capsys, "compare", a, b)
    (line,) = (line for line in lines if line.startswith("B ") and "diverged" in line)
    assert line.split()[3:] == ["diverged", "–", "–", "–", "–", *line.split()[8:]]
    assert not any(line.startswith("− A: ") for line in lines)


def test_compare_sets_apart_what_a_table_does_not_ask_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that the table does not plan, for example those of a sweep, come after the table's own runs, and a line names what
    was changed. `compare` prints no such line for runs that the user names."""
    own, by_hand = ids(project)["fedavg", 8], ids(project)["fedavg", 3]
    lines = out(capsys, "compare", "fedlaw/table3", "--method", "fedavg")
    assert [line.split()[-1] for line in lines[1:3]] == [own, by_hand]
    apart = "is not asked for by fedlaw/table3, scale demo: "
    assert [line for line in lines if apart in line] == [f"B {apart}clients 4 (table: 10), rounds 3 (table: 8)"]
    assert not any(apart in line for line in out(capsys, "compare", by_hand, own))


def test_compare_shows_every_reading_of_its_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table reads accuracy in one column and rounds to a target in another. A seed that misses the target shows "not
    reached"."""
    (project / "params.yaml").write_text("scale: demo\nseeds: [8]\nsettings: {rounds: 3, clients: 4}\n")
    path = project / "papers/fedlaw/tables/table3.yaml"
    table = yaml.safe_load(path.read_text())
    first, second = (column for column in table["columns"] if column["key"] in (COLUMN, OTHER))
    target = {"name": "test_accuracy", "unit": "rounds", "better": "lower", "description": "rounds to 99.9 %"}
    table["columns"] = [second, first | {"metric": target, "read": "first_reaching(99.9)"}]
    table["columns"] = [{key: column[key] for key in column.keys() - {"published"}} for column in table["columns"]]
    path.write_text(yaml.safe_dump({key: table[key] for key in table.keys() - {"published", "remarks"}}))
    out(capsys, "run", "fedlaw/table3", "--rows", "fedavg", "--columns", OTHER)
    lines = out(capsys, "compare", "fedlaw/table3", "--rows", "fedavg", "--rounds", "3")
    assert "test accuracy in %, mean of all 3 rounds" in lines
    start = lines.index("test accuracy in rounds, rounds until it is at least 99.9, of 3")
    assert [line.split()[3:6] for line in lines[start + 2 : start + 4]] == [["not", "reached", "–"]] * 2
    shown = out(capsys, "runs", "fedlaw/table3")
    assert any("not reached at seed 8" in line for line in shown), shown


def test_compare_wants_runs_that_are_clear(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An ambiguous part of a name lists its matches, and an unknown one the nearest name. The same run twice and an empty
    folder are refused. Published evidence is found without results."""
    both = [run_id for (label, _), run_id in ids(project).items() if label == "fedavg"]
    assert all(run_id in refused(capsys, "compare", "fedavg", both[0]) for run_id in both)
    assert "`fedrepro runs --method fedavg` lists the runs that have it" in refused(capsys, "runs", "fedavg")
    assert "`fedrepro runs --dataset digits` lists the runs that have it" in refused(capsys, "runs", "digits")
    assert f"`fedrepro runs --columns {COLUMN}` lists the runs that have it" in refused(capsys, "runs", COLUMN)
    assert "--" not in refused(capsys, "runs", "fed")
    assert "did you mean 'fedprox'?" in refused(capsys, "compare", "fedporx", both[0])
    assert "are the same run" in refused(capsys, "compare", both[0], f"results/runs/{both[0]}")
    assert "no finished seed in it" in refused(capsys, "compare", "papers", both[0])
    assert "compare: names no run" in refused(capsys, "compare")
    shutil.copytree(f"results/runs/{both[0]}", f"reports/short/fedlaw/evidence/{both[0]}")
    shutil.rmtree(f"results/runs/{both[0]}")
    found = find(both[0][-8:], stored_runs(Path()))
    assert (found.run_id, found.places) == (both[0], [("fedlaw", "short")])
    with pytest.raises(UserError, match="in results/runs or below reports"):
        find("xxxxxxxx", stored_runs(Path()))


def test_published_runs_by_what_differs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Tuned cells show the chosen rate. Trials are left out unless --trials lists them. A method has the same name in all
    lists."""
    monkeypatch.chdir(ROOT)
    own = out(capsys, "runs", "igfl/table1", "--scale", "short")
    assert own[-1] == "left out: 28 trials of tuned cells; --trials lists them"
    names = [line.split()[:2] for line in own if re.search(r" [0-9a-f]{8}$", line)]
    assert [name for name, _ in names] == 2 * ["fedavg", "fedavgm", "scaffold", "fedadam", "igfl_c", "igfl_s", "igfl"]
    assert {rate for _, rate in names} <= {"0.01", "0.03", "0.1"}
    tried = out(capsys, "runs", "igfl/table1", "--trials", "--rows", "igfl")
    trials = [line.split()[-2] for line in tried if line.endswith("  trial")]
    assert len(trials) == 4
    assert any(line.endswith(f"{trials[0]}  trial") for line in out(capsys, "runs", trials[0])), "a named trial is shown"
    assert {*re.findall(r", scale (\w+): ", "\n".join(out(capsys, "runs", "fedgh", "--scale", "full")))} == {"full"}
    compared = out(capsys, "compare", "igfl/table1", "--columns", "E1", "--rows", "igfl", "fedavg")
    assert [line.split()[1] for line in compared[1:3]] == ["fedavg", "igfl"]
    assert any(line.startswith("fedavg ") for line in out(capsys, "run", "fedgh/table2", "--scale", "full", "--dry-run"))


def test_a_table_has_the_value_of_its_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A table's line shows the mean over the table's own seeds and lists further seeds. `compare` of table cells uses the same
    seeds, and `compare` of named runs uses all seeds."""
    monkeypatch.chdir(ROOT)
    cell = ["--scale", "full", "--columns", "fashion_mnist-mlp-100"]
    page = json.loads(Path("reports/full/fedlaw/table3.json").read_text())["cells"]
    one = next(own for own in page if (own["row"], own["column"]) == ("fedavg", cell[-1]))
    lines = out(capsys, "runs", "fedlaw/table3", *cell, "--rows", "fedavg")
    assert lines[0] == "fedlaw/table3, scale full: 1 run, published, seeds 8, 9, 10"
    assert lines[-2].split() == [f"{one['mean']:.2f}", "±", f"{one['std']:.2f}", "a8bf99fe", "also", "seeds", "11–14"]
    lines = out(capsys, "compare", "fedlaw/table3", *cell, "--rows", "fedavg", "fedlaw")
    assert "rounds: until the curve first reaches the worst of a seed's values, mean over seeds 8, 9, 10" in lines
    lines = out(capsys, "compare", "a8bf99fe", "bade85bf")
    assert "rounds: until the curve first reaches the worst of a seed's values, mean over seeds 8–14" in lines


def test_settings_that_follow_from_the_data_are_no_changes() -> None:
    base = {"method": str(compose("fedavg")), "dataset": "mnist", "dataset_sha": "a", "classes": 10, "rounds": 5}
    other = base | {"dataset": "cifar100", "dataset_sha": "b", "classes": 100, "channel_statistics": "c", "rounds": 6}
    assert [change.key for change in changes(other, base)] == ["dataset", "rounds"]
    assert [change.key for change in changes(base | {"channel_statistics": "c"}, base)] == ["channel_statistics"]


def test_names_of_methods_say_what_differs() -> None:
    """A name has arguments only if they differ. It has those of default parts only if the names would otherwise be equal. A
    part whose file is gone is named too."""
    plain, uniform = str(compose("fedavg")), str(compose("mean(weighting=uniform)"))
    weak, strong = (str(compose(f"fedprox(mu={mu})")) for mu in (0.1, 0.5))
    assert method_names([plain, weak]) == ["fedavg", "fedprox"]
    assert method_names([weak, strong]) == ["fedprox(mu=0.1)", "fedprox(mu=0.5)"]
    assert method_names([plain, uniform]) == ["fedavg", "mean(weighting=uniform)"]
    assert method_names([uniform, weak]) == ["fedavg", "fedprox"]
    assert method_names([str(compose("igfl"))]) == ["igfl"]
    assert method_names([strong], whole=True) == ["fedprox(mu=0.5)"]
    assert method_names([plain, uniform, str(compose("igfl"))], whole=True) == ["fedavg", "mean(weighting=uniform)", "igfl"]
    gone = [text.replace("fedprox", "gone") for text in (weak, strong)]
    assert method_names([plain, gone[0]]) == ["fedavg", "gone"]
    assert method_names(gone) == ["gone(mu=0.1)", "gone(mu=0.5)"]


def test_changes_name_what_a_person_sets() -> None:
    """Changes list the arguments of shared parts one by one and other parts whole. A value that follows from the data set or
    the model is no change."""
    base = {"dataset": "digits", "dataset_sha": "a", "classes": 10, "rounds": 8, "method": "sgd()+fixed_gamma(gamma=0.97)"}
    assert changes(base, base) == []
    other = base | {"dataset": "mnist", "dataset_sha": "b", "method": "sgd()+fixed_gamma(gamma=0.9)"}
    assert [str(one) for one in changes(other, base)] == [
        "dataset mnist (table: digits)",
        "fixed_gamma.gamma 0.9 (table: 0.97)",
    ]
    assert [one.key for one in changes(base | {"dataset_sha": "c"}, base)] == ["dataset_sha"]
    method = {"method": "fedprox(mu=1.0)+fixed_gamma(gamma=0.97)", "products": "bf16"}
    assert [str(one) for one in changes(base | method, base)] == [
        "products bf16 (table: default)",
        "method fedprox(mu=1.0) (table: sgd)",
    ]


# --- mistakes on the command line ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("round=5", "--set round=5: unknown setting 'round'; did you mean 'rounds'?"),
        ("mu=1", "--set mu=1: unknown setting 'mu'; Known as an argument of elastic, fedprox, written elastic.mu (in a file"),
        (
            "per_client=2",
            "--set per_client=2: unknown setting 'per_client'; did you mean 'clients'? Known as an argument of the part",
        ),
        ("rounds=many", "--set rounds: 'many' is not a whole number"),
        ("rounds=0", "--set rounds = 0: must be at least 1"),
        ("client_lr=1.0e+300", "--set client_lr = 1e+300: must fit into float32"),
        ("augment=crop(padding=-1)", "--set augment = 'crop(padding=-1)': crop: padding = -1: must be at least 1"),
        ("schedule=stage(every=0, factor=0.5)", "--set schedule = 'stage(every=0, factor=0.5)': stage: every = 0"),
        ("rounds=0100", "--set rounds=0100: 0100: write the number in decimal digits"),
        ("client_lr='0.1'", "--set client_lr: '0.1' is not a number"),
        ("dataset=minst", "--set dataset: unknown data set 'minst'; did you mean 'mnist'?"),
    ],
)
def test_a_mistake_in_set_blames_the_command_line(
    given: str, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names --set and not params.yaml."""
    err = refused(capsys, "run", "fedlaw/table3", "--set", given)
    assert err.startswith(f"fedrepro: error: {said}")
    assert "params.yaml" not in err


def test_a_mistake_in_params_yaml_still_blames_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This holds even if --set changes another key."""
    (project / "params.yaml").write_text("settings: {client_lr: -1.0}\n")
    assert "params.yaml: settings.client_lr" in refused(capsys, "run", "fedlaw/table3", "--set", "rounds=5")


# --- time left -----------------------------------------------------------------------------------------------------------


def test_time_left_is_that_of_all_seeds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten of twenty rounds took ten seconds, and one and a half seeds follow: 10 + 30 seconds are left. After ten minutes there
    is one line a minute."""
    now = [0.0]
    monkeypatch.setattr(engine_run.time, "monotonic", lambda: now[0])

    def said(report: engine_run._Reporter, second: float, round: int) -> str:
        now[0] = second
        report(round, Progress(round + 1, [(round, "test_accuracy", 50.0)], 0.0, 0, ""))
        return capsys.readouterr().err

    report = engine_run._Reporter("run seed 8", 20, 20 * 1.5, "test_accuracy")
    assert said(report, 1.0, 0) == ""
    line = said(report, 10.0, 9)
    assert line == "run seed 8: round 10/20, test accuracy 50.00 %, 1.00 rounds/s, 40.0 s left (10.0 s of this seed)\n"
    now[0] = 0.0
    report = engine_run._Reporter("run seed 8", 2000, 0.0, "test_accuracy")
    stamps = [second for second in range(1, 1801) if said(report, float(second), second - 1)]
    assert stamps[:3] == [10, 20, 30]
    assert stamps[-1] - stamps[-2] == 60
    assert len(stamps) < 60


def test_a_tensor_in_the_notes_becomes_a_number_and_a_vector_is_refused_in_its_round() -> None:
    """A method may leave the norm of a tree, a tensor of one number. What is no number ends the training at once, and the line
    names the note."""
    report = engine_run._Reporter("run seed 8", 20, 0.0, "test_accuracy")
    progress = Progress(2, [(0, "norm", 2.0), (1, "norm", torch.tensor(3.0))], 0.0, 0, "")
    report(1, progress)
    assert progress.rows == [(0, "norm", 2.0), (1, "norm", 3.0)]
    assert type(progress.rows[1][2]) is float
    progress.rows.append((1, "norms", torch.ones(2)))
    with pytest.raises(UserError, match=r"round 2: ctx\.notes\['norms'\] is of Tensor; give a number"):
        report(1, progress)


def test_seeds_that_are_kept_are_not_waited_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 8 already has a result. One seed is left while seed 10 trains, and none while seed 11 trains."""
    asked = []
    monkeypatch.setattr(engine_run._Job, "train", lambda self, tasks, after: asked.append((tasks[0].seed, after)))
    command = [*CELLS[:3], "fedavg", *CELLS[4:], "--set", "rounds=3", "clients=4", "--seeds", "10,8,11"]
    monkeypatch.setattr(Conclusion, "lines", lambda self: [])
    assert main(command) == 0
    assert asked == [(10, 1), (11, 0)]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["diagnose", "client_distance", "data/registry.yaml.json"], "registry.yaml.json: not the configuration of a run"),
        (["diagnose", "client_distance", "a**b"], "a**b: no run in results/runs"),
        (["verify", "a**b"], "a**b"),
        (["sweep", "--method", "fedavg", "--over", "alpha=[0.1,1]"], "--over alpha=[0.1,1]: write the values without brackets"),
        (["run", "fedlaw/table3", "--checkpoint-seconds", "inf"], "inf: must be a number of seconds"),
        (["verify", "fedlaw/table3", "--minutes", "nan"], "nan: must be a number of minutes"),
        (["run", "fedlaw/table3", "--seeds", str(2**63)], f"a seed is a whole number from 0 to {2**63 - 1}"),
        (["run", "fedlaw/table3", "--dataset", ""], "argument --dataset: is empty; give a name"),
        (["runs", "--dataset", ""], "argument --dataset: is empty; give a name"),
        ([*CELLS, "--set", "rounds=1", "--keep", "99", "--dry-run"], "has 1 round; name rounds from 1 to 1"),
        (["compare", "fedlaw/table3", "--plot", "x.png"], "argument --plot: x.png: give a file that ends in .svg"),
    ],
)
def test_a_mistake_is_one_line(command: list[str], words: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2 for every command."""
    Path("data/registry.yaml.json").write_text("[1]")
    try:
        code = main(command)
    except SystemExit as stopped:  # raised by argparse
        code = stopped.code
    assert code == 2
    assert words in capsys.readouterr().err.strip().splitlines()[-1]


def test_options_of_a_list(project: Path) -> None:
    """Commas and spaces between rows, columns and seeds parse alike, and repeated options add up."""
    from fedrepro.cli.parser import parser

    def parsed(*arguments: str) -> Namespace:
        return parser().parse_args(["run", "fedlaw/table3", *arguments])

    assert parsed("--seeds", "8", "9").seeds == parsed("--seeds", "8,9").seeds == parsed("--seeds", "8,", "9").seeds == [8, 9]
    assert parsed("--rows", "a,b").rows == parsed("--rows", "a", "b").rows == ["a", "b"]
    assert parsed("--columns", "a,b", "c").columns == ["a", "b", "c"]
    assert parsed("--seeds", "8", "--rows", "a", "--seeds", "9", "--rows", "b").seeds == [8, 9]
    assert parsed("--set", "rounds=5", "--set", "clients=3").set == ["rounds=5", "clients=3"]
    assert (parsed().set, parsed().seeds, parsed().rows) == ([], None, None)  # no options of an earlier command
    assert parser().parse_args(["verify", "fedgh/table2", "--seeds", "8,9", "--rows", "a,b"]).rows == ["a", "b"]


def test_what_is_tuned_and_what_is_not_trains_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --fresh a row without candidates trains after the trials of the other row, and not before them as well. Rounds that
    a trial does not have are kept of the cell alone."""
    real_papers.enter(tmp_path / "project", monkeypatch, "scale: demo\nseeds: [8, 9]\n", "fedima")
    calls: list[tuple[str, tuple[int, ...]]] = []

    def noted(entry: dict, seeds: list[int], options: engine_run.Options) -> dict[int, str]:
        calls.append((entry["method_label"], options.keep))
        return dict.fromkeys(seeds, "trained")

    monkeypatch.setattr(engine_run, "run_seeds", noted)
    monkeypatch.setattr("fedrepro.cli.drawing.draw_missing", lambda *_: None)
    command = ["run", "fedima/table1", "--rows", "fedavg,fedprox", "--columns", "c10-cnn-shards"]
    assert main([*command, "--fresh", "--keep", "20"]) == 0
    labels = [label for label, _ in calls]
    assert labels.count("fedavg") == 1
    assert labels.count("fedprox") > 1
    assert labels[-1] == "fedavg"
    assert [keep for label, keep in calls if label == "fedavg"] == [(20,)]
    assert {keep for label, keep in calls if label == "fedprox"} == {()}
    assert main([*command, "--keep", "21"]) == 2
    assert main(["runs", "--set", "average_last=3"]) == 2
