"""Brings MLflow up to date with the result folders: repeatable, interruptible, one writer at a time."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, write_json
from fedrepro.tracking import store
from fedrepro.tracking import wanted as view
from fedrepro.tracking.wanted import Wanted


@dataclass
class SyncReport:
    """What a sync did; keys are run keys."""

    written: list[str] = field(default_factory=list)  # new, or replaced because their receipt changed
    retagged: list[str] = field(default_factory=list)  # the same run, but other tables or labels
    unchanged: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)  # planned, not finished yet
    retired: list[str] = field(default_factory=list)  # no plan asks for them any more: they lost `fedrepro.live`
    problems: list[str] = field(default_factory=list)  # one line each; the other runs are synced all the same
    seconds: float = 0.0

    def __str__(self) -> str:
        parts = [f"{len(self.written)} runs written", f"{len(self.unchanged)} unchanged"]
        for name, items in (("retagged", self.retagged), ("not finished yet", self.waiting), ("retired", self.retired)):
            parts += [f"{len(items)} {name}"] if items else []
        return "; ".join([f"MLflow: {', '.join(parts)} ({self.seconds:.1f} s)", *self.problems])


def sync(plans: Sequence[Path], root: Path = Path(), database: str = "mlflow.db") -> SyncReport:
    """Writes the finished runs of `plans` into `<root>/<database>`, which is created when it is missing.

    Every plan below `results/plans` counts when it comes to which tables share a run and which runs are still asked for.
    Returns what was done. UserError when a plan or the database cannot be read; a damaged receipt only becomes a problem.
    """
    began, root = time.monotonic(), Path(root).resolve()
    given = view.collect(list(plans))
    asked = view.collect([*plans, *view.plan_files(root)])
    with store.writer(root):
        seen = _Seen(root, root / database, given, asked)
        report = seen.report() or _write(root, root / database, given, asked)
        if not report.problems:
            seen.remember()
    report.seconds = time.monotonic() - began
    return report


def _write(root: Path, database: Path, given: dict, asked: dict) -> SyncReport:
    report = SyncReport()
    with store.opened(database) as client:
        for name in sorted({experiment for experiment, _ in given}):
            identity = store.experiment_id(client, root, name)
            existing = _by_key(client, identity)
            for place in sorted(place for place in given if place[0] == name):
                try:
                    _sync_run(client, identity, root, asked[place], existing.get(place[1], []), report)
                except UserError as error:
                    report.problems.append(str(error))
        _retire(client, set(asked), report)
    return report


class _Seen:
    """Whether anything changed since the last sync: plans, receipts, artifacts, or the database under somebody else's hands.

    When nothing did, the seconds that it takes to load MLflow and look are saved. Losing the file costs just them.
    """

    def __init__(self, root: Path, database: Path, given: dict, asked: dict) -> None:
        self.path, self.database = root / store.ARTIFACTS / ".seen.json", database
        files = {place: view.receipt_file(root, wanted) for place, wanted in given.items()}
        self.waiting = [key for (_, key), path in files.items() if path is None]
        self.finished = [key for (_, key), path in files.items() if path is not None]
        digests = [path and view.digest(root, asked[place], path) for place, path in files.items()]
        self.state = canonical_hash(
            [str(root), digests, [[w.experiment, w.key, w.title, w.settings, w.tables] for w in asked.values()]], 32
        )

    def report(self) -> SyncReport | None:
        """The report of a sync that has nothing to do, or None when there may be something to do."""
        if not self.path.exists() or not self.database.exists() or read_json(self.path) != self._now():
            return None
        return SyncReport(unchanged=self.finished, waiting=self.waiting)

    def remember(self) -> None:
        """Keeps the state that the sync leaves."""
        if not self.path.exists() or read_json(self.path) != self._now():
            write_json(self.path, self._now())

    def _now(self) -> dict[str, Any]:
        found = self.database.stat()
        return {"state": self.state, "size": found.st_size, "changed": found.st_mtime_ns}


def _sync_run(client: Any, experiment: str, root: Path, wanted: Wanted, existing: list[Any], report: SyncReport) -> None:
    path = view.receipt_file(root, wanted)
    if path is None:
        report.waiting.append(wanted.key)
        return
    receipt, content = view.read_receipt(path, wanted), view.digest(root, wanted, path)
    kept = next((run for run in existing if run.data.tags.get(view.DIGEST) == content), None)
    for run in existing:
        if run is not kept:  # of an earlier receipt, left half-way, or a second copy
            store.remove_run(client, run)
    if kept is None:
        store.write_run(client, experiment, root, wanted, receipt, content)
        report.written.append(wanted.key)
    elif _retag(client, kept, view.tags(wanted, receipt, content)):
        report.retagged.append(wanted.key)
    else:
        report.unchanged.append(wanted.key)


def _retag(client: Any, run: Any, tags: dict[str, str]) -> bool:
    from mlflow.entities import RunTag

    changed = [RunTag(key, value) for key, value in tags.items() if run.data.tags.get(key) != value]
    if changed:
        client.log_batch(run.info.run_id, tags=changed, synchronous=True)
        client.update_run(run.info.run_id, name=tags["mlflow.runName"])
    return bool(changed)


def _retire(client: Any, asked: set[tuple[str, str]], report: SyncReport) -> None:
    """Takes the live tag from runs that no plan asks for; they stay until `prune` removes them."""
    for name, identity in store.our_experiments(client).items():
        for run in store.our_runs(client, identity):
            key = run.data.tags[view.KEY]
            if (name, key) not in asked and view.LIVE in run.data.tags:
                client.delete_tag(run.info.run_id, view.LIVE)
                report.retired.append(key)


def _by_key(client: Any, experiment: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for run in store.our_runs(client, experiment):
        found.setdefault(run.data.tags[view.KEY], []).append(run)
    return found
