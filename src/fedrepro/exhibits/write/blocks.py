"""What a page is made of. The writers beside this module depend on these types alone."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

# How a piece of text looks; good, near, fair and bad are colours of verdicts.
Look = Literal["", "strong", "soft", "code", "big", "small", "none", "underlined", "good", "near", "fair", "bad"]


@dataclass(frozen=True)
class Text:
    """A piece of a line. `link`: a path from the project root, where `.page` stands for this page's own ending, with `#anchor`
    behind it for a place on that page. `anchor`: the name of this piece in links."""

    text: str
    look: Look = ""
    link: str = ""
    anchor: str = ""


Line = str | Text | tuple[str | Text, ...]


@dataclass(frozen=True)
class Box:
    """A cell of several lines. `best`: it is set off from the others of its column; `title`: a remark on demand."""

    lines: tuple[Line, ...]
    best: bool = False
    title: str = ""


@dataclass(frozen=True)
class Head:
    """The head of one column, or of `span` neighbouring ones. `start`: a group of columns begins here."""

    text: str
    number: bool = False  # there are numbers below
    span: int = 1
    start: bool = False


@dataclass(frozen=True)
class Subheading:
    """A row that names the ones below it."""

    text: str


Row = tuple[Line | Box, ...] | Subheading


@dataclass(frozen=True)
class Grid:
    """A table. `heads` are its rows of heads; the last has one for each column. The first cell of a row names the row.

    `look`: "table" for the paper's own grid, whose first column stays in sight; "list" for one row a number; "small".
    """

    name: str
    heads: tuple[tuple[Head, ...], ...]
    rows: tuple[Row, ...]
    look: Literal["", "table", "tight table", "list", "claims", "small"] = ""


@dataclass(frozen=True)
class Paragraph:
    """A sentence or more."""

    line: Line
    soft: bool = False


@dataclass(frozen=True)
class Points:
    """Several sentences on one thing: its name, and a list below it."""

    name: Line
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Bullets:
    """A list."""

    lines: tuple[Line | Points, ...]


@dataclass(frozen=True)
class Pairs:
    """Names and values; a value may have several lines."""

    pairs: tuple[tuple[str, tuple[Line, ...]], ...]


@dataclass(frozen=True)
class Banner:
    """What must be read first."""

    lines: tuple[Line | Points, ...]
    good: bool


@dataclass(frozen=True)
class Commands:
    """Lines to type."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """An SVG file with a description. `path`: from the page's folder. `draw` writes the file; None: the file exists."""

    path: str
    text: str
    caption: str = ""
    draw: Callable[[Path], object] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Pictures:
    """Several pictures beside each other."""

    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class SideBySide:
    """Sections that stand beside each other where there is room."""

    sections: tuple["Section", ...]


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it. Folded: shown on demand, with a `note` on what there is."""

    heading: str
    blocks: tuple["Block", ...]
    folded: bool = False
    note: str = ""


Block = Paragraph | Bullets | Pairs | Banner | Commands | Grid | Pictures | SideBySide | Section


@dataclass(frozen=True)
class Document:
    """A whole page."""

    title: str
    subtitle: Line
    blocks: tuple[Block, ...]

    @property
    def pictures(self) -> Iterator[Picture]:
        """All pictures of the page, in order."""
        return _pictures(self.blocks)


def _pictures(blocks: tuple[Block, ...]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Pictures):
            yield from block.pictures
        elif isinstance(block, Section):
            yield from _pictures(block.blocks)
        elif isinstance(block, SideBySide):
            yield from _pictures(block.sections)


def joined(pieces: Iterable[str | Text], between: str = ", ") -> tuple[str | Text, ...]:
    """Joins pieces into one line."""
    return tuple(part for piece in pieces for part in (between, piece))[1:]


def heads(*names: str, numbers: Collection[int] = ()) -> tuple[tuple[Head, ...], ...]:
    """Makes one row of heads; there are numbers below those at the places `numbers`."""
    return (tuple(Head(name, place in numbers) for place, name in enumerate(names)),)


OVERVIEW = "reports/index.page"  # of all papers


def relative(path: str, folder: Path, page: str = "") -> str:
    """Returns where a link leads: `path`, from the project root, as seen from `folder`; `./name` stands beside the page. Or an
    address.

    A path that ends with `.page` is a page, which ends with `page`. An anchor behind `#` is kept."""
    if "://" in path:
        return path
    path, sign, anchor = path.partition("#")
    path = "reports/README.md" if (path, page) == (OVERVIEW, ".md") else path  # forges show this file for the folder
    path = path.removesuffix(".page") + page if path.endswith(".page") else path
    target = path if path.startswith("./") else os.path.relpath(path, folder)
    return Path(target).as_posix().replace(" ", "%20") + sign + anchor
