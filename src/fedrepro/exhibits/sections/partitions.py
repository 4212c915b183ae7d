"""Pictures of the partitions that the runs of a paper read: drawn with the partitions, copied beside the page."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fedrepro.console import some
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

PARTITIONS = Path("data/partitions")
ABOUT = (
    "Training samples of each client (downwards) by class (across), as drawn for the first seed and read by every method. A "
    "class that a client lacks stays empty."
)


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

    @property
    def drawn(self) -> Path:
        """The path of the drawing that was made here; the file may be missing."""
        return PARTITIONS / self.id / f"seed{self.seed}.svg"


def _partitions(tables: Sequence[Exhibit]) -> list[DrawnPartition]:
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


@section("details", at=50)
def partitions(paper: PaperPage) -> list[b.Block]:
    """A picture for each partition: the one drawn here, or else the committed copy."""
    shown = [one for one in _partitions(paper.tables) if one.drawn.exists() or (paper.folder / one.path).exists()]
    if not shown:
        return []
    pictures = []
    for one in shown:
        dataset, clients, scheme = (one.config[key] for key in ("dataset", "clients", "partition"))
        text = f"{dataset} among {clients} clients by {scheme}, seed {one.seed}: training samples by client and class"
        draw = partial(_copy, one.drawn) if one.drawn.exists() else None
        pictures.append(b.Picture(one.path, text, f"{text} ({', '.join(one.tables)})", draw=draw))
    blocks = (b.Paragraph(ABOUT, soft=True), b.Pictures(tuple(pictures)))
    return [b.Section("Partitions", blocks, folded=True, note=some(len(pictures), "picture"))]


def _copy(drawn: Path, path: Path) -> None:
    shutil.copyfile(drawn, path)
