"""The wording that a paper's page has in Markdown and in HTML alike. Functions take the page's document or a part of it."""

from typing import Any

from fedrepro.reports import words
from fedrepro.reports.cells import STATUSES
from fedrepro.reports.claims import PAIRED
from fedrepro.reports.words import Document

GLYPHS = {
    **words.GLYPHS,
    "direction only": "↗",
    "inconclusive": "?",
    "contradicted": "✗",
    "not run": "–",
    "not comparable": "–",
    "not printed": "–",
}
GAPS = (
    "Difference of two methods in each setting. Ours is the mean over seeds of the paired differences (both methods share "
    "partition, cohorts and initial model), with its 95 % t-interval where there are at least two seeds. Three seeds make a "
    "wide interval."
)
PARTITIONS = (
    "Training samples of each client (downwards) by class (across), as drawn for the first seed and read by every method. A "
    "class that a client lacks stays empty."
)
# Key of a page's document (or `curves`, `again`) -> its heading, short.
SECTIONS = {
    "claims": "Claims and verdicts",
    "tables": "Tables",
    "fits": "Which reading fits best",
    "gaps": "Gaps between methods",
    "partitions": "Partitions",
    "curves": "Learning curves",
    "cost": "Cost and evidence",
    "again": "Commands",
}
TOO_LARGE = "picture in a file of its own, to keep this page small"
CLAIM_NUMBERS = ("printed", "ours", "interval", "every seed")
SITE = "All pages"
SITE_NOTE = (
    "One page for each paper and scale. Only at scale full, and there only where a page says so, may numbers be compared with "
    "the printed ones. Scale short has fewer rounds, demo has other data; each page says what was run."
)
FITS = (
    "Where the paper leaves something open, each reading of it has been run. The distance is the mean of |ours − printed| over "
    "the numbers of a table, in points; over all tables a number that several of them print counts once. The first reading is "
    "the nearest."
)
NO_PAGES = "There is no page yet: no run has left any evidence below reports/."
NOT_RUN = "No run of these has evidence at this scale. Each line ends with the command that would make it."


def title(page: Document) -> str:
    """`FedGH [full scale]`."""
    return f"{page['paper_name']} [{page['scale']} scale]"


def headline(page: Document) -> str:
    """Whether the numbers of the page may be compared with the printed ones."""
    tables = page["tables"]
    if not tables:
        return f"{page['scale'].capitalize()} scale: nothing has run yet."
    compared = [table for table in tables if table["comparable"]]
    if not compared:
        return words.headline(tables[0])
    if len(compared) < len(tables):
        share = f"{len(compared)} of {len(tables)} tables"
        return f"{share} may be compared with the printed ones: {_listed(compared)}. The others say why not."
    varied = sum(table["varied"] is not None for table in tables)
    says = "one more that varies it and says how" if varied == 1 else f"{varied} more that vary it and say how"
    protocol = f"{len(tables) - varied} tables by the paper's protocol, {says}" if varied else "the paper's protocol"
    return f"Full scale: {protocol}. Measured numbers may be compared with the printed ones."


def facts(page: Document) -> list[tuple[str, str]]:
    """Name and value of the opening facts, all of them about the runs."""
    about = page["about"]
    names = "data", "seeds", "device", "runs finished", "commit of the runs"
    values = (
        ", ".join(about["data"]),
        ", ".join(map(str, about["seeds"])),
        "; ".join(about["devices"]),
        words.period(about["first_finished_at"], about["last_finished_at"]),
        ", ".join(about["commits"]),
    )
    complete = (
        f"{about['tables_run']} of {about['tables']} tables, {about['cells_measured']} of {about['cells']} cells, "
        f"{about['runs_done']} of {about['runs_planned']} runs (one setting and method at one seed)"
    )
    said = [(name, value or "no run yet") for name, value in zip(names, values, strict=True)]
    counted = [("cells", counts(page["counts"])), ("claims", counts(page["verdicts"]))]
    return [*said, ("complete", complete), ("cost", words.total_cost(page)), *counted]


def counts(numbers: dict[str, int]) -> str:
    """`9 reproduced, 2 not reproduced`; what does not occur is left out."""
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number) or "none"


def status(name: str) -> str:
    """A status or verdict with its sign, so that colour is never all there is."""
    return f"{GLYPHS[name]} {name}"


def cell_status(cell: dict[str, Any]) -> str:
    """Its status, and why there is no number or not from all seeds."""
    return status(cell["status"]) + (f": {cell['reason']}" if cell["reason"] else "")


def protocol(page: Document) -> list[str]:
    """What was run, where that is the same for every table of the page."""
    said = {tuple(words.protocol(table)) for table in page["tables"]}
    return list(said.pop()) if len(said) == 1 else []


def headings(page: Document) -> dict[str, str]:
    """What each table of the page is called where its source alone may not be enough."""
    return {table["table"]: f"{table['source']}: {table['title']}" for table in page["tables"]}


def notes(page: Document, table: Document) -> list[str]:
    """What to know before reading a table: only what the head of the page does not say already."""
    said = [] if protocol(page) else words.protocol(table)
    said += [] if table["scale_note"] == page["scale_note"] else [table["scale_note"]]
    return [*said, *table["warnings"], *([words.rule(table)] if table["comparable"] else [])]


def fit_heads(page: Document) -> list[str]:
    """Heads of the table of readings; the tables by their sources."""
    sources = {table["table"]: table["source"] for table in page["tables"]}
    return ["reading", *(sources[name] for name in page["fits"][0]["tables"]), "all", "numbers"]


def fit_rows(page: Document) -> list[list[str]]:
    """A row for each reading."""
    rows = []
    for entry in page["fits"]:
        numbers = f"{entry['numbers']}" + (f", {entry['missing']} not measured yet" if entry["missing"] else "")
        name = entry["variant"] or "as in the tables themselves"
        rows.append([name, *(decimal(value) for value in entry["tables"].values()), decimal(entry["distance"]), numbers])
    return rows


def claim_numbers(number: dict[str, Any]) -> list[str]:
    """Printed, ours, interval, every seed; dashes for what there is not."""
    between = f"{decimal(number['low'])} to {decimal(number['high'])}" if number["low"] is not None else "–"
    values = {seed: "diverged" if value is None else decimal(value) for seed, value in number["per_seed"].items()}
    per_seed = ", ".join(f"{seed}: {value}" for seed, value in values.items())
    return [decimal(number["printed"]), decimal(number["ours"]), between, per_seed or "–"]


def claim_rules(page: Document) -> list[tuple[str, str]]:
    """Each rule once, by the claims that it decides; then what most of them end with."""
    claims: dict[str, list[str]] = {}
    for claim in page["claims"]:
        claims.setdefault(claim["rule"].replace(PAIRED, "").strip(), []).append(claim["id"])
    said = [(", ".join(ids), rule) for rule, ids in claims.items()]
    paired = any(PAIRED in claim["rule"] for claim in page["claims"])
    return [*said, *([("decided", PAIRED)] if paired else [])]


def versions(page: Document) -> list[tuple[str, list[str]]]:
    """Versions of what computed the numbers, then the commits."""
    return words.named_versions(page["versions"], page["about"]["commits"])


def columns(table: Document) -> list[str]:
    """Heads of the page's table, after the method's."""
    return ["printed", "measured", *(["difference"] if table["comparable"] else []), "status"]


def decimal(value: float | None) -> str:
    """Two decimals and a true minus; a dash for nothing."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def signed(value: float | None) -> str:
    """With its sign and a true minus; a dash for nothing."""
    return "–" if value is None else f"{value:+.2f}".replace("-", "−")


def by_setting(table: Document) -> list[tuple[str, list[dict[str, Any]]]]:
    """Per column its label and its cells, row by row; cells that are neither printed nor planned are left out."""
    rows = {row["key"]: place for place, row in enumerate(words.ordered_rows(table))}
    found = []
    for column in table["columns"]:
        cells = [c for c in table["cells"] if c["setting"] == column["key"] and (c["printed"] is not None or c["run_id"])]
        if cells:
            found.append((words.column_label(column), sorted(cells, key=lambda cell: rows[cell["method"]])))
    return found


def shows_printed(gap: dict[str, Any]) -> bool:
    """At scale demo the data are others: no printed number has any meaning there."""
    return gap["scale"] != "demo"


def gap_title(gap: dict[str, Any]) -> str:
    """`FedAvg + GH minus FedAvg`."""
    return f"{gap['method_label']} minus {gap['base_label']}"


def gap_unit(gap: dict[str, Any]) -> str:
    """What a difference is counted in."""
    return "percentage points" if gap["unit"] == "percent" else gap["unit"]


def gap_interval(one: dict[str, Any]) -> str:
    """`−1.10 to +0.50`."""
    return "–" if one["low"] is None else f"{signed(one['low'])} to {signed(one['high'])}"


def gap_text(gap: dict[str, Any]) -> str:
    """The picture in words, with all its numbers."""
    said = []
    for one in gap["settings"]:
        parts = [f"measured {signed(one['ours'])}" if one["ours"] is not None else f"not measured ({one['reason']})"]
        if one["low"] is not None:
            parts.append(f"95 % interval {gap_interval(one)}, {len(one['per_seed'])} seeds")
        if shows_printed(gap) and one["printed"] is not None:
            parts.append(f"printed {signed(one['printed'])}")
        said.append(f"{one['label']}: {', '.join(parts)}")
    return f"{gap['source']}, {gap_title(gap)}, in {gap_unit(gap)}. {'; '.join(said)}."


def partition_text(picture: dict[str, Any]) -> str:
    """What a partition's picture shows."""
    return (
        f"{picture['dataset']} among {picture['clients']} clients by {picture['partition']}, seed {picture['seed']}: "
        "training samples by client and class"
    )


def site_heads() -> list[str]:
    """Heads of the list of all pages."""
    return ["paper", "scale", "tables run", "cells", "claims", "runs finished"]


def site_row(page: Document) -> list[str]:
    """What the list of all pages says of one, after its paper and scale."""
    about = page["about"]
    return [
        f"{about['tables_run']} of {about['tables']}",
        counts({name: page["counts"][name] for name in STATUSES}),
        counts(page["verdicts"]),
        words.period(about["first_finished_at"], about["last_finished_at"]),
    ]


def _listed(tables: list[Document]) -> str:
    return ", ".join(table["source"] for table in tables)
