"""papers/<paper>/spread.json: how far the seeds of a measurement usually lie apart, for each quantity, by published evidence.

It is estimated by `fedrepro spread` and committed, so that a margin depends on no table and moves only when someone says so.
"""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.files import read_json


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
    content = read_json(path) if path.exists() else {}
    keys = {"deviation", "freedom", "measurements"}
    if not isinstance(content, dict) or any(not isinstance(one, dict) or one.keys() != keys for one in content.values()):
        raise UserError(f"{path}: not what `fedrepro spread {paper}` writes; give that command again")
    return {metric: Spread(**one) for metric, one in content.items()}
