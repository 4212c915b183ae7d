"""What is looked up of a paper: numbers behind verdicts with the rules, readings, gaps, curves, partitions, cost."""

from fedrepro.reports import names
from fedrepro.reports.analysis.claims import PAIRED
from fedrepro.reports.model import ClaimNumber, ClaimVerdict, Gap, GapSetting, Page, PageTable
from fedrepro.reports.pages import parts
from fedrepro.reports.pages import sections as s

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
OWN_PAGES = "What each run cost, with links to its evidence, is on the pages of "


def details(page: Page) -> s.Document:
    """What is looked up, in order."""
    blocks = [*_numbers(page), *_fits(page), *_gaps(page), *_curves(page), *_partitions(page), *_cost(page)]
    return s.Document(f"{page.paper_name} in detail [{page.scale} scale]", page.paper_title, tuple(blocks))


def _numbers(page: Page) -> list[s.Block]:
    """The numbers that claims rest on, and the rules that decide them."""
    every = [(one, number) for one in page.claims for number in one.numbers]
    numbers = tuple(_number(claim, number) for claim, number in every if number.per_seed)
    if not numbers:
        return []
    columns = s.heads("claim", "what", "printed", "ours", "interval", "every seed", numbers=range(2, 5))
    made = s.Grid("Numbers behind the verdicts", columns, numbers)
    rules = s.Facts(tuple((ids, (rule,)) for ids, rule in _rules(page)))
    note = f"{len(numbers)} of {len(every)} numbers have been measured"
    return [s.Section("The numbers behind the verdicts, and the rules", (made, rules), folded=True, note=note)]


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
            pictures = s.Pictures(tuple(map(gap_picture, found)))
            blocks: tuple[s.Block, ...] = (pictures, _gap_numbers(table, found))
            heading = f"{table.source}: {table.title}"
            sections.append(s.Section(heading, blocks, folded=True, note=f"{len(found)} pairs"))
    return [s.Section("Gaps between methods", tuple(sections), folded=True, note=f"{len(page.gaps)} pairs")]


def gap_picture(gap: Gap) -> s.Picture:
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
        links = [s.Text(table.source, link=own_page(table)) for table in page.tables if table.page]
        listed = tuple(piece for link in links for piece in (", ", link))[1:]
        blocks.append(s.Paragraph((OWN_PAGES, *listed, ".")))
    if rows:
        columns = s.heads("method", "tables", *parts.COST, "evidence (seeds)", numbers=range(2, 2 + len(parts.COST)))
        blocks += [s.Paragraph(parts.TRAFFIC), s.Grid("Cost and evidence of every run", columns, tuple(rows))]
    return [s.Section("Cost and evidence", tuple(blocks), folded=True, note=f"{len(page.cost)} runs")]


def own_page(table: PageTable) -> str:
    return f"{(table.page or '').removesuffix('.html')}.page"
