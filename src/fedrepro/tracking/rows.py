"""A tracking store with direct access to its database: many runs per transaction, through MLflow's own table models.

MLflow's client needs about twenty transactions per run. Both write the same rows; a test compares them.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from fedrepro.tracking.artifacts import datasets, remove_files, store_files
from fedrepro.tracking.backend import NAME, Backend, KnownRun, NewRun, chunks
from fedrepro.tracking.content import DIGEST, KEY, RunningContent

_MANY = 500  # ids in one statement


class Rows(Backend):
    """SQLite or PostgreSQL."""

    batch = 200

    def __init__(self, client: Any, *arguments: Any) -> None:
        super().__init__(client, *arguments)
        self._store = client._tracking_client.store
        self._places: dict[str, str] = {}  # experiment -> where its artifacts are

    def runs(self, experiment: str) -> list[KnownRun]:
        """Every run as `Backend.runs` has it, without what only a page of the UI needs: metrics, parameters, inputs."""
        from mlflow.store.tracking.dbmodels.models import SqlRun, SqlTag
        from sqlalchemy import select

        condition = (SqlRun.experiment_id == int(experiment)) & (SqlRun.lifecycle_stage == "active")
        columns = SqlRun.run_uuid, SqlRun.status, SqlRun.start_time, SqlRun.end_time, SqlRun.artifact_uri
        tags: dict[str, dict[str, str]] = defaultdict(dict)
        interned: dict[str, str] = {}  # of most tags many runs have the same: kept once
        with self._store.ManagedSessionMaker() as session:
            joined = select(SqlTag.run_uuid, SqlTag.key, SqlTag.value).join(SqlRun, SqlRun.run_uuid == SqlTag.run_uuid)
            for run_id, key, value in session.execute(joined.where(condition)):
                tags[run_id][interned.setdefault(key, key)] = interned.setdefault(value, value)
            rows = session.execute(select(*columns).where(condition)).all()
        keyed_rows = [row for row in rows if KEY in tags[row[0]]]
        return [KnownRun(run, status, begun or 0, ended or 0, uri, tags[run]) for run, status, begun, ended, uri in keyed_rows]

    def reserve(self, experiment: str, draft: NewRun) -> NewRun:
        """Chooses an id for the run; writes nothing yet."""
        from mlflow.utils.uri import append_to_uri_path

        if experiment not in self._places:
            self._places[experiment] = self.client.get_experiment(experiment).artifact_location
        run_id = uuid.uuid4().hex
        return replace(draft, run_id=run_id, artifacts=append_to_uri_path(self._places[experiment], run_id, "artifacts"))

    def write(self, experiment: str, entries: Sequence[NewRun]) -> None:
        """Writes all entries at once, then their files, then their digests."""
        from mlflow.store.tracking.dbmodels import models

        new = [entry for entry in entries if not entry.since]
        for entry in entries:
            if entry.since:
                self.fill(entry)
        with self._store.ManagedSessionMaker(read_only=False) as session:
            _insert(session, models.SqlRun, (_run(experiment, entry) for entry in new))
            _insert(session, models.SqlTag, (row for entry in new for row in _tags(entry.run_id, entry.tags | self.more)))
            _insert(session, models.SqlParam, (row for entry in new for row in _parameters(entry)))
            points = [row for entry in new for row in _metrics(entry)]
            _insert(session, models.SqlMetric, points)
            _insert(session, models.SqlLatestMetric, _latest(points))
            self._inputs(session, int(experiment), new)
        for entry in new:
            store_files(self.address, entry.artifacts, self.root, entry.content)
        complete = [entry for entry in new if not isinstance(entry.content, RunningContent)]
        with self._store.ManagedSessionMaker(read_only=False) as session:
            _insert(session, models.SqlTag, (_tag(entry.run_id, DIGEST, entry.content.digest) for entry in complete))

    def _inputs(self, session: Any, experiment: int, entries: Sequence[NewRun]) -> None:
        """Writes a data set once an experiment, and the runs that took it."""
        from mlflow.store.tracking.dbmodels.models import SqlDataset, SqlInput, SqlInputTag
        from sqlalchemy import select

        runs_and_inputs = [(entry.run_id, taken) for entry in entries for taken in datasets(self.root, entry.content)]
        by_key = {(taken.dataset.name, taken.dataset.digest): taken.dataset for _, taken in runs_and_inputs}
        ids: dict[tuple[str, str], str] = {}
        columns = SqlDataset.name, SqlDataset.digest, SqlDataset.dataset_uuid
        for names in chunks(sorted({name for name, _ in by_key}), _MANY):
            condition = (SqlDataset.experiment_id == experiment) & SqlDataset.name.in_(names)
            ids |= {(name, digest): identity for name, digest, identity in session.execute(select(*columns).where(condition))}
        new = {key: uuid.uuid4().hex for key in by_key if key not in ids}
        _insert(session, SqlDataset, (_dataset(experiment, identity, by_key[key]) for key, identity in new.items()))
        ids |= new
        links, tags = [], []
        for run_id, taken in runs_and_inputs:
            link, source = uuid.uuid4().hex, ids[taken.dataset.name, taken.dataset.digest]
            ends = {"source_type": "DATASET", "source_id": source, "destination_type": "RUN", "destination_id": run_id}
            links.append({"input_uuid": link} | ends)
            tags += [{"input_uuid": link, "name": tag.key, "value": tag.value} for tag in taken.tags]
        _insert(session, SqlInput, links)
        _insert(session, SqlInputTag, tags)

    def remove(self, runs: Iterable[KnownRun]) -> None:
        """Removes runs for good, as `mlflow gc` does."""
        from mlflow.store.tracking.dbmodels import models
        from sqlalchemy import delete, select

        runs = list(runs)
        tables = models.SqlMetric, models.SqlLatestMetric, models.SqlParam, models.SqlTag, models.SqlRun
        with self._store.ManagedSessionMaker(read_only=False) as session:
            for run_ids in chunks([run.run_id for run in runs], _MANY):
                inputs = models.SqlInput.destination_id.in_(run_ids)
                tag_condition = models.SqlInputTag.input_uuid.in_(select(models.SqlInput.input_uuid).where(inputs))
                session.execute(delete(models.SqlInputTag).where(tag_condition))
                session.execute(delete(models.SqlInput).where(inputs))
                for table in tables:
                    session.execute(delete(table).where(table.run_uuid.in_(run_ids)))
        for run in runs:
            remove_files(run.artifacts)

    def retag(self, changed: Sequence[tuple[KnownRun, dict[str, str]]]) -> None:
        """In one transaction."""
        from mlflow.store.tracking.dbmodels.models import SqlRun, SqlTag
        from sqlalchemy import delete, update

        with self._store.ManagedSessionMaker(read_only=False) as session:
            for run, tags in changed:
                session.execute(delete(SqlTag).where(SqlTag.run_uuid == run.run_id, SqlTag.key.in_(list(tags))))
                if NAME in tags:
                    session.execute(update(SqlRun).where(SqlRun.run_uuid == run.run_id).values(name=tags[NAME]))
            _insert(session, SqlTag, (row for run, tags in changed for row in _tags(run.run_id, tags)))

    def untag(self, runs: Iterable[KnownRun], key: str) -> None:
        """In one transaction."""
        from mlflow.store.tracking.dbmodels.models import SqlTag
        from sqlalchemy import delete

        with self._store.ManagedSessionMaker(read_only=False) as session:
            for run_ids in chunks([run.run_id for run in runs], _MANY):
                session.execute(delete(SqlTag).where(SqlTag.run_uuid.in_(run_ids), SqlTag.key == key))


def _run(experiment: str, entry: NewRun) -> dict[str, Any]:
    """The row of a run as `SqlAlchemyStore.create_run` fills it in."""
    started, ended = entry.content.span
    training = isinstance(entry.content, RunningContent)
    return {
        "run_uuid": entry.run_id,
        "name": entry.tags[NAME],
        "experiment_id": int(experiment),
        "artifact_uri": entry.artifacts,
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "source_version": "",
        "user_id": "unknown",
        "lifecycle_stage": "active",
        "status": entry.content.status,
        "start_time": started,
        "end_time": None if training else ended,
    }


def _tags(run_id: str, tags: dict[str, str]) -> Iterator[dict[str, Any]]:
    return (_tag(run_id, key, value) for key, value in tags.items())


def _tag(run_id: str, key: str, value: str) -> dict[str, Any]:
    from mlflow.utils.validation import MAX_TAG_VAL_LENGTH

    return {"run_uuid": run_id, "key": key, "value": value[:MAX_TAG_VAL_LENGTH]}


def _parameters(entry: NewRun) -> Iterator[dict[str, Any]]:
    from mlflow.utils.validation import MAX_PARAM_VAL_LENGTH

    for key, value in entry.content.parameters.items():
        yield {"run_uuid": entry.run_id, "key": key, "value": value[:MAX_PARAM_VAL_LENGTH]}


def _metrics(entry: NewRun) -> Iterator[dict[str, Any]]:
    for name, value, moment, number in entry.content.metrics:
        row = {"run_uuid": entry.run_id, "key": name, "value": value, "timestamp": moment, "step": number}
        yield row | {"is_nan": False}


def _latest(points: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The last point of every metric of every run, as MLflow orders them."""
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    order = itemgetter("step", "timestamp", "value")
    for point in points:
        key = point["run_uuid"], point["key"]
        if key not in latest or order(point) > order(latest[key]):
            latest[key] = point
    return latest.values()


def _dataset(experiment: int, identity: str, dataset: Any) -> dict[str, Any]:
    return {
        "dataset_uuid": identity,
        "experiment_id": experiment,
        "name": dataset.name,
        "digest": dataset.digest,
        "dataset_source_type": dataset.source_type,
        "dataset_source": dataset.source,
        "dataset_schema": dataset.schema,
        "dataset_profile": dataset.profile,
    }


def _insert(session: Any, model: Any, rows: Iterable[dict[str, Any]]) -> None:
    from sqlalchemy import insert

    if rows := list(rows):
        session.execute(insert(model.__table__), rows)
