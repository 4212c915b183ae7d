"""Opens a tracking store: our own database, a shared one, or MLflow's server; and its experiments."""

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrepro import console
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, lock, write_atomic, writing
from fedrepro.tracking.address import ARTIFACTS, Address, shorten
from fedrepro.tracking.artifacts import local
from fedrepro.tracking.backend import Backend
from fedrepro.tracking.content import NOTE, ORIGIN
from fedrepro.tracking.rows import Rows
from fedrepro.tracking.views import SAVED

OURS = "fedrepro.experiment"
_DESCRIBED = "fedrepro.described"  # a hash of the description that we wrote: another text is a person's
# Seconds to wait for a server's answer, at the start and while runs are written; names are MLflow's and libpq's.
ANSWER_S = 5
PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "20", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}
DEADLINES = {"connect_timeout": str(ANSWER_S), "tcp_user_timeout": "15000", "keepalives_idle": "10", "keepalives_interval": "5"}
_SILENT = "MLflow at {} does not answer; `fedrepro track` catches up"
_SCHEMA = 7_302_114  # key of the PostgreSQL lock for creating tables: any number, the same on all machines


def writer(root: Path) -> contextlib.AbstractContextManager[None]:
    """Lets one process of a folder write at a time; a second one waits. The lock ends when its process ends, even if killed."""
    line = "MLflow: waiting for process {}, which is writing"
    return lock(Path(root) / ARTIFACTS / ".writer.lock", busy=lambda holder: console.say(line.format(holder)))


@contextlib.contextmanager
def connected(address: Address, root: Path) -> Iterator[Backend]:
    """The store at `address`, created if it is a database and new. UserError when it cannot be read or does not answer."""
    for key, value in (PATIENCE | QUIET).items():
        os.environ.setdefault(key, value)
    uri = _require_answer(address)  # before MLflow is loaded, which takes seconds
    logging.getLogger("alembic").setLevel(logging.ERROR)
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import DatabaseError

    # We print a server's failure as one line.
    logging.getLogger("mlflow").setLevel(logging.CRITICAL if address.shared else logging.ERROR)
    kind = Backend if address.served else Rows
    more = {ORIGIN: origin(root)} if address.shared else {}
    try:
        with contextlib.nullcontext() if address.served else _database(address, uri):
            yield kind(MlflowClient(tracking_uri=uri), address, root, more)
    except (MlflowException, DatabaseError) as error:
        _require_answer(address)  # of a server that went away meanwhile there is a plainer line
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        if address.shared:
            raise UserError(f"MLflow at {address}: {shorten(reason)}; `fedrepro track` catches up") from error
        raise UserError(f"{address}: {reason}; if it is damaged, move it away: it is made again from the results") from error


def origin(root: Path) -> str:
    """The folder that wrote a run into a shared store."""
    return f"{socket.gethostname()}:{root}"


def _require_answer(address: Address) -> str:
    """The address as MLflow takes it. UserError when a server does not answer: MLflow's own client would retry for minutes."""
    if address.database:
        return address.uri
    if not address.served:
        return _with_deadlines(address)
    import requests

    try:  # any answer will do
        requests.get(f"{address.uri}/health", timeout=ANSWER_S)
    except requests.RequestException as error:
        raise UserError(_SILENT.format(address)) from error
    return address.uri


@contextlib.contextmanager
def _database(address: Address, uri: str) -> Iterator[None]:
    """Opens the database, creates its schema if needed, and checks the schema."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import text

    artifacts = address.artifacts or ""
    if address.database is None:
        engine = SqlAlchemyStore._get_or_create_engine(uri)
        # Tables of a new PostgreSQL database, one process at a time: MLflow's migrations take no lock, the second would crash.
        with engine.begin() as connection:
            connection.execute(text("select pg_advisory_xact_lock(:number)"), {"number": _SCHEMA})
            SqlAlchemyStore(uri, artifacts)
    else:
        engine, database = _fast_engine(uri), address.database
        one_creator = lock(database.with_name(f".{database.name}.lock"), busy=lambda holder: None)
        with one_creator if address.shared else contextlib.nullcontext():
            if not database.exists():
                write_atomic(database, lambda temporary: _create(temporary, artifacts))
    try:
        SqlAlchemyStore(uri, artifacts)  # checks the schema
        yield
    finally:
        engine.dispose()  # MLflow caches engines, and a connection to a deleted file would keep working


def _with_deadlines(address: Address) -> str:
    """The address of a PostgreSQL server that answers, with limits to how long it may be silent."""
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, OperationalError

    try:
        url = make_url(address.uri)
        url = url.update_query_dict({key: value for key, value in DEADLINES.items() if key not in url.query})
        engine = create_engine(url)
    except ArgumentError as error:
        raise UserError(f"MLflow at {address}: not the address of a database ({error})") from error
    except ModuleNotFoundError as error:
        raise UserError(f"MLflow at {address}: needs {error.name}; `make env-cluster` installs it") from error
    try:
        engine.connect().close()
    except OperationalError as error:
        if "password" in str(error) or "does not exist" in str(error):
            raise UserError(f"MLflow at {address}: {str(error.orig).strip().splitlines()[-1]}") from error
        raise UserError(_SILENT.format(address)) from error
    finally:
        engine.dispose()
    return url.render_as_string(hide_password=False)


def _create(path: Path, artifacts: str) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    address = f"sqlite:///{path}"
    engine = _fast_engine(address)
    SqlAlchemyStore(address, artifacts)
    engine.dispose()


def _fast_engine(address: str) -> Any:
    """MLflow's engine for this database, which does not wait for the disk: that would cost 10 ms per commit.

    The file stays intact if the process is killed. A power cut may damage it; then it is rebuilt from the results.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import event

    engine = SqlAlchemyStore._get_or_create_engine(address)
    if not event.contains(engine, "connect", _do_not_wait):
        event.listen(engine, "connect", _do_not_wait)
    return engine


def _do_not_wait(connection: Any, record: Any) -> None:
    connection.execute("PRAGMA synchronous = OFF")


def experiment_id(backend: Backend, name: str) -> str:
    """The experiment called `name`; created or restored when needed. Several processes may call this at once."""
    client, base = backend.client, backend.address.artifacts
    location = base and f"{base}/{name}"
    experiment = client.get_experiment_by_name(name)
    if experiment is not None and experiment.lifecycle_stage == "deleted":
        client.restore_experiment(experiment.experiment_id)
    if experiment is not None and experiment.artifact_location != location and not backend.address.shared:
        # The project was moved: links into the old place are dead.
        old_name = f"{name} (was in {experiment.artifact_location}, {experiment.experiment_id})"
        client.rename_experiment(experiment.experiment_id, old_name)
        client.delete_experiment(experiment.experiment_id)
        experiment = None
    return experiment.experiment_id if experiment else _create_experiment(client, name, location)


def _create_experiment(client: Any, name: str, location: str | None) -> str:
    from mlflow.exceptions import MlflowException

    folder = local(location) if location else None
    if folder:
        with writing(folder):  # without it, the root would count as a folder of another machine, see `artifacts.store_files`
            folder.mkdir(parents=True, exist_ok=True)
    try:
        return client.create_experiment(name, artifact_location=location, tags={OURS: "true"})
    except MlflowException:
        experiment = client.get_experiment_by_name(name)  # another process has created it: names are unique
        if experiment is None:
            raise
        return experiment.experiment_id


def set_looks(backend: Backend, experiment: str, tags: dict[str, str]) -> None:
    """Sets how the UI shows the experiment. Deletes saved views that are not in `tags`, except in a shared store. A description
    that a person wrote stays."""
    client = backend.client
    existing_tags = client.get_experiment(experiment).tags
    described, note = existing_tags.get(_DESCRIBED), existing_tags.get(NOTE)
    if described and note and canonical_hash(note) != described:
        tags = {key: value for key, value in tags.items() if key != NOTE}
    elif NOTE in tags:
        tags = tags | {_DESCRIBED: canonical_hash(tags[NOTE])}
    for key, value in ({OURS: "true"} | tags).items():
        if existing_tags.get(key) != value:
            client.set_experiment_tag(experiment, key, value)
    for key in existing_tags if not backend.address.shared else ():
        if key.startswith(SAVED) and key not in tags:
            client.delete_experiment_tag(experiment, key)


def our_experiments(client: Any) -> dict[str, str]:
    """Name -> id of every experiment that we made; other people's experiments in the same database are not touched."""
    return {e.name: e.experiment_id for e in client.search_experiments(filter_string=f"tags.`{OURS}` = 'true'")}


def newest_experiment(client: Any) -> str | None:
    """The id of our experiment that trains, or else of the one whose run ended last."""
    experiments = list(our_experiments(client).values())
    orders = (("attributes.status = 'RUNNING'", "start_time"), ("", "end_time")) if experiments else ()
    for status, order in orders:
        if runs := client.search_runs(experiments, status, order_by=[f"attributes.{order} DESC"], max_results=1):
            return runs[0].info.experiment_id
    return None
