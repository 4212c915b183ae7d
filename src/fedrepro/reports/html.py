"""A report as one static HTML file: styles and pictures inside, nothing fetched, light and dark."""

import itertools
import re
from pathlib import Path
from typing import Any

from fedrepro.reports import words
from fedrepro.reports.figures import INK
from fedrepro.reports.markdown import link
from fedrepro.reports.words import Document

TEMPLATES = Path(__file__).with_name("templates")


def render(document: Document, folder: Path) -> str:
    """The whole page. Links to evidence are relative to `folder`, where the page will lie."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["link"] = lambda path: link(path, Path(folder))
    return environment.get_template("table.html.j2").render(
        d=document,
        words=words,
        groups=groups(document["columns"]),
        rows=table_rows(document),
        pictures=[
            (picture["setting"], inline_svg(Path(picture["path"]), f"f{i}")) for i, picture in enumerate(document["figures"])
        ],
        labels={column["key"]: words.column_label(column) for column in document["columns"]},
    )


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
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'<svg ([^>]*?)\bwidth="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)\bheight="[^"]*"', r"<svg \1", text, count=1)
    return text.replace(INK.lower(), "currentColor").replace(INK, "currentColor")
