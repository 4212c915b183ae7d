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
from fedrepro.store import is_published

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
    published: bool  # whether its evidence is published: then the page shows the published picture, not one drawn here
    config: dict[str, Any] = field(repr=False)
    tables: list[str]

    @property
    def path(self) -> str:
        """The path of its copy, below the page's folder."""
        return picture(self.id, self.seed)[1]

    @property
    def drawn(self) -> Path:
        """The path of the drawing that was made here; the file may be missing."""
        return picture(self.id, self.seed)[0]


def picture(id: str, seed: int) -> tuple[Path, str]:
    """Returns where a partition is drawn, and where its copy lies below a page's folder."""
    return PARTITIONS / id / f"seed{seed}.svg", f"figures/partitions/{id}/seed{seed}.svg"


def _partitions(tables: Sequence[Exhibit]) -> list[DrawnPartition]:
    """Lists the partitions that runs with evidence read."""
    by_id: dict[str, DrawnPartition] = {}
    for table in tables:
        plan = table.plan
        for run_id in dict.fromkeys(place.run_id for place in plan.planned if place.run_id in table.evidence):
            run, seed = plan.runs[run_id], min(table.evidence[run_id])
            id, published = run.inputs["partition"], is_published(Path(table.evidence[run_id][seed].path))
            partition = by_id.setdefault(id, DrawnPartition(id, seed, published, run.config, []))
            if plan.source not in partition.tables:
                partition.tables.append(plan.source)
    return list(by_id.values())


@section("details", at=50)
def partitions(paper: PaperPage) -> list[b.Block]:
    """A picture for each partition: of published evidence the published copy, so that a page is the same everywhere; of other
    evidence the one drawn here, or else the copy."""
    partitions_read = _partitions(paper.tables)
    drawn_here = {partition.id for partition in partitions_read if not partition.published and partition.drawn.exists()}
    with_picture = [
        partition for partition in partitions_read if partition.id in drawn_here or (paper.folder / partition.path).exists()
    ]
    if not with_picture:
        return []
    pictures = []
    for partition in with_picture:
        dataset, clients, scheme = (partition.config[key] for key in ("dataset", "clients", "partition"))
        text = f"{dataset} among {clients} clients by {scheme}, seed {partition.seed}: training samples by client and class"
        draw = partial(shutil.copyfile, partition.drawn) if partition.id in drawn_here else None
        pictures.append(b.Picture(partition.path, text, f"{text} ({', '.join(partition.tables)})", draw=draw))
    blocks = (b.Paragraph(ABOUT, soft=True), b.Pictures(tuple(pictures)))
    return [b.Section("Partitions", blocks, folded=True, note=some(len(pictures), "picture"))]
