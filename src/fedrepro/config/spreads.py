"""papers/<paper>/spread.json: how far the seeds of a measurement usually lie apart, for each quantity, by published evidence.

It is estimated by `fedrepro spread` and committed, so a margin depends on no single table and changes only with a commit.
"""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.files import read_json
from fedrepro.typed import typed


@dataclass(frozen=True)
class Spread:
    """How far the seeds of one measurement usually lie apart: the prior of the moderated variance, of one quantity.

    `deviation`: s0, in the metric's unit. `freedom`: d0, its degrees of freedom. `measurements`: the number of
    measurements that give the estimate.
    """

    deviation: float
    freedom: float
    measurements: int


def spread_path(root: Path, paper: str) -> Path:
    """papers/<paper>/spread.json below `root`."""
    return Path(root) / "papers" / paper / "spread.json"


def read_spreads(root: Path, paper: str) -> dict[str, Spread]:
    """quantity -> its spread; empty where the paper has no such file. UserError for another content."""
    path = spread_path(root, paper)
    if not path.exists():
        return {}
    return typed(dict[str, Spread], read_json(path), path, f"give `fedrepro spread {paper}` again")
