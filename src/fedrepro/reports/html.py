"""A report as one static HTML file: styles and pictures inside, nothing fetched, light and dark."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.pictures import INK
from fedrepro.reports import page_words, words
from fedrepro.reports.markdown import link
from fedrepro.reports.words import Document

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).with_name("templates")
PAGE_LIMIT = 1_480_000  # characters of a paper's page; what its texts leave is for pictures


def render(document: Document, folder: Path) -> str:
    """The page of one table. Links to evidence are relative to `folder`, where the page will lie."""
    pictures = [
        (picture["setting"], inline_svg(Path(picture["path"]), f"f{i}")) for i, picture in enumerate(document["figures"])
    ]
    return _template("table.html.j2", folder).render(
        d=document,
        words=words,
        groups=groups(document["columns"]),
        rows=table_rows(document),
        pictures=pictures,
        labels=_labels(document),
    )


def render_page(page: Document, folder: Path) -> str:
    """The page of one paper at one scale."""
    texts = len(_paper(page, folder, 0))
    return _paper(page, folder, max(0, PAGE_LIMIT - texts))


def _paper(page: Document, folder: Path, pictures: int) -> str:
    return _template("paper.html.j2", folder).render(
        d=page,
        words=words,
        page_words=page_words,
        pictures=_Pictures(pictures).inline,
        labels=_labels,
        good=bool(page["tables"]) and all(table["comparable"] for table in page["tables"]),
    )


def render_site(pages: Sequence[tuple[Path, Document]], folder: Path) -> str:
    """The list of all pages, each given with the path of its JSON."""
    return _template("site.html.j2", folder).render(pages=pages, page_words=page_words)


def _template(name: str, folder: Path) -> "jinja2.Template":
    """A template whose filter `link` leads from `folder`."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["link"] = lambda path: link(str(path), Path(folder))
    environment.tests["endswith"] = str.endswith
    return environment.get_template(name)


def _labels(table: Document) -> dict[str, str]:
    return {column["key"]: words.column_label(column) for column in table["columns"]}


class _Pictures:
    """The pictures of a page, up to so many bytes."""

    def __init__(self, limit: int) -> None:
        self.left, self.numbers = limit, itertools.count()

    def inline(self, pictures: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
        """Each with its SVG; none of them where together they would make the page too large."""
        drawn = [inline_svg(Path(picture["path"]), f"p{next(self.numbers)}") for picture in pictures]
        size = sum(map(len, drawn))
        if size > self.left:
            return []
        self.left -= size
        return list(zip(pictures, drawn, strict=True))


def groups(columns: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Neighbouring columns of one group: its name and how many columns it spans."""
    return [(name or "", len(list(same))) for name, same in itertools.groupby(columns, key=lambda column: column.get("group"))]


def table_rows(document: Document) -> list[dict[str, Any]]:
    """Rows with their cells in column order; each comes with whether a group of columns starts there."""
    cells = {(cell["method"], cell["setting"]): cell for cell in document["cells"]}
    columns = document["columns"]
    starts = [i > 0 and columns[i - 1].get("group") != column.get("group") for i, column in enumerate(columns)]
    return [
        {**row, "cells": [(cells.get((row["key"], c["key"])), start) for c, start in zip(columns, starts, strict=True)]}
        for row in words.ordered_rows(document)
    ]


def inline_svg(path: Path, prefix: str) -> str:
    """An SVG file's root element, fit to stand among others in one page: identifiers made unique, ink and font the page's."""
    text = path.read_text()
    text = text[text.index("<svg") :]
    # A hundredth of a point is finer than any screen, and letters part numbers as well as spaces do.
    lean = lambda found: re.sub(r"(\.\d\d)\d+|\s+(?=[A-Za-z])|(?<=[A-Z])\s", r"\1", found[1])  # noqa: E731
    text = re.sub(r'(?<= )((?:d|points|x|y)="[^"]*")', lean, text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Half of what is left: every word's list of fonts, turns by no angle, and indentation.
    text = re.sub(r'font-family: [^;"]*;? ?| transform="rotate\(-?0 [^"]*"|(?<=\n)\s+', "", text)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'<svg ([^>]*?)\bwidth="([^"]*)"', r'<svg \1 style="max-width: \2"', text, count=1)
    text = re.sub(r'<svg ([^>]*?)\bheight="[^"]*"', r"<svg \1", text, count=1)
    return text.replace(INK.lower(), "currentColor").replace(INK, "currentColor")
