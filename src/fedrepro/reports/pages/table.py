"""The page of one table: what it is, the table, what it shows; all else folds."""

from fedrepro.reports.model import Comparison, Score, Setting, Table, Value
from fedrepro.reports.names import decimal, metric_label, period, signed
from fedrepro.reports.pages import grid, parts, tuning
from fedrepro.reports.pages import sections as s
from fedrepro.units import unit

READINGS = (
    "Papers differ in what they print of a run. The same runs, read in other ways, means over seeds; where a column is read "
    "before the last round, up to that round. The best round is picked on the test set, which is optimistic."
)
ACROSS = (
    "One method against another over all settings of the table, each setting once (columns that read one run at several rounds "
    "count as one): wins, ties and losses, mean difference, and the two-sided p-value of the exact Wilcoxon signed-rank test "
    "over settings; n settings cannot reach a p below 2^(1−n). As printed, and beside it as measured."
)
ORIENTATION = " The printed side is for orientation only: nothing here is comparable with it."


def page(table: Table) -> s.Document:
    """All its sections, in order."""
    title = f"{table.paper_name}, {table.source}: {table.title} [{table.scale} scale]"
    blocks = [
        *_opening(table),
        _numbers(table),
        *_remarks(table),
        *_per_seed(table),
        *tuning.section(table),
        *_readings(table),
        _statuses(table),
        *_across(table),
        *_curves(table),
        _what_was_run(table),
        *_cost(table),
        *parts.differences(table.disagreements, table.deviations, table.known_gaps, folded=True),
        s.Section("Make it again", (s.Commands((table.command,)),)),
        _provenance(table),
    ]
    return s.Document(title, f"{table.paper_title}. {table.source}", tuple(blocks))


def _opening(table: Table) -> list[s.Block]:
    first = (
        s.Text(parts.headline(table), "strong"),
        *(f" {said}" for said in (*parts.protocol(table), table.scale_note, _departures(table)) if said),
    )
    if table.comparable:
        banners: list[s.Block] = [s.Banner((first,), good=True)]
        banners += [s.Banner(table.warnings, good=False)] if table.warnings else []
    else:
        banners = [s.Banner((first, *table.warnings), good=False)]
    return [*banners, s.Facts(tuple((name, (value,)) for name, value in _facts(table)))]


def _departures(table: Table) -> str:
    """What was run otherwise than the paper states, where measured numbers stand beside printed ones."""
    return parts.departures(table.deviations) if table.comparable and parts.in_print(table) else ""


def _facts(table: Table) -> list[tuple[str, str]]:
    """Name and value, all of them about the runs."""
    about = table.about
    return [
        ("data", _data(table) or "no run is planned"),
        ("metric", "; ".join(_metrics(table))),
        ("reported", ", ".join(map(parts.place, about.reported)) or "no run is planned"),
        ("seeds", ", ".join(map(str, about.seeds))),
        ("device", "; ".join(about.devices) or "no run yet"),
        ("arithmetic", parts.arithmetic(table)),
        ("runs finished", period(about.first_finished_at, about.last_finished_at)),
        ("commit of the runs", ", ".join(about.commits) or "no run yet"),
        ("evidence", parts.origin(about)),
        ("complete", f"{about.cells_measured} of {about.cells} cells, {about.runs_done} of {about.runs_planned} runs"),
    ]


def _metrics(table: Table) -> list[str]:
    """Of the columns, then of the rows that show another one, with their names, or the name of their reading."""
    better = lambda metric: f", {metric.better} is better" if metric.ranked else ""  # noqa: E731
    told = lambda metric: f"{metric.description} ({metric.unit}{better(metric)})"  # noqa: E731
    own: dict[str, dict[str, None]] = {}
    for row in table.rows:
        if row.metric:
            alike = row.variant and all(other.metric == row.metric for other in table.rows if other.variant == row.variant)
            own.setdefault(told(row.metric), {})[row.variant if row.variant and alike else row.label] = None
    general = dict.fromkeys(told(column.metric) for column in table.columns)
    shared = [] if all(row.metric for row in table.rows) else list(general)
    return [*shared, *(f"{', '.join(labels)}: {metric}" for metric, labels in own.items())]


def _data(table: Table) -> str:
    """`mnist (1×28×28)`; where columns differ, `FashionMNIST columns ran on digits (1×28×28)` for each group of them."""
    used = {" and ".join(entry.used): entry for entry in table.about.data}
    if len(used) == 1:
        return next(iter(used))
    return "; ".join(f"{entry.printed} columns ran on {' and '.join(entry.used)}" for entry in table.about.data)


def _numbers(table: Table) -> s.Section:
    return s.Section("The table", (s.Paragraph(grid.caption(table), soft=True), grid.printed_grid(table)))


def _remarks(table: Table) -> list[s.Block]:
    said = parts.remarks(table)
    return [s.Section("What these numbers show", tuple(said))] if said else []


def _per_seed(table: Table) -> list[s.Block]:
    run, missing = [cell for cell in table.cells if cell.per_seed], parts.not_run(table.cells)
    seeds = table.about.seeds
    blocks: list[s.Block] = [s.Paragraph(missing)] if missing else []
    if run:
        rows = []
        for cell in run:
            show = lambda value, c=cell: unit(c.unit).none if value is None else decimal(value, c.digits)  # noqa: E731
            values = [show(cell.per_seed[seed]) if seed in cell.per_seed else "–" for seed in seeds]
            rows.append((cell.method_label, cell.setting_label, *values, cell.arithmetic or "–", parts.remark(cell)))
        names = s.heads(
            "method", "setting", *(f"seed {seed}" for seed in seeds), "arithmetic", "remark", numbers=range(2, 2 + len(seeds))
        )
        blocks.append(s.Grid("Every seed", names, tuple(rows)))
    return [s.Section("Every seed", tuple(blocks), folded=bool(run), note=f"{len(run)} cells, {len(seeds)} seeds")]


def _readings(table: Table) -> list[s.Block]:
    found = [(cell, cell.readings) for cell in table.cells if cell.readings]
    if not found:
        return []
    ks = sorted({int(k) for _, one in found for k in one.mean_of_last} - {1})
    rows = []
    for cell, one in found:
        means = [decimal(one.mean_of_last.get(str(k))) for k in ks]
        rows.append((cell.method_label, cell.setting_label, parts.measured(cell), decimal(one.last), decimal(one.best), *means))
    names = ["method", "setting", "as reported", "last round", "best round", *(f"mean of last {k}" for k in ks)]
    made = s.Grid("Other ways to read a run", s.heads(*names, numbers=range(2, len(names))), tuple(rows))
    note = "last round, best round, mean of the last rounds"
    return [s.Section("Other ways to read a run", (s.Paragraph(READINGS), made), folded=True, note=note)]


def _statuses(table: Table) -> s.Section:
    listed = s.Facts(tuple((name, (str(number),)) for name, number in table.counts.items() if number))
    said = [parts.rule(table), parts.spreads(table), parts.outside(table.cells)]
    blocks: list[s.Block] = [*(s.Paragraph(text) for text in said if text), listed]
    if table.rule_alternatives:
        shown = ("reproduced", "consistent", "inconclusive", "not reproduced")
        rows = []
        for one in table.rule_alternatives:
            own = (one.tolerance, one.widest) == (table.rule.tolerance, table.rule.widest)
            first = f"{one.tolerance:g}" + (" (ours)" if own else "")
            rows.append((first, f"{one.widest:g}", *(str(one.counts[status]) for status in shown)))
        names = s.heads("tolerance (points)", "widest margin (points)", *shown, numbers=range(6))
        made = s.Grid("Statuses under other thresholds", names, tuple(rows))
        blocks += [s.Paragraph("How the counts move with the rule:"), made]
    return s.Section("Status of the cells", tuple(blocks), folded=True, note=parts.counts(table.counts))


def _across(table: Table) -> list[s.Block]:
    if all(len(one.settings) < 2 for one in table.comparisons):
        return []
    names = ["method", "against", "metric"]
    names += [f"{what}, {side}" for side in ("printed", "measured") for what in ("wins–ties–losses", "mean difference", "p")]
    digits = {cell.metric: cell.digits for cell in table.cells}
    rows = tuple(_compared(one, digits[one.metric]) for one in table.comparisons)
    made = s.Grid("Methods across settings", s.heads(*names, numbers=range(3, 9)), rows)
    said = s.Paragraph(ACROSS + ("" if table.comparable else ORIENTATION))
    return [s.Section("Across settings", (said, made), folded=True, note=f"{len(rows)} comparisons")]


def _compared(one: Comparison, digits: int) -> s.Row:
    """`4–1–0`, `+4.85`, `0.125` for either side."""
    sides = [text for side in (one.printed, one.measured) for text in _score(side, digits)]
    return (one.method_label, one.baseline_label, metric_label(one.metric), *sides)


def _score(side: Score, digits: int) -> list[str]:
    if not side.settings:
        return ["–", "–", "–"]
    p = "–" if side.p_value is None else f"{side.p_value:.3g}"
    return [f"{side.wins}–{side.ties}–{side.losses}", signed(side.mean_difference, digits), p]


def _curves(table: Table) -> list[s.Block]:
    if not table.figures:
        return []
    pictures = [s.Picture(one.path, f"Learning curves: {table.column(one.setting).title}") for one in table.figures]
    blocks = (s.Paragraph(parts.CURVES, soft=True), s.Pictures(tuple(pictures)))
    return [s.Section("Learning curves", blocks, folded=True, note=f"{len(pictures)} pictures")]


def _what_was_run(table: Table) -> s.Section:
    methods = []
    for one in table.methods:
        specs = tuple(s.Text(spec, "code") for spec in one.specs)
        methods.append((one.label, s.Cell(specs or ("not run",))))
    rows = tuple((s.Text(one.key, "code"), s.Cell(tuple(_values(one))), one.source) for one in table.settings)
    blocks = (
        s.Paragraph("Methods, with every argument spelt out:"),
        s.Grid("Methods as run", s.heads("method", "as run"), tuple(methods)),
        s.Paragraph("Settings, and where each value comes from:"),
        s.Grid("Settings and their sources", s.heads("setting", "value", "source"), rows),
    )
    return s.Section("What was run", blocks, folded=True, note="methods and settings, with the source of every value")


def _values(setting: Setting) -> list[str]:
    """Each value with where it holds."""
    values = sorted(setting.values, key=lambda value: len(value.where), reverse=True)
    # The commonest value needs no list of places: it holds wherever nothing else is said.
    return [_value(value, elsewhere=place == 0 and len(value.where) > 6) for place, value in enumerate(values)]


def _value(entry: Value, *, elsewhere: bool) -> str:
    if not entry.where:
        return entry.value
    return f"{entry.value}: {'everywhere else' if elsewhere else '; '.join(entry.where)}"


def _cost(table: Table) -> list[s.Block]:
    rows: list[s.Row] = []
    for run in table.cost:
        if run.seeds:
            links = [s.Text(str(one.seed), link=one.evidence) for one in run.seeds]
            evidence = tuple(part for link in links for part in (", ", link))[1:]
            rows.append((run.method, run.setting, *parts.cost(run.seeds), evidence))
    total = f"{parts.total_cost(table.about)} {parts.TRAFFIC}"
    if not rows:
        return []
    names = s.heads("method", "setting", *parts.COST, "evidence of seed", numbers=range(2, 2 + len(parts.COST)))
    made = s.Grid("Cost and evidence of every run", names, tuple(rows))
    return [s.Section("Cost and evidence", (s.Paragraph(total), made), folded=True, note=parts.total_cost(table.about))]


def _provenance(table: Table) -> s.Section:
    blocks: list[s.Block] = [parts.versions(table.provenance.versions, table.about.commits)]
    if table.provenance.inputs:
        rows = tuple(
            (one.kind, s.Text(one.id, "code"), ", ".join(map(str, one.seeds)), s.Text(one.sha256, "code"))
            for one in table.provenance.inputs
        )
        blocks.append(s.Grid("Input files", s.heads("kind", "identity", "seeds", "sha256"), rows))
    note = f"versions, and {len(table.provenance.inputs)} input files by sha256"
    return s.Section("Provenance", tuple(blocks), folded=True, note=note)
