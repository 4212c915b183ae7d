"""The evidence of a plan: a receipt for each run and seed, with what diagnostics measured of its kept models."""

from dataclasses import replace
from pathlib import Path

from fedrepro.config.plan import Plan, Run
from fedrepro.engine import fingerprints, measurements
from fedrepro.engine.receipts import code_of
from fedrepro.engine.records import Record, read, repair_advice
from fedrepro.errors import UserError
from fedrepro.exhibits.receipt import Evidence, Receipt
from fedrepro.registry import unknown
from fedrepro.store import Store, is_published
from fedrepro.typed import typed


def load_evidence(plan: Plan, store: Store) -> Evidence:
    """Reads the receipts that exist for the runs and seeds of the plan, and adds to their curves what diagnostics measured in
    the rounds that the plan keeps.

    Seeds and runs outside the plan are not read: a report never shows more than its plan.
    """
    evidence: Evidence = {}
    metrics: dict[str, set[str]] = {run_id: set() for run_id in plan.runs}
    measured: dict[str, set[tuple[str, str]]] = {run_id: set() for run_id in plan.runs}
    for _, run, reading in plan.readings():
        if reading.diagnostic:
            measured[run.run_id].add((reading.diagnostic, reading.metric))
        else:
            metrics[run.run_id].add(reading.metric)
    for candidate in plan.candidates:
        for run_id in (candidate.run_id or "", candidate.trial.run_id):
            metrics[run_id].add(candidate.metric.name)
        if candidate.also:
            metrics[candidate.trial.run_id].add(candidate.also.name)
    of_candidates = {candidate.run_id or "": plan.seeds for candidate in plan.candidates}  # any of them may be chosen
    seeds_by_run = plan.seeds_by_run | of_candidates
    for run_id in sorted(seeds_by_run):
        for seed in seeds_by_run[run_id]:
            path = store.find(run_id, seed)
            if path is not None and not _stale(path, plan.runs[run_id]):
                receipt = typed(Receipt, load_record(path, *metrics[run_id]), path, repair_advice(path))
                receipt = replace(receipt, path=path.as_posix())
                _require_same(receipt, plan.runs[run_id], path)
                for call, metric in sorted(measured[run_id]):
                    _add_measured(receipt, plan.runs[run_id], call, metric, store)
                evidence.setdefault(run_id, {})[seed] = receipt
    return evidence


def load_record(path: Path, *metrics: str) -> Record:
    """Reads and verifies one record (see `fedrepro.engine.records`), and checks that it has the `metrics` of the tables."""
    record = read(path)
    for metric in metrics if record["status"] == "finished" else ():
        if metric not in record["curves"]:
            advice = f"correct `metric` in the file of the table or figure; if that is right, {repair_advice(path)}"
            _, _, names = unknown("metric", metric, sorted(record["curves"])).partition("; ")
            raise UserError(f"{path}: curves have no {metric!r}; {names}; {advice}")
        if (record["curves"][metric] or [None])[-1] is None:
            raise UserError(f"{path}: curves have no {metric!r}, which the table shows; {repair_advice(path)}")
    return record


def _stale(path: Path, run: Run) -> bool:
    """Tells whether other code of a part or of the partition scheme made a result of this machine: it is trained again
    first."""
    return not is_published(path) and bool(fingerprints.changed(code_of(path), run.config).retrain)


def _add_measured(receipt: Receipt, run: Run, call: str, metric: str, store: Store) -> None:
    """Adds the curve of a diagnostic's metric, if every round that is read has been measured."""
    path, rounds_read = store.measured(run.run_id, call, receipt.seed, run.measures[call]), run.measures[call]
    if path is not None:
        measured, name = measurements.read(path).within(rounds_read), measurements.curve_name(call, metric)
        receipt.curves[name] = measured.curve(metric, len(receipt.curves["round"]))
        receipt.measured[name] = measured


def _require_same(receipt: Receipt, run: Run, path: Path) -> None:
    """Requires that the receipt has exactly this setting and method: the short hash of a run_id may collide."""
    for key, value in {**run.config, "method": run.method}.items():
        got = receipt.method if key == "method" else receipt.config.get(key)
        if got != value:
            raise UserError(f"{path}: {key} = {got!r}, the table asks for {value!r}; {repair_advice(path)}")
