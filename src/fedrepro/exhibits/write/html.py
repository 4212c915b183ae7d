"""A page as one static HTML file: styles and pictures inside, nothing fetched, no script, light and dark."""

import itertools
from collections.abc import Iterable
from functools import singledispatchmethod
from html import escape
from pathlib import Path

from fedrepro.exhibits.write.blocks import (
    Apart,
    Banner,
    Beside,
    Box,
    Bullets,
    Commands,
    Document,
    Grid,
    Head,
    Line,
    Pairs,
    Paragraph,
    Picture,
    Pictures,
    Points,
    Row,
    Section,
    Text,
    relative,
)
from fedrepro.exhibits.write.svg import inline

STYLE = Path(__file__).with_name("style.css")
START = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<main id="main">
<h1>{title}</h1>
<p class="source">{subtitle}</p>
"""
END = "</main>\n</body>\n</html>\n"


def write(page: Document, folder: Path) -> str:
    """The whole page. Links are relative to `folder`, where the page will lie."""
    writer = _Writer(Path(folder))
    start = START.format(title=plain(page.title), subtitle=writer.line(page.subtitle), style=STYLE.read_text())
    return f"{start}{writer.all(page.blocks, 2)}{END}"


def plain(text: str) -> str:
    """Text between tags; inside attributes quotes are escaped, too."""
    return escape(text, quote=False)


class _Writer:
    """Writes blocks; `level` is that of the headings."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.numbers = folder, itertools.count()

    def all(self, blocks: Iterable[object], level: int) -> str:
        return "".join(self.block(block, level) for block in blocks)

    @singledispatchmethod
    def block(self, block: object, level: int) -> str:
        raise TypeError(type(block))

    @block.register
    def _section(self, block: Section, level: int) -> str:
        heading = f"<h{level}>{plain(block.heading)}</h{level}>"
        body = self.all(block.blocks, level + 1)
        if not block.folded:
            return f"<section>\n{heading}\n{body}</section>\n"
        note = f' <span class="soft">{plain(block.note)}</span>' if block.note else ""
        return f"<details>\n<summary>{heading}{note}</summary>\n{body}</details>\n"

    @block.register
    def _beside(self, block: Beside, level: int) -> str:
        return f'<div class="beside">\n{self.all(block.sections, level)}</div>\n'

    @block.register
    def _paragraph(self, block: Paragraph, level: int) -> str:
        look = ' class="soft"' if block.soft else ""
        return f"<p{look}>{self.line(block.line)}</p>\n"

    @block.register
    def _bullets(self, block: Bullets, level: int) -> str:
        return self._list(block.lines)

    def _list(self, lines: Iterable[Line | Points]) -> str:
        return "<ul>\n" + "".join(f"<li>{self._told(line)}</li>\n" for line in lines) + "</ul>\n"

    def _told(self, line: Line | Points) -> str:
        return f"{self.line(line.name)}\n{self._list(line.lines)}" if isinstance(line, Points) else self.line(line)

    @block.register
    def _pairs(self, block: Pairs, level: int) -> str:
        pairs = (f"<dt>{plain(name)}</dt><dd>{self.lines(lines)}</dd>\n" for name, lines in block.pairs)
        return f"<dl>\n{''.join(pairs)}</dl>\n"

    @block.register
    def _banner(self, block: Banner, level: int) -> str:
        lines = "".join(f"<div>{self._told(line)}</div>\n" for line in block.lines)
        return f'<div class="banner {"good" if block.good else "warn"}">\n{lines}</div>\n'

    @block.register
    def _commands(self, block: Commands, level: int) -> str:
        return f'<pre tabindex="0"><code>{plain(chr(10).join(block.lines))}</code></pre>\n'

    @block.register
    def _pictures(self, block: Pictures, level: int) -> str:
        return f'<div class="figures">\n{"".join(map(self._picture, block.pictures))}</div>\n'

    def _picture(self, one: Picture) -> str:
        drawn = inline(self.folder / one.path, f"p{next(self.numbers)}")
        figure = f'<figure role="img" tabindex="0" aria-label="{escape(one.text)}">{drawn}</figure>\n'
        return f'<div>\n{figure}<p class="soft">{plain(one.caption)}</p>\n</div>\n' if one.caption else figure

    @block.register
    def _grid(self, block: Grid, level: int) -> str:
        name = escape(block.name)
        frame = f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        look = f' class="{block.look}"' if block.look else ""
        heads = "".join(self._heads(row, last=row is block.heads[-1]) for row in block.heads)
        rows = "".join(self._row(row, block.heads[-1]) for row in block.rows)
        table = f'<table{look}>\n<caption class="unseen">{name}</caption>\n<thead>\n{heads}</thead>\n<tbody>\n{rows}</tbody>\n'
        return f"{frame}\n{table}</table>\n</div>\n"

    def _heads(self, row: tuple[Head, ...], last: bool) -> str:
        cells = []
        for head in row:
            classes = [name for name, on in (("n", head.number), ("group", not last), ("start", head.start)) if on]
            look = f' class="{" ".join(classes)}"' if classes else ""
            span = f' colspan="{head.span}"' if head.span > 1 else ""
            kind = f'th scope="{"colgroup" if head.span > 1 else "col"}"' if head.text else "td"
            cells.append(f"<{kind}{look}{span}>{plain(head.text)}</{kind[:2]}>")
        return f"<tr>{''.join(cells)}</tr>\n"

    def _row(self, row: Row, heads: tuple[Head, ...]) -> str:
        if isinstance(row, Apart):
            return f'<tr class="apart"><th scope="rowgroup" colspan="{len(heads)}">{plain(row.text)}</th></tr>\n'
        first, *rest = (self.lines(cell.lines) if isinstance(cell, Box) else self.line(cell) for cell in row)
        cells = [f'<th scope="row">{first}</th>']
        for head, cell, text in zip(heads[1:], row[1:], rest, strict=True):
            best, title = (cell.best, cell.title) if isinstance(cell, Box) else (False, "")
            look = " ".join(name for name, on in (("n", head.number), ("start", head.start), ("best", best)) if on)
            attributes = (f' class="{look}"' if look else "") + (f' title="{escape(title)}"' if title else "")
            cells.append(f"<td{attributes}>{text}</td>")
        return f"<tr>{''.join(cells)}</tr>\n"

    def lines(self, lines: Iterable[Line]) -> str:
        return "<br>".join(self.line(line) for line in lines)

    def line(self, line: Line) -> str:
        return "".join(map(self._piece, line if isinstance(line, tuple) else (line,)))

    def _piece(self, piece: str | Text) -> str:
        if isinstance(piece, str):
            return plain(piece)
        text = plain(piece.text)
        if piece.link:
            text = f'<a href="{escape(relative(piece.link, self.folder, ".html"))}">{text}</a>'
        tag = {"code": "code", "strong": "strong"}.get(piece.look, "span" if piece.look or piece.anchor else "")
        look = f' class="{piece.look}"' if piece.look and tag == "span" else ""
        anchor = f' id="{escape(piece.anchor)}"' if piece.anchor else ""
        return f"<{tag}{look}{anchor}>{text}</{tag}>" if tag else text
