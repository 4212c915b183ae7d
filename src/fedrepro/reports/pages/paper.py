"""The page of a paper. First the answer, on one screen: counts, the numbered tables, a picture. All else folds."""

from fedrepro.config.places import is_figure
from fedrepro.reports import names
from fedrepro.reports.analysis.cells import COMPARED
from fedrepro.reports.analysis.claims import PAIRED
from fedrepro.reports.analysis.gaps import proposed
from fedrepro.reports.model import ClaimNumber, ClaimVerdict, Gap, GapSetting, Page, PageTable
from fedrepro.reports.pages import figures, grid, parts, tuning
from fedrepro.reports.pages import sections as s

AT_A_GLANCE = 3  # numbered tables that stand beside each other at the top
AGREEMENT = "Measured numbers against the printed ones, in percent; on the line they are the same."
GAPS = (
    "Difference of two methods in each setting. Ours is the mean over seeds of the paired differences (both methods share "
    "partition, cohorts and initial model), with its 95 % t-interval where there are at least two seeds. Three seeds make a "
    "wide interval."
)
PARTITIONS = (
    "Training samples of each client (downwards) by class (across), as drawn for the first seed and read by every method. A "
    "class that a client lacks stays empty."
)
FITS = (
    "What the paper leaves open, and some of what it states, in the readings that were run; there may be others. The distance "
    "is the mean of |ours − printed| over the numbers of a table that readings were run for, in points; over all tables a "
    "number that several of them print counts once. The first reading is the nearest."
)
CHANGES = (
    "Rules and claims that were changed when results had already been read, oldest first, each with the verdicts that it "
    "moved. A rule fixed beforehand is worth more than one of these."
)
OWN_PAGES = "What each run cost, with links to its evidence, is on the pages of "
NOT_RUN = "No run of these has evidence at this scale. Each line ends with the command that would make it."


def page(page: Page) -> s.Document:
    """All its sections, in order."""
    blocks = [
        *_answer(page),
        *_claims(page),
        *_rule(page),
        *_changes(page),
        *(_table(page, table) for table in page.tables),
        *_not_run(page),
        *_fits(page),
        *figures.section(page),
        *_gaps(page),
        *_partitions(page),
        *_curves(page),
        s.Section("What was run", (s.Facts(_facts(page)),), folded=True, note=parts.total_cost(page.about)),
        *parts.differences(page.disagreements, page.deviations, page.known_gaps, folded=True),
        *_cost(page),
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
    also = f" Beside them {' and '.join(others)}; nothing in those is judged." if others else ""
    return f"Full scale: {share} by the paper's protocol, {', '.join(table.source for table in compared)}.{also}"


def protocol(page: Page) -> tuple[str, ...]:
    """What was run, where that is the same for every table of the page."""
    said = {parts.protocol(table) for table in page.tables}
    return said.pop() if len(said) == 1 else ()


def _answer(page: Page) -> list[s.Block]:
    numbered = [table for table in page.tables if not table.variant_of]
    good = bool(page.tables) and all(table.comparable for table in page.tables)
    departs = parts.departures(page.deviations) if good else ""
    said = (*protocol(page), page.scale_note, departs)
    first = (s.Text(headline(page), "strong"), *(f" {one}" for one in said if one))
    judged = {status: number for status, number in page.counts.items() if status in COMPARED}
    share = f" of {page.printed.measured} printed numbers measured, of {page.printed.total} that the paper's tables print"
    numbers = (
        s.Text("Printed numbers:", "strong"),
        f" {sum(judged.values())} judged{share}: ",
        *_pieces(parts.counted(judged)),
    )
    numbers = numbers if sum(judged.values()) else (s.Text("Printed numbers:", "strong"), f" none judged{share}")
    claims = (". ", s.Text("Claims:", "strong"), " ", *_pieces(parts.counted(page.verdicts))) if page.claims else ()
    lines = (first, (*numbers, *claims, ". A number that several tables print is judged once."), *_read_first(page))
    lines = lines if page.tables else (first,)
    sections = [s.Section(f"{one.source}: {one.title}", (grid.compact(one),)) for one in numbered[:AT_A_GLANCE]]
    if page.picture:
        text = f"{AGREEMENT} {parts.counts(page.counts)}."
        sections.append(s.Section("Measured against printed", (s.Pictures((s.Picture(page.picture, text),)),)))
    elif page.gaps:
        first = proposed(page.gaps)
        sections.append(s.Section(names.gap_title(first), (s.Pictures((_gap_picture(first),)),)))
    return [s.Banner(lines, good), *([s.Beside(tuple(sections))] if sections else [])]


def _read_first(page: Page) -> list[s.Line]:
    """What a person reads first: what does not hold, what the runs cannot tell, what holds."""
    if page.answers is None:
        return []
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
        blocks += [s.Paragraph((s.Text(f"{one.date}{named}: ", "strong"), f"{one.what} {one.why}")), s.Bullets(moved)]
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
    blocks: list[s.Block] = [s.Grid("Claims and verdicts", s.heads("claim", "verdict", "why"), tuple(rows), "claims")]
    every = [(one, number) for one in page.claims for number in one.numbers]
    numbers = tuple(_number(claim, number) for claim, number in every if number.per_seed)
    if numbers:
        columns = s.heads("claim", "what", "printed", "ours", "interval", "every seed", numbers=range(2, 5))
        made = s.Grid("Numbers behind the verdicts", columns, numbers)
        rules = s.Facts(tuple((ids, (rule,)) for ids, rule in _rules(page)))
        note = f"{len(numbers)} of {len(every)} numbers have been measured"
        blocks.append(s.Section("The numbers behind the verdicts, and the rules", (made, rules), folded=True, note=note))
    return [s.Section("What the paper claims", tuple(blocks), folded=True, note=parts.counts(page.verdicts))]


def _number(claim: ClaimVerdict, number: ClaimNumber) -> s.Row:
    """Printed, ours, interval, every seed; dashes for what there is not."""
    measure = lambda kind: s.Measure(kind, f"{claim.id}/{number.column}", number.runs)  # noqa: E731
    ours = s.Text(names.decimal(number.ours), measure=measure("claim")) if number.ours is not None else "–"
    between = f"{names.decimal(number.low)} to {names.decimal(number.high)}"
    interval = s.Text(between, measure=measure("claim-interval")) if number.low is not None else "–"
    values = {seed: "diverged" if value is None else names.decimal(value) for seed, value in number.per_seed.items()}
    seeds = ", ".join(f"{seed}: {value}" for seed, value in values.items())
    per_seed = s.Text(seeds, measure=measure("claim-seeds")) if seeds else "–"
    return (claim.id, number.label, names.decimal(number.printed), ours, interval, per_seed)


def _rules(page: Page) -> list[tuple[str, str]]:
    """Each rule once, by the claims that it decides; then what most of them end with."""
    claims: dict[str, list[str]] = {}
    for claim in page.claims:
        claims.setdefault(claim.rule.replace(PAIRED, "").strip(), []).append(claim.id)
    said = [(", ".join(ids), rule) for rule, ids in claims.items()]
    return [*said, *([("decided", PAIRED)] if any(PAIRED in claim.rule for claim in page.claims) else [])]


def _table(page: Page, table: PageTable) -> s.Section:
    notes = [] if protocol(page) else list(parts.protocol(table))
    notes += [] if table.scale_note == page.scale_note else [table.scale_note]
    notes += [*table.warnings, parts.not_run(table.cells)]
    blocks: list[s.Block] = [s.Paragraph(note) for note in notes if note]
    if table.page:
        own = s.Text(f"Every seed and every setting of {table.source}", link=_own_page(table))
        blocks.append(s.Paragraph((own,)))
    if table.variant_of:
        commands = (("Its numbers, and what they show: ", s.Text(table.command, "code")),)
        return s.Section(
            f"{table.source}: {table.title}", (*blocks, *([] if table.page else [s.Bullets(commands)])), folded=True
        )
    blocks += parts.remarks(table)
    blocks += tuning.summary(table)
    if not table.page:
        blocks.append(grid.listed(table))
    note = f"{parts.counts({name: number for name, number in table.counts.items() if name != 'not run'})}"
    return s.Section(f"{table.source}: {table.title}", tuple(blocks), folded=True, note=note)


def _not_run(page: Page) -> list[s.Block]:
    if not page.not_run:
        return []
    both = "tables and figures" if any(is_figure(one.table) for one in page.not_run) else "tables"
    lines = tuple((f"{one.source}: {one.title}. ", s.Text(one.command, "code")) for one in page.not_run)
    return [s.Section("Not run", (s.Paragraph(NOT_RUN), s.Bullets(lines)), folded=True, note=f"{len(lines)} {both}")]


def _fits(page: Page) -> list[s.Block]:
    if not page.fits:
        return []
    sources = {table.table: table.source for table in page.tables}
    columns = ["reading", *(sources[name] for name in page.fits[0].tables), "all", "numbers"]
    rows = []
    for one in page.fits:
        numbers = f"{one.numbers}" + (f", {one.missing} not measured yet" if one.missing else "")
        values = [names.decimal(value) for value in (*one.tables.values(), one.distance)]
        rows.append((one.variant or "as in the tables themselves", *values, numbers))
    made = s.Grid(
        "Mean distance from the printed numbers, by reading", s.heads(*columns, numbers=range(1, len(columns))), tuple(rows)
    )
    return [s.Section("Which reading fits best", (s.Paragraph(FITS), made), folded=True, note=f"{len(rows)} readings")]


def _gaps(page: Page) -> list[s.Block]:
    if not page.gaps:
        return []
    sections: list[s.Block] = [s.Paragraph(GAPS, soft=True)]
    for table in page.tables:
        found = [gap for gap in page.gaps if gap.table == table.table]
        if found:
            pictures = s.Pictures(tuple(map(_gap_picture, found)))
            blocks: tuple[s.Block, ...] = (pictures, _gap_numbers(table, found))
            heading = f"{table.source}: {table.title}"
            sections.append(s.Section(heading, blocks, folded=True, note=f"{len(found)} pairs"))
    return [s.Section("Gaps between methods", tuple(sections), folded=True, note=f"{len(page.gaps)} pairs")]


def _gap_picture(gap: Gap) -> s.Picture:
    return s.Picture(gap.path, names.gap_text(gap))


def _gap_numbers(table: PageTable, gaps: list[Gap]) -> s.Grid:
    rows: list[s.Row] = []
    for gap in gaps:
        rows.append(s.Apart(f"{names.gap_title(gap)}, in {names.gap_unit(gap)}"))
        rows += [_gap_row(one) for one in gap.settings]
    columns = s.heads("setting", "printed", "measured", "95 % interval", "every seed", numbers=range(1, 4))
    return s.Grid(f"{table.source}: gaps between methods", columns, tuple(rows))


def _gap_row(one: GapSetting) -> s.Row:
    measure = lambda kind: s.Measure(kind, one.metric, one.runs)  # noqa: E731
    ours = s.Text(names.signed(one.ours), measure=measure("gap")) if one.ours is not None else one.reason or ""
    interval = s.Text(names.gap_interval(one), measure=measure("interval")) if one.low is not None else "–"
    seeds = ", ".join(f"{seed}: {names.signed(value)}" for seed, value in one.per_seed.items())
    return (one.label, names.signed(one.printed), ours, interval, s.Text(seeds, measure=measure("gap-seeds")) if seeds else "–")


def _partitions(page: Page) -> list[s.Block]:
    if not page.partitions:
        return []
    pictures = []
    for one in page.partitions:
        text = f"{one.dataset} among {one.clients} clients by {one.partition}, seed {one.seed}"
        said = f"{text}: training samples by client and class"
        pictures.append(s.Picture(one.path, said, f"{said} ({', '.join(one.tables)})"))
    blocks = (s.Paragraph(PARTITIONS, soft=True), s.Pictures(tuple(pictures)))
    return [s.Section("Partitions", blocks, folded=True, note=f"{len(pictures)} pictures")]


def _curves(page: Page) -> list[s.Block]:
    sections: list[s.Block] = [s.Paragraph(parts.CURVES, soft=True)]
    for table in page.tables:
        pictures = []
        for one in table.figures:
            column = table.column(one.setting).title
            pictures.append(s.Picture(one.path, f"Learning curves, {table.source}: {column}", column))
        if pictures:
            heading = f"{table.source}: {table.title}"
            blocks = (s.Pictures(tuple(pictures), inside=False),)
            sections.append(s.Section(heading, blocks, folded=True, note=f"{len(pictures)} pictures"))
    count = sum(len(table.figures) for table in page.tables)
    return [s.Section("Learning curves", tuple(sections), folded=True, note=f"{count} pictures")] if count else []


def _facts(page: Page) -> tuple[tuple[str, tuple[s.Line, ...]], ...]:
    """Name and value, all of them about the runs."""
    about = page.about
    found = {
        "data": ", ".join(about.data),
        "seeds": ", ".join(map(str, about.seeds)),
        "device": "; ".join(about.devices),
        "runs finished": names.period(about.first_finished_at, about.last_finished_at),
        "commit of the runs": ", ".join(about.commits),
        "complete": f"{about.tables_run} of {about.tables} tables, {about.cells_measured} of {about.cells} cells, "
        f"{about.runs_done} of {about.runs_planned} runs (one setting and method at one seed)",
    }
    versions = parts.versions(page.versions, ()).pairs[:-1]
    return (*((name, (value or "no run yet",)) for name, value in found.items()), *versions)


def _cost(page: Page) -> list[s.Block]:
    """A line for each run that no table's own page lists, with a link to its first seed's evidence; others lie beside it."""
    own = {table.source for table in page.tables if table.page}
    rows = []
    for run in page.cost:
        if own.isdisjoint(run.tables):
            seeds = f" ({', '.join(str(one.seed) for one in run.seeds)})"
            evidence = (s.Text(run.run_id[-8:], "code", link=run.seeds[0].evidence), seeds)
            rows.append((run.method, ", ".join(run.tables), *parts.cost(run.seeds), evidence))
    if not page.cost:
        return []
    blocks: list[s.Block] = [s.Paragraph(parts.total_cost(page.about))]
    if own:
        links = [s.Text(table.source, link=_own_page(table)) for table in page.tables if table.page]
        listed = tuple(piece for link in links for piece in (", ", link))[1:]
        blocks.append(s.Paragraph((OWN_PAGES, *listed, ".")))
    if rows:
        columns = s.heads("method", "tables", *parts.COST, "evidence (seeds)", numbers=range(2, 2 + len(parts.COST)))
        blocks += [s.Paragraph(parts.TRAFFIC), s.Grid("Cost and evidence of every run", columns, tuple(rows))]
    return [s.Section("Cost and evidence", tuple(blocks), folded=True, note=f"{len(page.cost)} runs")]


def _own_page(table: PageTable) -> str:
    return f"{(table.page or '').removesuffix('.html')}.page"


def _again(page: Page) -> s.Section:
    commands = (*(table.command for table in page.tables), page.command)
    return s.Section("Make it again", (s.Commands(commands),), folded=True, note=page.command)
