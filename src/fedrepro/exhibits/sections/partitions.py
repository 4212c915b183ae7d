"""Pictures of the partitions that the runs of a paper read: drawn with the partitions, copied beside the page."""

import shutil
from functools import partial
from pathlib import Path

from fedrepro.config.plan import Run
from fedrepro.console import some
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.receipt import Receipt
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b
from fedrepro.store import is_published

PARTITIONS = Path("data/partitions")
ABOUT = (
    "Training samples of each client (downwards) by class (across), as drawn for the first seed and read by every method. A "
    "class that a client lacks stays empty."
)


def picture(id: str, seed: int) -> tuple[Path, str]:
    """Returns where a partition is drawn, and where its copy lies below a page's folder."""
    return PARTITIONS / id / f"seed{seed}.svg", f"figures/partitions/{id}/seed{seed}.svg"


@section("details", at=50)
def partitions(paper: PaperPage) -> list[b.Block]:
    """A picture for each partition that runs with evidence read, at its first seed: of published evidence the published copy,
    so that a page is the same everywhere; of other evidence the one drawn here, or else the copy."""
    found: dict[str, tuple[Run, Receipt, dict[str, None]]] = {}  # id -> a run of it at that seed, and the tables that show it
    for table in paper.tables:
        for place in table.plan.planned:
            if place.run_id in table.evidence:
                run, receipts = table.plan.run(place), table.evidence[place.run_id]
                found.setdefault(run.inputs["partition"], (run, receipts[min(receipts)], {}))[2][table.plan.source] = None
    pictures = []
    for id, (run, receipt, sources) in found.items():
        drawn, path = picture(id, receipt.seed)
        drawn_here = not is_published(Path(receipt.path)) and drawn.exists()
        if drawn_here or (paper.folder / path).exists():
            dataset, clients, scheme = (run.config[key] for key in ("dataset", "clients", "partition"))
            text = f"{dataset} among {clients} clients by {scheme}, seed {receipt.seed}: training samples by client and class"
            draw = partial(shutil.copyfile, drawn) if drawn_here else None
            pictures.append(b.Picture(path, text, f"{text} ({', '.join(sources)})", draw=draw))
    if not pictures:
        return []
    blocks = (b.Paragraph(ABOUT, soft=True), b.Pictures(tuple(pictures)))
    return [b.Section("Partitions", blocks, folded=True, note=some(len(pictures), "picture"))]
