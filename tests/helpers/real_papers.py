"""The real papers with a small params.yaml, as the current folder: no data are there, and nothing is trained."""

import shutil
from pathlib import Path

import pytest

from fedrepro import console

ROOT = Path(__file__).parents[2]


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch, params: str) -> Path:
    """The folder, with the papers, the registry and this params.yaml in it."""
    shutil.copytree(ROOT / "papers", folder / "papers")
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data/registry.yaml", folder / "data")
    (folder / "params.yaml").write_text(params)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FEDREPRO_ERRORS", raising=False)
    monkeypatch.setattr(console, "_log", None)
    return folder
