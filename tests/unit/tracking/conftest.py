"""Fixtures with an empty database: it takes seconds to make, so tests copy one."""

import shutil

import pytest

from fedrepro.tracking import sync


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """The path of one database with its schema and no runs."""
    root = tmp_path_factory.mktemp("empty")
    sync([], root)
    return root / "mlflow.db"


@pytest.fixture
def root(tmp_path, empty_database):
    """A project folder with an empty database."""
    shutil.copyfile(empty_database, tmp_path / "mlflow.db")
    return tmp_path
