"""The real papers with a small params.yaml in a folder, without data or trainings."""

import shutil
from pathlib import Path

import pytest

from fedrepro import console

ROOT = Path(__file__).parents[2]


def copy(folder: Path, params: str, *papers: str, without: tuple[str, ...] = ()) -> Path:
    """Makes the folder with the papers (or only these), the registry and this params.yaml, except for the files in
    `without`."""
    for name in papers or [""]:
        shutil.copytree(ROOT / "papers" / name, folder / "papers" / name, ignore=shutil.ignore_patterns(*without))
    shutil.copy(ROOT / "papers/scales.yaml", folder / "papers")
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data/registry.yaml", folder / "data")
    (folder / "params.yaml").write_text(params)
    return folder


def go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the folder the current one. Commands called in this process write no log."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FEDREPRO_ERRORS", raising=False)
    monkeypatch.setattr(console, "_log", None)
    return folder


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch, params: str, *papers: str) -> Path:
    """Calls `copy` and makes the folder the current one."""
    return go(copy(folder, params, *papers), monkeypatch)
