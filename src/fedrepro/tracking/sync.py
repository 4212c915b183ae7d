"""Brings MLflow up to date with the result folders: repeatable, interruptible, one writer at a time."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, write_json
from fedrepro.tracking import store, views
from fedrepro.tracking import wanted as view
from fedrepro.tracking.shown import COLOUR, DIGEST, KEY, LIVE, PARENT, Mean, Seed
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
    asked = view.collect([*plans, *view.plan_files(root)])
    runs = {(one.experiment, one.run_id) for one in view.collect(list(plans)).values()}
    given = {place: one for place, one in asked.items() if (one.experiment, one.run_id) in runs}
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
            identity = store.experiment_id(client, root, name, _looks(name, asked))
            existing = _by_key(client, identity)
            runs: dict[str, list[Wanted]] = {}
            for one in given.values():
                if one.experiment == name:
                    runs.setdefault(one.run_id, []).append(one)
            for run_id in sorted(runs):
                seeds = _seeds(root, runs[run_id], report)
                if seeds:
                    _sync_run(client, identity, root, seeds, existing, report)
        _retire(client, view.places(asked), report)
    return report


def _looks(experiment: str, asked: dict) -> dict[str, str]:
    return views.looks(one for one in asked.values() if one.experiment == experiment)


def _seeds(root: Path, wanted: list[Wanted], report: SyncReport) -> tuple[Seed, ...]:
    """The finished seeds of a run. A damaged receipt becomes a problem of the report."""
    found = []
    for one in sorted(wanted, key=lambda one: one.seed):
        path = view.receipt_file(root, one)
        if path is None:
            report.waiting.append(one.key)
            continue
        try:
            found.append(Seed(one, view.read_receipt(root, path, one), view.digest(root, one, path)))
        except UserError as error:
            report.problems.append(str(error))
    return tuple(found)


class _Seen:
    """Whether anything changed since the last sync: plans, receipts, artifacts, or the database, by another program.

    When nothing did, the seconds that it takes to load MLflow and look are saved. Losing the file costs just them.
    """

    def __init__(self, root: Path, database: Path, given: dict, asked: dict) -> None:
        self.path, self.database = root / store.ARTIFACTS / ".seen.json", database
        files = {place: view.receipt_file(root, wanted) for place, wanted in given.items()}
        self.waiting = [key for (_, key), path in files.items() if path is None]
        self.finished = [key for (_, key), path in files.items() if path is not None]
        digests = [path and view.digest(root, given[place], path) for place, path in files.items()]
        looks = {name: _looks(name, asked) for name in sorted({experiment for experiment, _ in asked})}
        shown = [[one.experiment, one.key, one.name, one.place, one.tables] for one in asked.values()]
        self.state = canonical_hash([str(root), digests, shown, looks], 32)

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


def _sync_run(client: Any, experiment: str, root: Path, seeds: tuple[Seed, ...], existing: dict, report: SyncReport) -> None:
    """The mean over the seeds first: the seeds, and those that no plan asks for any more, hang below it."""
    place = lambda run, parent=None: _place(client, experiment, root, run, existing.get(run.key, []), parent)  # noqa: E731
    parent, _ = place(Mean(seeds))
    for seed in seeds:
        _, done = place(seed, parent)
        getattr(report, done).append(seed.key)
    for key, runs in existing.items():
        if key.startswith(f"{seeds[0].wanted.run_id}/") and key not in {seed.key for seed in seeds}:
            for run in runs:
                _retag(client, run, {PARENT: parent})


def _place(
    client: Any, experiment: str, root: Path, wanted: Seed | Mean, existing: list[Any], parent: str | None
) -> tuple[str, str]:
    """(MLflow's id of the run, what was done: written, retagged or unchanged)."""
    kept = next((run for run in existing if run.data.tags.get(DIGEST) == wanted.digest), None)
    for run in existing:
        if run is not kept:  # of an earlier receipt, left half-way, or a second copy
            store.remove_run(client, run)
    if kept is None:
        return store.write_run(client, experiment, root, wanted, parent), "written"
    tags = {key: value for key, value in wanted.tags.items() if key != COLOUR} | ({PARENT: parent} if parent else {})
    return kept.info.run_id, "retagged" if _retag(client, kept, tags) else "unchanged"


def _retag(client: Any, run: Any, tags: dict[str, str]) -> bool:
    from mlflow.entities import RunTag

    changed = [RunTag(key, value) for key, value in tags.items() if run.data.tags.get(key) != value]
    if changed:
        client.log_batch(run.info.run_id, tags=changed, synchronous=True)
    if "mlflow.runName" in {tag.key for tag in changed}:
        client.update_run(run.info.run_id, name=tags["mlflow.runName"])
    return bool(changed)


def _retire(client: Any, asked: set[tuple[str, str]], report: SyncReport) -> None:
    """Takes the live tag from runs that no plan asks for; they stay until `prune` removes them."""
    for name, identity in store.our_experiments(client).items():
        for run in store.our_runs(client, identity):
            if LIVE in run.data.tags and (name, run.data.tags[KEY]) not in asked:
                client.delete_tag(run.info.run_id, LIVE)
                report.retired += [run.data.tags[KEY]] if PARENT in run.data.tags else []


def _by_key(client: Any, experiment: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for run in store.our_runs(client, experiment):
        found.setdefault(run.data.tags[KEY], []).append(run)
    return found
