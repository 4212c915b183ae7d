"""Collects what a sync will write into an experiment: compares runs with those in MLflow and writes many at a time.

In a shared store several folders may have a run of the same key. The newer result stays; otherwise two folders would replace
each other's runs in every sync.
"""

import time
from collections.abc import Callable
from typing import Any

from fedrepro.tracking.backend import Backend, KnownRun, NewRun
from fedrepro.tracking.content import (
    COLOUR,
    DIGEST,
    LIVE,
    MEAN,
    ORIGIN,
    PARENT,
    REACHED,
    ROUNDS,
    MeanContent,
    RunContent,
    RunningContent,
    by_people,
)

SILENT_S = 24 * 3600


def _matched(
    content: RunContent, existing: list[KnownRun], origin: str | None
) -> tuple[KnownRun | None, tuple[int, int] | None, bool]:
    """Compares `content` with the runs that have its key. Returns the one that is kept; the number of rounds that it shows and
    their time in ms if more have to be written, None if it is up to date; and whether it is ours: if another folder wrote it,
    it is not changed."""
    same = next((run for run in existing if content.digest and run.tags.get(DIGEST) == content.digest), None)
    newer = next((run for run in existing if same is None and _stays(content, run, origin)), None)
    training = next((run for run in existing if _goes_on(content, run)), None)
    kept = same or newer or training
    if kept is None or kept is not training:
        return kept, None, kept is None or kept.tags.get(ORIGIN) == origin or LIVE not in kept.tags
    rounds = int(kept.tags[ROUNDS])
    unchanged = isinstance(content, RunningContent) and rounds >= content.reached.rounds and kept.status == "RUNNING"
    return kept, None if unchanged else (rounds, int(kept.tags.get(REACHED, kept.started))), True


def _goes_on(content: RunContent, run: KnownRun) -> bool:
    """Whether the run shows the first rounds of the same training."""
    return ROUNDS in run.tags and DIGEST not in run.tags and run.started == content.span[0]


def _stays(content: RunContent, run: KnownRun, origin: str | None) -> bool:
    """Whether another folder wrote the run, with a newer result. A run without a digest is incomplete."""
    if run.tags.get(ORIGIN) == origin or DIGEST not in run.tags or LIVE not in run.tags:
        return False
    if isinstance(content, RunningContent):
        return True
    return _rank(run.tags["seed"], run.ended) > _rank(content.tags["seed"], content.span[1])


def _rank(seed: str, ended: int) -> tuple[int, int]:
    """A mean over more seeds comes first, then what ended later."""
    return (seed.count(",") if seed.startswith(MEAN) else 0, ended)


def is_silent(run: KnownRun) -> bool:
    """Whether a training of another folder has shown nothing new for a day."""
    return time.time() - int(run.tags.get(REACHED, run.started)) / 1000 > SILENT_S


class Pending:
    """`existing`: run key -> its runs in MLflow; replaced runs are taken out. `keep` keeps this process's lock."""

    def __init__(
        self, backend: Backend, experiment: str, existing: dict[str, list[KnownRun]], report: Any, keep: Callable[[], None]
    ) -> None:
        self._backend, self._experiment, self._existing = backend, experiment, existing
        self._report, self._keep = report, keep
        self._entries: list[NewRun] = []
        self._doomed: list[KnownRun] = []
        self._changed: list[tuple[KnownRun, dict[str, str]]] = []

    def place(self, content: RunContent, parent: str | None = None) -> str:
        """Writes `content` unless MLflow has it, and removes its duplicates. Returns its id in MLflow."""
        existing = self._existing.get(content.key, [])
        kept, since, ours = _matched(content, existing, self._backend.more.get(ORIGIN))
        doomed = [run for run in existing if run is not kept]
        self._doomed += doomed
        self._existing[content.key] = [kept] if kept and since is None else []
        if kept is None:
            carried = {key: value for run in doomed for key, value in by_people(run.tags).items()}
            entry = self._backend.reserve(self._experiment, NewRun("", "", content, parent, carried=carried))
        elif since is not None:
            entry = NewRun(kept.run_id, kept.artifacts, content, parent, *since)
        else:
            return self._unchanged(content, kept, parent, ours)
        self._entries.append(entry)
        self._count(content, "written")
        if len(self._entries) + len(self._doomed) >= self._backend.batch:
            self.flush()
        return entry.run_id

    def drop(self, key: str) -> None:
        """Removes the runs of a key that this folder wrote."""
        origin = self._backend.more.get(ORIGIN)
        self._doomed += [run for run in self._existing.get(key, ()) if run.tags.get(ORIGIN) == origin]
        self._existing[key] = [run for run in self._existing.get(key, ()) if run not in self._doomed]

    def retag(self, run: KnownRun, tags: dict[str, str]) -> bool:
        """Sets the tags of a run that differ; returns whether any did."""
        changed = {key: value for key, value in tags.items() if run.tags.get(key) != value}
        self._changed += [(run, changed)] if changed else []
        return bool(changed)

    def flush(self) -> None:
        """Writes what has been collected."""
        self._keep()
        doomed, entries, changed = self._doomed, self._entries, self._changed
        self._doomed, self._entries, self._changed = [], [], []
        if doomed:
            self._backend.remove(doomed)
        if entries:
            self._backend.write(self._experiment, entries)
        if changed:
            self._backend.retag(changed)

    def _unchanged(self, content: RunContent, run: KnownRun, parent: str | None, ours: bool) -> str:
        skipped = (COLOUR, DIGEST, ROUNDS, REACHED)
        tags = {key: value for key, value in content.tags.items() if key not in skipped} | self._backend.more if ours else {}
        tags |= {PARENT: parent} if parent else {}
        self._count(content, "retagged" if self.retag(run, tags) else "unchanged")
        return run.run_id

    def _count(self, content: RunContent, done: str) -> None:
        if isinstance(content, RunningContent):
            self._report.running.append(content.key)
        elif not isinstance(content, MeanContent):
            getattr(self._report, done).append(content.key)
