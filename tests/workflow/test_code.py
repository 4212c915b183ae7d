"""Results record the code that made them: an edited method is trained again, and nothing else is."""

import json
import shutil
from pathlib import Path

import yaml

from tests.workflow.conftest import TABLE, Project, new_trainings, to_copy

FEDPROX = Path("src/fedrepro/methods/client/fedprox.py")


def run(project: Project) -> str:
    """The output of the main command, which uses the sources of the project."""
    done = project.run(*TABLE)
    return done.stdout + done.stderr


def means(project: Project, table: str = "table3") -> dict[tuple[str, str], float]:
    document = json.loads((project.root / f"reports/{table}.json").read_text())
    assert not any("different code" in (cell["reason"] or "") for cell in document["cells"])
    return {(cell["row"], cell["column"]): cell["mean"] for cell in document["cells"]}


def test_an_edited_method_trains_again_alone(made: Project) -> None:
    """After a new comment, docstring or file name there is nothing to do. After a changed formula, a line names the part, its
    runs train again, and the report has their new numbers. They also reach the report of a second table on the same run, and a
    report requested in a later call than its trainings. If old results are restored with their old times, the report shows
    them again."""
    content, column = to_copy(made)
    (row,) = (row for row in content["rows"] if row["key"] == "fedprox")
    content |= {"rows": [row], "companions": [], "columns": [column], "source": "ours"}
    (made.root / "papers/fedlaw/tables/table91.yaml").write_text(yaml.safe_dump(content))
    other, place = ("snakemake", "--cores", "2", "reports/table91.md"), ("fedprox", column["key"])
    made.run(*other)
    shutil.copytree(made.root / "results/runs", made.root / "old")  # with the files' times
    path, before, first = made.root / FEDPROX, made.trained(), means(made)
    assert means(made, "table91")[place] == first[place]

    path.write_text("# A comment.\n" + path.read_text().replace('"""', '"""Said otherwise. ', 1))
    path = path.rename(path.with_name("proximal.py"))
    assert "Nothing to be done" in run(made)
    source = path.read_text()
    assert "self.mu" in source
    path.write_text(source.replace("self.mu", "(5.0 + self.mu)"))
    assert "part fedprox changed since seed 8 was trained; training it again" in run(made)
    trained = new_trainings(before, made.trained())
    assert len(trained) == 2
    assert all("-fedprox-" in name for name in trained), trained
    second = means(made)
    assert {at for at in first if first[at] != second[at]} == {at for at in first if at[0] == "fedprox"}
    assert "Nothing to be done" in run(made)
    made.run(*other)
    assert means(made, "table91")[place] == second[place]

    path.write_text(source.replace("self.mu", "(9.0 + self.mu)"))
    made.run("snakemake", "--cores", "2", "runs", "--config", "tables=[fedlaw/table91]")
    made.run(*other)
    assert means(made, "table91")[place] not in (first[place], second[place])

    path.write_text(source)
    shutil.rmtree(made.root / "results/runs")
    shutil.copytree(made.root / "old", made.root / "results/runs")
    made.run(*other)
    assert means(made, "table91")[place] == first[place]
