"""Renders one table: plan and evidence in, Markdown, HTML, JSON and pictures out. Nothing is trained and no clock is read."""

from pathlib import Path

from fedrepro.files import write_json, write_text
from fedrepro.reports import document, figures, html, markdown
from fedrepro.reports.evidence import load_evidence, load_plan


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
