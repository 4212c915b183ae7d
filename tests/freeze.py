"""Values that a change of the workflow must keep: run ids and their settings, plans, evidence, the numbers of committed pages.

`python -m tests.freeze` compares the tree with `tests/golden/frozen.json` and prints the differences; `--write` writes the file
again. A commit that changes a number on purpose includes the new file and gives the reason.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.files import canonical_hash, read_json, sha256_file
from fedrepro.typed import plain

FILE = Path("tests/golden/frozen.json")
# Keys of a plan's cell that decide its number and its printed counterpart. The text of the page may change.
CELL = ("row", "column", "printed", "line", "run_id", "read", "average_last", "tuned")
RUN = ("run_id", "method", "method_label", "config", "inputs", "keep", "sources", "argument_sources")


def plans(root: Path = Path()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields scale/paper/table and the plan with the papers' settings, for every table at every scale."""
    project = load_project(root)
    for name in project.table_names():
        for scale in project.scales:
            paper, _, table = name.partition("/")
            yield f"{scale}/{name}", plain(plan(project.as_published(scale), paper, table, scale))


def essence(made: dict[str, Any]) -> dict[str, Any]:
    """The frozen keys of a plan."""
    named = lambda metric: {"metric": metric["name"], "diagnostic": metric["diagnostic"]}  # noqa: E731
    picked = lambda cell: {key: cell[key] for key in CELL} | named(cell["metric"])  # noqa: E731
    tried = lambda one: picked(one) | {key: one[key] for key in ("values", "trial")}  # noqa: E731
    return {
        "seeds": made["seeds"],
        "asked": made["seeds_by_run"],
        "comparable": made["comparable"],
        "rows": [row["key"] for row in made["rows"]],
        "columns": [column["key"] for column in made["columns"]],
        "cells": [picked(cell) for cell in made["cells"]],
        "candidates": [tried(one) for one in made["candidates"]],
        "runs": {run_id: {key: run[key] for key in RUN} for run_id, run in made["runs"].items()},
    }


def numbers(value: Any) -> Iterator[str]:
    """Yields every number in JSON that is not whole, at any depth. It omits both 3 and 3.0."""
    if isinstance(value, float) and not value.is_integer():
        yield repr(value)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from numbers(one)


def digest(texts: Iterator[str]) -> str:
    """The digest of texts in any order."""
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


def tree(root: Path = Path()) -> dict[str, dict[str, Any]]:
    """The content of `frozen.json`: four mappings of names to digests."""
    made = {name: essence(one) for name, one in plans(root)}
    runs = {run_id: run for one in made.values() for run_id, run in one["runs"].items()}
    reports = root / "reports"
    evidence: dict[str, list[str]] = {}
    for path in sorted(path for path in reports.glob("*/*/evidence/**/*") if path.is_file()):
        evidence.setdefault(str(path.parent.relative_to(reports)), []).append(f"{path.name} {sha256_file(path)}")
    documents = sorted(path for path in reports.rglob("*.json") if "evidence" not in path.parts and "demo" not in path.parts)
    committed = [path for path in documents if path.relative_to(reports).parts[0] in ("short", "full")]
    return {
        "runs": {run_id: canonical_hash([runs[run_id]["config"], runs[run_id]["inputs"]], 16) for run_id in sorted(runs)},
        "plans": {name: canonical_hash(one, 16) for name, one in sorted(made.items())},
        "evidence": {folder: digest(iter(lines)) for folder, lines in sorted(evidence.items())},
        "numbers": {str(path.relative_to(reports)): digest(numbers(read_json(path))) for path in committed},
    }


def differences(frozen: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each name whose digest differs, or that only one of the two has."""
    said = []
    for kind in frozen:
        for name in sorted({*frozen[kind], *found[kind]}):
            before, now = frozen[kind].get(name), found[kind].get(name)
            if before != now:
                said.append(f"{kind}: {name}: {'new' if before is None else 'gone' if now is None else 'differs'}")
    return said


def main(arguments: list[str]) -> int:
    """Prints the differences. Returns exit code 1 if there are any."""
    found = tree()
    if arguments == ["--write"]:
        FILE.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
        print(f"{FILE}: " + ", ".join(f"{len(items)} {kind}" for kind, items in found.items()))
        return 0
    said = differences(json.loads(FILE.read_text()), found)
    print(*said, sep="\n", end="\n" if said else "")
    print(", ".join(f"{len(items)} {kind}" for kind, items in found.items()) + f"; {len(said)} differ")
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
