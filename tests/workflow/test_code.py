"""Results know the code that made them: an edited method is trained again, and nothing else is."""

import json
from pathlib import Path

from tests.workflow.conftest import TABLE, Project, new_trainings

FEDPROX = Path("src/fedrepro/methods/client/fedprox.py")


def run(project: Project) -> str:
    """What the main command says that uses the sources of the project."""
    done = project.run(*TABLE)
    return done.stdout + done.stderr


def means(project: Project) -> dict[tuple[str, str], float]:
    document = json.loads((project.root / "reports/table3.json").read_text())
    assert not any("different code" in (cell["reason"] or "") for cell in document["cells"])
    return {(cell["row"], cell["column"]): cell["mean"] for cell in document["cells"]}


def test_an_edited_method_trains_again_alone(made: Project) -> None:
    """A comment and a docstring are nothing to be done; nor is the name of the file. In a line that names the part its runs
    train again, and the report has their new numbers."""
    path, before, first = made.root / FEDPROX, made.trained(), means(made)
    path.write_text("# A comment.\n" + path.read_text().replace('"""', '"""Said otherwise. ', 1))
    path = path.rename(path.with_name("proximal.py"))
    assert "Nothing to be done" in run(made)

    assert "self.mu" in path.read_text()
    path.write_text(path.read_text().replace("self.mu", "(5.0 + self.mu)"))
    assert "part fedprox changed since seed 8 was trained; training it again" in run(made)
    trained = new_trainings(before, made.trained())
    assert len(trained) == 2
    assert all("-fedprox-" in name for name in trained), trained
    second = means(made)
    assert {place for place in first if first[place] != second[place]} == {place for place in first if place[0] == "fedprox"}
    assert "Nothing to be done" in run(made)
