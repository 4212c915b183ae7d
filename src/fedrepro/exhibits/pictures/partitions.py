"""Pictures of the partitions that runs read: drawn with the partitions (`fedrepro.data.partition`), copied beside a page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.exhibits.exhibit import Exhibit

PARTITIONS = Path("data/partitions")


@dataclass(frozen=True)
class DrawnPartition:
    """A partition at its first seed with evidence, and the tables that show runs of it."""

    id: str
    seed: int
    config: dict[str, Any] = field(repr=False)
    tables: list[str]

    @property
    def path(self) -> str:
        """The path of its copy, below the page's folder."""
        return f"figures/partitions/{self.id}/seed{self.seed}.svg"

    def drawn(self, root: Path) -> Path:
        """Returns the path of the drawing that was made here; the file may be missing."""
        return root / PARTITIONS / self.id / f"seed{self.seed}.svg"


def partitions(tables: Sequence[Exhibit]) -> list[DrawnPartition]:
    """Lists the partitions that runs with evidence read."""
    known: dict[str, DrawnPartition] = {}
    for table in tables:
        plan = table.plan
        for run_id in dict.fromkeys(place.run_id for place in plan.planned if place.run_id in table.evidence):
            run, seed = plan.runs[run_id], min(table.evidence[run_id])
            one = known.setdefault(run.inputs["partition"], DrawnPartition(run.inputs["partition"], seed, run.config, []))
            if plan.source not in one.tables:
                one.tables.append(plan.source)
    return list(known.values())
