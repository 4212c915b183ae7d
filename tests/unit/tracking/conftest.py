"""A database costs seconds to make; tests copy one."""

import shutil

import pytest

from fedrepro.tracking import sync


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """One database with its schema and nothing in it: making one costs seconds."""
    root = tmp_path_factory.mktemp("empty")
    sync([], root)
    return root / "mlflow.db"


@pytest.fixture
def root(tmp_path, empty_database):
    """A project folder that has an empty database."""
    shutil.copyfile(empty_database, tmp_path / "mlflow.db")
    return tmp_path
