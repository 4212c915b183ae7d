"""The real papers with a small params.yaml, as a folder: no data are there, and nothing is trained."""

import shutil
from pathlib import Path

import pytest

from fedrepro import console

ROOT = Path(__file__).parents[2]


def copy(folder: Path, params: str, *papers: str) -> Path:
    """The folder, with the papers (or only these), the registry and this params.yaml in it."""
    for paper in papers:
        shutil.copytree(ROOT / "papers" / paper, folder / "papers" / paper)
    if papers:
        shutil.copy(ROOT / "papers/scales.yaml", folder / "papers")
    else:
        shutil.copytree(ROOT / "papers", folder / "papers")
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data/registry.yaml", folder / "data")
    (folder / "params.yaml").write_text(params)
    return folder


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch, params: str, *papers: str) -> Path:
    """That folder as the current one."""
    copy(folder, params, *papers)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FEDREPRO_ERRORS", raising=False)
    monkeypatch.setattr(console, "_log", None)
    return folder
