"""Folders that pytest's processes share: the first one that needs a folder fills it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrepro.files import lock
from tests.helpers.bare import python


@contextlib.contextmanager
def shared(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """The path of the folder `name`, while no other process fills it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with lock(folder.with_suffix(".lock"), busy=lambda _: None):
        yield folder


def empty_database(factory: pytest.TempPathFactory) -> Path:
    """The path of an MLflow database with its schema and no runs, which takes seconds to make: tests copy it."""
    with shared(factory, "empty") as folder:
        if not (folder / "mlflow.db").exists():
            python(f"from pathlib import Path; from fedrepro.tracking import sync; sync([], Path({str(folder)!r}))")
    return folder / "mlflow.db"
