"""Where the tables and the figures of a paper lie. Needs no library."""

import re
from pathlib import Path

from fedrepro.errors import UserError

TABLES, FIGURES = "tables", "figures"  # folders of a paper
SCALES = ("demo", "short", "full")  # of papers/scales.yaml
SWEEP = "sweep_"  # begins the name that a sweep has among papers; its folder is sweeps/<the rest>


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts table2 before table10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def is_figure(name: str) -> bool:
    """Whether a table's name, with its paper before it or without, is that of a figure: `figure3`, `fedgh/figure3-left`."""
    return name.rpartition("/")[2].startswith("figure")


def table_path(root: Path, paper: str, name: str) -> Path:
    """The file of a table; of a figure, if that is what its name says."""
    return paper_folder(root, paper) / (FIGURES if is_figure(name) else TABLES) / f"{name}.yaml"


def paper_folder(root: Path, paper: str) -> Path:
    """papers/<paper>; of a sweep sweeps/<its name>."""
    return Path(root, "sweeps", paper.removeprefix(SWEEP)) if paper.startswith(SWEEP) else Path(root, "papers", paper)


def paper_of(table: Path) -> str:
    """The paper, or the sweep, whose folder a table's file lies in."""
    folder = table.parent.parent
    return f"{SWEEP}{folder.name}" if folder.parent.name == "sweeps" else folder.name


def report_folder(paper: str, scale: str | None) -> str:
    """Where the reports of a paper lie. With its own settings below its scale, reports/full/fedgh; with params.yaml's (`scale`
    None) under a short name, reports/fedgh, and FedLAW's, which come first, in reports."""
    if scale is not None:
        return f"reports/{scale}/{paper}"
    return "reports" if paper == "fedlaw" else f"reports/{paper}"


TABLE_NAME = re.compile(r"(table|figure)\d+(-[a-z0-9]+)*")  # as Snakemake's rules have it


def paper_and_scale(place: str) -> tuple[str, str | None]:
    """The paper and the scale that stand before a report's name below reports/, as `full/fedgh/`; no scale where it is a short
    name. UserError for a scale without a paper."""
    *scale, paper = place.strip("/").split("/")
    if not scale and paper in SCALES:
        raise UserError(f"reports/{place}: which paper? Ask for reports/{paper}/fedlaw/table3.md, for example")
    return paper or "fedlaw", scale[0] if scale else None


def words_of(paper: str) -> list[Path]:
    """The files that a paper's page reads beside its tables: claims, summary and changes, which may be missing, and every
    printed number, since the page counts them."""
    words = (f"{paper}/claims.yaml", f"{paper}/summary.yaml", "changes.yaml")
    return [*(Path("papers", name) for name in words), *sorted(Path("papers", paper, "published").glob("*.csv"))]
