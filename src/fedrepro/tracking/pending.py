"""What a sync is about to write into an experiment: runs are compared with those that are there, and written many at a time."""

from collections.abc import Callable
from typing import Any

from fedrepro.tracking.backend import Backend, KnownRun, NewRun
from fedrepro.tracking.match import Match
from fedrepro.tracking.shown import COLOUR, DIGEST, ORIGIN, PARENT, REACHED, ROUNDS, MeanRun, Running, Shown


class Pending:
    """`existing`: run key -> the runs that have it, of which those that are replaced are taken out; `keep` says that this
    process is still at work."""

    def __init__(
        self, backend: Backend, experiment: str, existing: dict[str, list[KnownRun]], report: Any, keep: Callable[[], None]
    ) -> None:
        self._backend, self._experiment, self._existing = backend, experiment, existing
        self._report, self._keep = report, keep
        self._entries: list[NewRun] = []
        self._doomed: list[KnownRun] = []
        self._changed: list[tuple[KnownRun, dict[str, str]]] = []
        self._keys: dict[str, list[str]] = {}
        for key in existing:
            self._keys.setdefault(key.partition("/")[0], []).append(key)

    def of_run(self, run_id: str) -> list[str]:
        """Keys of the seeds that are there of a run."""
        return [key for key in self._keys.get(run_id, ()) if "/" in key]

    def place(self, shown: Shown, parent: str | None = None) -> str:
        """Sees to it that `shown` is there, once. Returns MLflow's id of it."""
        match = Match.of(shown, self._existing.get(shown.key, []), self._backend.more.get(ORIGIN))
        self._doomed += match.doomed
        self._existing[shown.key] = [match.kept] if match.kept and match.since is None else []
        if match.kept is None:
            entry = self._backend.reserve(self._experiment, shown, parent)
        elif match.since is not None:
            entry = NewRun(match.kept.run_id, match.kept.artifacts, shown, parent, *match.since)
        else:
            return self._unchanged(shown, match.kept, parent, match.ours)
        self._entries.append(entry)
        self._count(shown, "written")
        if len(self._entries) + len(self._doomed) >= self._backend.batch:
            self.flush()
        return entry.run_id

    def drop(self, key: str) -> None:
        """Removes what is there of a key, and this folder wrote."""
        mine = self._backend.more.get(ORIGIN)
        self._doomed += [run for run in self._existing.get(key, ()) if run.tags.get(ORIGIN) == mine]
        self._existing[key] = [run for run in self._existing.get(key, ()) if run not in self._doomed]

    def retag(self, run: KnownRun, tags: dict[str, str]) -> bool:
        """Sets tags of a run where they differ; whether any did."""
        changed = {key: value for key, value in tags.items() if run.tags.get(key) != value}
        self._changed += [(run, changed)] if changed else []
        return bool(changed)

    def flush(self) -> None:
        """Writes what has been collected."""
        self._keep()
        backend, doomed, entries, changed = self._backend, self._doomed, self._entries, self._changed
        self._doomed, self._entries, self._changed = [], [], []
        if doomed:
            backend.remove(doomed)
        if entries:
            backend.write(self._experiment, entries)
        if changed:
            backend.retag(changed)

    def _unchanged(self, shown: Shown, kept: KnownRun, parent: str | None, ours: bool) -> str:
        skipped = (COLOUR, DIGEST, ROUNDS, REACHED)
        tags = {key: value for key, value in shown.tags.items() if key not in skipped} | self._backend.more if ours else {}
        tags |= {PARENT: parent} if parent else {}
        self._count(shown, "retagged" if self.retag(kept, tags) else "unchanged")
        return kept.run_id

    def _count(self, shown: Shown, done: str) -> None:
        if isinstance(shown, Running):
            self._report.running.append(shown.key)
        elif not isinstance(shown, MeanRun):
            getattr(self._report, done).append(shown.key)
