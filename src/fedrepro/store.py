"""Where the results of a run lie: published, or else trained here.

    reports/<scale>/<paper>/evidence/<run_id>/seed8.json             published: committed, and never replaced by what is here
    results/runs/<run_id>/seed8.json                                 the receipt of a seed that was trained here
    .../evidence/<run_id>/<call>/seed8.parquet, results/diagnostics  what a diagnostic measured, likewise

Standard library only: the workflow's process uses this module before it starts any job.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro import versioned
from fedrepro.choices import PUBLISHED
from fedrepro.engine import measurements
from fedrepro.engine.receipts import RUNS


@dataclass(frozen=True)
class Store:
    """Folders that hold `<run_id>/seed<k>.json` and `<run_id>/<call>/seed<k>.parquet`, the first folder that has a file
    wins."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, root: Path = Path()) -> "Store":
        """Returns the store of a project, with what DVC has brought."""
        versioned.arrive(Path(root))
        return cls((*published_folders(root), Path(root) / RUNS, Path(root) / measurements.DIAGNOSTICS))

    def find(self, run_id: str, seed: int) -> Path | None:
        """The record of a finished seed; None while there is none."""
        return next(self._paths(f"{run_id}/seed{seed}.json"), None)

    def measured(self, run_id: str, call: str, seed: int, rounds: Iterable[int] = ()) -> Path | None:
        """The file of the diagnostic `call` that covers these `rounds`, as far as the seed reached them. UserError for a
        damaged file, with the repair."""
        paths, required = self._paths(f"{run_id}/{measurements.folder(call)}/seed{seed}.parquet"), [*rounds]
        return next((path for path in paths if measurements.read(path).covers(required)), None)

    def _paths(self, name: str) -> Iterator[Path]:
        # Without pathlib: a sync looks for thousands of files, in ten folders each.
        return (folder / name for folder in self.folders if os.path.exists(f"{folder}/{name}"))  # noqa: PTH110


def published_folders(root: Path = Path()) -> list[Path]:
    """The folders of published evidence."""
    return [folder for scale in PUBLISHED for folder in sorted(Path(root).glob(f"reports/{scale}/*/evidence"))]


def rendered_folders(papers: Iterable[str], scales: Sequence[str]) -> list[Path]:
    """The folders reports/<scale>/<paper> that hold published evidence or a page that was rendered here."""
    folders = [Path("reports", scale, paper) for paper in papers for scale in scales]
    return [folder for folder in folders if any((folder / name).exists() for name in ("evidence", "index.json"))]


def is_published(path: Path) -> bool:
    """Whether a record lies among published evidence."""
    return "evidence" in Path(path).parts[-4:-2]


def seeds_in(folder: Path) -> dict[int, Path]:
    """Seed -> its file `seed<k>.json`, in the order of seeds. Skips other names, such as a file manager's `seed8 copy.json`."""
    paths = {path.stem.removeprefix("seed"): path for path in folder.glob("seed*.json")}
    return dict(sorted((int(number), path) for number, path in paths.items() if number.isdecimal()))
