"""The README shows commands with their output: on the committed evidence they print these lines."""

import re
import shlex
from pathlib import Path

import pytest

from fedrepro.cli import main

ROOT = Path(__file__).parents[3]
BLOCKS = re.findall(r"^```\n(\$ fedrepro .*?)^```", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)
SHOWN = [part for block in BLOCKS for part in re.findall(r"^\$ (.*?\n)(.*?)(?=^\$ |\Z)", block, flags=re.DOTALL | re.MULTILINE)]


def test_the_readme_shows_some() -> None:
    """The README shows output of `runs` and of `compare`."""
    assert {command.split()[1] for command, lines in SHOWN if lines} == {"runs", "compare"}


@pytest.mark.parametrize(("command", "lines"), SHOWN, ids=[command.strip() for command, _ in SHOWN])
def test_output_in_the_readme(
    command: str, lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every shown line is printed, in this order. `...` stands for lines left out. Files that the command writes go to a
    temporary folder."""
    for name in ("papers", "data", "reports", "params.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    assert main(shlex.split(command)[1:]) == 0
    printed = iter(line.rstrip() for line in capsys.readouterr().out.splitlines())
    for line in filter(lambda line: line != "...", lines.splitlines()):
        assert line in printed, line


def test_runs_on_other_data_have_no_difference(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Both runs are published, but on MNIST and FashionMNIST, so `compare` shows no difference."""
    monkeypatch.chdir(ROOT)
    assert main(["compare", "b79f960d", "5e6c95cf"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row, *_) = (line.split() for line in lines if line.startswith("B  85.77"))
    assert row[6:8] == ["–", "–"]
