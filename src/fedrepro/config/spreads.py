"""papers/<paper>/spread.json: how far the seeds of a measurement usually lie apart, of each metric, by the published evidence.

It is estimated by `fedrepro spread` and committed, so that a margin depends on no table and moves only when someone says so.
"""

from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import read_json


def spread_path(root: Path, paper: str) -> Path:
    """papers/<paper>/spread.json below `root`."""
    return Path(root) / "papers" / paper / "spread.json"


def read_spreads(root: Path, paper: str) -> dict[str, dict[str, Any]]:
    """metric -> {deviation, freedom, measurements}; empty where the paper has no such file. UserError for another content."""
    path = spread_path(root, paper)
    content = read_json(path) if path.exists() else {}
    keys = {"deviation", "freedom", "measurements"}
    if not isinstance(content, dict) or any(not isinstance(one, dict) or one.keys() != keys for one in content.values()):
        raise UserError(f"{path}: not what `fedrepro spread {paper}` writes; give that command again")
    return content
