"""What we ask of MLflow: open the database, find our runs, write one, remove one."""

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from fedrepro import console
from fedrepro.engine.records import Record
from fedrepro.errors import UserError
from fedrepro.files import lock, write_atomic
from fedrepro.tracking import wanted as view
from fedrepro.tracking.shown import DIGEST, KEY, PARENT, Mean, Seed
from fedrepro.tracking.views import SAVED
from fedrepro.tracking.wanted import Wanted

ARTIFACTS = Path("mlartifacts")
METRICS, PARAMETERS = 900, 100  # a call; MLflow takes 1000 in all, of which 100 parameters
OURS = "fedrepro.experiment"


@contextlib.contextmanager
def writer(root: Path) -> Iterator[None]:
    """One writer at a time; a second one waits for its turn. The lock goes when its holder does, however that ends."""

    def busy(holder: str) -> None:
        console.say(f"MLflow: waiting for process {holder}, which is writing")

    with lock(Path(root) / ARTIFACTS / ".writer.lock", busy=busy):
        yield


@contextlib.contextmanager
def opened(database: Path) -> Iterator[Any]:
    """A client of the SQLite file, which is created whole or not at all. UserError when this MLflow cannot read it."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    logging.getLogger("alembic").setLevel(logging.ERROR)
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy.exc import DatabaseError

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    address = f"sqlite:///{database}"
    engine = _fast_engine(address)
    try:
        if not database.exists():
            write_atomic(database, lambda temporary: _create(temporary, database.parent / ARTIFACTS))
        SqlAlchemyStore(address, (database.parent / ARTIFACTS).as_uri())  # checks the schema
        yield MlflowClient(tracking_uri=address)
    except (MlflowException, DatabaseError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{database}: {reason}; if it is damaged, move it away: it is made again from the results") from error
    finally:
        engine.dispose()  # MLflow keeps engines for ever, and a connection to a file that was deleted since would go on working


def _create(path: Path, artifacts: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    address = f"sqlite:///{path}"
    engine = _fast_engine(address)
    SqlAlchemyStore(address, artifacts.as_uri())
    engine.dispose()


def _fast_engine(address: str) -> Any:
    """MLflow's engine for this database, told not to wait for the disk: a dozen commits a run would cost a tenth of a second.

    A killed process still leaves a sound file. A power cut may not, and then the file is made again from the results.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import event

    engine = SqlAlchemyStore._get_or_create_engine(address)
    if not event.contains(engine, "connect", _do_not_wait):
        event.listen(engine, "connect", _do_not_wait)
    return engine


def _do_not_wait(connection: Any, record: Any) -> None:
    connection.execute("PRAGMA synchronous = OFF")


def experiment_id(client: Any, root: Path, name: str, tags: dict[str, str]) -> str:
    """The experiment called `name`, with these tags and its artifacts below this root; created, or taken out of the bin, when
    needed."""
    location = (root / ARTIFACTS / name).as_uri()
    found = client.get_experiment_by_name(name)
    if found is not None and found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    if found is not None and found.artifact_location != location:  # the project was moved: links into the old place are dead
        client.rename_experiment(found.experiment_id, f"{name} (was in {found.artifact_location}, {found.experiment_id})")
        client.delete_experiment(found.experiment_id)
        found = None
    if found is None:
        return client.create_experiment(name, artifact_location=location, tags={OURS: "true", **tags})
    for key, value in tags.items():
        if found.tags.get(key) != value:
            client.set_experiment_tag(found.experiment_id, key, value)
    for key in found.tags:
        if key.startswith(SAVED) and key not in tags:
            client.delete_experiment_tag(found.experiment_id, key)
    return found.experiment_id


def our_experiments(client: Any) -> dict[str, str]:
    """Name -> id of every experiment that we made; other people's experiments in the same database are not touched."""
    return {e.name: e.experiment_id for e in client.search_experiments(filter_string=f"tags.`{OURS}` = 'true'")}


def our_runs(client: Any, experiment: str) -> list[Any]:
    """Every run of an experiment that has a run key, deleted ones left out."""
    found, token = [], None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        found += [run for run in page if KEY in run.data.tags]
        token = page.token
        if not token:
            return found


def newest_experiment(client: Any) -> str | None:
    """The id of our experiment whose run ended last."""
    ours = list(our_experiments(client).values())
    found = client.search_runs(ours, order_by=["attributes.end_time DESC"], max_results=1) if ours else []
    return found[0].info.experiment_id if found else None


def write_run(client: Any, experiment: str, root: Path, run: Seed | Mean, parent: str | None = None) -> str:
    """Writes one run and returns MLflow's id of it. The digest comes last: its lack marks a run that a kill left half-way."""
    from mlflow.entities import Metric, Param

    started, ended = run.span
    tags = {key: value for key, value in run.tags.items() if key != DIGEST} | ({PARENT: parent} if parent else {})
    run_id = (info := client.create_run(experiment, start_time=started, tags=tags).info).run_id
    parameters = [Param(key, value) for key, value in run.parameters.items()]
    values = [Metric(name, value, time, number) for name, value, time, number in run.metrics]
    for some, described in zip_longest(_chunks(values, METRICS), _chunks(parameters, PARAMETERS), fillvalue=()):
        client.log_batch(run_id, metrics=some, params=described, synchronous=True)
    if isinstance(run, Seed):
        client.log_inputs(run_id, datasets=_datasets(root, run.wanted, run.receipt))
        for name, path in view.artifacts(root, run.wanted).items():
            _place(path, _local(info.artifact_uri) / name)
    client.set_terminated(run_id, "FINISHED" if run.finished else "FAILED", end_time=ended)
    client.set_tag(run_id, DIGEST, run.digest)
    return run_id


def remove_run(client: Any, run: Any) -> None:
    """Removes a run and its artifacts for good, as `mlflow gc` does."""
    client.delete_run(run.info.run_id)
    client._tracking_client.store._hard_delete_run(run.info.run_id)  # no public call removes what is in the bin
    shutil.rmtree(_local(run.info.artifact_uri).parent, ignore_errors=True)


def _datasets(root: Path, wanted: Wanted, receipt: Record) -> list[Any]:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    found = []
    for item in view.inputs(root, wanted, receipt):
        kept = {key: value for key, value in (item["manifest"] or {}).items() if key not in ("files", "class_counts")}
        dataset = Dataset(
            name=item["name"],
            digest=item["sha256"][:36],  # as much of a sha256 as MLflow keeps
            source_type="local",
            source=json.dumps({"uri": str(root / item["path"])}),
            profile=json.dumps(kept, sort_keys=True),
        )
        found.append(DatasetInput(dataset, [InputTag("mlflow.data.context", item["context"])]))
    return found


def _place(source: Path, target: Path) -> None:
    """A hard link where the file system has them, so that a thousand models are not stored twice; else a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


def _local(uri: str) -> Path:
    return Path(unquote(urlparse(uri).path))


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
