"""A page as Markdown, for git and for reading in a terminal."""

from collections.abc import Iterable
from pathlib import Path

from fedrepro.exhibits.write import blocks as b

MARKS = {"strong": "**{}**", "code": "`{}`", "underlined": "<u>{}</u>"}


def write(page: b.Document, folder: Path) -> str:
    """Writes the whole page. Links are relative to `folder`, where the page will lie."""
    parts = [f"# {page.title}", _line(page.subtitle, folder), *(_block(block, Path(folder), 2) for block in page.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(block: b.Block, folder: Path, level: int) -> str:
    match block:
        case b.Section():
            return _section(block, folder, level)
        case b.SideBySide(sections):
            return "\n\n".join(_block(section, folder, level) for section in sections)
        case b.Paragraph(line):
            return _line(line, folder)
        case b.Bullets(lines):
            return "\n".join(_item(line, folder) for line in lines)
        case b.Pairs(pairs):
            rows = [[f"**{name}**", "<br>".join(_line(line, folder) for line in lines)] for name, lines in pairs]
            return _table([["", ""], *rows], "")
        case b.Banner(lines):
            return "\n>\n".join("\n".join(f"> {text}" for text in _item_lines(line, folder)) for line in lines)
        case b.Commands(lines):
            return "\n".join(["```", *lines, "```"])
        case b.Pictures(pictures):
            return _pictures(pictures)
        case b.Grid():
            return _grid(block, folder)


def _section(block: b.Section, folder: Path, level: int) -> str:
    heading = f"{'#' * level} {block.heading}"
    body = "\n\n".join(part for child in block.blocks for part in [_block(child, folder, level + 1)] if part)
    if not block.folded:
        return f"{heading}\n\n{body}"
    summary = block.note or "more"
    return f"{heading}\n\n<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _item(line: b.Line | b.Points, folder: Path, level: int = 0) -> str:
    """Writes an item of a list; one with points has a list below it."""
    head = f"{'  ' * level}- {_line(line.name if isinstance(line, b.Points) else line, folder)}"
    below = line.lines if isinstance(line, b.Points) else ()
    return "\n".join([head, *(_item(child, folder, level + 1) for child in below)])


def _item_lines(line: b.Line | b.Points, folder: Path) -> list[str]:
    if not isinstance(line, b.Points):
        return [_line(line, folder)]
    return [_line(line.name, folder), *(_item(child, folder) for child in line.lines)]


def _pictures(pictures: Iterable[b.Picture]) -> str:
    images = [f"![{picture.text}]({picture.path.replace(' ', '%20')})" for picture in pictures]
    if len(images) < 3:
        return "\n\n".join(images)
    return _table([["", ""], *([*images[i : i + 2], ""][:2] for i in range(0, len(images), 2))], "")


def _grid(block: b.Grid, folder: Path) -> str:
    above = [[head.text for head in row for _ in range(head.span)] for row in block.heads]
    names = ["<br>".join(text for text in column if text) for column in zip(*above, strict=True)]
    rows = []
    for row in block.rows:
        if isinstance(row, b.Subheading):
            rows.append([f"***{row.text}***", *[""] * (len(names) - 1)])
        else:
            rows.append([_cell(cell, folder) for cell in row])
    return _table([names, *rows], "".join("r" if head.number else "l" for head in block.heads[-1]))


def _cell(cell: b.Line | b.Box, folder: Path) -> str:
    if not isinstance(cell, b.Box):
        return _line(cell, folder)
    lines = [_line(line, folder) for line in cell.lines]
    if cell.best and lines:  # the first piece is the number itself
        first = cell.lines[0]
        pieces = first if isinstance(first, tuple) else (first,)
        lines[0] = f"**{_line(pieces[0], folder)}**{_line(pieces[1:], folder)}"
    return "<br>".join(line for line in lines if line)


def _line(line: b.Line, folder: Path) -> str:
    return "".join(_piece(piece, folder) for piece in (line if isinstance(line, tuple) else (line,)))


def _piece(piece: str | b.Text, folder: Path) -> str:
    if isinstance(piece, str):
        return piece
    text = MARKS.get(piece.look, "{}").format(piece.text) if piece.text else ""
    text = f"[{text}]({b.relative(piece.link, folder, '.md')})" if piece.link else text
    return f'<a id="{piece.anchor}"></a>{text}' if piece.anchor else text


def _table(rows: list[list[str]], align: str) -> str:
    """`align` has one letter per column, l or r; columns without one are left-aligned. The first row is the head."""
    rule = ["---:" if letter == "r" else "---" for letter in align.ljust(len(rows[0]), "l")]
    escaped = ([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in [rows[0], rule, *rows[1:]])
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)
