"""Results know the code that made them: an edited method is trained again, and nothing else is."""

import json
import shutil
from pathlib import Path

import pytest

from tests.workflow.conftest import TABLE, Project, copy_of, new_trainings

FEDPROX = Path("src/fedrepro/methods/client/fedprox.py")


@pytest.fixture(scope="module")
def made(chain: tuple[Project, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose table is there, with sources of its own that its commands use. One test goes on where another ends."""
    return copy_of(chain[0], tmp_path_factory.mktemp("code") / "project")


def run(project: Project, *command: str, ok: bool = True) -> str:
    """What a command says that uses the sources of the project."""
    done = project.run(*(command or TABLE), ok=ok, PYTHONPATH=str(project.root / "src"))
    return done.stdout + done.stderr


def edit(project: Project, old: str, new: str) -> None:
    path = project.root / FEDPROX
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def means(project: Project) -> dict[tuple[str, str], float]:
    document = json.loads((project.root / "reports/table3.json").read_text())
    assert not any("different code" in (cell["reason"] or "") for cell in document["cells"])
    return {(cell["row"], cell["column"]): cell["mean"] for cell in document["cells"]}


def test_words_change_nothing(made: Project) -> None:
    """A comment and a docstring: there is nothing to be done."""
    text = (made.root / FEDPROX).read_text()
    (made.root / FEDPROX).write_text("# A comment.\n" + text.replace('"""', '"""Said otherwise. ', 1))
    assert "Nothing to be done" in run(made)


def test_an_edited_method_trains_again_alone(made: Project) -> None:
    """In a line that names the part; the report has the new numbers, the others stay; then there is nothing to be done. Edited
    back, the old numbers come again, by training."""
    before, first = made.trained(), means(made)
    edit(made, "self.mu", "(5.0 + self.mu)")
    assert "stale: part fedprox changed" in run(made, "fedrepro", "runs")
    assert "local seeds stale: part fedprox changed" in run(made, "fedrepro", "doctor", ok=False)
    said = run(made)
    assert "part fedprox changed since seed 8 was trained; training it again" in said
    trained = new_trainings(before, made.trained())
    assert len(trained) == 2
    assert all("-fedprox-" in name for name in trained), trained
    second = means(made)
    assert {place for place in first if first[place] != second[place]} == {place for place in first if place[0] == "fedprox"}
    assert "Nothing to be done" in run(made)
    edit(made, "(5.0 + self.mu)", "self.mu")
    run(made)
    assert means(made) == first
    assert "Nothing to be done" in run(made)


def test_seeds_of_other_code_never_make_one_mean(made: Project) -> None:
    """The method is edited, and a seed is added: of that method both seeds train, of the others the new one alone."""
    before = made.trained()
    edit(made, "self.mu", "(5.0 + self.mu)")
    made.params(lambda params: params["seeds"].append(9))
    run(made)
    trained = new_trainings(before, made.trained())
    assert {name for name in trained if name.endswith("seed8")} == {name for name in before if "-fedprox-" in name}
    assert len({name for name in trained if name.endswith("seed9")}) == len(before)
    document = json.loads((made.root / "reports/table3.json").read_text())
    assert all([*cell["per_seed"]] == ["8", "9"] and cell["mean"] is not None for cell in document["cells"])


def test_a_part_may_move_and_a_deleted_one_is_named(made: Project) -> None:
    """The name of a file is no code. Where a part is named that is gone, the workflow stops with one line; its results stay."""
    before = made.trained()
    moved = (made.root / FEDPROX).with_name("proximal.py")
    shutil.move(made.root / FEDPROX, moved)
    assert "Nothing to be done" in run(made)
    moved.unlink()
    said = run(made, ok=False)
    assert said.strip().splitlines()[-1].startswith("fedrepro: error: ")
    assert "unknown method part 'fedprox'" in said.strip().splitlines()[-1]
    assert made.trained() == before
