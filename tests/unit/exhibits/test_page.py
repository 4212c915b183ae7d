"""A paper's page and the list of all pages: what they say, and that every measured number follows from the runs it names."""

import json
import math
import re
import statistics
from html import unescape
from pathlib import Path

import pytest
import yaml
from fedrepro.reports.analysis.claims import PAIRED
from fedrepro.reports.pages.parts import SIGNS
from fedrepro.reports.render import render, render_page, render_site
from html_page import Page
from small_table import AVERAGE_LAST, make_plan, with_settings, write_evidence

from fedrepro.config.claims import load_claims
from fedrepro.config.words import Words
from fedrepro.files import write_json
from fedrepro.store import Store

A, B = "mlp-a100", "mlp-a01"
ALL = {
    ("fedavg", A): [89.0, 89.5, 90.0],
    ("fedlaw", A): [88.0, 88.9, 88.4],
    ("ours", A): [87.0, 87.1, 87.2],
    ("fedavg", B): [85.0, 85.2, 86.0],
    ("fedlaw", B): [86.0, 86.5, 86.1],
}
SOME = ALL | {("fedavg", B): [85.0, None, 86.0], ("fedlaw", B): [86.0, 86.5]}
T_975 = {1: 12.706205, 2: 4.302653}  # Student's t by degrees of freedom
CLAIM = {
    **{"id": "K1", "text": "FedLAW is ahead & <better>", "where": "Table 3", "kind": "difference", "table": "table3"},
    **{"pairs": {"fedlaw": "fedavg"}, "columns": [A]},
}


@pytest.fixture(autouse=True)
def in_project(tmp_path, monkeypatch):
    """Commands run in the project root."""
    monkeypatch.chdir(tmp_path)


def folder_of(scale: str = "full") -> Path:
    return Path("reports", scale, "fedlaw")


def write_plans(scale: str = "full", accuracies=SOME, tables=("table3", "table10"), **changes) -> list[Path]:
    """Plans of one paper below the working directory, the first with evidence; later ones have runs of their own and none."""
    paths = []
    for place, table in enumerate(tables):
        plan = make_plan(scale, table, **({"source": f"Table {table[5:]}"} | changes))
        if place:
            other = {run_id: with_settings(run, clients=4 + place) for run_id, run in plan["runs"].items()}
            plan["runs"] = {run["run_id"]: run for run in other.values()}
            plan["asked"] = dict.fromkeys(plan["runs"], plan["seeds"])
            plan["cells"] = [cell | {"run_id": cell["run_id"] and other[cell["run_id"]]["run_id"]} for cell in plan["cells"]]
        else:
            write_evidence(folder_of(scale) / "evidence", plan, accuracies)
        paths.append(write_json(Path("results/plans", scale, "fedlaw", f"{table}.json"), plan))
    return paths


def make_page(scale: str = "full", accuracies=SOME, claims=(), **changes) -> dict[str, Path]:
    """The rendered page; files by ending."""
    Path("papers/fedlaw").mkdir(parents=True, exist_ok=True)
    Path("papers/fedlaw/claims.yaml").write_text(yaml.safe_dump(list(claims)))
    plans, store = write_plans(scale, accuracies, **changes), Store((folder_of(scale) / "evidence",))
    written = render_page(plans, store, folder_of(scale), Words(load_claims(Path(), "fedlaw"), printed=96))
    page, html, document, *details = written
    for whole, part in zip((page, html), details, strict=True):  # tests read both as one
        whole.write_text(whole.read_text() + part.read_text())
    return {"md": page, "html": html, "json": document}


def of_runs(runs: str) -> dict[str, dict[str, float]]:
    """run_id -> seed -> value, straight from the evidence files: the mean accuracy of the last rounds. The page names `runs` by
    the end of a run_id, and seeds."""
    found: dict[str, dict[str, float]] = {}
    for end, _, seeds in (one.partition(":") for one in runs.split()):
        (folder,) = (folder_of() / "evidence").glob(f"*-{end}")
        for seed in seeds.split(","):
            curve = json.loads((folder / f"seed{seed}.json").read_text())["curves"]["test_accuracy"]
            found.setdefault(folder.name, {})[seed] = math.fsum(curve[-AVERAGE_LAST:]) / AVERAGE_LAST
    return found


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def expected(kind: str, of: str, runs: str) -> str:
    """What the page must print, computed here from the runs that the number names."""
    values = of_runs(runs)
    if kind in ("mean", "spread", "difference"):
        assert of == "test_accuracy"
        ((run_id, seeds),) = values.items()
        mean = math.fsum(seeds.values()) / len(seeds)
        plan = json.loads(Path("results/plans/full/fedlaw/table3.json").read_text())
        (printed,) = (cell["printed"] or 0 for cell in plan["cells"] if cell["run_id"] == run_id)
        spread = f"± {statistics.stdev(seeds.values()):.2f} ({len(seeds)})"
        return {"mean": f"{mean:.2f}", "spread": spread, "difference": signed(mean - printed)}[kind]
    mine, other = values.values()  # the first is the method, the second the one that it is compared with
    assert mine.keys() == other.keys()
    gaps = {seed: mine[seed] - other[seed] for seed in mine}
    minus = lambda value: f"{value:.2f}".replace("-", "−")  # noqa: E731
    show = minus if kind.startswith("claim") else signed
    if kind in ("gap-seeds", "claim-seeds"):
        return ", ".join(f"{seed}: {show(gap)}" for seed, gap in gaps.items())
    mean = math.fsum(gaps.values()) / len(gaps)
    half = T_975[len(gaps) - 1] * statistics.stdev(gaps.values()) / math.sqrt(len(gaps))
    return show(mean) if kind in ("gap", "claim") else f"{show(mean - half)} to {show(mean + half)}"


@pytest.mark.parametrize("accuracies", [ALL, SOME], ids=["all", "some"])
def test_every_measured_number_follows_from_the_runs_that_it_names(accuracies):
    """Each number of a measured, difference, interval or seed cell has run keys whose evidence gives that very text again."""
    page = Page(make_page(accuracies=accuracies, claims=[CLAIM])["html"].read_text())
    seen = set()
    for attributes, text in page.numbers:
        kind = attributes["data-number"]
        assert text == expected(kind, attributes["data-of"], attributes["data-runs"]), attributes
        seen.add(kind)
    assert seen == {"mean", "spread", "difference", "gap", "interval", "gap-seeds", "claim", "claim-interval", "claim-seeds"}
    heads = {"measured", "difference", "95 % interval", "every seed", "ours", "interval"}
    assert heads <= {head for head, _, _ in page.cells}
    for head, text, numbers in page.cells:
        for _, number in numbers:
            text = text.replace(number, "", 1)
        assert head not in heads or not re.search(r"\d", text), (head, text)


def test_the_page_says_what_there_is_and_what_is_missing():
    """Facts of the runs, a diverged seed, tables that have not run in one line each with their command, in natural order."""
    pages = make_page(tables=("table3", "table10", "table2"))
    page = json.loads(pages["json"].read_text())
    assert [one["table"] for one in page["tables"]] == ["table3"]
    assert [one["table"] for one in page["not_run"]] == ["table2", "table10"]
    assert page["about"]["runs_done"] == 14
    assert page["about"]["runs_planned"] == 45
    assert page["counts"]["not reproduced"] >= 1
    for ending in ("md", "html"):
        text = pages[ending].read_text()
        for said in (
            *("full scale", "8, 9, 10", "cpu, Some CPU", "2026-11-20 10:00", "0a1b2c3d", "1 of 3 tables", "diverged"),
            *("snakemake --cores 8 reports/full/fedlaw/table10.md", "snakemake --cores 8 reports/full/fedlaw/index.html"),
            *("Sampling before training.", "Batch size is not stated", "server epochs"),
        ):
            assert said in text, (ending, said)


def test_a_paper_without_any_evidence_has_a_page():
    """Every table is listed as not run; the folder of pictures is there, and empty."""
    pages = make_page(accuracies={})
    page = json.loads(pages["json"].read_text())
    assert (page["tables"], page["gaps"], len(page["not_run"])) == ([], [], 2)
    assert "nothing has run yet" in pages["html"].read_text()
    assert (folder_of() / "figures/index").is_dir()
    assert not Page(pages["html"].read_text()).numbers


def test_same_evidence_same_bytes():
    """Page, list and every picture: nothing depends on the clock or on what was there before."""

    def everything() -> dict[Path, bytes]:
        pages = make_page(claims=[CLAIM])
        render_site([pages["json"]], Path("reports"))
        return {path: path.read_bytes() for path in Path("reports").rglob("*") if path.is_file()}

    first = everything()
    assert sum(path.suffix == ".svg" for path in first) == 5
    (folder_of() / "figures/index/gaps/stale.svg").write_text("old")
    assert everything() == first


def test_a_tables_own_page_is_linked_while_it_says_the_same():
    """Its pictures are used, too; when new evidence comes, the page draws its own until the table is rendered again."""
    plans = write_plans(accuracies=ALL)
    render(plans[0], Store((folder_of() / "evidence",)), folder_of() / "table3", folder_of() / "figures")
    (table,) = json.loads(make_page(accuracies=ALL)["json"].read_text())["tables"]
    assert table["page"] == "reports/full/fedlaw/table3.html"
    assert {figure["path"] for figure in table["figures"]} == {f"reports/full/fedlaw/figures/table3/{c}.svg" for c in (A, B)}
    pages = make_page(accuracies=ALL | {("fedavg", A): [70.0, 71.0, 72.0]})
    (table,) = json.loads(pages["json"].read_text())["tables"]
    assert table["page"] is None
    assert {Path(figure["path"]).parent.as_posix() for figure in table["figures"]} == {
        "reports/full/fedlaw/figures/index/table3"
    }
    assert "table3.html" not in pages["html"].read_text()


def test_links_and_pictures_lead_to_files():
    """From both renderings, relative to where they lie."""
    plans = write_plans(accuracies=ALL)
    render(plans[0], Store((folder_of() / "evidence",)), folder_of() / "table3", folder_of() / "figures")
    pages = make_page(accuracies=ALL)
    links = re.findall(r"\]\(([^)]+)\)", pages["md"].read_text())
    assert sum(link.endswith(".svg") for link in links) == 5
    assert sum(link.endswith("table3.md") for link in links) == 2
    assert not any(link.endswith(".json") for link in links)  # evidence is linked from the table's own page
    links += [a["href"] for a in Page(pages["html"].read_text()).of("a") if not a["href"].startswith("#")]
    for link in links:
        assert (folder_of() / link).resolve().is_file(), link


def test_evidence_is_linked_where_no_other_page_does():
    """A line for each run, with its first seed's evidence."""
    pages = make_page(accuracies=ALL)
    links = re.findall(r"\]\(([^)]+)\)", pages["md"].read_text())
    assert sum(link.endswith("seed8.json") for link in links) == 5
    assert all((folder_of() / link).resolve().is_file() for link in links)


def test_partition_pictures_are_copied_and_kept():
    """Drawn here: copied beside the page. Not drawn here: the copy that is there. Neither: no picture, no section."""
    assert "Partitions" not in make_page()["html"].read_text()
    drawn = Path("data/partitions/digits-dirichlet-100-4c1b2a/seed8.svg")
    drawn.parent.mkdir(parents=True)
    drawn.write_text('<svg width="9pt" height="9pt"><text>one</text></svg>')
    (picture,) = json.loads(make_page()["json"].read_text())["partitions"]
    kept = Path(picture["path"])
    assert kept.read_text() == drawn.read_text()
    assert (picture["clients"], picture["dataset"], picture["seed"], picture["tables"]) == (4, "digits", 8, ["Table 3"])
    drawn.unlink()
    pages = make_page()
    assert ">one</text>" in pages["html"].read_text()
    assert "digits among 4 clients by dirichlet_per_class(alpha=100.0), seed 8" in pages["md"].read_text()


def test_claims_are_shown_with_verdict_reason_and_rule():
    """Markup in a claim is text; the verdict is a word with a sign, never a colour alone; the rule stands beside it."""
    pages = make_page(claims=[CLAIM])
    (claim,) = json.loads(pages["json"].read_text())["claims"]
    assert json.loads(pages["json"].read_text())["verdicts"][claim["verdict"]] == 1
    assert "FedLAW is ahead &amp; &lt;better&gt;" in pages["html"].read_text()
    for ending in ("md", "html"):
        text = unescape(pages[ending].read_text())
        for said in (f"{SIGNS[claim['verdict']][0]} {claim['verdict']}", claim["why"], PAIRED):
            assert said in text, (ending, said)


def test_the_answer_comes_first_and_all_else_folds():
    """Before the first fold: counts of cells and claims, the numbered table's measured cells, one picture. Learning curves are
    links, so that the page stays small."""
    text = make_page(claims=[CLAIM])["html"].read_text()
    first, _, rest = text.partition("<details>")
    assert "not reproduced" in first
    assert "1 direction only" in first
    assert first.count("<table") == first.count("<svg") == 1
    assert re.findall(r"<section>\n<h(\d)>", first) == ["2", "2"]
    assert "<h2>" not in re.sub(r"<summary><h2>", "", rest)
    assert "<svg" in rest
    assert "figures/index/table3/mlp-a100.svg" in rest
    own = re.sub("<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.DOTALL)
    assert len(own) < 20_000, len(own)


@pytest.mark.parametrize("scale", ["demo", "short"])
def test_below_full_scale_no_difference_to_the_printed_number_is_shown(scale):
    """Neither a column for it nor any sign of agreement."""
    text = make_page(scale, comparable=False)["html"].read_text()
    assert "difference" not in {head for head, _, _ in Page(text).cells}
    assert not re.search("[✓≈✗]", text)


def test_the_list_of_pages(tmp_path):
    """One line a page with its counts, full before demo, linked; and without any page it says so."""
    found = [make_page("demo")["json"], make_page("full", claims=[CLAIM])["json"]]
    markdown, page = render_site(found, Path("reports"))
    rows = [line for line in markdown.read_text().splitlines() if line.startswith("| [")]
    assert [row.split(" | ")[1] for row in rows] == ["full", "demo"]
    assert "1 direction only" in rows[0]
    links = re.findall(r"\]\(([^)]+)\)", markdown.read_text()) + [a["href"] for a in Page(page.read_text()).of("a")]
    assert {"full/fedlaw/index.md", "demo/fedlaw/index.html"} <= set(links)
    assert all((tmp_path / "reports" / link).is_file() for link in links if not link.startswith("#"))
    markdown, _ = render_site([], Path("reports"))
    assert "no page yet" in markdown.read_text()
