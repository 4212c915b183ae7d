"""Which store `MLFLOW_TRACKING_URI` names, and how it is called in messages."""

from pathlib import Path

import pytest

from fedrepro.errors import UserError
from fedrepro.tracking.address import VARIABLE, Address, default_address, find


def found(value: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> Address:
    monkeypatch.setenv(VARIABLE, value)
    return find(root)


def test_the_projects_own_database_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the variable names it. Any other file may be shared."""
    own = default_address(tmp_path)
    assert own.database == tmp_path / "mlflow.db"
    for value in ("", "sqlite:///mlflow.db", f"sqlite:///{tmp_path}/mlflow.db"):
        assert found(value, tmp_path, monkeypatch) == own
    other = found("sqlite:///team.db", tmp_path, monkeypatch)
    assert (other.database, other.shared, other.served) == (tmp_path / "team.db", True, False)


def test_servers_are_shared_and_a_password_is_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = found("http://node7:5000/", tmp_path, monkeypatch)
    assert (server.uri, server.shared, server.served, server.artifacts) == ("http://node7:5000", True, True, None)
    for scheme in ("postgresql", "postgresql+psycopg2"):
        store = found(f"{scheme}://me:secret@host/runs", tmp_path, monkeypatch)
        assert (str(store), store.shared, store.served) == (f"{scheme}://me:***@host/runs", True, False)
    assert "secret" not in str(found("http://me:secret@host", tmp_path, monkeypatch))


@pytest.mark.parametrize("value", ["mysql://me@host/runs", "team.db", "sqlite://team.db", "file:///tmp/runs", "http://"])
def test_an_address_of_another_form_is_refused(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a file of that name would appear."""
    with pytest.raises(UserError, match="not understood; set it to postgresql://"):
        found(value, tmp_path, monkeypatch)
