"""Renders tables, figures, papers and the list of them: plans and evidence in, Markdown, HTML, JSON and pictures out.

Nothing is trained and no clock is read.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fedrepro.config.plan import load_plan
from fedrepro.config.words import Words
from fedrepro.errors import UserError
from fedrepro.files import write_atomic, write_text
from fedrepro.reports.analysis import answers, claims, figure, page, table
from fedrepro.reports.analysis.fit import fits
from fedrepro.reports.analysis.gaps import gaps
from fedrepro.reports.analysis.tuning import settle
from fedrepro.reports.figures import agreement, candidates, learning, make_kind, partitions, tidy
from fedrepro.reports.figures import gaps as gap_pictures
from fedrepro.reports.load import load_evidence, load_figure, load_page, load_table
from fedrepro.reports.model import Choice, Evidence, Figure, Plan, Table
from fedrepro.reports.names import natural
from fedrepro.reports.pages import details, overview, paper, site
from fedrepro.reports.pages import table as table_page
from fedrepro.reports.pages.sections import Document
from fedrepro.reports.write import html, markdown
from fedrepro.store import Store
from fedrepro.typed import text

PICTURES = Path("figures/index")  # beside a paper's page: pictures that it alone shows, made anew with it


def render(plan_path: Path, store: Store, out_stem: Path, figures_dir: Path) -> list[Path]:
    """Writes `<out_stem>.json`, `.html`, `.md` and the pictures; returns all of them, the Markdown page first.

    The bytes written depend on the plan, the evidence in `store` and the paths given, never on when or where this runs.
    UserError when the plan or a receipt is damaged, or the plan is that of a figure.
    """
    plan = load_plan(Path(plan_path))
    if plan.kind:
        raise UserError(f"{plan_path}: the plan of a figure; `fedrepro report` draws it")
    plan, evidence, choices = settle(plan, load_evidence(plan, store))
    pictures = learning.draw_all(plan, evidence, Path(figures_dir))
    tuning = candidates.draw(plan, choices, Path(figures_dir))
    made = table.table(plan, evidence, pictures, choices, tuning)
    written = [*_write(table_page.page(made), Path(out_stem)), write_text(_ending(Path(out_stem), "json"), text(made))]
    return [*written, *(Path(picture.path) for picture in pictures), *([tuning] if tuning else [])]


def render_figure(plan_path: Path, store: Store, out_stem: Path) -> list[Path]:
    """Writes `<out_stem>.svg`, the data that it draws as `.csv`, and both with all that is known of them as `.json`.

    The bytes depend on the plan, the evidence and the paths given. UserError when the plan or a receipt is damaged, when the
    plan is that of a table, or when a metric is none that the runs record.
    """
    plan = load_plan(Path(plan_path))
    if not plan.kind:
        raise UserError(f"{plan_path}: the plan of a table; `fedrepro report` renders it")
    plan, evidence, choices = settle(plan, load_evidence(plan, store))
    return _write_figure(figure.figure(plan, evidence, choices), Path(out_stem))


def _write_figure(made: Figure, stem: Path) -> list[Path]:
    """The picture first."""
    return [
        write_atomic(_ending(stem, "svg"), lambda temporary: make_kind(made.kind).draw(made, temporary)),
        write_text(_ending(stem, "csv"), tidy.write(made)),
        write_text(_ending(stem, "json"), text(made)),
    ]


def render_page(plan_paths: Sequence[Path], store: Store, folder: Path, words: Words, root: Path = Path()) -> list[Path]:
    """Writes `index.md`, `.html`, `.json`, `details.md` and `.html` and pictures into `folder`; returns the files in this
    order.

    `plan_paths` are all tables and figures of one paper at one scale, `words` what is said of them; `folder` is where the
    paper's reports lie, seen from the working directory; `root` the project. The bytes depend on those, on the evidence in
    `store`, on drawn partitions, and on which tables and figures have an up-to-date report in the folder.
    UserError when a plan or a receipt is damaged, or a sentence of the summary says what does not hold.
    """
    folder = Path(folder)
    stem = folder / "index"
    pictures = stem.parent / PICTURES
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True, exist_ok=True)  # the workflow asks for it, pictures or not
    every = sorted((load_plan(Path(path)) for path in plan_paths), key=lambda plan: natural(plan.table))
    settled = [settle(plan, load_evidence(plan, store)) for plan in every]
    made = [(plan, of, table.table(plan, of, choices=choices)) for plan, of, choices in settled if not plan.kind]
    run = [one for one in made if one[1]]
    found = [gap for _, _, report in run if not report.variant_of for gap in gaps(report)]
    picture = agreement.draw([report for _, _, report in run if not report.variant_of], pictures)
    plans, evidence = {plan.table: plan for plan, _, _ in made}, {plan.table: of for plan, of, _ in made}
    verdicts = claims.judge(words.claims, plans, evidence)
    facts = answers.facts(plans, evidence, verdicts, fits([report for _, _, report in run]))
    document = page.page(
        made,
        [_drawn(plan, of, choices, folder, pictures) for plan, of, choices in settled if plan.kind],
        verdicts,
        [replace(gap, path=gap_pictures.draw(gap, pictures).as_posix()) for gap in found],
        {plan.table: _pictures(plan, of, report, folder, pictures) for plan, of, report in run},
        picture and picture.as_posix(),
        partitions.collect([(plan, of) for plan, of, _ in run], folder, root),
        words,
        answers.answers(words.summary, facts, every[0]),
    )
    beside = stem.with_name("details")
    made_pages = _write(paper.page(document, beside.as_posix()), stem)
    return [*made_pages, write_text(_ending(stem, "json"), text(document)), *_write(details.details(document), beside)]


def render_site(pages: Sequence[Path], folder: Path) -> list[Path]:
    """Writes `<folder>/all.md` and `.html`, the list of `pages`, which are the JSON files of papers' pages."""
    return _write(site.site([(path, load_page(path)) for path in map(Path, pages)]), Path(folder) / "all")


def render_overview(pages: Sequence[Path], folder: Path, others: Mapping[str, int]) -> list[Path]:
    """Writes `<folder>/README.md` and `<folder>/index.html`: what holds, by the JSON files of published pages.

    `others`: papers without a page -> how many results their tables print.
    """
    made = overview.overview([(path, load_page(path)) for path in map(Path, pages)], others)
    texts = {"README.md": markdown.write(made, Path(folder)), "index.html": html.write(made, Path(folder))}
    return [write_text(Path(folder) / name, text) for name, text in texts.items()]


def _write(made: Document, stem: Path) -> list[Path]:
    """The Markdown page and the HTML page of one document."""
    texts = {"md": markdown.write(made, stem.parent), "html": html.write(made, stem.parent)}
    return [write_text(_ending(stem, ending), text) for ending, text in texts.items()]


def _ending(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}.{ending}")


def _pictures(plan: Plan, evidence: Evidence, made: Table, folder: Path, pictures: Path) -> page.Pictured:
    """A table's pictures, and its own page: if that shows the same numbers, with its pictures, else drawn here."""
    rendered = folder / f"{plan.table}.json"
    try:
        known = load_table(rendered) if rendered.exists() and rendered.with_suffix(".html").exists() else None
    except UserError:  # of another version
        known = None
    if known and (known.cells, known.choices) == (made.cells, made.choices):
        paths = [*(figure.path for figure in known.figures), *([known.tuning] if known.tuning else [])]
        if all(Path(path).exists() for path in paths):
            return page.Pictured(known.figures, known.tuning, rendered.with_suffix(".html").as_posix())
    tuning = candidates.draw(plan, made.choices, pictures)
    return page.Pictured(learning.draw_all(plan, evidence, pictures), tuning and tuning.as_posix())


def _drawn(
    plan: Plan, evidence: Evidence, choices: tuple[Choice, ...], folder: Path, pictures: Path
) -> tuple[Plan, Figure, str | None]:
    """A figure with its picture: its own where that shows the same, else drawn here; none without anything to draw."""
    made = figure.figure(plan, evidence, choices)
    if not made.series:
        return plan, made, None
    own = folder / f"{plan.table}.json"
    try:
        known = load_figure(own) if own.exists() else None
    except UserError:  # of another version
        known = None
    if known == made and all(own.with_suffix(ending).exists() for ending in (".svg", ".csv")):
        return plan, made, own.with_suffix(".svg").as_posix()
    return plan, made, _write_figure(made, pictures / plan.table)[0].as_posix()
