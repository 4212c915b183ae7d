"""Fixtures with an empty database."""

import shutil

import pytest

from tests.helpers import shared


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """The path of one database with its schema and no runs."""
    return shared.empty_database(tmp_path_factory)


@pytest.fixture
def root(tmp_path, empty_database):
    """A project folder with an empty database."""
    shutil.copyfile(empty_database, tmp_path / "mlflow.db")
    return tmp_path
