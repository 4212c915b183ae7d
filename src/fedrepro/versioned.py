"""The folder of results that DVC versions: `results/versioned`, hard links to finished files in results/runs and
results/diagnostics. When DVC has stored a file, the link in the folder is one to DVC's own copy.

A DVC experiment checks outputs out by force and deletes files that its lock does not name. So the DVC output is not the results
themselves but a folder beside them. New files from DVC (a pull, an experiment) are linked into the results, and no local result
is lost.
"""

import filecmp
import os
from collections.abc import Iterator
from pathlib import Path

from fedrepro.console import say
from fedrepro.engine import measurements, receipts
from fedrepro.files import link, read_json, write_json

FOLDER = Path("results/versioned")
KNOWN = Path("results/versioned.json")  # file -> its inode in FOLDER at the last `arrive` or `store`
NAMES = tuple(folder.name for folder in (receipts.RUNS, measurements.DIAGNOSTICS))


def arrive(root: Path = Path()) -> None:
    """Links new files from DVC into the results. A result that was deleted here stays deleted, and a result that was computed
    here since the last `store` is kept."""
    stored = dict(_files(root / FOLDER))
    recorded: dict[str, int] = read_json(root / KNOWN) if stored and (root / KNOWN).exists() else {}
    replaced = set[str]()
    brought = {name: inode for name, inode in stored.items() if recorded.get(name) != inode}
    for name in sorted(brought, key=_is_receipt):  # receipts are linked last
        result, arrival = root / "results" / name, root / FOLDER / name
        if not result.exists():
            if name not in recorded:
                link(arrival, result)
        elif result.stat().st_ino == recorded.get(name):  # unchanged since it was stored
            if filecmp.cmp(arrival, result, shallow=False):
                link(result, arrival)  # DVC had made a copy of it
            else:
                link(arrival, result)
                replaced.add(Path(name).parts[1])
    for run_id in sorted(replaced):
        say(f"results/{NAMES[0]}/{run_id}: DVC brought another result, which takes the place of the one that was stored here")
    if brought:
        write_json(root / KNOWN, recorded | dict(_files(root / FOLDER)))


def store(root: Path = Path()) -> Path:
    """Updates the folder from the results: links new and changed files, and deletes files that the results no longer have."""
    arrive(root)
    for leftover in (root / FOLDER).rglob(".*"):  # of a process that was killed while copying
        if leftover.is_file():
            leftover.unlink()
    results = {name: inode for part in NAMES for name, inode in _files(root / "results", part)}
    stored = dict(_files(root / FOLDER))
    for name in stored.keys() - results.keys():
        (root / FOLDER / name).unlink()
    for name, inode in results.items():
        if stored.get(name) != inode:
            link(root / "results" / name, root / FOLDER / name)
    write_json(root / KNOWN, dict(_files(root / FOLDER)))
    return root / FOLDER


def _is_receipt(name: str) -> tuple[bool, bool]:
    """Sorts a run's receipts last, and the manifest of a seed's folder behind the other files in it."""
    return name.count("/") == 2, name.endswith(".json")


def _files(folder: Path, part: str = "") -> Iterator[tuple[str, int]]:
    """Yields (name, inode) of finished files. Skips hidden files, which are still being written, and the markers in `jobs`,
    which the workflow writes again."""
    for path, folders, names in os.walk(folder / part):
        folders[:] = [name for name in folders if name != "jobs" and not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                file = Path(path, name)
                yield file.relative_to(folder).as_posix(), file.stat().st_ino
