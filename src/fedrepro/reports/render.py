"""Renders tables, papers and the list of them: plans and evidence in, Markdown, HTML, JSON and pictures out.

Nothing is trained and no clock is read.
"""

from collections.abc import Sequence
from pathlib import Path

from fedrepro.config.claims import Claim
from fedrepro.files import read_json, write_json, write_text
from fedrepro.reports import claims, document, figures, html, markdown, page, page_markdown
from fedrepro.reports.evidence import load_evidence, load_plan

_SCALES = ["full", "edited-full", "short", "edited-short", "demo"]  # in this order on the list of pages


def render(plan_path: Path, evidence_root: Path, out_stem: Path, figures_dir: Path) -> list[Path]:
    """Writes `<out_stem>.json`, `.html`, `.md` and the learning curves; returns all of them, the Markdown page first.

    `evidence_root` holds `<run_id>/seed<k>.json`. The bytes written depend on the plan, the evidence and the paths given,
    never on when or where this runs. UserError when the plan or a receipt is damaged.
    """
    plan_path, out_stem = Path(plan_path), Path(out_stem)
    plan = load_plan(plan_path)
    evidence = load_evidence(plan, Path(evidence_root))
    pictures = figures.draw_all(plan, evidence, Path(figures_dir))
    report = document.build(plan, evidence, Path(evidence_root), pictures)
    pages = {
        "md": markdown.render(report, out_stem.parent),
        "html": html.render(report, out_stem.parent),
    }
    written = [write_text(out_stem.with_name(f"{out_stem.name}.{ending}"), text) for ending, text in pages.items()]
    written.append(write_json(out_stem.with_name(f"{out_stem.name}.json"), report))
    return [*written, *pictures.values()]


def render_page(plan_paths: Sequence[Path], folder: Path, claimed: list[Claim]) -> list[Path]:
    """Writes `<folder>/index.md`, `.html`, `.json` and its pictures; returns the three, the Markdown page first.

    `plan_paths` are all tables of one paper at one scale, `claimed` what it says of them; `folder` is where the paper's reports
    lie, with the evidence below it.
    UserError when a plan or a receipt is damaged.
    """
    folder = Path(folder)
    plans = [load_plan(Path(path)) for path in plan_paths]
    evidence = {plan["table"]: load_evidence(plan, folder / "evidence") for plan in plans}
    judged = claims.judge(claimed, {plan["table"]: plan for plan in plans}, evidence)
    made = page.build([(plan, evidence[plan["table"]]) for plan in plans], judged, folder)
    return [
        write_text(folder / "index.md", page_markdown.render(made, folder)),
        write_text(folder / "index.html", html.render_page(made, folder)),
        write_json(folder / "index.json", made),
    ]


def render_site(pages: Sequence[Path], folder: Path) -> list[Path]:
    """Writes `<folder>/index.md` and `.html`, the list of `pages`, which are the JSON files of papers' pages."""
    found = [(path, read_json(path)) for path in map(Path, pages)]
    found.sort(key=lambda pair: (pair[1]["paper_name"], _SCALES.index(pair[1]["scale"])))
    return [
        write_text(Path(folder) / "index.md", page_markdown.render_site(found, folder)),
        write_text(Path(folder) / "index.html", html.render_site(found, folder)),
    ]
