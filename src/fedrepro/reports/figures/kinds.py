"""What a kind of figure is: a registered frozen dataclass that makes series of a plan's evidence, and a picture of series."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from fedrepro.registry import Registry, parse, require
from fedrepro.reports.model import Evidence, Figure, Plan, Series

KINDS = Registry("kind of figure")


@dataclass(frozen=True)
class Drawn:
    """The data of a picture, and what its axes count: `x` as in `model.Figure`, empty where columns stand there."""

    series: tuple[Series, ...]
    x: str = ""
    y: str = "value"


class Kind(Protocol):
    """The arguments are the dataclass's fields, checked in `__post_init__`."""

    name: ClassVar[str]
    reads: ClassVar[bool]  # whether it takes one number of a seed's curve, by `read`

    def check(self, rows: Sequence[str]) -> None:
        """UserError for arguments that do not fit a figure with these rows; called when the figure's file is read."""
        ...

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawn:
        """Series of the cells that have evidence, by row and column. UserError for a metric that no run records."""
        ...

    def draw(self, figure: Figure, path: Path) -> None:
        """Writes the picture. Its bytes depend on `figure` alone."""
        ...


def make_kind(text: str) -> Kind:
    """The kind that `text` calls for, `curves(band=std)`. UserError for what is none."""
    (call, *more) = parse(text)
    require(not more, "kind", text, "must be one kind of figure; leave out what follows +")
    return KINDS.make(call)
