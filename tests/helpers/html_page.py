"""Reads a rendered HTML page as a reader with assistive technology gets it: cells under their heads, headings, pictures."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br"}


class Page(HTMLParser):
    """`cells` holds (head of the column, text, numbers) per data cell; a number is (attributes, text). Its attributes hold what
    its row says of all its numbers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.tables: list[dict] = []
        self.cells: list[tuple[str, str, list[tuple[dict, str]]]] = []
        self.numbers: list[tuple[dict[str, str], str]] = []
        self._heads: list[str] = []
        self._place = 0
        self._row: dict[str, str | None] = {}
        self._cell: list | None = None
        self._number: list | None = None
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
        elif tag == "thead":
            self._heads = []
        elif tag == "tr":
            self._place, self._row = 0, attributes
        elif tag in ("td", "th"):
            self._cell = ["", []]
        elif tag == "span" and "data-number" in attributes:
            self._number = [self._row | attributes, ""]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "caption":
            self.tables[-1]["caption"] += data
        if self._cell is not None:
            self._cell[0] += data
        if self._number is not None:
            self._number[1] += data

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "span" and self._number is not None:
            self.numbers.append(tuple(self._number))
            self._cell[1].append(tuple(self._number))
            self._number = None
        elif tag in ("td", "th"):
            text, numbers = self._cell
            if "thead" in self.open:
                self._heads.append(text)
                self.tables[-1]["heads"].append(text)
            elif tag == "td":
                head = self._heads[self._place] if self._place < len(self._heads) else ""
                self.cells.append((head, text.strip(), numbers))
            self._place += 1
            self._cell = None

    def of(self, *tags: str) -> list[dict[str, str | None]]:
        """Attributes of every element with one of these tags."""
        return [attributes for tag, attributes in self.elements if tag in tags]
