"""Where a paper's tables and figures lie. Needs no schema library."""

from pathlib import Path

TABLES, FIGURES = "tables", "figures"  # folders of a paper


def table_path(root: Path, paper: str, name: str) -> Path:
    """The file of a table; of a figure, if that is what its name says."""
    return Path(root) / "papers" / paper / (FIGURES if name.startswith("figure") else TABLES) / f"{name}.yaml"
