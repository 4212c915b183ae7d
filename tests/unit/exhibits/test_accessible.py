"""Every HTML page can be used with a keyboard, a screen reader, a phone, and in dark mode."""

import itertools
import re
from pathlib import Path

import pytest
from html_page import Page
from small_table import make_plan, write_evidence

from fedrepro.config.words import Words
from fedrepro.exhibits.render import render, render_page, render_site
from fedrepro.exhibits.write.html import STYLE
from fedrepro.files import write_json
from fedrepro.store import Store

pytestmark = pytest.mark.drawn

VALUES = {("fedavg", "mlp-a100"): [89.0, 89.5, 90.0], ("fedlaw", "mlp-a100"): [88.0, 88.9, 88.4]}


@pytest.fixture(scope="module", params=["table", "paper", "details", "list"])
def text(request, tmp_path_factory) -> str:
    """The HTML of one kind of page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("page"))
        return make(request.param)


def make(kind: str) -> str:
    folder = Path("reports/full/fedlaw")
    plan = make_plan("full")
    write_evidence(folder / "evidence", plan, VALUES)
    path = write_json(Path("plan.json"), plan)
    if kind == "table":
        return render(path, Store((folder / "evidence",)), folder / "table3")[1].read_text()
    paper = render_page([path], Store((folder / "evidence",)), folder, Words())
    if kind == "list":
        return render_site(paper[2:3], Path("reports"))[1].read_text()
    return paper[1 if kind == "paper" else 4].read_text()


def test_tables_are_named_and_their_heads_say_what_they_head(text):
    """Every table has a caption, every header cell a scope, and every data row a header cell or a plain first cell."""
    page = Page(text)
    assert page.tables
    assert not any("<tr><td" in body for body in re.findall("<tbody>.*?</tbody>", text, re.DOTALL))
    assert all(table["caption"].strip() for table in page.tables)
    assert {th.get("scope") for th in page.of("th")} <= {"col", "row", "colgroup", "rowgroup"}


def test_what_scrolls_can_be_reached_by_keyboard(text):
    """Scrolling frames are regions with a label and a place in the tab order."""
    frames = [d for d in Page(text).of("div") if d.get("class") == "scroll"]
    assert frames
    assert all(d.get("tabindex") == "0" and d.get("role") == "region" and d.get("aria-label") for d in frames)


def test_pictures_have_a_text(text):
    """Each picture is in a figure with the role of an image and a description."""
    page = Page(text)
    figures = page.of("figure")
    assert len(figures) == len(page.of("svg"))
    assert all(f.get("role") == "img" and len(f.get("aria-label") or "") > 20 for f in figures)


def test_headings_follow_each_other(text):
    """There is one first-level heading, and no level is skipped."""
    levels = Page(text).headings
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_language_title_skip_link_and_anchors(text):
    """The page has a language, a title and a skip link, ids are unique, and every link within the page has a target."""
    page = Page(text)
    assert page.of("html")[0]["lang"] == "en"
    assert re.search(r"<title>\S", text)
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert page.of("a")[0]["href"] == "#main"
    assert {a["href"][1:] for a in page.of("a") if a["href"].startswith("#")} <= set(ids)
    assert page.open == []


def test_nothing_is_fetched_and_nothing_runs(text):
    """There is no script, style sheet, font or picture from elsewhere. The page is smaller than two megabytes."""
    page = Page(text)
    assert not page.of("script", "link", "img", "iframe", "object")
    assert not re.search(r"@import|url\((?!#)", text)
    assert len(text.encode()) < 2_000_000


def _luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2: linearised channels, weighted 0.2126, 0.7152, 0.0722."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """(lighter + 0.05) / (darker + 0.05)."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand():
    """Black on white is 21 to 1, a colour on itself 1 to 1."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#336699", "#336699") == pytest.approx(1)


def test_text_has_contrast_in_both_colour_schemes():
    """Every text colour has a contrast of at least 4.5 (WCAG 2.2, 1.4.3) on every background that it appears on, in light and
    dark mode."""
    style = STYLE.read_text()
    schemes = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", scheme))
        for ink in ("ink", "soft", "link", "good", "fair", "bad"):
            for ground in ("page", "card", "head", "best"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground, colours)
        assert contrast(colours["warn"], colours["warn-back"]) >= 4.5
