"""Results record the code that made them: an edited method is trained again, and nothing else is."""

import json
import shutil
from pathlib import Path

import yaml

from tests.workflow.conftest import Project, new_trainings, to_copy

FEDPROX = Path("src/fedrepro/methods/client/fedprox.py")


def run(project: Project, *tables: str) -> str:
    """The output of the command that makes the reports. It uses the sources of the project."""
    done = project.run("snakemake", "--cores", "8", *(f"reports/{table}.md" for table in tables))
    return done.stdout + done.stderr


def means(project: Project, table: str = "table3") -> dict[tuple[str, str], float]:
    document = json.loads((project.root / f"reports/{table}.json").read_text())
    assert not any("different code" in (cell["reason"] or "") for cell in document["cells"])
    return {(cell["row"], cell["column"]): cell["mean"] for cell in document["cells"]}


def written(project: Project) -> int:
    """When the report of table3 was written."""
    return (project.root / "reports/table3.json").stat().st_mtime_ns


def test_an_edited_method_trains_again_alone(made: Project) -> None:
    """After a new comment, docstring or file name nothing trains, and the report is not rendered again. After a changed
    formula, a line names the part, its runs train again, and the report has their new numbers. A second table on the same run
    is asked for in a later call. Its report has them too, and nothing trains. If old results are restored with their old
    times, both reports show them again."""
    content, column = to_copy(made)
    (row,) = (row for row in content["rows"] if row["key"] == "fedprox")
    content |= {"rows": [row], "companions": [], "columns": [column], "source": "ours"}
    (made.root / "papers/fedlaw/tables/table91.yaml").write_text(yaml.safe_dump(content))
    both, place = ("table3", "table91"), ("fedprox", column["key"])
    shutil.copytree(made.root / "results/runs", made.root / "old")  # with the files' times
    path, before, first, time = made.root / FEDPROX, made.trained(), means(made), written(made)

    path.write_text("# A comment.\n" + path.read_text().replace('"""', '"""Said otherwise. ', 1))
    path = path.rename(path.with_name("proximal.py"))
    run(made, *both)
    assert (made.trained(), written(made)) == (before, time)
    assert means(made, "table91")[place] == first[place]

    source = path.read_text()
    assert "self.mu" in source
    path.write_text(source.replace("self.mu", "(5.0 + self.mu)"))
    assert "part fedprox changed since seed 8 was trained; training it again" in run(made, "table3")
    after, time = made.trained(), written(made)
    trained = new_trainings(before, after)
    assert len(trained) == 2
    assert all("-fedprox-" in name for name in trained), trained
    second = means(made)
    assert {at for at in first if first[at] != second[at]} == {at for at in first if at[0] == "fedprox"}
    assert means(made, "table91")[place] == first[place]
    run(made, *both)
    assert (made.trained(), written(made)) == (after, time)
    assert means(made, "table91")[place] == second[place]

    path.write_text(source)
    shutil.rmtree(made.root / "results/runs")
    shutil.copytree(made.root / "old", made.root / "results/runs")
    run(made, *both)
    assert made.trained().keys() == before.keys()
    assert means(made) == first
    assert means(made, "table91")[place] == first[place]
