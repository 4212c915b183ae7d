"""Runs as they are found: results of this folder, published evidence, or the results of another folder."""

import difflib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrepro.engine.receipts import RUNS
from fedrepro.engine.records import read
from fedrepro.errors import UserError

LISTED = 10  # runs that an ambiguous part is answered with


@dataclass(frozen=True)
class StoredRun:
    """A run with a finished seed. `folders` hold its receipts; the last folder wins."""

    run_id: str
    folders: tuple[Path, ...]

    @cached_property
    def receipts(self) -> dict[int, dict[str, Any]]:
        """Seed -> receipt, in the order of seeds."""
        found = {seed: receipt for folder in self.folders for seed, receipt in read_receipts(folder).items()}
        return dict(sorted(found.items()))

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

    @property
    def short(self) -> str:
        """The end of the run_id, which tells it from all others."""
        return self.run_id[-8:]


def stored(root: Path) -> dict[str, StoredRun]:
    """Finds all runs, by run_id. As in reports, published evidence wins over results of this folder."""
    found: dict[str, list[Path]] = {}
    for pattern in (f"{RUNS}/*/", "reports/*/*/evidence/*/"):
        for path in sorted(Path(root).glob(pattern)):
            if any(path.glob("seed*.json")):
                found.setdefault(path.name, []).append(path)
    return {run_id: StoredRun(run_id, tuple(folders)) for run_id, folders in found.items()}


def find(text: str, known: dict[str, StoredRun]) -> StoredRun:
    """The run that `text` means: a folder with results, a run_id, or a part that only one run_id has.

    UserError where there is none, or more than one.
    """
    folder = Path(text)
    if folder.is_dir():
        receipts = read_receipts(folder)
        if not receipts:
            raise UserError(f"{folder}: no finished seed in it; name a folder such as results/runs/<run_id>")
        return StoredRun(next(iter(receipts.values()))["run_id"], (folder,))
    matches = [text] if text in known else [run_id for run_id in known if text in run_id]
    if not matches:
        raise UserError(f"no run {text!r} in {RUNS} or below reports; {_near(text, list(known))}`fedrepro runs` lists them")
    if len(matches) > 1:
        more = f" and {len(matches) - LISTED} more" if len(matches) > LISTED else ""
        some = ", ".join(sorted(matches)[:LISTED])
        raise UserError(f"{text!r} is in {len(matches)} run_ids; the last eight characters tell them apart: {some}{more}")
    return known[matches[0]]


def read_receipts(folder: Path, seeds: list[int] | None = None) -> dict[int, dict[str, Any]]:
    """seed -> receipt of those that are in `folder`, in the order of seeds."""
    found = {int(path.stem[4:]): path for path in folder.glob("seed*.json") if path.stem[4:].isdecimal()}
    return {seed: read(found[seed]) for seed in sorted(found) if seeds is None or seed in seeds}


def _near(text: str, run_ids: list[str]) -> str:
    words = dict.fromkeys(word for run_id in run_ids for word in (run_id, *run_id.split("-")))
    found = difflib.get_close_matches(text, words, n=1)
    return f"did you mean {found[0]!r}? " if found else ""
