"""A paper's page and the list of pages: what they say. Every measured number follows from the runs it names."""

import json
import math
import re
import statistics
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from html_page import Page
from small_table import AVERAGE_LAST, exhibit, make_evidence, make_plan, with_settings, write_evidence

from fedrepro.config.changes import Change, Changes
from fedrepro.config.claims import load_claims
from fedrepro.config.words import Words
from fedrepro.errors import UserError
from fedrepro.exhibits.judge import PAIRED
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.render import load_header, render, render_overview, render_page, render_site
from fedrepro.exhibits.sections.words import SIGNS
from fedrepro.files import read_json, write_json
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
T_975 = {1: 12.706205, 2: 4.302653}  # Student's t(0.975) by degrees of freedom
CLAIM = {
    **{"id": "K1", "text": "FedLAW is ahead & <better>", "where": "Table 3", "kind": "difference", "table": "table3"},
    **{"pairs": {"fedlaw": "fedavg"}, "columns": [A]},
}
Seeds = dict[str, float | None]


@pytest.fixture(autouse=True)
def in_project(tmp_path, monkeypatch):
    """Commands run in the project root."""
    monkeypatch.chdir(tmp_path)


def folder_of(scale: str = "full") -> Path:
    return Path("reports", scale, "fedlaw")


def write_plans(scale: str = "full", accuracies=SOME, tables=("table3", "table10"), **changes) -> list[Path]:
    """Writes plans of one paper below the working directory. The first has evidence, and the others have other runs without
    evidence."""
    paths = []
    for place, table in enumerate(tables):
        plan = make_plan(scale, table, **({"source": f"Table {table[5:]}"} | changes))
        if place:
            other = {run_id: with_settings(run, clients=4 + place) for run_id, run in plan["runs"].items()}
            plan["runs"] = {run["run_id"]: run for run in other.values()}
            plan["seeds_by_run"] = dict.fromkeys(plan["runs"], plan["seeds"])
            plan["cells"] = [cell | {"run_id": cell["run_id"] and other[cell["run_id"]]["run_id"]} for cell in plan["cells"]]
        else:
            write_evidence(folder_of(scale) / "evidence", plan, accuracies)
        paths.append(write_json(Path("results/plans", scale, "fedlaw", f"{table}.json"), plan))
    return paths


def make_page(scale: str = "full", accuracies=SOME, claims=(), listed=(), **changes) -> dict[str, Path]:
    """The rendered files by ending. `listed` are changes of rules and claims."""
    Path("papers/fedlaw").mkdir(parents=True, exist_ok=True)
    Path("papers/fedlaw/claims.yaml").write_text(yaml.safe_dump(list(claims)))
    plans, store = write_plans(scale, accuracies, **changes), Store((folder_of(scale) / "evidence",))
    known = load_claims(Path(), "fedlaw")
    words = Words(known, changes=Changes(changes=list(listed)).of("fedlaw", {one.id for one in known}), printed=96)
    page, html, document, *details = render_page(plans, store, folder_of(scale), words)
    for whole, part in zip((page, html), details, strict=True):  # tests read page and details as one text
        whole.write_text(whole.read_text() + part.read_text())
    return {"md": page, "html": html, "json": document}


def render_table(accuracies=ALL) -> list[Path]:
    """Renders the first table's own files."""
    return render(write_plans(accuracies=accuracies)[0], Store((folder_of() / "evidence",)), folder_of() / "table3")


def of_runs(runs: list[str]) -> list[Seeds]:
    """The values (seed -> value) of each run, directly from the evidence files: the mean of the last rounds, None if the seed
    diverged."""
    found: dict[str, Seeds] = {}
    for run_id, seed in (run.split("/seed") for run in runs):
        receipt = json.loads((folder_of() / f"evidence/{run_id}/seed{seed}.json").read_text())
        curve = receipt["curves"]["test_accuracy"][-AVERAGE_LAST:]
        value = None if receipt["status"] == "diverged" else math.fsum(curve) / AVERAGE_LAST
        found.setdefault(run_id, {})[seed] = value
    return list(found.values())


def two(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.2f}".replace("-", "−")


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=1e-6)


def row_of_cell(record: dict[str, Any]) -> list[str]:
    """The page's row for a cell, computed from the runs that its record names. The record must agree."""
    (seeds,) = of_runs(record["runs"])
    values = [value for value in seeds.values() if value is not None]
    whole = len(values) == len(seeds)
    mean, printed = math.fsum(values) / len(values) if whole else None, record["printed"]
    difference = None if mean is None or printed is None else mean - printed
    std = statistics.stdev(values) if whole else None
    assert record["per_seed"] == seeds
    assert (record["mean"], record["std"], record["difference"]) == (near(mean), near(std), near(difference))
    lost = "diverged" + (f" at {len(seeds) - len(values)} of {len(seeds)} seeds" if values else "")
    measured = lost if mean is None else f"{two(mean)} ± {two(std)} ({len(seeds)})"
    status = f"{SIGNS[record['status']][0]} {record['status']}" + (f": {record['reason']}" if record["reason"] else "")
    return [record["method"], two(printed), measured, two(difference, "+"), two(record["margin"]), status]


def row_of_difference(record: dict[str, Any], sign: str) -> list[str]:
    """Printed, measured, interval and every seed of a gap or of a claim's number: the first run minus the second."""
    mine, other = of_runs(record["runs"])
    gaps = {seed: (mine[seed] or 0.0) - (other[seed] or 0.0) for seed in mine}
    assert record["per_seed"] == pytest.approx(gaps)
    mean = math.fsum(gaps.values()) / len(gaps)
    half = T_975[len(gaps) - 1] * statistics.stdev(gaps.values()) / math.sqrt(len(gaps))
    assert (record["ours"], record["low"], record["high"]) == (near(mean), near(mean - half), near(mean + half))
    interval = f"{two(mean - half, sign)} to {two(mean + half, sign)}"
    each = ", ".join(f"{seed}: {two(gap, sign)}" for seed, gap in gaps.items())
    return [two(record["printed"], sign), two(mean, sign), interval, each]


@pytest.mark.parametrize("accuracies", [ALL, SOME], ids=["all", "some"])
def test_every_measured_number_follows_from_the_runs_that_it_names(accuracies):
    """For cells, gaps and claims, the evidence of the runs in a record gives its numbers and the text on the page. The page
    shows no other measured number."""
    pages = make_page(accuracies=accuracies, claims=[CLAIM])
    page, document = Page(pages["html"].read_text()), json.loads(pages["json"].read_text())
    assert len(document["cells"]) == 5
    cells = [row_of_cell(one) for one in document["cells"]]
    gaps = [[one["setting"], *row_of_difference(one, "+")] for one in with_titles(document["gaps"]) if one["ours"] is not None]
    (claim,) = document["claims"]
    claims = [[claim["claim"], one["label"], *row_of_difference(one, "")] for one in claim["numbers"]]
    assert [row for row in (*cells, *gaps, *claims) if row not in page.rows] == []
    assert len(gaps) == (3 if accuracies is ALL else 2)
    heads = {"measured", "difference", "95 % interval", "every seed", "ours", "interval"}
    assert heads <= {head for head, _ in page.cells}
    known = {text for row in (*cells, *gaps, *claims) for text in row}
    known |= {text.rpartition(" (")[0] for text in known if text.endswith(")")}  # the overview omits the number of seeds
    for head, text in page.cells:
        if head in heads and re.search(r"\d", text):
            assert text in known or text.rpartition(" ")[0] in known, (head, text)


def with_titles(gaps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    titles = {A: "FashionMNIST · MLP, α = 100", B: "FashionMNIST · MLP, α = 0.1"}
    return [one | {"setting": titles[one["column"]]} for one in gaps]


def test_the_page_says_what_there_is_and_what_is_missing():
    """The page has facts of the runs and a diverged seed. Each table that has not run has one line with its file, in natural
    order."""
    pages = make_page(tables=("table3", "table10", "table2"))
    header = json.loads(pages["json"].read_text())["header"]
    assert (header["tables_run"], header["tables"], header["printed_total"]) == (1, 3, 96)
    assert header["counts"]["not reproduced"] >= 1
    for ending in ("md", "html"):
        text = pages[ending].read_text()
        for said in (
            *("full scale", "8, 9, 10", "cpu, Some CPU", "2026-11-20 10:00", "0a1b2c3d", "1 of 3 tables", "diverged"),
            *("14 of 45 runs", "Sampling before training.", "Batch size is not stated", "server epochs"),
            "snakemake --cores 8 reports/full/fedlaw/index.html",
        ):
            assert said in text, (ending, said)
        assert "snakemake --cores 8 reports/full/fedlaw/table2.md" in text
        places = [text.rindex(f"{name}.md") for name in ("table2", "table10")]
        assert places == sorted(places)


def test_numbers_that_are_judged_add_up():
    """Three numbers are measured and a fourth has a diverged seed. All four are judged. With another diverged seed only two are
    measured."""
    text = make_page()["md"].read_text()
    assert "3 of 96 are measured, 1 more has a seed without a value, 4 different ones judged: " in text
    assert "or a seed has no value: it diverged before the rounds that are read, or did not reach the target." in text
    text = make_page(accuracies=SOME | {("fedlaw", B): [None]})["md"].read_text()
    assert "2 of 96 are measured, 2 more have a seed without a value, 4 different ones judged: " in text
    text = make_page(accuracies=ALL)["md"].read_text()
    assert "4 of 96 are measured, 4 different ones judged: " in text


def test_numbers_of_a_stand_in_are_not_measured_ones():
    for stand_in, measured in ((None, 4), ("Other data.", 0)):
        plan = make_plan("full", stand_in=stand_in, comparable=stand_in is None)
        assert PaperPage((exhibit(plan, make_evidence(plan, ALL)),), Words(), Path()).printed_measured == measured


def test_two_methods_that_share_a_run_and_a_printed_number_are_two_numbers():
    plan = make_plan("full")
    first, second = (cell for cell in plan["cells"] if cell["column"] == A and cell["row"] != "ours")
    second |= {key: first[key] for key in ("run_id", "printed")}
    page = PaperPage((exhibit(plan, make_evidence(plan, ALL)),), Words(), Path())
    assert sum(cell.printed is not None for cell in page.judged) == 4


def test_the_headline_says_how_much_of_a_table_has_run():
    """One of the six cells is planned without a run."""
    said = "with values of ours where it states none: Table 3"
    assert f"{said} (1 of its 6 cells)" in make_page(accuracies={("fedavg", A): [89.0]})["md"].read_text()
    assert f"{said} (5 of its 6 cells)" in make_page()["md"].read_text()


@pytest.mark.drawn
def test_the_first_picture_has_percentages_alone():
    """The picture shows only cells in percent, since a number of rounds does not fit an axis in percent. The text counts the
    cells in the picture."""
    before = "in percent; on the line they are the same. 4 reproduced."
    assert before in make_page(accuracies=ALL)["md"].read_text()
    cells = make_plan("full")["cells"]
    for cell in cells:
        cell["metric"] |= {"unit": "rounds", "better": "lower"} if cell["column"] == B else {}
    text = make_page(accuracies=ALL, cells=cells)["md"].read_text()
    assert "in percent; on the line they are the same. 2 reproduced." in text
    picture = (folder_of() / "figures/index/agreement.svg").read_text()
    assert "reproduced (2)" in picture


def test_a_paper_without_any_evidence_has_a_page():
    """Every table is listed as not run. The folder of pictures exists and is empty."""
    pages = make_page(accuracies={})
    page = json.loads(pages["json"].read_text())
    assert (page["header"]["tables_run"], page["cells"], page["gaps"]) == (0, [], [])
    text = pages["html"].read_text()
    assert "nothing has run yet" in text
    assert "2 tables" in text
    assert (folder_of() / "figures/index").is_dir()
    assert not any(re.search(r"\d", said) for head, said in Page(text).cells if head == "measured")


@pytest.mark.drawn
def test_same_evidence_same_bytes():
    """Page, list and every picture are independent of the clock and of earlier files."""

    def everything() -> dict[Path, bytes]:
        pages = make_page(claims=[CLAIM])
        render_site([pages["json"]], Path("reports"))
        return {path: path.read_bytes() for path in Path("reports").rglob("*") if path.is_file()}

    first = everything()
    assert sum(path.suffix == ".svg" for path in first) == 5
    (folder_of() / "figures/index/gaps/stale.svg").write_text("old")
    assert everything() == first


def test_a_tables_own_page_and_pictures_serve_while_they_say_the_same():
    """The paper's page links the table's page and keeps its pictures. With new evidence it draws its own until the table is
    rendered again. The table's own pictures stay."""
    own = [path for path in render_table() if path.suffix == ".svg"]
    for picture in own:
        picture.write_text('<svg width="9pt" height="9pt"><text>kept</text></svg>')
    pages = make_page(accuracies=ALL)
    text = pages["md"].read_text()
    assert "(table3.md)" in text
    assert all(f"(figures/table3/{column}.svg)" in text for column in (A, B))
    assert pages["html"].read_text().count(">kept</text>") == len(own) == 2
    assert not (folder_of() / "figures/index/table3").exists()
    text = make_page(accuracies=ALL | {("fedavg", A): [70.0, 71.0, 72.0]})["md"].read_text()
    assert "(table3.md)" not in text
    assert all(f"(figures/index/table3/{column}.svg)" in text for column in (A, B))
    assert all((folder_of() / f"figures/index/table3/{column}.svg").is_file() for column in (A, B))
    assert {"kept" in picture.read_text() for picture in own} == {True}


@pytest.mark.parametrize("rendered", [True, False])
def test_links_and_pictures_lead_to_files(rendered: bool):
    """The links of both formats are relative to the page. Evidence is linked unless a table's own page links it: one line for
    each run, with its first seed."""
    if rendered:
        render_table()
    pages = make_page(accuracies=ALL)
    assert all(path.is_file() for path in render_overview([pages["json"]], Path("reports")))
    links = re.findall(r"\]\(([^)]+)\)", pages["md"].read_text())
    assert sum(link.endswith(".svg") for link in links) == 5
    assert sum(link.endswith("table3.md") for link in links) == (2 if rendered else 0)
    assert sum(link.endswith("seed8.json") for link in links) == (0 if rendered else 5)
    links += [a["href"] for a in Page(pages["html"].read_text()).of("a") if not a["href"].startswith("#")]
    for link in links:
        assert (folder_of() / link.partition("#")[0]).resolve().is_file(), link


def test_partition_pictures_are_copied_and_kept(monkeypatch):
    """A picture drawn here is copied beside the page. If none is drawn here, the earlier copy stays. Without either there is no
    section. For published evidence only the published copy counts, so the page is the same on every machine."""
    assert "Partitions" not in make_page()["html"].read_text()
    drawn = Path("data/partitions/digits-dirichlet-100-4c1b2a/seed8.svg")
    drawn.parent.mkdir(parents=True)
    drawn.write_text('<svg width="9pt" height="9pt"><text>one</text></svg>')
    assert "Partitions" not in make_page()["html"].read_text()
    with monkeypatch.context() as patch:
        patch.setattr("fedrepro.exhibits.sections.partitions.is_published", lambda path: False)
        make_page()
    assert (folder_of() / "figures/partitions/digits-dirichlet-100-4c1b2a/seed8.svg").read_text() == drawn.read_text()
    drawn.unlink()
    pages = make_page()
    assert ">one</text>" in pages["html"].read_text()
    assert "digits among 4 clients by dirichlet_per_class(alpha=100.0), seed 8" in pages["md"].read_text()
    assert "training samples by client and class (Table 3)" in pages["html"].read_text()  # two methods read it


def test_claims_are_shown_with_verdict_reason_and_rule():
    """Markup in a claim is shown as text. The verdict is a sign and a word, never only a colour. The rule is on the page."""
    pages = make_page(claims=[CLAIM])
    document = json.loads(pages["json"].read_text())
    (claim,) = document["claims"]
    assert document["header"]["verdicts"][claim["verdict"]] == 1
    assert "FedLAW is ahead &amp; &lt;better&gt;" in pages["html"].read_text()
    for ending in ("md", "html"):
        text = unescape(pages[ending].read_text())
        for said in (f"{SIGNS[claim['verdict']][0]} {claim['verdict']}", claim["why"], PAIRED):
            assert said in text, (ending, said)


def test_changes_are_shown_where_they_moved_something():
    """The page omits a rule change that moved nothing of this paper, and changes of another paper's claims."""
    about = {"date": "2026-11-20", "why": "It was wrong."}
    listed = [
        Change(
            what="It moved a claim.", rule="0a1b2c3d", moved={"fedlaw": {"reproduced → inconclusive": ["claim K1"]}}, **about
        ),
        Change(
            what="It moved it again.",
            rule="5a1b2c3d",
            moved={"fedlaw": {"inconclusive → contradicted": ["claim K1"], "new → reproduced": ["claim K3"]}},
            **about,
        ),
        Change(what="It moved another paper.", rule="1a1b2c3d", moved={"fedgh": {"a → b": ["claim G1"]}}, **about),
        Change(what="It moved nothing anywhere.", rule="2a1b2c3d", **about),
        Change(what="Another claim.", claims={"G1": "3a1b2c3d"}, **about),
        Change(what="This claim.", claims={"K1": "4a1b2c3d", "G1": "3a1b2c3d"}, **about),
    ]
    pages = make_page(claims=[CLAIM], listed=listed)
    text = pages["md"].read_text()
    assert "- reproduced → inconclusive: claim K1" in text
    assert "**2026-11-20 (K1):** This claim. It was wrong.\n\n- no verdict of this paper moved" in text
    listed_there = [one["what"] for one in read_json(pages["json"])["changes"]]
    assert listed_there == ["It moved a claim.", "It moved it again.", "This claim."]
    assert not re.search("another paper|nothing anywhere|Another claim|G1", text)
    # A verdict that moved twice counts once, a new claim not at all.
    assert "<summary>3 changes, 1 verdict moved</summary>" in text.partition("# Fed")[2].partition("in detail")[0]


def test_tables_that_are_compared_with_print_come_first():
    """Table 2 has other data than the paper's, so it comes after Table 3."""
    plans = [
        make_plan("full", "table2", source="Table 2", comparable=False, stand_in="Digits."),
        make_plan("full", source="Table 3"),
    ]
    write_evidence(folder_of() / "evidence", plans[1], SOME)
    paths = [write_json(Path("results/plans", f"{plan['table']}.json"), plan) for plan in plans]
    page = render_page(paths, Store((folder_of() / "evidence",)), folder_of(), Words([], changes=[], printed=96))[0]
    assert re.findall(r"^## (Table \d)", page.read_text(), re.MULTILINE)[:2] == ["Table 3", "Table 2"]


def test_the_answer_comes_first_and_all_else_folds():
    """The first fold comes after the counts of cells and claims, the overview of the table's measured cells, and one
    picture."""
    text = make_page(claims=[CLAIM])["html"].read_text()
    first, _, rest = text.partition("<details>")
    assert "not reproduced" in first
    assert "1 direction only" in first
    assert "Judged runs: digits; 4 clients; 5 rounds; seeds 8, 9, 10 (3 of 4 cells); seeds 8, 9 (1 of 4 cells)." in first
    assert first.count("<table") == first.count("<svg") == 1
    assert re.findall(r"<section>\n<h(\d)>", first) == ["2", "2"]
    assert "<h2>" not in re.sub(r"<summary><h2>", "", rest)
    assert "<svg" in rest
    own = re.sub("<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.DOTALL)
    assert len(own) < 20_000, len(own)


@pytest.mark.parametrize("scale", ["demo", "short"])
def test_below_full_scale_no_difference_to_the_printed_number_is_shown(scale):
    """There is no column for it and no sign of agreement."""
    text = make_page(scale, comparable=False)["html"].read_text()
    assert "difference" not in {head for head, _ in Page(text).cells}
    assert not re.search("[✓≈✗]", text)


def test_the_list_of_pages(tmp_path):
    """One line for each page has its counts and a link, scale full before demo. Without any page it says so."""
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


def test_a_page_of_another_schema_is_one_line():
    """A page of older code and a file that is no page are refused in one line."""
    path = make_page()["json"]
    whole = read_json(path)
    assert load_header(path).paper == "fedlaw"
    for content, said in (
        (whole | {"header": whole["header"] | {"schema": 2}}, "schema = 2: input should be 3"),
        (whole["header"], "input should be an object"),
        ([], "input should be an object"),
    ):
        write_json(path, content)
        with pytest.raises(UserError, match=rf"index\.json: {said}; delete it and run the same command again") as caught:
            load_header(path)
        assert "\n" not in str(caught.value)


def test_claims_on_what_has_not_been_run_are_one_line() -> None:
    """At scale full, a claim on a table that ran in part has a row that says what is missing."""
    other = CLAIM | {"id": "K2", "text": "Another table says so", "table": "table10"}
    behind = CLAIM | {"id": "K3", "text": "A row that waits", "pairs": {"fedlaw": "feddyn"}}
    for scale, named, there in (("short", "K2, K3", False), ("full", "K2", True)):
        page = make_page(scale, claims=[CLAIM, other, behind])["md"].read_text()  # a small paper's details are on its page
        links = ", ".join(f'<a id="{id}"></a>[{id}](details.md#{id})' for id in named.split(", "))
        assert f"Claims that cannot be judged by what has run at this scale (each leads to what it says): {links}" in page
        assert '| <a id="K2"></a>' not in page
        assert ('| <a id="K3"></a>K3, Table 3<br>' in page) is there
        assert '- <a id="K2"></a>K2, Table 3: Another table says so' in page
        unjudged = "since they are not the paper's protocol (each leads to what it says): " in page
        assert unjudged is (scale == "short")
        assert page.count('| <a id="K1"></a>K1, Table 3<br>') == 1


def test_files_that_stand_beside_a_page_are_linked_there() -> None:
    """This includes a paper whose tables have shorter paths below `reports`: its page links the files beside itself."""
    plans = write_plans("full", ALL, own=True)
    table = render(plans[0], Store((folder_of() / "evidence",)), folder_of() / "table3")
    page = make_page("full", ALL, own=True)
    for path in (page["html"], page["md"], *table):
        for link in re.findall(r'href="([^"#]+)"|\]\(([^)#]+)\)', path.read_text()):
            target = link[0] or link[1]
            if "table3." in target:
                assert (path.parent / target).exists(), (path.name, target)
    assert 'href="table3.html"' in page["html"].read_text()
