"""Where the tables and the figures of a paper lie. Needs no library."""

from pathlib import Path

TABLES, FIGURES = "tables", "figures"  # folders of a paper


def is_figure(name: str) -> bool:
    """Whether a table's name is that of a figure: `figure3`, `figure3-left`."""
    return name.startswith("figure")


def table_path(root: Path, paper: str, name: str) -> Path:
    """The file of a table; of a figure, if that is what its name says."""
    return Path(root) / "papers" / paper / (FIGURES if is_figure(name) else TABLES) / f"{name}.yaml"
