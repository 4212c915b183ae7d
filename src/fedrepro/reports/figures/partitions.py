"""Pictures of the partitions that runs read: drawn with the partitions (`fedrepro.data.partition`), copied beside a page."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedrepro.files import write_atomic
from fedrepro.reports.model import Evidence, Partition, Plan

PARTITIONS = Path("data/partitions")


def collect(tables: Sequence[tuple[Plan, Evidence]], folder: Path, root: Path) -> tuple[Partition, ...]:
    """One picture per partition that runs with evidence read: today's drawing, or the copy that is committed, or none."""
    found: dict[str, Partition] = {}
    sources: dict[str, dict[str, None]] = {}
    for plan, evidence in tables:
        for run_id in dict.fromkeys(cell.run_id for cell in plan.planned if cell.run_id in evidence):
            run, seed = plan.runs[run_id], min(evidence[run_id])
            name = run.inputs["partition"]
            path = folder / "figures" / "partitions" / name / f"seed{seed}.svg"
            drawn = root / PARTITIONS / name / path.name
            if drawn.exists() and (not path.exists() or path.read_bytes() != drawn.read_bytes()):
                write_atomic(path, lambda temporary, source=drawn: shutil.copyfile(source, temporary))
            if path.exists():
                sources.setdefault(name, {})[plan.source] = None
                of = (run.config[key] for key in ("dataset", "clients", "partition"))
                found.setdefault(name, Partition(name, seed, path.as_posix(), (), *of))
    return tuple(replace(one, tables=tuple(sources[name])) for name, one in found.items())
