"""Brings MLflow up to date with the result folders: repeatable, interruptible, one writer of an experiment at a time."""

import contextlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

from fedrepro.config.plan import load_plan
from fedrepro.console import duration, say, some
from fedrepro.engine import live
from fedrepro.engine.fingerprints import changed
from fedrepro.engine.receipts import RUNS, code_of
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, write_json
from fedrepro.grouping import grouped
from fedrepro.store import Store
from fedrepro.tracking import store, views
from fedrepro.tracking.address import Address, find
from fedrepro.tracking.backend import Backend, KnownRun
from fedrepro.tracking.content import (
    KEY,
    LIVE,
    ORDER,
    ORIGIN,
    PARENT,
    RETIRED,
    ROUNDS,
    MeanContent,
    RunningContent,
    SeedContent,
)
from fedrepro.tracking.lock import ExperimentLock
from fedrepro.tracking.pending import Pending, is_silent
from fedrepro.tracking.planned_runs import PlannedRun, collect, digest, places, plan_files, read_receipt, training

PROGRESS_S = 10.0  # between two lines of a long sync
# What plans say of a run that MLflow shows.
_DESCRIPTION = attrgetter("experiment", "key", "name", "tried", "trial", "cell", "place", "tables")


@dataclass
class SyncReport:
    """What a sync did; keys are run keys."""

    written: list[str] = field(default_factory=list)  # new, or replaced because their receipt changed
    retagged: list[str] = field(default_factory=list)  # the same run, but other tables or labels
    unchanged: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)  # in training, shown with their rounds so far
    waiting: list[str] = field(default_factory=list)  # planned, without a result
    retired: list[str] = field(default_factory=list)  # no plan asks for them, or their result is gone: see `_retire`
    unasked: list[str] = field(default_factory=list)  # trained here but in no plan; MLflow has retired runs of them at most
    problems: list[str] = field(default_factory=list)  # one line each; the other runs are still synced
    seconds: float = 0.0

    def __str__(self) -> str:
        parts = [f"{some(len(self.written), 'run')} written", f"{len(self.unchanged)} unchanged"]
        more = ("retagged", self.retagged), ("running", self.running), ("not run yet", self.waiting)
        for name, items in (*more, ("retired", self.retired)):
            parts += [f"{len(items)} {name}"] if items else []
        return "; ".join([f"MLflow: {', '.join(parts)} ({self.seconds:.1f} s)", *self.problems])


def sync(plans: Sequence[Path], root: Path = Path()) -> SyncReport:
    """Writes the finished runs of `plans`, and those that train, into the store that `MLFLOW_TRACKING_URI` names, or else into
    the project's own database, which is created when it is missing. Without `plans` all on disk count, and runs by hand.

    All plans below `results/plans` decide which tables share a run and which runs a table still asks for. Returns what was
    done. UserError when a plan or the store cannot be read, or does not answer; a damaged receipt only becomes a problem.
    """
    began, root = time.monotonic(), Path(root).resolve()
    address = find(root)
    with store.writer(root):  # plans may change while another sync writes
        planned_runs = collect([*plans, *plan_files(root)], root)
        runs = {(f"{plan.paper}/{plan.scale}", run_id) for plan in map(load_plan, plans) for run_id in plan.runs}
        runs_to_sync = planned_runs
        if plans:
            runs_to_sync = {place: one for place, one in planned_runs.items() if (one.experiment, one.run_id) in runs}
        results = Store.of(root)
        last_sync = _LastSync(root, results, address, runs_to_sync, planned_runs)
        report = last_sync.report() or _Sync(root, results, runs_to_sync, planned_runs, last_sync.digests).into(address)
        if not report.problems:
            last_sync.remember()
        trained = (f"{path.parent.name}/{path.stem}" for path in (root / RUNS).glob("*/seed*.json"))
        report.unasked = sorted({*trained} - {key for _, key in planned_runs})
    report.seconds = time.monotonic() - began
    return report


class _LastSync:
    """Whether anything changed since the last sync: plans, receipts, artifacts, or the database, by another program.

    If nothing has changed, the sync saves the seconds for loading MLflow and reading the store. Losing the file costs only
    these seconds. A store that is no file counts as changed, and so does every store while something trains.
    """

    def __init__(self, root: Path, results: Store, address: Address, runs_to_sync: dict, planned_runs: dict) -> None:
        self.path, self.database = root / store.ARTIFACTS / ".seen.json", address.database
        files = {place: results.find(planned.run_id, planned.seed) for place, planned in runs_to_sync.items()}
        self.waiting = [key for (_, key), path in files.items() if path is None]
        self.finished = [key for (_, key), path in files.items() if path is not None]
        self.digests = {place: digest(root, results, runs_to_sync[place], path) for place, path in files.items() if path}
        code = [changed(code_of(path), runs_to_sync[place].run.config).names for place, path in files.items() if path]
        looks = {name: _looks(name, planned_runs) for name in sorted({experiment for experiment, _ in planned_runs})}
        descriptions = [_DESCRIPTION(planned) for planned in planned_runs.values()]
        digests = [self.digests.get(place) for place in files]
        begun = [_time(live.file(root, planned.run_id, planned.seed)) for planned in runs_to_sync.values()]
        self.state = canonical_hash([str(root), str(address), digests, code, descriptions, looks, begun], 32)
        self.training = any(training(root, planned.run_id, planned.seed) for planned in runs_to_sync.values())

    def report(self) -> SyncReport | None:
        """The report of a sync that has nothing to do, or None when there may be something to do."""
        now = None if self.training else self._now()
        if now is None or self._seen() != now:
            return None
        return SyncReport(unchanged=self.finished, waiting=self.waiting)

    def remember(self) -> None:
        """Saves the state after the sync."""
        now = self._now()
        if self.training:  # the end of a killed training changes no file
            self.path.unlink(missing_ok=True)
        elif now and self._seen() != now:
            write_json(self.path, now)

    def _seen(self) -> Any:
        """The saved state. None if there is none, or if the file is damaged."""
        with contextlib.suppress(UserError):
            return read_json(self.path)
        return None

    def _now(self) -> dict[str, Any] | None:
        if not self.database or not self.database.exists():
            return None
        file_stat = self.database.stat()
        return {"state": self.state, "size": file_stat.st_size, "changed": file_stat.st_mtime_ns}


class _Sync:
    """Brings the store up to date with the planned runs. `digests`: place -> digest of the seeds that have finished."""

    def __init__(self, root: Path, results: Store, runs_to_sync: dict, planned_runs: dict, digests: dict) -> None:
        self.root, self.results, self.runs_to_sync, self.planned_runs = root, results, runs_to_sync, planned_runs
        self.digests, self.report = digests, SyncReport()
        self.began = self.said = time.monotonic()

    def progress(self) -> None:
        """Prints how far a long sync is, every few seconds."""
        now, report = time.monotonic(), self.report
        done = len(report.written) + len(report.retagged) + len(report.unchanged)
        if now - self.said >= PROGRESS_S and 0 < done < len(self.digests):
            self.said, rate = now, done / (now - self.began)
            left = duration((len(self.digests) - done) / rate)
            say(f"MLflow: {done} of {len(self.digests)} finished seeds looked at, {rate:.0f} a second, {left} left")

    def into(self, address: Address) -> SyncReport:
        """Writes, retires, and reports."""
        with store.connected(address, self.root) as backend:
            other_runs: dict[str, list[KnownRun]] = {}
            for name in sorted({experiment for experiment, _ in self.runs_to_sync}):
                identity = store.experiment_id(backend, name)
                lock = ExperimentLock(backend.client, identity) if address.shared else contextlib.nullcontext()
                with lock as experiment_lock:
                    store.set_looks(backend, identity, _looks(name, self.planned_runs))
                    other_runs[name] = self._experiment(backend, name, identity, experiment_lock)
            self._retire(backend, other_runs)
        return self.report

    def _experiment(self, backend: Backend, name: str, identity: str, experiment_lock: Any) -> list[KnownRun]:
        """Brings one experiment up to date; returns the runs that were there and are not of this sync."""

        def keep() -> None:
            self.progress()
            if experiment_lock:
                experiment_lock.keep()

        existing = grouped((run.tags[KEY], run) for run in backend.runs(identity))
        runs = grouped((planned.run_id, planned) for planned in self.runs_to_sync.values() if planned.experiment == name)
        pending = Pending(backend, identity, existing, self.report, keep)
        parents: dict[str, str] = {}
        for run_id, seeds in sorted(runs.items(), key=lambda run: (run[1][0].trial, run[0])):
            parents[run_id] = self._family(pending, seeds, existing, parents)
        pending.flush()
        self._end_dead(backend, existing)
        return [run for runs in existing.values() for run in runs]

    def _family(self, pending: Pending, planned_runs: list[PlannedRun], existing: dict, parents: dict[str, str]) -> str:
        """Writes the mean of a run, then its seeds below the mean, also seeds that no plan has any more. Trials are below the
        mean of their cell. The mean is over the seeds of the first table that shows the run. It leaves out seeds made with
        other code of a part, unless all are. Returns MLflow's id of the parent."""
        seeds, unfinished = self._seeds(planned_runs)
        table = min((seed.wanted.place[0] for seed in seeds), default=0)
        table_seeds = tuple(seed for seed in seeds if seed.wanted.place[0] == table)
        same_code = tuple(seed for seed in table_seeds if not seed.other.retrain) or table_seeds
        first, parent = planned_runs[0], ""
        if first.trial:
            parent = parents.get(first.cell, "")
            pending.drop(first.run_id)  # the mean, from when a table showed the run
        elif seeds:
            parent = pending.place(MeanContent(same_code, sum(planned.place[0] == table for planned in planned_runs)))
        for content in (*seeds, *unfinished):
            pending.place(content, parent or None)
        shown_keys = {content.key for content in (*seeds, *unfinished)}
        for key in existing if parent else ():
            if key.startswith(f"{first.run_id}/") and key not in shown_keys:
                for run in existing[key]:
                    pending.retag(run, {PARENT: parent})
        return parent

    def _seeds(self, planned_runs: list[PlannedRun]) -> tuple[tuple[SeedContent, ...], list[RunningContent]]:
        """The finished seeds of a run, and those that train. A damaged receipt becomes a problem of the report."""
        finished, unfinished = [], []
        for planned in sorted(planned_runs, key=lambda planned: planned.seed):
            path = self.results.find(planned.run_id, planned.seed)
            if path is None:
                if reached := training(self.root, planned.run_id, planned.seed):
                    unfinished.append(RunningContent(planned, reached))
                else:
                    self.report.waiting.append(planned.key)
                continue
            try:
                run_digest = self.digests.get((planned.experiment, planned.key))
                run_digest = run_digest or digest(self.root, self.results, planned, path)
                receipt = read_receipt(self.results, path, planned)
                finished.append(SeedContent(planned, path, receipt, run_digest, changed(code_of(path), planned.run.config)))
            except UserError as error:
                self.report.problems.append(str(error))
        return tuple(finished), unfinished

    def _end_dead(self, backend: Backend, existing: dict[str, list[KnownRun]]) -> None:
        """Marks trainings that have stopped as ended; those of another folder after a day without news."""
        origin = backend.more.get(ORIGIN)
        for key, runs in existing.items():
            run_id, _, seed = key.partition("/seed")
            for run in runs:
                if run.status != "RUNNING" or ROUNDS not in run.tags:
                    continue
                ours = run.tags.get(ORIGIN) == origin
                ended = not training(self.root, run_id, int(seed)) if ours else is_silent(run)
                if ended:
                    backend.end(run)

    def _retire(self, backend: Backend, other_runs: dict[str, list[KnownRun]]) -> None:
        """Takes the live tag from runs that no plan asks for or whose result is gone, and sorts them last. They stay until they
        are pruned or have a result again."""
        planned_places, origin = places(self.planned_runs), backend.more.get(ORIGIN)
        present_places = places({place: planned for place, planned in self.planned_runs.items() if self._has_files(planned)})
        for name, identity in store.our_experiments(backend.client).items():
            runs = other_runs.get(name) if name in other_runs else backend.runs(identity)
            live_runs = [run for run in runs or () if run.tags.get(ORIGIN) == origin and LIVE in run.tags]
            gone = [run for run in live_runs if (name, run.tags[KEY]) not in present_places]
            backend.retag([(run, _as_retired(name, run.tags, planned_places)) for run in gone])
            backend.untag(gone, LIVE)
            self.report.retired += [run.tags[KEY] for run in gone if "/" in run.tags[KEY]]

    def _has_files(self, planned: PlannedRun) -> bool:
        """Whether a run has a result, or a checkpoint."""
        place = planned.run_id, planned.seed
        return bool(self.results.find(*place)) or live.file(self.root, *place).exists()


def _time(path: Path) -> int | None:
    """The time of a file's last change. None if there is no such file."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime_ns
    return None


def _as_retired(name: str, tags: dict[str, str], planned_places: Collection[tuple[str, str]]) -> dict[str, str]:
    """The tags that change when a run of the experiment `name` retires. If a table asks for it again, the next sync restores
    its tags."""
    is_planned, elsewhere = (name, tags[KEY]) in planned_places, tags[KEY] in {key for _, key in planned_places}
    reason = "its result is gone" if is_planned else "another experiment has it" if elsewhere else "no table asks for it"
    return {
        "status": f"retired: {reason}",
        **({} if is_planned else {"tables": "none"}),
        # A sync that was killed may have begun.
        **({ORDER: f"{RETIRED}{tags[ORDER].removeprefix(RETIRED)}"} if ORDER in tags else {}),
    }


def _looks(experiment: str, planned_runs: dict) -> dict[str, str]:
    return views.looks(planned for planned in planned_runs.values() if planned.experiment == experiment)
