"""Damage between two calls of the workflow, as real processes: every call names it until its advice is followed."""

import json
import shutil
from pathlib import Path

from fedrepro.engine.records import seal
from fedrepro.files import write_json
from tests.workflow.conftest import Project, cells, new_trainings

TABLE = ("snakemake", "--cores", "2", "reports/table3.md")


def to_98(path: Path) -> None:
    content = json.loads(path.read_text())
    content["curves"]["test_accuracy"][-1] = 98.0
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def of_reports(project: Project) -> dict[str, bytes]:
    """The pages and the receipts behind them."""
    found = [*project.root.glob("reports/table3.*"), *project.root.glob("results/runs/*/seed8.json")]
    return {str(path.relative_to(project.root)): path.read_bytes() for path in found}


def test_damage_is_named_until_it_is_repaired(made: Project) -> None:
    """Two calls fail with the same line and keep all other receipts. When the file is deleted, as the line says, the same
    command writes it again with the same bytes and trains nothing. That call also tracks and renders a result that does not
    come from the workflow, for example from `dvc pull`. After `rm -rf` of that result's folder the same command trains only
    that run. It also writes an empty receipt again, and the page is as before."""
    victim = sorted(made.root.glob("results/runs/*-0.1-fedavg-*/seed8.json"))[0]
    name = str(victim.relative_to(made.root))
    kept, before, shown = of_reports(made), made.trained(), cells(made, "table3")
    receipts = {path for path in kept if path.endswith("seed8.json")}
    assert len(kept) == 5 + len(receipts) == 5 + 6
    to_98(victim)
    for _ in range(2):
        done = made.run(*TABLE, ok=False)
        assert done.returncode != 0
        line = done.stderr.strip().splitlines()[-1]
        assert line.startswith(f"fedrepro: error: {name}: "), done.stderr[-3000:]
        assert line.endswith("; delete it and run the same command again")
        now = of_reports(made)
        assert [path for path in now if now[path] != kept[path] and path != name] == []
        assert receipts <= {*now}

    victim.unlink()
    other = sorted(made.root.glob("results/runs/*-fedprox-*/seed8.json"))[0]
    content = json.loads(other.read_text())
    content["curves"]["test_accuracy"][-1] = 12.34
    write_json(other, seal(content))
    made.run(*TABLE)
    now = of_reports(made)
    assert [path for path in receipts if now[path] != kept[path]] == [str(other.relative_to(made.root))]
    assert made.trained() == before
    assert "12.34" in (made.root / "reports/table3.md").read_text()
    assert [at for at, cell in cells(made, "table3").items() if cell["mean"] != shown[at]["mean"]] == [
        at for at, cell in shown.items() if cell["run_id"] == other.parent.name
    ]

    shutil.rmtree(other.parent)
    emptied = sorted(made.root.glob("results/runs/*-fedlaw-*/seed8.json"))[0]
    emptied.write_text("")  # it is written again from the result folder
    made.run(*TABLE)
    assert new_trainings(before, made.trained()) == {f"{other.parent.name}/seed8"}
    now = of_reports(made)
    assert now.keys() == kept.keys()
    assert [path for path in receipts if now[path] != kept[path]] == [str(other.relative_to(made.root))]  # its times
    assert "12.34" not in (made.root / "reports/table3.md").read_text()
    assert cells(made, "table3") == shown
