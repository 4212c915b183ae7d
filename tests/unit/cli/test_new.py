"""`fedrepro new` writes each skeleton into a copy of the project, where it runs."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro.cli import main
from fedrepro.methods.parts import SLOTS

ROOT = Path(__file__).parents[3]
TAKEN = ("src", "tests/toy.py", "tests/conftest.py", "pyproject.toml", "params.yaml", "data/registry.yaml", "papers")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the project that the commands read. Tests write into this copy."""
    return make(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second copy. Tests leave its files as they found them."""
    return make(tmp_path_factory.mktemp("untouched"))


def make(root: Path) -> Path:
    for name in TAKEN:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, target)
    for folder in ("methods", "data"):
        (root / "tests/unit" / folder).mkdir(parents=True)
    return root


@pytest.fixture(autouse=True)
def _code_of_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the check for another clone's code, so `main` of this process can run in the copy."""
    monkeypatch.setattr("fedrepro.cli.require_own_code", lambda: None)


def call(root: Path, *command: str, ok: bool = True) -> str:
    """Runs a process with the copy's package. Returns its output."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FEDREPRO")} | {"PYTHONPATH": str(root / "src")}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout + done.stderr


def fedrepro(root: Path, *arguments: str, ok: bool = True) -> str:
    return call(root, sys.executable, "-m", "fedrepro", *arguments, ok=ok)


@pytest.fixture(scope="module")
def tested(copy: Path) -> str:
    """What pytest says about the generated tests of one part for each slot and of the data set `squares`, in one process."""
    tests = ["tests/unit/data/test_squares.py"]
    for slot in SLOTS:
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
            patch.chdir(copy)
            patch.setattr("fedrepro.cli.require_own_code", lambda: None)
            assert main(["new", "method", f"new_{slot}", "--slot", slot]) == 0
        tests.append(f"tests/unit/methods/test_new_{slot}.py")
        assert said.getvalue().splitlines()[:2] == [
            f"written src/fedrepro/methods/{slot}/new_{slot}.py",
            f"written {tests[-1]}",
        ]
    said = fedrepro(copy, "new", "dataset", "squares")
    assert "changed data/registry.yaml" in said
    assert "changed src/fedrepro/data/registry.py" in said
    return call(copy, sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", *tests)


def test_a_part_of_every_slot_and_a_table(copy: Path, tested: str) -> None:
    """One part for each of the eight slots: the tests pass, ruff accepts the files, and `list` shows the parts. A method of all
    eight trains in a new row of a new table. The table's own two rows train too, at scale demo, and it has no printed
    numbers."""
    assert "27 passed" in tested
    tests = [f"tests/unit/methods/test_new_{slot}.py" for slot in SLOTS]
    parts = [f"src/fedrepro/methods/{slot}/new_{slot}.py" for slot in SLOTS]
    ruff = str(Path(sys.executable).with_name("ruff"))
    call(copy, ruff, "check", "--no-cache", *parts, *tests)
    call(copy, ruff, "format", "--check", "--no-cache", *parts, *tests)
    listed = fedrepro(copy, "list", "methods")
    assert all(f"  new_{slot} " in listed for slot in SLOTS)
    whole = "+".join(f"new_{slot}" for slot in SLOTS)
    assert "new_client(strength=0.1)" in fedrepro(copy, "describe", whole)
    said = fedrepro(copy, "new", "table", "fedgh/table40")
    assert said.startswith("written papers/fedgh/tables/table40.yaml\nnext:\n")
    table = copy / "papers/fedgh/tables/table40.yaml"
    table.write_text(table.read_text().replace("columns:\n", f"  - {{key: mine, label: M, method: {whole}}}\ncolumns:\n"))
    said = fedrepro(copy, "run", "fedgh/table40", "--scale", "demo", "--set", "rounds=2", "--seeds", "8", "--device", "cpu")
    assert said.count("seed 8 trained") == 3
    assert "the paper prints no such number" in said


def test_a_paper_that_trains_with_its_claim(copy: Path) -> None:
    """Its table plans two cells at every scale and trains at scale demo. Its claim names rows and columns of the table."""
    assert fedrepro(copy, "new", "paper", "mine").splitlines()[:3] == [
        "written papers/mine/paper.yaml",
        "written papers/mine/tables/table1.yaml",
        "written papers/mine/claims.yaml",
    ]
    code = (
        "from fedrepro.config.grid import plan; from fedrepro.config.project import load_project;"
        "from fedrepro.config.words import check_claims; p = load_project(); check_claims(p, 'mine');"
        "print([len(plan(p.as_published(s), 'mine', 'table1', s).planned) for s in p.scales])"
    )
    assert call(copy, sys.executable, "-c", code).strip() == "[2, 2, 2]"
    said = fedrepro(copy, "run", "mine/table1", "--scale", "demo", "--set", "rounds=2", "--seeds", "8", "--device", "cpu")
    assert said.count("seed 8 trained") == 2


def test_a_data_set_that_trains(copy: Path, tested: str) -> None:
    """The command writes a reader, its kind and a registry entry. The generated test passes, a run of a table reads the data,
    and the checksum detects changed images. With the checksum that the error names, `fedrepro data` prepares both shapes
    again."""
    assert re.findall(r"test_squares\.py::test_\w+ (\w+)", tested) == ["PASSED"] * 2
    assert "squares (data set)" in fedrepro(copy, "describe", "squares")
    cell = ["--rows", "fedavg", "--columns", "alpha1-top1", "--seeds", "8", "--device", "cpu"]
    said = fedrepro(copy, "run", "fedgh/table2", *cell, "--scale", "demo", "--set", "dataset=squares", "rounds=2")
    assert "squares-two_nn-" in said
    reader = copy / "src/fedrepro/data/squares.py"
    reader.write_text(reader.read_text().replace("170 * labels", "171 * labels"))
    before = entries(copy / "data/arrays/squares")
    said = fedrepro(copy, "data", "squares", ok=False)
    said_entry = re.search(r'if you changed its reader, write (content_sha256: "[0-9a-f]{64}") there; otherwise', said)
    assert said_entry, said
    registry = copy / "data/registry.yaml"
    registry.write_text(f"{registry.read_text().rpartition('content_sha256')[0]}{said_entry[1]}\n")
    fedrepro(copy, "data", "squares")
    after = entries(copy / "data/arrays/squares")
    assert before.keys() == after.keys() == {"1x8x8", "1x28x28"}
    assert not {*before.values()} & {*after.values()}


def entries(folder: Path) -> dict[str, str]:
    """The shape of each prepared array and the registry entry that it was made from."""
    return {
        path.parent.name: json.loads(path.read_text())["source"]["entry_sha"] for path in folder.glob("[!.]*/manifest.json")
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["method", "gh"], "new method gh: there is a method of that name"),
        (["method", "Median"], "new method Median: take lower-case letters"),
        (["method", "class"], "new method class: take lower-case letters"),
        (["table", "fedgh/table2"], "papers/fedgh/tables/table2.yaml: is there already"),
        (["table", "fedgj/table9"], "unknown paper 'fedgj'; did you mean 'fedgh'?"),
        (["table", "table9"], "new table table9: write paper/table"),
        (["table", "fedgh/mine"], "new table mine: take table and a number"),
        (["paper", "fedgh"], "papers/fedgh/paper.yaml: is there already"),
        (["paper", "null"], "new paper null: the name means something else here"),
        (["paper", "sweep_1"], "new paper sweep_1: the name means something else here"),
        (["dataset", "registry"], "src/fedrepro/data/registry.py is there already"),
        (["dataset", "mnist"], "data/registry.yaml has an entry of that name"),
    ],
)
def test_nothing_is_overwritten(
    arguments: list[str],
    words: str,
    untouched: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line, exit code 2, and no file is touched."""
    monkeypatch.chdir(untouched)
    stamps = lambda: {p: p.stat().st_mtime_ns for p in untouched.rglob("*") if p.is_file()}  # noqa: E731
    before = stamps()
    assert main(["new", *arguments]) == 2
    said = "".join(capsys.readouterr())
    assert words in said
    assert said.count("\n") == 1
    assert stamps() == before


def test_outside_of_a_project(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "fedrepro", "new", "method", "median"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no such folder; give the command in the project's root folder" in done.stderr
    assert not list(tmp_path.iterdir())


PART = "from fedrepro.methods.parts import Aggregate, register\n"
MISTAKES = {
    "raises": (
        "from dataclasses import dataclass\n@register('aggregate', 'mine')\n@dataclass(frozen=True)\nclass Mine(Aggregate):\n"
        "    def __call__(self, x, state, ctx):\n        return {}[0], state\n",
        "KeyError: 0 (src/fedrepro/methods/aggregate/mine.py:7)",
    ),
    "syntax": ("class Mine(Aggregate:\n", "(mine.py, line 2) (src/fedrepro/methods/aggregate/mine.py:2)"),
    "twice": (
        "@register('aggregate', 'mean')\nclass Mine(Aggregate): pass\n",
        "method part 'mean' is registered twice (src/fedrepro/methods/aggregate/mine.py:2)",
    ),
    "plain class": (
        "@register('aggregate', 'mine')\nclass Mine(Aggregate): pass\n",
        "aggregate/mine.py: part 'mine' needs @dataclass(frozen=True) below @register",
    ),
    "misspelt hook": (
        "from dataclasses import dataclass\nfrom fedrepro.methods.parts import LocalRule\n@register('client', 'mine')\n"
        "@dataclass(frozen=True)\nclass Mine(LocalRule):\n    def directon(self, params, batch, ctx):\n        return params\n",
        "aggregate/mine.py: part 'mine': 'directon' is no hook; did you mean 'direction'? Else rename it",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_an_own_part_names_its_file_and_line(case: str, untouched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this line every command would end with a Python error that does not name the user's file."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # files of one size and second would share a .pyc
    code, words = MISTAKES[case]
    own = untouched / "src/fedrepro/methods/aggregate/mine.py"
    own.write_text(PART + code)
    try:
        said = fedrepro(untouched, "run", "--method", "mine", "--rounds", "1", "--seeds", "8", ok=False)
    finally:
        own.unlink()
    last = said.strip().splitlines()[-1]
    assert last.startswith("fedrepro: error: ")
    assert words in last
