"""What we ask of MLflow: open the database, find our runs, write one, remove one."""

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from fedrepro import console
from fedrepro.errors import UserError
from fedrepro.files import lock, write_atomic
from fedrepro.reports.evidence import Receipt
from fedrepro.tracking import wanted as view
from fedrepro.tracking.wanted import Wanted

ARTIFACTS = Path("mlartifacts")
METRICS, PARAMETERS = 900, 100  # a call; MLflow takes 1000 in all, of which 100 parameters
OURS = "fedrepro.experiment"
# Tells the UI that this is model training, and which metric counts.
LOOK = {"mlflow.experimentKind": "custom_model_development", "mlflow.experiment.primaryMetric.name": "summary/test_accuracy"}


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


def experiment_id(client: Any, root: Path, name: str) -> str:
    """The experiment called `name`, with its artifacts below this root; created, or taken out of the bin, when needed."""
    location = (root / ARTIFACTS / name).as_uri()
    found = client.get_experiment_by_name(name)
    if found is not None and found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    if found is not None and found.artifact_location != location:  # the project was moved: links into the old place are dead
        client.rename_experiment(found.experiment_id, f"{name} (was in {found.artifact_location}, {found.experiment_id})")
        client.delete_experiment(found.experiment_id)
        found = None
    if found is None:
        return client.create_experiment(name, artifact_location=location, tags={OURS: "true", **LOOK})
    return found.experiment_id


def our_experiments(client: Any) -> dict[str, str]:
    """Name -> id of every experiment that we made; other people's experiments in the same database are not touched."""
    return {e.name: e.experiment_id for e in client.search_experiments(filter_string=f"tags.`{OURS}` = 'true'")}


def our_runs(client: Any, experiment: str) -> list[Any]:
    """Every run of an experiment that has a run key, deleted ones left out."""
    found, token = [], None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        found += [run for run in page if view.KEY in run.data.tags]
        token = page.token
        if not token:
            return found


def write_run(client: Any, experiment: str, root: Path, wanted: Wanted, receipt: Receipt, content: str) -> None:
    """Writes one run. Its digest is written last, so that a run left half-way by a kill is known by the lack of it."""
    from mlflow.entities import Metric, Param

    started, ended = (_milliseconds(receipt["cost"][key]) for key in ("started_at", "finished_at"))
    tags = view.tags(wanted, receipt, content)
    tags.pop(view.DIGEST)
    run_id = (info := client.create_run(experiment, start_time=started, tags=tags).info).run_id
    parameters = [Param(key, value) for key, value in view.parameters(receipt).items()]
    values = [Metric(name, value, time, number) for name, value, time, number in view.metrics(wanted, receipt, started, ended)]
    for some, described in zip_longest(_chunks(values, METRICS), _chunks(parameters, PARAMETERS), fillvalue=()):
        client.log_batch(run_id, metrics=some, params=described, synchronous=True)
    client.log_inputs(run_id, datasets=_datasets(root, wanted, receipt))
    for name, path in view.artifacts(root, wanted).items():
        _place(path, _local(info.artifact_uri) / name)
    client.set_terminated(run_id, "FINISHED" if receipt["status"] == "finished" else "FAILED", end_time=ended)
    client.set_tag(run_id, view.DIGEST, content)


def remove_run(client: Any, run: Any) -> None:
    """Removes a run and its artifacts for good, as `mlflow gc` does."""
    client.delete_run(run.info.run_id)
    client._tracking_client.store._hard_delete_run(run.info.run_id)  # no public call removes what is in the bin
    shutil.rmtree(_local(run.info.artifact_uri).parent, ignore_errors=True)


def _datasets(root: Path, wanted: Wanted, receipt: Receipt) -> list[Any]:
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


def _milliseconds(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp).timestamp() * 1000)


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
