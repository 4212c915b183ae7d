"""Reads a rendered HTML page as assistive technology does: cells with their heads, headings, pictures."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br"}


class Page(HTMLParser):
    """`cells` holds (head of the column, text) per data cell, `rows` the texts of each row below a head."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.tables: list[dict] = []
        self.cells: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self._heads: list[str] = []
        self._place = 0
        self._cell: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        elif tag == "table":
            self.tables.append({"caption": "", "heads": []})
        elif tag == "tr":
            self._place = 0
            if "thead" in self.open:  # the last header row has a head for each column
                self._heads = []
            else:
                self.rows.append([])
        elif tag in ("td", "th"):
            self._cell = ""

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "caption":
            self.tables[-1]["caption"] += data
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            text = (self._cell or "").strip()
            if "thead" in self.open:
                self._heads.append(text)
                self.tables[-1]["heads"].append(text)
            else:
                self.rows[-1].append(text)
                head = self._heads[self._place] if self._place < len(self._heads) else ""
                self.cells += [(head, text)] if tag == "td" else []
            self._place += 1
            self._cell = None

    def of(self, *tags: str) -> list[dict[str, str | None]]:
        """Attributes of every element with one of these tags."""
        return [attributes for tag, attributes in self.elements if tag in tags]
