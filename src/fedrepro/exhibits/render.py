"""Renders tables, figures, papers and the list of them: plans and evidence in, pages, records and pictures out.

Nothing is trained and no clock is read.
"""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedrepro.config.places import natural
from fedrepro.config.plan import Plan, load_plan
from fedrepro.config.words import Words
from fedrepro.exhibits import latex, overview, pages, records
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.kinds import make_kind
from fedrepro.exhibits.paper import PageHeader, PaperPage
from fedrepro.exhibits.write import html, markdown
from fedrepro.exhibits.write.blocks import Document
from fedrepro.files import read_json, write_atomic, write_text
from fedrepro.store import Store
from fedrepro.typed import typed

PICTURES = Path("figures/index")  # beside a paper's page: pictures of this page alone, drawn again with it


def render(plan_path: Path, store: Store, out_stem: Path) -> list[Path]:
    """Writes `<out_stem>.md`, `.html`, `.json`, `.csv`, `.tex` and pictures of a table. Of a figure it writes `<out_stem>.svg`,
    the data that it draws as `.csv`, and both with all that is known of them as `.json`. Returns all of them in this order.

    The bytes written depend on the plan, the evidence in `store` and the paths given, never on when or where this runs.
    UserError when the plan or a receipt is damaged, or when a figure's metric is none that the runs record.
    """
    exhibit, stem = Exhibit.of(load_plan(Path(plan_path)), store), Path(out_stem)
    if exhibit.plan.kind:
        kind = make_kind(exhibit.plan.kind)
        picture = write_atomic(_ending(stem, "svg"), lambda temporary: kind.draw(exhibit.figure, temporary))
        return [picture, *_save(texts(exhibit, stem))]
    page = pages.table_page(exhibit)
    pictures = _draw(page, stem.parent)
    patterns = (f"figures/{exhibit.plan.table}/*.svg", f"figures/candidates/{exhibit.plan.table}.svg")
    for stale in {path for pattern in patterns for path in stem.parent.glob(pattern)} - {*pictures}:
        stale.unlink()
    return [*_save(texts(exhibit, stem, page)), *pictures]


def texts(exhibit: Exhibit, stem: Path, page: Document | None = None) -> dict[Path, str]:
    """Returns file -> what `render` writes into it, for all files but pictures: `.md`, `.html`, `.json`, `.csv` and `.tex` of a
    table, `.csv` and `.json` of a figure. `page`: that of the table, if it has been made."""
    if exhibit.plan.kind:
        contents = {"csv": records.figure_csv(exhibit), "json": records.figure_text(exhibit)}
    else:
        contents = _pages(page or pages.table_page(exhibit), stem.parent)
        contents |= {"json": records.table_text(exhibit), "csv": records.table_csv(exhibit), "tex": latex.write(exhibit)}
    return {_ending(stem, ending): text for ending, text in contents.items()}


def _save(contents: dict[Path, str]) -> list[Path]:
    return [write_text(path, text) for path, text in contents.items()]


def render_page(plan_paths: Sequence[Path], store: Store, folder: Path, words: Words) -> list[Path]:
    """Writes `index.md`, `.html`, `.json`, `details.md` and `.html` and pictures into `folder`; returns the files in this
    order.

    `plan_paths` are all tables and figures of one paper at one scale, `words` what is said of them; `folder` is where the
    paper's reports lie, seen from the working directory, the project's root. The bytes depend on those, on the evidence in
    `store`, on drawn partitions, and on which tables and figures have an up-to-date report in the folder.
    UserError when a plan or a receipt is damaged, or a sentence of the summary says what does not hold.
    """
    folder = Path(folder)
    shutil.rmtree(folder / PICTURES, ignore_errors=True)
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)  # an output of the workflow, even without pictures
    paper = paper_of([load_plan(Path(path)) for path in plan_paths], store, folder, words)
    page, details = pages.paper_page(paper), pages.details_page(paper)
    _draw(page, folder, reuse=paper.rendered)
    _draw(details, folder)
    for figure in paper.figures:
        if figure.plan.table not in paper.rendered:
            _save(texts(figure, folder / PICTURES / figure.plan.table))
    index = [*_write(page, folder / "index"), write_text(folder / "index.json", records.paper_text(paper))]
    return [*index, *_write(details, folder / "details")]


def paper_of(plans: Iterable[Plan], store: Store, folder: Path, words: Words) -> PaperPage:
    """Returns all that a paper's page is written from; the arguments are those of `render_page`."""
    exhibits = tuple(Exhibit.of(plan, store) for plan in sorted(plans, key=lambda plan: natural(plan.table)))
    rendered = frozenset(exhibit.plan.table for exhibit in exhibits if _is_rendered(exhibit, folder))
    return PaperPage(exhibits, words, folder, rendered)


def render_site(page_files: Sequence[Path], folder: Path) -> list[Path]:
    """Writes `<folder>/all.md` and `.html`, the list of pages, by their JSON files."""
    return _write(pages.site([(path, load_header(path)) for path in map(Path, page_files)]), Path(folder) / "all")


def render_overview(page_files: Sequence[Path], folder: Path) -> list[Path]:
    """Writes `<folder>/README.md` and `<folder>/index.html`: what holds, by the JSON files of published pages."""
    document = overview.overview([(path, load_header(path)) for path in map(Path, page_files)])
    contents = _pages(document, Path(folder))
    return _save({Path(folder) / "README.md": contents["md"], Path(folder) / "index.html": contents["html"]})


def load_header(path: Path) -> PageHeader:
    """Reads the header of a paper's page. UserError when the file is missing or something else."""
    content = read_json(path)
    return typed(PageHeader, content.get("header") if isinstance(content, dict) else content, path)


def _is_rendered(exhibit: Exhibit, folder: Path) -> bool:
    """Tells whether the folder has the files of the exhibit, with the same numbers."""
    figure, stem = exhibit.plan.kind, folder / exhibit.plan.table
    paths = [_ending(stem, ending) for ending in ("json", *(("svg", "csv") if figure else ("html", "md")))]
    if not all(path.exists() for path in paths):
        return False
    return paths[0].read_text() == (records.figure_text(exhibit) if figure else records.table_text(exhibit))


def _draw(page: Document, folder: Path, reuse: frozenset[str] = frozenset()) -> list[Path]:
    """Draws the pictures of a page and returns their paths. Pictures of the exhibits in `reuse` are up to date and stay."""
    paths = []
    for picture in page.pictures:
        path = folder / picture.path
        reused = path.stem in reuse or path.parent.name in reuse
        if picture.draw and not (reused and PICTURES.name not in path.parent.parts and path.exists()):
            write_atomic(path, picture.draw)
        paths.append(path)
    return paths


def _write(document: Document, stem: Path) -> list[Path]:
    """Writes a document as Markdown and as HTML."""
    return _save({_ending(stem, ending): text for ending, text in _pages(document, stem.parent).items()})


def _pages(document: Document, folder: Path) -> dict[str, str]:
    return {"md": markdown.write(document, folder), "html": html.write(document, folder)}


def _ending(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}.{ending}")
