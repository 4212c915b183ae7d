"""Reads and writes a tracking store through MLflow's client, which works with every store. `fedrepro.tracking.rows` is faster
if the database can be reached directly.
"""

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fedrepro.tracking.address import Address
from fedrepro.tracking.artifacts import datasets, remove_files, store_files
from fedrepro.tracking.content import DIGEST, KEY, PARENT, REACHED, ROUNDS, Point, RunContent, RunningContent

METRICS, PARAMETERS, PAGE = 900, 100, 1000  # a call; MLflow takes 1000 in all, of which 100 parameters
NAME = "mlflow.runName"


@dataclass(frozen=True)
class KnownRun:
    """A run in the store; times in ms."""

    run_id: str
    status: str
    started: int
    ended: int
    artifacts: str
    tags: dict[str, str]


@dataclass(frozen=True)
class NewRun:
    """A run to write, with its id in MLflow."""

    run_id: str
    artifacts: str
    content: RunContent
    parent: str | None = None
    since: int = 0  # rounds that MLflow already has, of a run shown while it trained
    reached: int = 0  # when they were done, in ms
    carried: Mapping[str, str] = field(default_factory=dict)  # tags that people wrote on the run which this one replaces

    @property
    def tags(self) -> dict[str, str]:
        """All tags but the digest. The digest is written last, so a run without one is incomplete."""
        tags = {key: value for key, value in self.content.tags.items() if key != DIGEST}
        return {**self.carried, **tags} | ({PARENT: self.parent} if self.parent else {})

    @property
    def points(self) -> list[Point]:
        """The points of rounds that MLflow lacks. Their times follow those of the earlier rounds, since MLflow sorts by
        time."""
        points = [point for point in self.content.metrics if point[3] == 0 or point[3] > self.since]
        last, remaining_ms = max((point[3] for point in points), default=0), max(0, self.content.span[1] - self.reached)

        def time(number: int) -> int:
            return self.reached + remaining_ms * (number - self.since) // (last - self.since)

        return [(n, v, time(step) if self.since and step else moment, step) for n, v, moment, step in points]


class Backend:
    """One tracking store. `more`: tags that every run gets beside its own."""

    batch = 16  # entries that are written together
    _threads = 8  # parallel requests, since a remote server answers slowly

    def __init__(self, client: Any, address: Address, root: Path, more: dict[str, str]) -> None:
        self.client, self.address, self.root, self.more = client, address, root, more
        self._inputs_lock = threading.Lock()

    def runs(self, experiment: str) -> list[KnownRun]:
        """Every run of an experiment that has a run key, deleted ones left out."""
        runs = []
        for run in our_runs(self.client, experiment):
            begun, ended = run.info.start_time or 0, run.info.end_time or 0
            runs.append(KnownRun(run.info.run_id, run.info.status, begun, ended, run.info.artifact_uri, dict(run.data.tags)))
        return runs

    def reserve(self, experiment: str, draft: NewRun) -> NewRun:
        """Creates the run in MLflow that `write` fills. Returns `draft` with its id and the place of its artifacts."""
        info = self.client.create_run(experiment, start_time=draft.content.span[0], tags=draft.tags | self.more).info
        return replace(draft, run_id=info.run_id, artifacts=info.artifact_uri)

    def write(self, experiment: str, entries: Sequence[NewRun]) -> None:
        """Writes the reserved runs."""
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(self.fill, entries))

    def fill(self, entry: NewRun) -> None:
        """Writes a whole run, or the rounds that MLflow lacks."""
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.exceptions import MlflowException

        content, client = entry.content, self.client
        values = [Metric(name, value, moment, number) for name, value, moment, number in entry.points]
        parameters = [Param(key, value) for key, value in content.parameters.items()]
        tags = [RunTag(key, value) for key, value in (entry.tags | self.more).items() if key != NAME] if entry.since else []
        for metric_chunk, parameter_chunk, tag_chunk in zip_longest(
            chunks(values, METRICS), chunks(parameters, PARAMETERS), chunks(tags, PARAMETERS), fillvalue=()
        ):
            client.log_batch(entry.run_id, metrics=metric_chunk, params=parameter_chunk, tags=tag_chunk, synchronous=True)
        if isinstance(content, RunningContent):
            if entry.since:  # another sync may have marked it as ended
                client.update_run(entry.run_id, status="RUNNING")
            return
        if inputs := datasets(self.root, content):
            with self._inputs_lock:  # two threads would both make a data set that is new
                client.log_inputs(entry.run_id, datasets=inputs)
        store_files(self.address, entry.artifacts, self.root, content)
        client.set_terminated(entry.run_id, content.status, end_time=content.span[1])
        for key in (ROUNDS, REACHED) if entry.since else ():
            with contextlib.suppress(MlflowException):  # an interrupted write has deleted it
                client.delete_tag(entry.run_id, key)
        client.set_tag(entry.run_id, DIGEST, content.digest)

    def remove(self, runs: Iterable[KnownRun]) -> None:
        """Removes runs; a server keeps them in its bin until `mlflow gc`."""
        from mlflow.exceptions import MlflowException

        for run in runs:
            try:
                self.client.delete_run(run.run_id)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":  # otherwise another process has deleted it
                    raise
            if not self.address.served:
                remove_files(run.artifacts)

    def retag(self, changed: Sequence[tuple[KnownRun, dict[str, str]]]) -> None:
        """Sets tags of runs; the tag of the name also renames the run."""
        from mlflow.entities import RunTag

        for run, tags in changed:
            marks = [RunTag(key, value) for key, value in tags.items() if key != NAME]
            if marks:
                self.client.log_batch(run.run_id, tags=marks, synchronous=True)
            if NAME in tags:
                self.client.update_run(run.run_id, name=tags[NAME])

    def untag(self, runs: Iterable[KnownRun], key: str) -> None:
        """Takes a tag from runs that have it."""
        for run in runs:
            self.client.delete_tag(run.run_id, key)

    def end(self, run: KnownRun) -> None:
        """Marks a training as ended that left no result."""
        self.client.set_terminated(run.run_id, "KILLED", end_time=int(time.time() * 1000))


def our_runs(client: Any, experiment: str, search: str = "") -> list[Any]:
    """Every run of an experiment that has a run key, with all that the UI shows of it, deleted ones left out."""
    runs, token = [], None
    while True:
        page = client.search_runs([experiment], filter_string=search, max_results=PAGE, page_token=token)
        runs += [run for run in page if KEY in run.data.tags]
        token = page.token
        if not token:
            return runs


def chunks(items: list[Any], size: int) -> Iterable[list[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
