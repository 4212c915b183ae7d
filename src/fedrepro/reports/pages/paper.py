"""The page of a paper. First the answer, on one screen: counts, the numbered tables, a picture. All else folds."""

from fedrepro.config.places import is_figure
from fedrepro.reports import names
from fedrepro.reports.analysis.cells import COMPARED
from fedrepro.reports.analysis.gaps import proposed
from fedrepro.reports.model import Page, PageTable
from fedrepro.reports.pages import details, figures, grid, parts, tuning
from fedrepro.reports.pages import sections as s

AT_A_GLANCE = 3  # numbered tables that stand beside each other at the top
AGREEMENT = "Measured numbers against the printed ones, in percent; on the line they are the same."
CHANGES = (
    "Rules and claims that were changed when results had already been read, oldest first, each with the verdicts that it "
    "moved. A rule fixed beforehand is worth more than one of these."
)
VARIED = (
    "What the paper leaves open, tried with its numbers known: these tables vary one of its own, and nothing in them is judged."
)
NOT_RUN = "No run of these has evidence at this scale. Each line ends with the command that would make it."


def page(page: Page, beside: str) -> s.Document:
    """What is read, in order; `beside`: the path of what is looked up, from the project root, without an ending."""
    told = s.Text(
        "Numbers behind the verdicts, readings, gaps between methods, curves, partitions, cost", link=f"{beside}.page"
    )
    blocks = [
        *_answer(page),
        *([s.Paragraph((told,), soft=True)] if page.tables or page.figures else []),
        *_claims(page),
        *_rule(page),
        *_changes(page),
        *(_table(page, table) for table in page.tables if not table.variant_of),
        *_varied(page),
        *_not_run(page),
        *figures.section(page),
        s.Section("What was run", (s.Facts(_facts(page)),), folded=True, note=parts.total_cost(page.about)),
        *parts.differences(page.disagreements, page.deviations, page.known_gaps, folded=True),
        _again(page),
    ]
    return s.Document(f"{page.paper_name} [{page.scale} scale]", page.paper_title, tuple(blocks))


def headline(page: Page) -> str:
    """Whether the numbers of the page may be compared with the printed ones."""
    tables = page.tables
    if not tables:
        return f"{page.scale.capitalize()} scale: {'no table' if page.figures else 'nothing'} has run yet."
    compared = [table for table in tables if table.comparable and parts.in_print(table) and not table.varied]
    if not compared:
        return parts.headline(tables[0])
    share = f"{len(compared)} table{'' if len(compared) == 1 else 's'} with printed numbers"
    own = sum(not parts.in_print(table) for table in tables)
    varied = sum(table.varied is not None for table in tables)
    others = [f"{varied} that var{'ies' if varied == 1 else 'y'} one of them"] if varied else []
    others += [f"{own} of ours without printed numbers"] if own else []
    apart = sum(parts.in_print(table) and not table.comparable for table in tables)
    others += [f"{apart} whose printed numbers are of another setting"] if apart else []
    also = f" On the page besides: {', '.join(others)}; nothing in those is judged." if others else ""
    return f"Full scale: {share} by the paper's protocol, {', '.join(table.source for table in compared)}.{also}"


def protocol(page: Page) -> tuple[str, ...]:
    """What was run, where that is the same for every table of the page."""
    said = {parts.protocol(table) for table in page.tables}
    return said.pop() if len(said) == 1 else ()


def _answer(page: Page) -> list[s.Block]:
    numbered = [table for table in page.tables if not table.variant_of and parts.in_print(table)] or [
        table for table in page.tables if not table.variant_of
    ]
    good = bool(page.tables) and all(table.comparable for table in page.tables)
    compared = any(table.comparable and parts.in_print(table) for table in page.tables)
    departs = parts.departures(page.deviations) if compared else ""
    said = (*protocol(page), page.scale_note, departs)
    first = (s.Text(headline(page), "strong"), *(f" {one}" for one in said if one))
    told = _read_first(page)
    lines = (*told, _counted(page), first) if compared else (first, *told, _counted(page))
    lines = lines if page.tables else (first,)
    sections = [s.Section(f"{one.source}: {one.title}", (grid.compact(one),)) for one in numbered[:AT_A_GLANCE]]
    if page.picture:
        text = f"{AGREEMENT} {parts.counts(page.counts)}."
        sections.append(s.Section("Measured against printed", (s.Pictures((s.Picture(page.picture, text),)),)))
    elif page.gaps:
        first = proposed(page.gaps)
        sections.append(s.Section(names.gap_title(first), (s.Pictures((details.gap_picture(first),)),)))
    return [s.Banner(lines, good), *([s.Beside(tuple(sections))] if sections else [])]


def _counted(page: Page) -> s.Line:
    """How many printed numbers were measured, how they and the claims are judged."""
    judged = {status: number for status, number in page.counts.items() if status in COMPARED}
    total = sum(judged.values())
    share = f" {page.printed.measured} of {page.printed.total} that the paper prints are measured, "
    numbers = (
        (f"{share}{total} different ones judged: ", *_pieces(parts.counted(judged))) if total else (f"{share}none is judged",)
    )
    claims = (". ", s.Text("Claims:", "strong"), " ", *_pieces(parts.counted(page.verdicts))) if page.claims else ()
    once = ". A number that several tables print is judged once." if total else "."
    return (s.Text("Printed numbers:", "strong"), *numbers, *claims, once)


def _read_first(page: Page) -> list[s.Line]:
    """What a person reads first: what does not hold, what the runs cannot tell, what holds."""
    if page.answers is None:
        return []
    if page.scale != "full":  # observations: nothing there holds or fails
        lines = (*page.answers.fails, *page.answers.open, *page.answers.holds)
        return [(s.Text("Seen here:", "strong"), f" {' '.join(lines)}")] if lines else []
    kinds = (("Does not hold:", page.answers.fails), ("Cannot be told:", page.answers.open), ("Holds:", page.answers.holds))
    return [(s.Text(name, "strong"), f" {' '.join(lines)}") for name, lines in kinds if lines]


def _rule(page: Page) -> list[s.Block]:
    """How cells are judged; nothing where none is."""
    table = next((table for table in page.tables if table.comparable and parts.in_print(table)), None)
    if table is None:
        return []
    judged = [cell for one in page.tables if not one.variant_of for cell in one.cells]
    said = (parts.rule(table), parts.spreads(table), parts.outside(judged))
    blocks = tuple(s.Paragraph(text) for text in said if text)
    return [s.Section("How cells are judged", blocks, folded=True, note="the rule, and what chance would do")]


def _changes(page: Page) -> list[s.Block]:
    """Every change of a rule or a claim after results had been read."""
    if not page.changes:
        return []
    blocks: list[s.Block] = [s.Paragraph(CHANGES)]
    for one in page.changes:
        moved = tuple(f"{move}: {'; '.join(places)}" for move, places in one.moved.items())
        moved = (*moved, *([one.counts] if one.counts else [])) or ("no verdict of this paper moved",)
        named = f" ({', '.join(one.claims)})" if one.claims else ""
        blocks += [s.Paragraph((s.Text(f"{one.date}{named}:", "strong"), f" {one.what} {one.why}")), s.Bullets(moved)]
    return [s.Section("Changes after results were read", tuple(blocks), folded=True, note=f"{len(page.changes)} changes")]


def _pieces(line: s.Line) -> tuple[str | s.Text, ...]:
    return line if isinstance(line, tuple) else (line,)


def _claims(page: Page) -> list[s.Block]:
    if not page.claims:
        return []
    rows = []
    for one in page.claims:
        quoted = f"“{one.says}”" if one.says else "read off the printed numbers; no sentence says it"
        said = s.Cell((s.Text(f"{one.id}, {one.where}", "soft"), one.text, s.Text(quoted, "soft")))
        rows.append((said, parts.verdict(one.verdict), one.why))
    made = s.Grid("Claims and verdicts", s.heads("claim", "verdict", "why"), tuple(rows), "claims")
    return [s.Section("What the paper claims", (made,), folded=True, note=parts.counts(page.verdicts))]


def _table(page: Page, table: PageTable) -> s.Section:
    notes = [] if protocol(page) else list(parts.protocol(table))
    notes += [] if table.scale_note == page.scale_note else [table.scale_note]
    notes += [*table.warnings, parts.not_run(table.cells)]
    blocks: list[s.Block] = [s.Paragraph(note) for note in notes if note]
    if table.page:
        own = s.Text(f"Every seed and every setting of {table.source}", link=details.own_page(table))
        blocks.append(s.Paragraph((own,)))
    blocks += parts.remarks(table)
    blocks += tuning.summary(table)
    if not table.page:
        blocks.append(grid.listed(table))
    note = f"{parts.counts({name: number for name, number in table.counts.items() if name != 'not run'})}"
    return s.Section(f"{table.source}: {table.title}", tuple(blocks), folded=True, note=note)


def _varied(page: Page) -> list[s.Block]:
    """The tables that vary another: where their own pages are, or what makes them."""
    lines: list[s.Line] = []
    for table in (table for table in page.tables if table.variant_of):
        name = f"{table.source}: {table.title}"
        own = s.Text(name, link=details.own_page(table)) if table.page else name
        lines.append(own if table.page else (f"{name}. ", s.Text(table.command, "code")))
    if not lines:
        return []
    blocks = (s.Paragraph(VARIED), s.Bullets(tuple(lines)))
    return [
        s.Section(
            "Other readings", blocks, folded=True, note=f"{len(lines)} table{'' if len(lines) == 1 else 's'} beside these"
        )
    ]


def _not_run(page: Page) -> list[s.Block]:
    if not page.not_run:
        return []
    both = "tables and figures" if any(is_figure(one.table) for one in page.not_run) else "tables"
    lines = tuple((f"{one.source}: {one.title}. ", s.Text(one.command, "code")) for one in page.not_run)
    return [s.Section("Not run", (s.Paragraph(NOT_RUN), s.Bullets(lines)), folded=True, note=f"{len(lines)} {both}")]


def _facts(page: Page) -> tuple[tuple[str, tuple[s.Line, ...]], ...]:
    """Name and value, all of them about the runs."""
    about = page.about
    found = {
        "data": ", ".join(about.data),
        "seeds": ", ".join(map(str, about.seeds)),
        "device": "; ".join(about.devices),
        "runs finished": names.period(about.first_finished_at, about.last_finished_at),
        "commit of the runs": ", ".join(about.commits),
        "evidence": parts.origin(about),
        "complete": f"{about.tables_run} of {about.tables} tables, {about.cells_measured} of {about.cells} cells, "
        f"{about.runs_done} of {about.runs_planned} runs (one setting and method at one seed)",
    }
    versions = parts.versions(page.versions, ()).pairs[:-1]
    return (*((name, (value or "no run yet",)) for name, value in found.items()), *versions)


def _again(page: Page) -> s.Section:
    commands = (*(table.command for table in page.tables), page.command)
    return s.Section("Make it again", (s.Commands(commands),), folded=True, note=page.command)
