"""The page of one paper at one scale as one JSON document: all its tables, what they show together, and what is missing."""

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fedrepro.files import read_json, write_atomic
from fedrepro.reports import document, figures, gap_figures
from fedrepro.reports.cells import STATUSES
from fedrepro.reports.claims import VERDICTS
from fedrepro.reports.evidence import Evidence, Plan
from fedrepro.reports.fit import fits
from fedrepro.reports.gaps import gaps
from fedrepro.reports.words import Document

SCHEMA = 1
PICTURES = Path("figures/index")  # below a paper's reports: pictures that its page alone shows, made anew with it
PARTITIONS = Path("data/partitions")
# Of a table's report: what its page keeps. The rest is about the paper, or stands once for all tables.
KEPT = ("table", "title", "source", "scale", "scale_note", "stand_in", "on_budget", "comparable", "rows", "columns", "cells")
KEPT = (*KEPT, "variant_of", "varied", "ran", "seeds", "counts", "remarks", "warnings", "command", "rule")


def build(
    tables: Sequence[tuple[Plan, Evidence]], claims: list[dict[str, Any]], folder: Path, root: Path = Path()
) -> dict[str, Any]:
    """Everything that the page says; draws its pictures below `folder`/figures. `tables` is not empty, of one paper and scale.

    `folder` is reports/<scale>/<paper>, seen from the working directory; `root` the project. Tables without evidence are only
    named. Depends on the arguments, on drawn partitions, and on which tables have an up-to-date page beside this one.
    """
    shutil.rmtree(folder / PICTURES, ignore_errors=True)
    tables = sorted(tables, key=lambda pair: _natural(pair[0]["table"]))
    plan = tables[0][0]
    reports = [(made, evidence, document.build(made, evidence, folder / "evidence", {})) for made, evidence in tables]
    run = [(made, evidence, report) for made, evidence, report in reports if evidence]
    differences = [gap for _, _, report in run for gap in gaps(report)]
    cost = _cost(report for _, _, report in run)
    note = next((made["scale_note"] for made, evidence in tables if evidence and not made["on_budget"]), "")
    return {
        "schema": SCHEMA,
        **{key: plan[key] for key in ("paper", "paper_name", "paper_title", "scale")},
        "scale_note": note,
        "about": _about(reports, cost),
        "counts": _sum((report["counts"] for _, _, report in run if not report["variant_of"]), STATUSES),
        "verdicts": _sum(([claim["verdict"]] for claim in claims), VERDICTS),
        "claims": claims,
        "tables": [_table(made, evidence, report, folder) for made, evidence, report in run],
        "not_run": [_named(made) for made, evidence, _ in reports if not evidence],
        "fits": fits([report for _, _, report in run]),
        "gaps": [gap | {"path": gap_figures.draw(gap, folder / PICTURES).as_posix()} for gap in differences],
        "partitions": _partitions([(made, evidence) for made, evidence, _ in run], folder, root),
        **{key: plan[key] for key in ("disagreements", "deviations", "known_gaps")},
        "cost": cost,
        "versions": _versions(report for _, _, report in run),
        "command": f"snakemake --cores 8 reports/{plan['scale']}/{plan['paper']}/index.html",
    }


def _natural(name: str) -> list[tuple[int, str]]:
    """table2 before table10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _named(plan: Plan) -> dict[str, str]:
    command = f"snakemake --cores 8 reports/{plan['scale']}/{plan['paper']}/{plan['table']}.md"
    return {"command": command, **{key: plan[key] for key in ("table", "source", "title")}}


def _table(plan: Plan, evidence: Evidence, report: Document, folder: Path) -> dict[str, Any]:
    """What is kept of a table's report, its learning curves, and `page`: its own page, if that shows the same numbers."""
    rendered = folder / f"{plan['table']}.json"
    known = read_json(rendered) if rendered.exists() and rendered.with_suffix(".html").exists() else {}
    same = known.get("cells") == report["cells"] and all(Path(figure["path"]).exists() for figure in known["figures"])
    if same:
        pictures = known["figures"]
    else:
        drawn = figures.draw_all(plan, evidence, folder / PICTURES)
        pictures = [{"setting": key, "path": path.as_posix()} for key, path in drawn.items()]
    page = rendered.with_suffix(".html").as_posix() if same else None
    return {key: report[key] for key in KEPT} | {"figures": pictures, "page": page}


def _about(reports: list[tuple[Plan, Evidence, Document]], cost: list[dict[str, Any]]) -> dict[str, Any]:
    """The facts of the opening lines; a run that several tables share counts once."""
    about = [report["about"] for _, evidence, report in reports if evidence]
    seeds = [one for run in cost for one in run["seeds"]]
    planned = {(run_id, seed) for plan, _, _ in reports for run_id in plan["runs"] for seed in plan["seeds"]}
    ends = [a["first_finished_at"] for a in about], [a["last_finished_at"] for a in about]
    return {
        "data": list(dict.fromkeys(used for a in about for entry in a["data"] for used in entry["used"])),
        "seeds": sorted({seed for a in about for seed in a["seeds"]}),
        "devices": sorted({device for a in about for device in a["devices"]}),
        "first_finished_at": min(ends[0], default=None),
        "last_finished_at": max(ends[1], default=None),
        "commits": sorted({commit for a in about for commit in a["commits"]}),
        "tables_run": len(about),
        "tables": len(reports),
        "cells_measured": sum(a["cells_measured"] for a in about),
        "cells": sum(report["about"]["cells"] for _, _, report in reports),
        "runs_done": len(seeds),
        "runs_planned": len(planned),
        "wall_s": round(sum(one["wall_s"] for one in seeds), 1),
        "peak_rss_mib": max((one["peak_rss_mib"] for one in seeds), default=None),
    }


def _cost(reports: Iterable[Document]) -> list[dict[str, Any]]:
    """Per run with evidence what each seed cost; a run that several tables share is listed once, with all of them."""
    found: dict[str, dict[str, Any]] = {}
    for report in reports:
        for run in report["cost"]:
            if run["seeds"]:
                found.setdefault(run["run_id"], {**run, "tables": []})["tables"].append(report["source"])
    return list(found.values())


def _sum(counted: Iterable[dict[str, int] | list[str]], names: Iterable[str]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counted:
        total.update(one)
    return {name: total[name] for name in names}


def _versions(reports: Iterable[Document]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for report in reports:
        for name, values in report["provenance"]["versions"].items():
            found.setdefault(name, set()).update(values)
    return {name: sorted(values) for name, values in found.items()}


def _partitions(tables: list[tuple[Plan, Evidence]], folder: Path, root: Path) -> list[dict[str, Any]]:
    """One picture per partition that runs with evidence read: today's drawing, or the copy that is committed, or none."""
    found: dict[str, dict[str, Any]] = {}
    for plan, evidence in tables:
        for run_id in dict.fromkeys(cell["run_id"] for cell in plan["cells"] if cell["run_id"] in evidence):
            run, seed = plan["runs"][run_id], min(evidence[run_id])
            name = run["inputs"]["partition"]
            path = folder / "figures" / "partitions" / name / f"seed{seed}.svg"
            drawn = root / PARTITIONS / name / path.name
            if drawn.exists() and (not path.exists() or path.read_bytes() != drawn.read_bytes()):
                write_atomic(path, lambda temporary, source=drawn: shutil.copyfile(source, temporary))
            if path.exists():
                picture = {"id": name, "seed": seed, "path": path.as_posix(), "tables": []}
                picture |= {key: run["config"][key] for key in ("dataset", "clients", "partition")}
                places = found.setdefault(name, picture)["tables"]
                places += [plan["source"]] if plan["source"] not in places else []
    return list(found.values())
