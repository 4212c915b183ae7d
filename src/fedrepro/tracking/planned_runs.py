"""Which runs the plans ask for or were trained by hand, and where their files lie. Pure but for reading plans, receipts and
manifests."""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from fedrepro.config.places import natural
from fedrepro.config.plan import CONFIGS, PLANS, SCHEMA, Candidate, Place, Plan, Run, load_plan
from fedrepro.config.reading import Reading, last_round
from fedrepro.engine import live, measurements, receipts
from fedrepro.engine.artifacts import FOLDERS
from fedrepro.engine.receipts import RUNS
from fedrepro.engine.records import Record
from fedrepro.errors import UserError
from fedrepro.exhibits.evidence import load_record
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.files import canonical_hash, read_json, sha256_file
from fedrepro.looks import colours_of, look_of
from fedrepro.store import Store, seeds_in
from fedrepro.tracking.names import Name, run_names, tried_values

BY_HAND = "by_hand"  # the experiment of runs that no table shows
FORMAT = 8  # raise it when the way a run is shown changes: every run is then written again


@dataclass
class PlannedRun:
    """One run at one seed, with what the plans say of it."""

    paper: str
    scale: str
    run: Run
    seed: int
    labels: list[str] = field(default_factory=list)  # what the tables call its method
    tables: list[str] = field(default_factory=list)
    reported: list[Reading] = field(default_factory=list)  # what the tables show of it
    place: tuple[int, ...] = (0, 0, 0, 0)  # of the first cell: table of the experiment, column, row, which of its candidates
    tried: str = ""  # of a candidate of a tuned cell: what it tries, `lr=0.03`
    trial: bool = False  # a candidate that no table shows
    cell: str = ""  # the run that was chosen instead, if there is one
    name: Name = field(default_factory=lambda: Name("", ""))  # given by `collect`, since names of runs must differ
    colour: str = ""  # of its method

    @property
    def key(self) -> str:
        """`<run_id>/seed<k>`, the same in reports and in MLflow."""
        return f"{self.run_id}/seed{self.seed}"

    @property
    def run_id(self) -> str:
        """The key of the mean over the run's seeds."""
        return self.run.run_id

    @property
    def look(self) -> str:
        """The label that decides how its method looks: the method's name, or else that of a row which varies it."""
        labels_with_look = [label for label in self.labels if look_of(label)]
        full_name = " ".join(filter(None, self.name[:2])) if self.labels else self.name.method
        return self.name.method if self.name.method in labels_with_look else (labels_with_look or [full_name])[0]

    @property
    def experiment(self) -> str:
        """`<paper>/<scale>`; BY_HAND."""
        return f"{self.paper}/{self.scale}" if self.scale else self.paper


def plan_files(root: Path) -> list[Path]:
    """Every plan on disk that this version can read, in a fixed order. A plan of an older version is written again when its
    table is requested."""
    return [path for path in sorted((Path(root) / PLANS).rglob("*.json")) if not _outdated(path)]


def _outdated(path: Path) -> bool:
    with contextlib.suppress(UserError):  # a damaged file: reading it as a plan says so
        content = read_json(path)
        return isinstance(content, dict) and content.get("schema") != SCHEMA
    return False


def collect(plans: list[Path], root: Path | None = None) -> dict[tuple[str, str], PlannedRun]:
    """(experiment, run key) -> the planned run; a cell that several tables share appears once and names them all.

    With `root`, tuned cells have the run that the results there choose, names distinguish only the runs of tables that have a
    result or a training (runs of other tables have no names), and runs by hand are added.
    """
    planned_runs: dict[tuple[str, str], PlannedRun] = {}
    results = None if root is None else Store.of(root)
    loaded_plans = [_with_chosen_runs(load_plan(path), results) for path in sorted({Path(plan).resolve() for plan in plans})]
    loaded_plans.sort(key=lambda plan: (plan.kind is not None, natural(plan.table)))
    tables_of = defaultdict[str, count](count)  # numbers by experiment: another paper's table moves none of this one's runs
    for plan in loaded_plans:
        number = next(tables_of[f"{plan.paper}/{plan.scale}"])
        rows = {row.key: (place, row) for place, row in enumerate(plan.rows)}
        columns = {column.key: place for place, column in enumerate(plan.columns)}
        chosen_runs = {(cell.row, cell.column): cell.run_id for cell in plan.planned}
        for cell, run_id, reading, seeds in _readings(plan):
            row_place, row = rows[cell.row]
            for seed in seeds:
                planned = PlannedRun(plan.paper, plan.scale, plan.runs[run_id], seed)
                planned.place = number, columns[cell.column], row_place, 0
                planned = planned_runs.setdefault((planned.experiment, planned.key), planned)
                _add(planned.tables, plan.table)
                if not reading.diagnostic:  # no part of a receipt, and no method
                    _add(planned.labels, row.label)
                    _add(planned.reported, reading)
                if isinstance(cell, Candidate):
                    candidates = plan.candidates_of(cell)
                    if planned.place[:3] == (number, columns[cell.column], row_place):
                        planned.place = *planned.place[:3], candidates.index(cell)
                    planned.tried = planned.tried or tried_values(cell.values, [candidate.values for candidate in candidates])
                    planned.cell = planned.cell or chosen_runs.get((cell.row, cell.column)) or ""
    cells = {(f"{plan.paper}/{plan.scale}", cell.run_id) for plan in loaded_plans for cell in plan.planned}
    for planned in planned_runs.values():
        planned.trial = bool(planned.tried) and (planned.experiment, planned.run_id) not in cells
        planned.cell = planned.cell if planned.trial else ""
    begun_plans = [plan for plan in loaded_plans if not (root and results) or _has_begun(plan, root, results)]
    begun = {run_id for plan in begun_plans for run_id in plan.runs}
    if root is not None:
        runs_by_hand = _by_hand(root, {run_id for plan in loaded_plans for run_id in plan.runs})
        planned_runs |= {(planned.experiment, planned.key): planned for planned in runs_by_hand}
        begun |= {planned.run_id for planned in runs_by_hand}
    _give_names(planned_runs, begun)
    return planned_runs


def _by_hand(root: Path, planned: Collection[str]) -> list[PlannedRun]:
    """Returns the seeds of runs that `fedrepro run` trained and no plan has, those that train now among them. Runs that the
    workflow trained for a table, for example before an edit of params.yaml, have a configuration; they retire in its
    experiment."""
    found, numbers = list[PlannedRun](), count()
    for folder in sorted((root / RUNS).glob("*/")):
        if folder.name in planned or (root / CONFIGS / f"{folder.name}.json").exists():
            continue
        with contextlib.suppress(UserError, KeyError, TypeError):  # a damaged file; `fedrepro doctor` names it
            run = Run(**receipts.identity(read_json(folder / "config.json")))
            place = 0, 0, next(numbers), 0
            about = {"labels": [run.method_label], "reported": [last_round(run.config["model"])], "place": place}
            seeds = {*seeds_in(folder), *seeds_in(root / live.FOLDER / folder.name)}
            found += [PlannedRun(BY_HAND, "", run, seed, **about) for seed in sorted(seeds)]
    return found


def _readings(plan: Plan) -> Iterator[tuple[Place, str, Reading, tuple[int, ...]]]:
    """Yields every cell and candidate with its run, its reading and its seeds; of a candidate its trial too."""
    for cell, run, reading in plan.readings():
        if not cell.lost:  # of a lost one only trials have run
            yield cell, run.run_id, reading, plan.seeds
    for candidate in plan.candidates:
        yield candidate, candidate.trial.run_id, candidate.trial_reading, candidate.trial.seeds
        yield candidate, candidate.run_id or "", candidate.reading, plan.seeds


def _with_chosen_runs(plan: Plan, results: Store | None) -> Plan:
    """Returns the plan with the runs that evidence chooses. A damaged receipt chooses nothing; sync names its file."""
    if results and plan.candidates:
        with contextlib.suppress(UserError):
            return Exhibit.of(plan, results).plan
    return plan


def _has_begun(plan: Plan, root: Path, results: Store) -> bool:
    """Tells whether a run of the plan has a result or trains now."""
    seeds = ((run_id, seed) for run_id, seeds in plan.seeds_by_run.items() for seed in seeds)
    return any(results.find(*place) or live.file(root, *place).exists() for place in seeds)


def training(root: Path, run_id: str, seed: int) -> live.LiveState | None:
    """How far the seed has come. None if it is not training, or its process has ended, or its file is damaged."""
    reached = live.read(root, run_id, seed)
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # a value of another type or form
        return reached if reached and reached.alive else None
    return None


def places(planned_runs: dict[tuple[str, str], PlannedRun]) -> set[tuple[str, str]]:
    """(experiment, run key) of everything asked for, the means over seeds among it."""
    return set(planned_runs) | {(planned.experiment, planned.run_id) for planned in planned_runs.values()}


def _give_names(planned_runs: dict[tuple[str, str], PlannedRun], begun: set[str]) -> None:
    """Gives names and colours. `begun`: run_ids of tables that count. A trial has the name of its cell, and what it tries."""
    for experiment in {experiment for experiment, _ in planned_runs}:
        of_experiment = [planned for (place, _), planned in planned_runs.items() if place == experiment]
        named_runs = [planned for planned in of_experiment if planned.run_id in begun]
        names = run_names({planned.run_id: (planned.run, planned.labels) for planned in named_runs if not planned.cell})
        for planned in named_runs:
            planned.name = names[planned.cell or planned.run_id]
        colours = colours_of(planned.look for planned in named_runs)
        for planned in named_runs:
            planned.colour = colours[planned.look]


def measured_files(store: Store, planned: PlannedRun) -> list[Path]:
    """The files that diagnostics left of a run, each call once: published, or else measured here."""
    files: dict[str, Path] = {}
    for folder in store.folders:
        for path in sorted((folder / planned.run_id).glob(f"*/seed{planned.seed}.parquet")):
            files.setdefault(path.parent.name, path)
    return [files[name] for name in sorted(files)]


def read_receipt(store: Store, path: Path, planned: PlannedRun) -> Record:
    """The receipt, checked to be this run's and to hold what the tables show. Metrics of diagnostics are added to its curves:
    `measured/client_distance 17b9c3`, with the last part of the call's folder."""
    receipt = load_record(path, *(reading.metric for reading in planned.reported))
    for file in measured_files(store, planned):
        measured, rounds = measurements.read(file), len(receipt["curves"]["round"])
        for metric in {value.metric: None for value in measured.values}:
            name = f"measured/{metric} {file.parent.name.rpartition('-')[2]}"
            receipt["curves"][name] = measured.curve(metric, rounds)
    return receipt


def artifact_files(root: Path, planned: PlannedRun, receipt: Path) -> dict[str, Path]:
    """Name in MLflow -> file, of those that exist: receipt, final model, configuration, environment, picture of the partition.
    Of a seed that was published elsewhere there is the receipt."""
    folder = Path(root) / RUNS / planned.run_id
    files = {
        "receipt.json": receipt,
        "config.json": folder / "config.json",
        "env.json": folder / f"seed{planned.seed}" / "env.json",
        "model.safetensors": folder / f"seed{planned.seed}" / "model.safetensors",
    }
    partition = planned.run.inputs.get("partition")
    if partition:
        files["partition.svg"] = Path(root) / FOLDERS["partition"] / partition / f"seed{planned.seed}.svg"
    return {name: path for name, path in files.items() if path.exists()}


def digest(root: Path, store: Store, planned: PlannedRun, receipt: Path) -> str:
    """Changes when the receipt, the artifacts that exist, the method's colour, or our way of showing them do."""
    readings = sorted(map(str, planned.reported))
    present = {name: path.stat().st_size for name, path in artifact_files(root, planned, receipt).items()}
    measured = [sha256_file(path) for path in measured_files(store, planned)]
    return canonical_hash([FORMAT, planned.colour, sha256_file(receipt), present, readings, *measured], 32)


def _add(items: list, item: Any) -> None:
    if item not in items:
        items.append(item)
