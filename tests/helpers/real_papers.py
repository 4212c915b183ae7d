"""The real papers with a small params.yaml, as a folder: no data are there, and nothing is trained."""

import shutil
from pathlib import Path

import pytest

from fedrepro import console

ROOT = Path(__file__).parents[2]


def copy(folder: Path, params: str, *papers: str, without: tuple[str, ...] = ()) -> Path:
    """The folder, with the papers (or only these), the registry and this params.yaml in it; files named as `without` says stay
    away."""
    for name in papers or [""]:
        shutil.copytree(ROOT / "papers" / name, folder / "papers" / name, ignore=shutil.ignore_patterns(*without))
    shutil.copy(ROOT / "papers/scales.yaml", folder / "papers")
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data/registry.yaml", folder / "data")
    (folder / "params.yaml").write_text(params)
    return folder


def go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder as the current one; commands that are called here write no log."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FEDREPRO_ERRORS", raising=False)
    monkeypatch.setattr(console, "_log", None)
    return folder


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch, params: str, *papers: str) -> Path:
    """`copy`, as the current folder."""
    return go(copy(folder, params, *papers), monkeypatch)
