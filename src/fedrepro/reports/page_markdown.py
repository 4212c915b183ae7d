"""A paper's page, and the list of all pages, as Markdown."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedrepro.reports import page_words, words
from fedrepro.reports.markdown import differences, folded, link, table
from fedrepro.reports.words import Document


def render(page: Document, folder: Path) -> str:
    """The whole page. Links are relative to `folder`, where the page will lie."""
    sections = (_opening, _claims, _tables, _fits, _gaps, _partitions, _curves, differences, _cost, _again)
    return "\n\n".join(part for section in sections for part in [section(page, Path(folder))] if part) + "\n"


def render_site(pages: Sequence[tuple[Path, Document]], folder: Path) -> str:
    """The list of all pages, each given with the path of its JSON."""
    rows = []
    for path, page in pages:
        name = f"[{page['paper_name']}]({link(path.with_suffix('.md').as_posix(), folder)})"
        rows.append([name, page["scale"], *page_words.site_row(page)])
    listed = table(page_words.site_heads(), rows) if rows else page_words.NO_PAGES
    return "\n\n".join([f"# {page_words.SITE}", page_words.SITE_NOTE, listed]) + "\n"


def _opening(page: Document, folder: Path) -> str:
    banner = [f"**{page_words.headline(page)}**", *page_words.protocol(page), page["scale_note"]]
    headline = f"> {' '.join(banner)}".rstrip()
    first = [f"# {page_words.title(page)}", f"{page['paper_title']}.", headline]
    facts = [[f"**{name}**", value] for name, value in page_words.facts(page)]
    return "\n\n".join([*first, table(["what this is", ""], facts)])


def _claims(page: Document, folder: Path) -> str:
    if not page["claims"]:
        return ""
    rows = [[c["id"], c["text"], c["where"], page_words.status(c["verdict"]), c["why"]] for c in page["claims"]]
    parts = ["## What the paper claims", table(["", "claim", "where", "verdict", "why"], rows)]
    numbers = [
        [claim["id"], n["label"], n["column"], *page_words.claim_numbers(n)]
        for claim in page["claims"]
        for n in claim["numbers"]
    ]
    if numbers:
        header = ["claim", "what", "setting", *page_words.CLAIM_NUMBERS]
        rules = "\n".join(f"- {ids}: {rule}" for ids, rule in page_words.claim_rules(page))
        body = f"{table(header, numbers, 'lllrrrl')}\n\n{rules}"
        parts.append(folded("", "the numbers behind the verdicts, and the rules", body))
    return "\n\n".join(parts)


def _tables(page: Document, folder: Path) -> str:
    parts = ["## Tables"]
    for one in page["tables"]:
        parts += [
            f"### {page_words.headings(page)[one['table']]}",
            *page_words.notes(page, one),
            f"Cells: {page_words.counts(one['counts'])}.",
        ]
        header = ["setting", "method", *page_words.columns(one)]
        rows = [
            [label, cell["method_label"], *_cell(one, cell)] for label, cells in page_words.by_setting(one) for cell in cells
        ]
        parts.append(table(header, rows, "llrr" + "r" * (len(header) - 5)))
        if one["remarks"]:
            parts.append("\n".join(f"- {remark}" for remark in one["remarks"]))
        if one["page"]:
            parts.append(f"[Every seed and every setting]({link(str(Path(one['page']).with_suffix('.md')), folder)})")
    if page["not_run"]:
        lines = "\n".join(f"- {one['source']}: {one['title']}. `{one['command']}`" for one in page["not_run"])
        parts += ["### Not run", page_words.NOT_RUN, lines]
    return "\n\n".join(parts)


def _cell(one: Document, cell: dict[str, Any]) -> list[str]:
    measured = words.measured(cell) + (f" {words.spread(cell)}" if cell["mean"] is not None else "")
    difference = [page_words.signed(cell["difference"])] if one["comparable"] else []
    return [page_words.decimal(cell["printed"]), measured, *difference, page_words.cell_status(cell)]


def _fits(page: Document, folder: Path) -> str:
    if not page["fits"]:
        return ""
    heads = page_words.fit_heads(page)
    listed = table(heads, page_words.fit_rows(page), "l" + "r" * (len(heads) - 1))
    return "\n\n".join([f"## {page_words.SECTIONS['fits']}", page_words.FITS, listed])


def _gaps(page: Document, folder: Path) -> str:
    if not page["gaps"]:
        return ""
    images = [f"![{page_words.gap_text(gap)}]({link(gap['path'], folder)})" for gap in page["gaps"]]
    return "\n\n".join(["## Gaps between methods", page_words.GAPS, *images])


def _curves(page: Document, folder: Path) -> str:
    parts = []
    for one in page["tables"]:
        labels = {column["key"]: words.column_label(column) for column in one["columns"]}
        images = [
            f"![Learning curves, {one['source']}: {labels[f['setting']]}]({link(f['path'], folder)})" for f in one["figures"]
        ]
        if images:
            body = table(["", ""], [[*images[i : i + 2], ""][:2] for i in range(0, len(images), 2)])
            parts.append(folded("", f"{one['source']}: {len(images)} pictures", body))
    return "\n\n".join(["## Learning curves", words.CURVES, *parts]) if parts else ""


def _partitions(page: Document, folder: Path) -> str:
    if not page["partitions"]:
        return ""
    images = [f"![{page_words.partition_text(p)}]({link(p['path'], folder)})" for p in page["partitions"]]
    return "\n\n".join(["## Partitions", page_words.PARTITIONS, *images])


def _cost(page: Document, folder: Path) -> str:
    header = ["method", "setting", "tables", *words.COST, "run", "evidence of seed"]
    rows = [
        [
            *(run["method"], run["setting"], ", ".join(run["tables"]), *words.cost(run), f"`{run['run_id']}`"),
            ", ".join(f"[{one['seed']}]({link(one['evidence'], folder)})" for one in run["seeds"]),
        ]
        for run in page["cost"]
    ]
    body = table(header, rows, "lll" + "r" * len(words.COST)) if rows else ""
    heading = "## What it cost, and where the evidence lies"
    total = f"{words.total_cost(page)} {words.TRAFFIC}"
    return folded(heading, f"{len(rows)} runs", body, total) if rows else ""


def _again(page: Document, folder: Path) -> str:
    commands = "\n".join([*(one["command"] for one in page["tables"]), page["command"]])
    versions = [[name, "<br>".join(values)] for name, values in page_words.versions(page)]
    return "\n\n".join(["## Make it again", f"```\n{commands}\n```", "## Versions", table(["", "of the runs"], versions)])
