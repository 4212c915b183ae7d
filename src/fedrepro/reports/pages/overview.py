"""What holds of all papers, on one page: half a minute for each, then every claim by its verdict."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedrepro.reports.model import VERDICTS, Page, Verdict
from fedrepro.reports.pages import parts
from fedrepro.reports.pages import sections as s

SUBTITLE = (
    "Made from the evidence beside the pages. Only what ran at scale full, by a paper's own protocol, is compared with its "
    "printed numbers; at scale short nothing is judged. What does not hold comes first."
)
CLAIMS = (
    "Every claim by its verdict; not comparable where only scale short has run, or the paper does not give the settings. What "
    "each says, in the paper's own words where it has any, and the rule that decides it stand on the paper's page."
)
Placed = tuple[Path, Page]  # a page with the path of its JSON


def overview(pages: Sequence[Placed], others: Mapping[str, int]) -> s.Document:
    """`pages` are those of published scales, `others` papers without any page -> how many numbers they print."""
    papers: dict[str, list[Placed]] = {}
    for path, page in sorted(pages, key=lambda one: (one[1].paper_name, one[1].scale)):  # full comes before short
        papers.setdefault(page.paper, []).append((path, page))
    blocks = [*(_paper(found) for found in papers.values()), *_others(others), _claims([*papers.values()])]
    return s.Document("What holds", SUBTITLE, tuple(blocks))


def _paper(found: list[Placed]) -> s.Section:
    told = [page.answers for _, page in found if page.answers]
    lines: list[s.Line] = [_named("Proposes:", told[0].proposes)] if told else []
    shares = [_share(page) for _, page in found if page.printed.measured] or ["none of its printed numbers."]
    lines.append(_named("Re-run:", " ".join(shares)))
    for _, page in found:
        lines += _answers(page, len(found) > 1)
    lines += [_named("Not obtained:", told[0].missing)] if told else []
    links = [s.Text(f"scale {page.scale}", link=_link(path)) for path, page in found]
    lines.append((s.Text("Pages:", "strong"), " ", *tuple(part for link in links for part in (", ", link))[1:]))
    return s.Section(found[0][1].paper_name, (s.Bullets(tuple(lines)),))


def _named(name: str, text: str) -> s.Line:
    return (s.Text(name, "strong"), f" {text}")


def _share(page: Page) -> str:
    """`48 of its 134 printed numbers by its protocol (36 %).`"""
    measured, total = page.printed.measured, page.printed.total
    share = f"{100 * measured / total:.0f} %" if total else "none printed"
    how = (
        "by its protocol"
        if page.scale == "full"
        else f"at scale {page.scale}, with fewer rounds, seeds or samples, where nothing is judged"
    )
    return f"{measured} of its {total} printed numbers {how} ({share})."


def _answers(page: Page, several: bool) -> list[s.Line]:
    if page.answers is None:
        return []
    kinds = (("Does not hold", page.answers.fails), ("Cannot be told", page.answers.open), ("Holds", page.answers.holds))
    if page.scale != "full":
        kinds = (("Seen at scale " + page.scale, (*page.answers.fails, *page.answers.open, *page.answers.holds)),)
    return [_named(f"{name}:", " ".join(lines)) for name, lines in kinds if lines]


def _others(others: Mapping[str, int]) -> list[s.Block]:
    if not others:
        return []
    lines = tuple(
        f"papers/{name}: {count} printed numbers are here to be compared with; nothing has been run."
        for name, count in others.items()
    )
    return [s.Section("Not run yet", (s.Bullets(lines),))]


def _claims(papers: list[list[Placed]]) -> s.Section:
    """Papers downwards, verdicts across; in each field the claims, which lead to the page that the verdict is of."""
    settled = [(found[0][1].paper_name, _settled(found)) for found in papers]
    used: list[Verdict] = [verdict for verdict in VERDICTS if any(verdict in own for _, own in settled)]
    rows = tuple((name, *(_field(own.get(verdict, [])) for verdict in used)) for name, own in settled)
    heads = (tuple(s.Head(name) for name in ("paper", *(parts.verdict(verdict).text for verdict in used))),)
    return s.Section("Claims", (s.Paragraph(CLAIMS), s.Grid("Claims by verdict", heads, rows, "claims")))


def _settled(found: list[Placed]) -> dict[Verdict, list[s.Text]]:
    """verdict -> the claims. What has not run at full scale has the verdict of scale short, which judges nothing."""
    best: dict[str, tuple[Verdict, Path]] = {}
    for path, page in found:
        for one in page.claims:
            if one.id not in best or (best[one.id][0] == "not run" and one.verdict != "not run"):
                best[one.id] = one.verdict, path
    sorted_: dict[Verdict, list[s.Text]] = {}
    for id, (verdict, path) in best.items():
        sorted_.setdefault(verdict, []).append(s.Text(id, link=_link(path)))
    return sorted_


def _field(links: list[s.Text]) -> s.Line:
    return tuple(part for link in links for part in (", ", link))[1:] or "–"


def _link(path: Path) -> str:
    return path.with_suffix(".page").as_posix()
