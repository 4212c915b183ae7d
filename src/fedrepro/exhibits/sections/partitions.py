"""Pictures of the partitions that the runs of a paper read."""

import shutil
from functools import partial
from pathlib import Path

from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

PARTITIONS = (
    "Training samples of each client (downwards) by class (across), as drawn for the first seed and read by every method. A "
    "class that a client lacks stays empty."
)


@section("details", at=50)
def partitions(paper: PaperPage) -> list[b.Block]:
    """A picture for each partition: the one drawn here, or else the committed copy."""
    if not paper.partitions:
        return []
    pictures = []
    for one in paper.partitions:
        dataset, clients, scheme = (one.config[key] for key in ("dataset", "clients", "partition"))
        text = f"{dataset} among {clients} clients by {scheme}, seed {one.seed}: training samples by client and class"
        drawn = one.drawn(paper.root)
        draw = partial(_copy, drawn) if drawn.exists() else None
        pictures.append(b.Picture(one.path, text, f"{text} ({', '.join(one.tables)})", draw=draw))
    blocks = (b.Paragraph(PARTITIONS, soft=True), b.Pictures(tuple(pictures)))
    return [b.Section("Partitions", blocks, folded=True, note=words.some(len(pictures), "picture"))]


def _copy(drawn: Path, path: Path) -> None:
    shutil.copyfile(drawn, path)
