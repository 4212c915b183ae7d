"""The figures of a paper: each with its caption, what is missing, and links to the data that it draws."""

from fedrepro.reports.model import Page, PageFigure
from fedrepro.reports.pages import sections as s


def section(page: Page) -> list[s.Block]:
    """Every figure that has anything to draw; nothing where there is none. The others are listed with what has not run."""
    if not page.figures:
        return []
    blocks = tuple(s.Section(f"{one.source}: {one.title}", _figure(one)) for one in page.figures)
    count = len(blocks)
    return [s.Section("Figures", blocks, folded=True, note=f"{count} figure{'' if count == 1 else 's'}")]


def _figure(one: PageFigure) -> tuple[s.Block, ...]:
    stem = one.path.removesuffix(".svg")
    links = (s.Text("CSV", link=f"{stem}.csv"), " and ", s.Text("JSON", link=f"{stem}.json"))
    said = [s.Paragraph(one.caption)] if one.caption else []
    said += [s.Paragraph(warning) for warning in one.warnings]
    picture = s.Pictures((s.Picture(one.path, f"{one.source}: {one.title}"),))
    return (*said, picture, s.Paragraph(("The data drawn, as ", *links, ". ", s.Text(one.command, "code"))))
