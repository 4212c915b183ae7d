"""Runs as they are found: results of this folder, published evidence, or the results of another folder."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from fedrepro.engine.receipts import RUNS
from fedrepro.engine.records import read
from fedrepro.errors import UserError
from fedrepro.grouping import grouped
from fedrepro.store import Store, seeds_in

LISTED = 10  # runs that an ambiguous part is answered with


@dataclass(frozen=True)
class StoredRun:
    """A run with a finished seed. `folders` hold its receipts; the first folder wins. `seeds`: those of a table; where none of
    them is finished, and without a table, all count."""

    run_id: str
    folders: tuple[Path, ...]
    seeds: tuple[int, ...] = ()

    @cached_property
    def receipts(self) -> dict[int, dict[str, Any]]:
        """Seed -> receipt, in the order of seeds."""
        return {seed: self._all[seed] for seed in self._all if seed not in self.more}

    @cached_property
    def more(self) -> list[int]:
        """The finished seeds that the table does not ask for."""
        return [seed for seed in self._all if seed not in self.seeds] if {*self.seeds} & self._all.keys() else []

    @cached_property
    def paths(self) -> dict[int, Path]:
        """Seed -> the file of its receipt, in the order of seeds."""
        paths = {seed: path for folder in reversed(self.folders) for seed, path in seeds_in(folder).items()}
        return dict(sorted(paths.items()))

    @cached_property
    def _all(self) -> dict[int, dict[str, Any]]:
        return {seed: read(path) for seed, path in self.paths.items()}

    def of_table(self, seeds: tuple[int, ...]) -> "StoredRun":
        """Returns the same run with the seeds of a table. Receipts are not read again."""
        run = replace(self, seeds=seeds)
        vars(run)["_all"] = self._all
        return run

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the run, which are the same for all seeds, and its method."""
        receipt = next(iter(self.receipts.values()))
        return receipt["config"] | {"method": receipt["method"]}

    @property
    def places(self) -> list[tuple[str, str]]:
        """The (paper, scale) where its evidence is published."""
        parts = [folder.parts for folder in self.folders]
        return [(part[-3], part[-4]) for part in parts if part[-2:-1] == ("evidence",)]


def stored_runs(root: Path) -> dict[str, StoredRun]:
    """Finds all runs, by run_id. As in reports, published evidence wins over results of this folder."""
    paths = (path for folder in Store.of(root).folders for path in sorted(folder.glob("*/")))
    folders_by_run = grouped((path.name, path) for path in paths if seeds_in(path))
    return {run_id: StoredRun(run_id, tuple(folders)) for run_id, folders in folders_by_run.items()}


def find(text: str, runs: dict[str, StoredRun]) -> StoredRun:
    """Returns the run that `text` means: a folder with results, a run_id, or a part that only one run_id has.

    UserError where there is none, or more than one.
    """
    folder = Path(text)
    if folder.is_dir():
        receipts = read_receipts(folder)
        if not receipts:
            raise UserError(f"{folder}: no finished seed in it; name a folder such as results/runs/<run_id>")
        return StoredRun(next(iter(receipts.values()))["run_id"], (folder,))
    matches = [text] if text in runs else [run_id for run_id in runs if text in run_id]
    if not matches:
        raise UserError(
            f"no run {text!r} in {RUNS} or below reports; {_suggestion(text, list(runs))}`fedrepro runs` lists them"
        )
    if len(matches) > 1:
        more = f" and {len(matches) - LISTED} more" if len(matches) > LISTED else ""
        examples = ", ".join(sorted(matches)[:LISTED])
        raise UserError(f"{text!r} is in {len(matches)} run_ids; the last eight characters tell them apart: {examples}{more}")
    return runs[matches[0]]


def read_receipts(folder: Path, seeds: list[int] | None = None) -> dict[int, dict[str, Any]]:
    """Returns seed -> receipt for the seeds in `folder`, in the order of seeds."""
    return {seed: read(path) for seed, path in seeds_in(folder).items() if seeds is None or seed in seeds}


def run_filter(
    values: Mapping[str, Any], methods: Sequence[str], where: Callable[[str], str]
) -> Callable[[dict[str, Any]], bool] | None:
    """Returns a test whether the settings of a run, with its method, have these `values` and the parts of one of `methods`;
    None where nothing is asked for, so that no run needs to be read for it.

    Calls are compared with all their arguments, and a setting that a run leaves out has its default. `where` says which option
    gave a value, for a mistake in it.
    """
    from fedrepro.config.layers import REPORTED
    from fedrepro.config.project import at
    from fedrepro.config.run_differences import flatten, has_parts
    from fedrepro.data import proxy
    from fedrepro.data.partition import SCHEMES, make_scheme
    from fedrepro.engine import augment, schedule
    from fedrepro.engine.spec import RunSpec

    canonical_forms: dict[str, Callable[[Any], str]] = {
        "partition": lambda text: str(SCHEMES.canonical(make_scheme(text))),
        "schedule": schedule.canonical,
        "epochs": partial(schedule.canonical, setting="epochs"),
        "augment": augment.canonical,
        "proxy": proxy.canonical,
    }
    settings = dict(values)
    for key in REPORTED.keys() & values.keys():
        raise UserError(f"{where(key)}: says how a table reads a run, and no run has it; leave it out")
    for key in canonical_forms.keys() & values.keys():
        with at(where(key)):
            settings[key] = canonical_forms[key](values[key])
    defaults = {field.name: field.default for field in fields(RunSpec)}

    def fits(config: dict[str, Any]) -> bool:
        run_settings = defaults | flatten(config)
        has_method = not methods or any(has_parts(config["method"], method) for method in methods)
        return has_method and all(run_settings.get(key) == value for key, value in settings.items())

    return fits if settings or methods else None


def _suggestion(text: str, run_ids: list[str]) -> str:
    words = dict.fromkeys(word for run_id in run_ids for word in (run_id, *run_id.split("-")))
    matches = difflib.get_close_matches(text, words, n=1)
    return f"did you mean {matches[0]!r}? " if matches else ""
