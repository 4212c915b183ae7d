"""A report as one static HTML file: styles and pictures inside, nothing fetched, light and dark."""

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.reports import page_words, words
from fedrepro.reports.figures import INK
from fedrepro.reports.markdown import link
from fedrepro.reports.words import Document

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).with_name("templates")
CURVES_LIMIT = 1_200_000  # bytes of learning curves on a paper's page, which is to stay below 2 MB


def render(document: Document, folder: Path) -> str:
    """The page of one table. Links to evidence are relative to `folder`, where the page will lie."""
    pictures = [
        (picture["setting"], inline_svg(Path(picture["path"]), f"f{i}")) for i, picture in enumerate(document["figures"])
    ]
    return (
        _environment(folder)
        .get_template("table.html.j2")
        .render(
            d=document,
            words=words,
            groups=groups(document["columns"]),
            rows=table_rows(document),
            pictures=pictures,
            labels=_labels(document),
        )
    )


def render_page(page: Document, folder: Path) -> str:
    """The page of one paper at one scale."""
    numbers = itertools.count()
    svg = lambda path: inline_svg(Path(path), f"p{next(numbers)}")  # noqa: E731
    return (
        _environment(folder)
        .get_template("paper.html.j2")
        .render(
            d=page,
            words=words,
            page_words=page_words,
            svg=svg,
            curves=_curves(page["tables"], svg),
            calm=bool(page["tables"]) and all(table["comparable"] and not table["warnings"] for table in page["tables"]),
        )
    )


def render_site(pages: Sequence[tuple[Path, Document]], folder: Path) -> str:
    """The list of all pages, each given with the path of its JSON."""
    return _environment(folder).get_template("site.html.j2").render(pages=pages, page_words=page_words)


def _environment(folder: Path) -> "jinja2.Environment":
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
    return environment


def _labels(table: Document) -> dict[str, str]:
    return {column["key"]: words.column_label(column) for column in table["columns"]}


def _curves(tables: list[Document], svg: Callable[[str], str]) -> list[tuple[Document, list[tuple[str, str]]]]:
    """Per table with curves: label and picture of each; no picture at all where the page would grow too large."""
    found, total = [], 0
    for table in tables:
        labels = _labels(table)
        pictures = [(labels[figure["setting"]], svg(figure["path"])) for figure in table["figures"]]
        size = sum(len(drawn) for _, drawn in pictures)
        if pictures:
            fits = total + size <= CURVES_LIMIT
            total += size if fits else 0
            found.append((table, pictures if fits else []))
    return found


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
    """An SVG file's root element, fit to stand among others in one page: identifiers made unique, ink in the page's colour."""
    text = path.read_text()
    text = text[text.index("<svg") :]
    text = re.sub(r"(\.\d\d)\d+(?=[ \n\"LMQCz])", r"\1", text)  # a hundredth of a point is finer than any screen
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'<svg ([^>]*?)\bwidth="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)\bheight="[^"]*"', r"<svg \1", text, count=1)
    return text.replace(INK.lower(), "currentColor").replace(INK, "currentColor")
