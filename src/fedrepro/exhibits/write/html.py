"""A page as one static HTML file: styles and pictures inside, nothing fetched, no script, light and dark."""

import itertools
from collections.abc import Iterable
from html import escape
from pathlib import Path

from fedrepro.exhibits.write import blocks as b
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


def write(page: b.Document, folder: Path) -> str:
    """Writes the whole page. Links are relative to `folder`, where the page will lie."""
    writer = _Writer(Path(folder))
    start = START.format(title=plain(page.title), subtitle=writer.line(page.subtitle), style=STYLE.read_text())
    return f"{start}{writer.all(page.blocks, 2)}{END}"


def plain(text: str) -> str:
    """Escapes text between tags; inside attributes quotes are escaped, too."""
    return escape(text, quote=False)


class _Writer:
    """Writes blocks; `level` is that of the headings."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.numbers = folder, itertools.count()

    def all(self, blocks: Iterable[b.Block], level: int) -> str:
        return "".join(self.block(block, level) for block in blocks)

    def block(self, block: b.Block, level: int) -> str:
        match block:
            case b.Section():
                return self._section(block, level)
            case b.SideBySide(sections):
                return f'<div class="beside">\n{self.all(sections, level)}</div>\n'
            case b.Paragraph(line, soft):
                look = ' class="soft"' if soft else ""
                return f"<p{look}>{self.line(line)}</p>\n"
            case b.Bullets(lines):
                return self._list(lines)
            case b.Pairs(pairs):
                entries = (f"<dt>{plain(name)}</dt><dd>{self.lines(lines)}</dd>\n" for name, lines in pairs)
                return f"<dl>\n{''.join(entries)}</dl>\n"
            case b.Banner(lines, good):
                items = (f"<div>{self._item(line)}</div>\n" for line in lines)
                return f'<div class="banner {"good" if good else "warn"}">\n{"".join(items)}</div>\n'
            case b.Commands(lines):
                return f'<pre tabindex="0"><code>{plain(chr(10).join(lines))}</code></pre>\n'
            case b.Pictures(pictures):
                return f'<div class="figures">\n{"".join(map(self._picture, pictures))}</div>\n'
            case b.Grid():
                return self._grid(block)

    def _section(self, block: b.Section, level: int) -> str:
        heading = f"<h{level}>{plain(block.heading)}</h{level}>"
        body = self.all(block.blocks, level + 1)
        if not block.folded:
            return f"<section>\n{heading}\n{body}</section>\n"
        note = f' <span class="soft">{plain(block.note)}</span>' if block.note else ""
        return f"<details>\n<summary>{heading}{note}</summary>\n{body}</details>\n"

    def _list(self, lines: Iterable[b.Line | b.Points]) -> str:
        return "<ul>\n" + "".join(f"<li>{self._item(line)}</li>\n" for line in lines) + "</ul>\n"

    def _item(self, line: b.Line | b.Points) -> str:
        return f"{self.line(line.name)}\n{self._list(line.lines)}" if isinstance(line, b.Points) else self.line(line)

    def _picture(self, picture: b.Picture) -> str:
        svg = inline(self.folder / picture.path, f"p{next(self.numbers)}")
        figure = f'<figure role="img" tabindex="0" aria-label="{escape(picture.text)}">{svg}</figure>\n'
        return f'<div>\n{figure}<p class="soft">{plain(picture.caption)}</p>\n</div>\n' if picture.caption else figure

    def _grid(self, block: b.Grid) -> str:
        name = escape(block.name)
        frame = f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        look = f' class="{block.look}"' if block.look else ""
        heads = "".join(self._heads(row, last=row is block.heads[-1]) for row in block.heads)
        rows = "".join(self._row(row, block.heads[-1]) for row in block.rows)
        table = f'<table{look}>\n<caption class="unseen">{name}</caption>\n<thead>\n{heads}</thead>\n<tbody>\n{rows}</tbody>\n'
        return f"{frame}\n{table}</table>\n</div>\n"

    def _heads(self, row: tuple[b.Head, ...], last: bool) -> str:
        cells = []
        for head in row:
            classes = [name for name, on in (("n", head.number), ("group", not last), ("start", head.start)) if on]
            look = f' class="{" ".join(classes)}"' if classes else ""
            span = f' colspan="{head.span}"' if head.span > 1 else ""
            kind = f'th scope="{"colgroup" if head.span > 1 else "col"}"' if head.text else "td"
            cells.append(f"<{kind}{look}{span}>{plain(head.text)}</{kind[:2]}>")
        return f"<tr>{''.join(cells)}</tr>\n"

    def _row(self, row: b.Row, heads: tuple[b.Head, ...]) -> str:
        if isinstance(row, b.Subheading):
            return f'<tr class="apart"><th scope="rowgroup" colspan="{len(heads)}">{plain(row.text)}</th></tr>\n'
        first, *rest = (self.lines(cell.lines) if isinstance(cell, b.Box) else self.line(cell) for cell in row)
        cells = [f'<th scope="row">{first}</th>']
        for head, cell, text in zip(heads[1:], row[1:], rest, strict=True):
            best, title = (cell.best, cell.title) if isinstance(cell, b.Box) else (False, "")
            look = " ".join(name for name, on in (("n", head.number), ("start", head.start), ("best", best)) if on)
            attributes = (f' class="{look}"' if look else "") + (f' title="{escape(title)}"' if title else "")
            cells.append(f"<td{attributes}>{text}</td>")
        return f"<tr>{''.join(cells)}</tr>\n"

    def lines(self, lines: Iterable[b.Line]) -> str:
        return "<br>".join(self.line(line) for line in lines)

    def line(self, line: b.Line) -> str:
        return "".join(map(self._piece, line if isinstance(line, tuple) else (line,)))

    def _piece(self, piece: str | b.Text) -> str:
        if isinstance(piece, str):
            return plain(piece)
        text = plain(piece.text)
        if piece.link:
            text = f'<a href="{escape(b.relative(piece.link, self.folder, ".html"))}">{text}</a>'
        tag = {"code": "code", "strong": "strong"}.get(piece.look, "span" if piece.look or piece.anchor else "")
        look = f' class="{piece.look}"' if piece.look and tag == "span" else ""
        anchor = f' id="{escape(piece.anchor)}"' if piece.anchor else ""
        return f"<{tag}{look}{anchor}>{text}</{tag}>" if tag else text
