"""The files between the plan and its jobs: markers of finished seeds, and configurations of jobs.

A job trains, draws or measures a group of seeds. Its output is a marker, `<folder>/jobs/8-9-10`, a file that says: these seeds
have results. The results themselves decide. When the workflow makes its graph, it deletes the marker of a group with a
missing result. It rewrites a missing or outdated marker of complete results, which were pulled, made by a command or changed.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedrepro.choices import UNSYNCED
from fedrepro.config.places import paper_and_scale
from fedrepro.config.plan import CONFIGS, PLANS, Plan, Run, rounds_of_both
from fedrepro.config.project import Project
from fedrepro.data.arrays import MANIFEST, arrays_folder
from fedrepro.engine.artifacts import FOLDERS, definitions
from fedrepro.engine.forks import Fork, merge_forks
from fedrepro.engine.spec import RunSpec
from fedrepro.files import content_of, json_text, opened, read_json, sign, try_lock, write_text
from fedrepro.typed import text

TRACKED = Path("results/tracked")
Find = Callable[[int], Path | None]  # seed -> the file of its result, None without one
LOCK = Path(".snakemake/fedrepro.lock")  # of the process that may write plans, configurations and markers
PLANNING = ", which writes plans"
LONGEST = 10  # seeds that one job takes: enough for a GPU, where they train together


def jobs(folder: Path, seeds: Sequence[int], find: Find, look: bool = False) -> list[str]:
    """Returns the markers of all `seeds` below `folder`; `find` gives the result of a seed. With `look` no marker is written or
    deleted: on another machine a shared folder may show files late.

    A marker holds a hash of the results. Snakemake compares the content of small files, so that only another hash renders
    reports again.
    """
    markers = []
    for start in range(0, len(seeds), LONGEST):
        group = seeds[start : start + LONGEST]
        marker = folder / "jobs" / "-".join(map(str, group))
        markers.append(str(marker))
        if look:
            continue
        results = [path for seed in group if (path := find(seed))]
        if len(results) < len(group):
            marker.unlink(missing_ok=True)
        elif _missing_or_copied(marker) or marker.read_text() != content_of(results):
            write_text(marker, content_of(results))
    return markers


def _missing_or_copied(marker: Path) -> bool:
    """Tells whether a marker is missing, or was copied here with an older time: Snakemake would not look into it."""
    if not marker.exists():
        return True
    times = marker.stat()
    return times.st_ctime > times.st_mtime + 2


def forget_unsynced() -> None:
    """Deletes the outputs of jobs that could not write into MLflow, so that these jobs run again."""
    for path in TRACKED.rglob("*.json"):
        if read_json(path).get("outcome", "").startswith(UNSYNCED):
            path.unlink(missing_ok=True)


def forget_deleted(project: Project) -> None:
    """Deletes the plans of tables that have no file any more: MLflow would show their labels beside those of today's tables."""
    tables = project.table_names()
    for path in sorted(PLANS.rglob("*.json")):
        if f"{paper_and_scale(place_of(path))[0]}/{path.stem}" not in tables:
            path.unlink(missing_ok=True)


def place_of(path: Path) -> str:
    """The place of a plan's report: `full/fedgh/` of results/plans/full/fedgh/table3.json."""
    return f"{path.parent.relative_to(PLANS).as_posix()}/".removeprefix("./")


@contextlib.contextmanager
def planning(root: Path = Path()) -> Iterator[bool]:
    """Yields whether plans may be written, since no workflow runs in the folder. A workflow that starts meanwhile waits."""
    with opened(root / LOCK) as stream:
        free = try_lock(root / LOCK, stream)
        if free:
            sign(root / LOCK, stream, PLANNING)
        yield free


def write_plan(place: str, table_plan: Plan) -> Path:
    """Writes results/plans/<place><table>.json if its content changes, so that its time is that of the last change."""
    return _write_if_changed(PLANS / f"{place}{table_plan.table}.json", text(table_plan))


def write_configs(project: Project, table_plan: Plan) -> None:
    """Writes a configuration for each run and each artifact; a job finds it by the names of its outputs."""
    for run_id, run in table_plan.runs.items():
        _write_if_changed(CONFIGS / f"{run_id}.json", _config(run))
        for kind, definition in _definitions(project, run):
            _write_if_changed(CONFIGS / FOLDERS[kind].name / f"{run.inputs[kind]}.json", definition)


def _config(run: Run) -> str:
    """Returns the run's configuration with all rounds that this or an earlier planned table keeps, measures or shares."""
    path = CONFIGS / f"{run.run_id}.json"
    previous: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    keep = sorted({*run.keep, *previous.get("keep", [])})
    measures = rounds_of_both(previous.get("measures", {}), run.measures)
    forks = [asdict(fork) for fork in merge_forks([*(Fork(**fork) for fork in previous.get("forks", [])), *run.forks])]
    return json_text(run.identity | {"keep": keep, "measures": measures, "forks": forks})


def _definitions(project: Project, run: Run) -> Iterator[tuple[str, str]]:
    spec = RunSpec(**run.config)
    entry = project.registry[spec.dataset]
    native = str(arrays_folder(Path(), spec.dataset, entry.native_shape) / MANIFEST)
    for kind, definition in definitions(spec, entry).items():
        yield kind, json_text({"kind": kind, "definition": definition, "native": native})


def _write_if_changed(path: Path, content: str) -> Path:
    if not path.exists() or path.read_text() != content:
        write_text(path, content)
    return path
