"""A report as Markdown, for git and for reading in a terminal."""

import os
from pathlib import Path
from typing import Any

from fedrepro.reports import words
from fedrepro.reports.words import Document


def render(document: Document, folder: Path) -> str:
    """The whole page. Links are relative to `folder`, where the page will lie."""
    sections = (
        _opening,
        _table,
        _per_seed,
        _readings,
        _verdicts,
        _across,
        _curves,
        _settings,
        _cost,
        differences,
        _provenance,
    )
    return "\n\n".join(part for section in sections for part in [section(document, Path(folder))] if part) + "\n"


def table(header: list[str], rows: list[list[str]], align: str = "") -> str:
    """A Markdown table. `align` has one letter per column, l or r; columns without one are left-aligned."""
    rule = ["---:" if letter == "r" else "---" for letter in align.ljust(len(header), "l")]
    return "\n".join("| " + " | ".join(_escape(cell) for cell in row) + " |" for row in [header, rule, *rows])


def _escape(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def _opening(document: Document, folder: Path) -> str:
    banner = [f"**{words.headline(document)}**", *words.protocol(document), document["scale_note"]]
    first = [f"# {words.title(document)}", f"> {' '.join(banner)}"]
    first += ["\n".join(f"- **{sentence}**" for sentence in document["warnings"])] if document["warnings"] else []
    facts = [[f"**{name}**", value] for name, value in words.facts(document)]
    return "\n\n".join([*first, table(["what this is", ""], facts)])


def _table(document: Document, folder: Path) -> str:
    header = ["method", *("<br>".join(p for p in (c.get("group"), c["label"]) if p) for c in document["columns"])]
    cells = {(cell["method"], cell["setting"]): cell for cell in document["cells"]}
    rows, separated = [], False
    for row in words.ordered_rows(document):
        if not row["printed"] and not separated:
            separated = True
            rows.append(["***our companions, not in the printed table***", *[""] * len(document["columns"])])
        rows.append([row["label"], *(_cell(cells.get((row["key"], c["key"])), document) for c in document["columns"])])
    parts = ["## The table", words.caption(document), table(header, rows, "l" + "r" * len(document["columns"]))]
    if document["remarks"]:
        parts += ["## What these numbers show", "\n".join(f"- {remark}" for remark in document["remarks"])]
    return "\n\n".join(parts)


def _cell(cell: dict[str, Any] | None, document: Document) -> str:
    if cell is None:
        return ""
    measured = words.measured(cell)
    if cell["best_measured"]:
        measured = f"**{measured}**"
    if cell["mean"] is not None:
        measured += f" {words.spread(cell)}"
    printed = words.printed(cell)
    if printed and cell["best_printed"]:
        printed = f"<u>{printed}</u>"
    lines = [measured, printed]
    if document["comparable"] and cell["status"] not in ("not run", "not printed"):
        lines.append(words.verdict(cell))
    return "<br>".join(line for line in lines if line)


def _per_seed(document: Document, folder: Path) -> str:
    seeds = [str(seed) for seed in document["about"]["seeds"]]
    rows = [
        [
            *(cell["method_label"], cell["setting_label"], *(words.seed_value(cell, seed) for seed in seeds)),
            *(cell["arithmetic"] or "–", words.remark(cell)),
        ]
        for cell in document["cells"]
    ]
    if not any(cell["per_seed"] for cell in document["cells"]) and not any(cell["reason"] for cell in document["cells"]):
        return ""
    header = ["method", "setting", *(f"seed {seed}" for seed in seeds), "arithmetic", "remark"]
    return folded("## Every seed", f"{len(rows)} cells, {len(seeds)} seeds", table(header, rows, "ll" + "r" * len(seeds)))


def _readings(document: Document, folder: Path) -> str:
    header, rows = words.readings(document)
    if not rows:
        return ""
    body = table(header, rows, "ll" + "r" * (len(header) - 2))
    return folded("## Other ways to read a run", "last round, best round, mean of the last rounds", body, words.READINGS)


def _across(document: Document, folder: Path) -> str:
    header, rows = words.comparisons(document)
    return "\n\n".join(["## Across settings", words.across(document), table(header, rows, "lllrrrrrr")]) if rows else ""


def _verdicts(document: Document, folder: Path) -> str:
    counts = table(["status", "cells"], [[k, str(v)] for k, v in document["counts"].items()], "lr")
    parts = ["## Status of the cells", words.rule(document), counts]
    if document["rule_alternatives"]:
        parts += ["How the counts move with the rule:", table(*words.alternatives(document), "rrrrr")]
    return "\n\n".join(parts)


def _curves(document: Document, folder: Path) -> str:
    if not document["figures"]:
        return ""
    labels = {column["key"]: words.column_label(column) for column in document["columns"]}
    images = [f"![Learning curves: {labels[f['setting']]}]({link(f['path'], folder)})" for f in document["figures"]]
    rows = [[*images[i : i + 2], ""][:2] for i in range(0, len(images), 2)]
    return "\n\n".join(["## Learning curves", words.CURVES, table(["", ""], rows)])


def _settings(document: Document, folder: Path) -> str:
    methods = [[m["label"], "<br>".join(f"`{spec}`" for spec in m["specs"]) or "not run"] for m in document["methods"]]
    parts = [
        "## What was run",
        "Methods, with every argument spelt out:",
        table(["method", "as run"], methods),
        "Settings, and where each value comes from:",
        table(["setting", "value", "source"], [[f"`{k}`", "<br>".join(v), s] for k, v, s in words.setting_rows(document)]),
    ]
    return "\n\n".join(parts)


def _cost(document: Document, folder: Path) -> str:
    rows = []
    for run in document["cost"]:
        links = ", ".join(f"[{one['seed']}]({link(one['evidence'], folder)})" for one in run["seeds"])
        rows.append([run["method"], run["setting"], *words.cost(run), links or "none"])
    header = ["method", "setting", *words.COST, "evidence of seed"]
    body = table(header, rows, "ll" + "r" * len(words.COST))
    total = f"{words.total_cost(document)} {words.TRAFFIC}"
    return folded("## What it cost, and where the evidence lies", "every run", body, total)


def differences(document: Document, folder: Path) -> str:
    """Paper text against authors' code, our deviations, known gaps; of a table's report or a paper's page."""
    parts = []
    if document["disagreements"]:
        rows = [[d["what"], d["paper"], d["authors_code"], d["followed"], _code(d)] for d in document["disagreements"]]
        parts += [
            "## Where the paper and its authors' code disagree",
            table(["what", "paper", "authors' code", "followed", "the other one, in `params.yaml`"], rows),
        ]
    if document["deviations"]:
        rows = [[d["id"], d["text"]] for d in document["deviations"]]
        parts += ["## Where we deviate from the paper", table(["", "deviation"], rows)]
    if document["known_gaps"]:
        parts += ["## Known gaps", "\n".join(f"- {gap}" for gap in document["known_gaps"])]
    return "\n\n".join(parts)


def _code(disagreement: dict[str, Any]) -> str:
    return "<br>".join(f"`{line}`" for line in words.other(disagreement))


def _provenance(document: Document, folder: Path) -> str:
    versions = [[name, "<br>".join(values)] for name, values in words.versions(document)]
    parts = ["## Make it again", f"```\n{document['command']}\n```", "## Provenance", table(["", "of the runs"], versions)]
    found = document["provenance"]["inputs"]
    if found:
        rows = [[e["kind"], f"`{e['id']}`", ", ".join(map(str, e["seeds"])), f"`{e['sha256'][:16]}`"] for e in found]
        parts.append(folded("", f"{len(rows)} input files by sha256", table(["kind", "identity", "seeds", "sha256"], rows)))
    return "\n\n".join(parts)


def folded(heading: str, summary: str, body: str, before: str = "") -> str:
    """A section whose `body` is shown on demand."""
    folded = f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
    return "\n\n".join(part for part in (heading, before, folded) if part)


def link(path: str, folder: Path) -> str:
    """`path` (relative to the project root) as seen from `folder`, with forward slashes."""
    return Path(os.path.relpath(path, folder)).as_posix().replace(" ", "%20")
