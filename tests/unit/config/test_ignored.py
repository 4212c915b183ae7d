"""An edit of params.yaml takes effect or is refused by name. No row overrides it silently."""

from pathlib import Path

import pytest
import real_papers
from small_papers import Files

from fedrepro.cli import main
from fedrepro.config.grid import plan
from fedrepro.config.ignored import _edits, require_effect
from fedrepro.config.project import load_project
from fedrepro.errors import UserError

ROOT = Path(__file__).parents[3]


def ask(paper: str, tables: str, methods: dict, scale: str = "demo") -> None:
    """Plans the tables with this edit and checks that the edit has an effect, as the command line does."""
    project = load_project(ROOT, {"scale": scale, "methods": {paper: methods}})
    require_effect(project, [plan(project, paper, table, scale) for table in tables.split()])


def test_an_edit_that_no_row_takes_is_refused() -> None:
    """The line has key, file and rows: in FedIMA's variants every row with FedFA writes out calibrate_from."""
    with pytest.raises(UserError) as error:
        ask("fedima", "table1-variants", {"fedfa": {"calibrate_from": 0.5}})
    said = str(error.value)
    assert said.startswith(
        "params.yaml: methods.fedima.fedfa.calibrate_from = 0.5: changes nothing, since the method is written"
    )
    assert " with calibrate_from=... in papers/fedima/tables/table1-variants.yaml, rows " in said
    assert said.endswith("; change it there, or set this to null")


@pytest.mark.parametrize(
    ("paper", "tables", "methods"),
    [
        ("fedima", "table1-variants", {"fedfa": {"calibrate_from": None}}),
        ("fedima", "table1-variants", {"fedfa": {"calibrate_from": 0}}),  # the value that the rows write out
        ("fedima", "table1-variants", {"fedfa": {"calibrate_from": 0.25}}),  # the method's default
        ("elastic", "table1", {"fedprox": {"mu": 0.5}}),  # no row has it
        ("fedlaw", "table3", {"fedprox": {"mu": 0.5}, "fixed_gamma": {"gamma": 0.9}}),  # takes effect
        ("fedlaw", "table3", {"fedprox": {"mu": 0.001}, "fixed_gamma": {"gamma": 0.97}}),  # as committed
    ],
)
def test_what_is_no_mistake(paper: str, tables: str, methods: dict) -> None:
    """The check accepts null, a value equal to the one in use, a value for another table, and a value that takes effect."""
    ask(paper, tables, methods)


def test_a_value_that_a_scale_has_already_is_no_edit(files: Files) -> None:
    """FedLAW's server trains two epochs at scale demo and four by the paper."""
    files.write()
    edited = [
        [*_edits(load_project(files.root, {"methods": {"some": {"fedlaw": {"server_epochs": epochs}}}}), "some")]
        for epochs in (2, 4, 3)
    ]
    assert edited == [[], [], [("fedlaw", "server_epochs", 3)]]


def test_a_sweep_beside_an_open_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows that write out the argument keep their value, and the edit applies to a row that does not. If every row writes out
    the argument, the command refuses the edit."""
    real_papers.enter(tmp_path, monkeypatch, "scale: demo\nmethods: {fedlaw: {fedprox: {mu: 0.5}}}\n", "fedlaw")
    table = tmp_path / "papers/fedlaw/tables/table3.yaml"
    text = table.read_text()
    assert text.count("method: fedprox}") == text.count("method: feddyn}") == 1
    swept = text.replace("method: fedprox}", 'method: "fedprox(mu=0.1)"}')
    table.write_text(swept.replace("method: feddyn}", "method: fedprox}"))
    assert main(["run", "fedlaw/table3", "--dry-run"]) == 0
    made = plan(load_project(tmp_path), "fedlaw", "table3", "demo")
    values = {
        cell.row: made.runs[cell.run_id].calls[0].arguments["mu"] for cell in made.planned if cell.row in ("fedprox", "feddyn")
    }
    assert values == {"fedprox": 0.1, "feddyn": 0.5}
    table.write_text(swept)
    assert main(["run", "fedlaw/table3", "--dry-run"]) == 2
    assert "mu=... in papers/fedlaw/tables/table3.yaml, row fedprox; change it there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seeds", "table", "said"),
    [
        ([8, 9, 10], "table2", False),  # params.yaml is not edited
        ([8, 9], "table3", False),  # takes the seeds
        ([8], "table2", False),  # equal to its own seeds
        ([8, 9], "table2", True),
    ],
)
def test_seeds_that_a_table_does_not_take_are_said(seeds, table, said, monkeypatch, capsys, tmp_path) -> None:
    """The line names the table's file, and the command continues. There is no line if the seeds are not edited."""
    real_papers.enter(tmp_path, monkeypatch, f"scale: demo\nseeds: {seeds}\n", "fedlaw")
    line = "params.yaml: seeds = 8, 9 changes nothing, since papers/fedlaw/tables/table2.yaml names its own for scale demo (8)"
    assert main(["run", f"fedlaw/{table}", "--dry-run"]) == 0
    assert (line in capsys.readouterr().err) is said
    assert main(["run", f"fedlaw/{table}", "--dry-run", "--seeds", "9"]) == 0
    assert line not in capsys.readouterr().err
