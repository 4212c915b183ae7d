"""Every kind of figure on made-up evidence: CSV numbers worked out by hand, the same bytes each time, and its place on a
page."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from html_page import Page
from matplotlib.axes import Axes
from small_table import exhibit, make_evidence, make_plan, typed, write_evidence

from fedrepro.config.table import Metric
from fedrepro.config.words import Words
from fedrepro.engine.fingerprints import RULE
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.kinds import KINDS, make_kind, style
from fedrepro.exhibits.kinds.kind import Drawing, Series
from fedrepro.exhibits.kinds.style import quantities
from fedrepro.exhibits.kinds.values import bases
from fedrepro.exhibits.pictures import learning
from fedrepro.exhibits.records import figure_csv, figure_text
from fedrepro.exhibits.render import render, render_page
from fedrepro.files import write_json
from fedrepro.store import Store

pytestmark = pytest.mark.drawn

A, B = "mlp-a100", "mlp-a01"
# A cell is the mean over the last two of five rounds. In column A the seeds give 82, 84, 86 for FedAvg and 83, 87, 85 for
# FedLAW.
BASE = {("fedavg", A): [82.0, 84.0, 86.0], ("fedlaw", A): [83.0, 87.0, 85.0], ("fedavg", B): [70.0, 72.0, 74.0]}
GAMMA = {
    ("fedavg", A): {"gamma": [[1.0, 1.0, 1.0, 1.0, 1.0]] * 3},
    ("fedlaw", A): {"gamma": [[1.0, 0.9, 0.8, 0.7, 0.5], [1.0, 0.9, 0.8, 0.6, 0.6], [1.0, 0.9, 0.8, 0.7, 0.7]]},
    ("fedavg", B): {"gamma": [[0.9, 0.9, 0.9, 0.9, 0.9]] * 3},
}
EVERY = ("curves", "bars", "heat_map", "histogram(bins=3)", "scatter(x=gamma)", "scatter(x=client_lr, joined=true)")
MORE = ("curves(band=none, log=true)", "bars(minus=fedavg)", "heat_map(numbers=false)", "histogram(together=true)")


def made(kind: str, accuracies: dict[tuple[str, str], list[float | None]] = BASE, metric: str = "", **changes: Any) -> Exhibit:
    """A figure of this kind. `metric` replaces the test accuracy."""
    plan = make_plan("demo", "figure3", kind=kind, caption="What it shows.", source="Figure 3", title="A picture", **changes)
    if metric:
        named = {"name": metric, "unit": "fraction", "description": metric, "better": "higher"}
        plan["cells"] = [cell | {"metric": named} for cell in plan["cells"]]
    return exhibit(plan, make_evidence(plan, accuracies, GAMMA))


def lines(of: Exhibit, *keys: str) -> list[tuple[str, ...]]:
    """These columns of the figure's CSV."""
    return [tuple(one[key] for key in keys) for one in csv.DictReader(io.StringIO(figure_csv(of)))]


def test_curves() -> None:
    """Rounds 4 and 5 of the small table lie half a point below and above a seed's value: means 83.5 and 84.5, ranges 81.5 to
    85.5 and 82.5 to 86.5. A row and column without runs has no line."""
    found = lines(made("curves"), "row", "column", "round", "value", "low", "high")
    assert ("fedavg", A, "4", "83.5", "81.5", "85.5") in found
    assert ("fedavg", A, "5", "84.5", "82.5", "86.5") in found
    assert {line[:2] for line in found} == set(BASE)
    assert len(found) == 3 * 5


@pytest.mark.parametrize(
    ("series", "rounds"),
    [
        ([[10.0, 20.0, 30.0, 40.0]] * 2, (0, 1, 2, 3)),
        ([[None, 20.0, None, 40.0]] * 2, (1, 3)),  # evaluated in every second round
        ([[10.0, 20.0, None, None]] * 2, (0, 1)),  # both diverged
    ],
)
def test_a_line_has_the_rounds_that_were_evaluated(series: list[list[float | None]], rounds: tuple[int, ...]) -> None:
    plan = make_plan("demo", seeds=[8, 9])
    place = (plan["cells"][0]["row"], plan["cells"][0]["column"])
    evidence = make_evidence(plan, {place: [80.0, 80.0]}, {place: {"round": [[0, 1, 2, 3]] * 2, "test_accuracy": series}})
    table = exhibit(plan, evidence)
    (line,) = learning.curves(table.plan, table.evidence, table.columns[place[1]])
    assert line.x == tuple(number + 1 for number in rounds)  # rounds count from 1


def test_a_row_that_reads_another_number_of_a_run_has_no_second_line() -> None:
    """If two rows read different metrics of one run, the picture has one line for both."""
    plan = make_plan("demo")
    first, second = [one for one in plan["cells"] if one["column"] == A and one["run_id"]][:2]
    second["metric"] = second["metric"] | {"name": "test_loss"}
    evidence = make_evidence(plan, {(one["row"], A): [80.0] * 3 for one in (first, second)})
    table = exhibit(plan, evidence)
    assert [one.row for one in learning.curves(table.plan, table.evidence, table.columns[A])] == [first["row"], second["row"]]
    second["run_id"] = first["run_id"]
    table = exhibit(plan, evidence)
    assert [one.row for one in learning.curves(table.plan, table.evidence, table.columns[A])] == [first["row"]]


def test_a_picture_begins_above_the_first_fifth_of_the_rounds(tmp_path: Path) -> None:
    """With six rounds the axis cuts off the value of the first round. With two rounds it shows both values."""
    import matplotlib.pyplot as plt

    for rounds, low in ((6, 50.0), (2, 10.0)):
        line = Series("fedavg", A, "test_accuracy", "x", (8,), y=(10.0, *range(50, 49 + rounds)), x=tuple(range(1, rounds + 1)))
        axes = plt.figure().subplots()
        make_kind("curves").plot(axes, [line], exhibit(make_plan("demo")).plan, "")
        assert low - 5 < axes.get_ylim()[0] < low


def test_after_a_seed_diverged_a_line_is_of_the_others() -> None:
    """Three seeds have round 1, two have round 2, and one has the last two."""
    plan = make_plan("demo")
    place = (plan["cells"][0]["row"], plan["cells"][0]["column"])
    series = [[10.0, None, None, None], [20.0, 30.0, None, None], [30.0, 50.0, 60.0, 70.0]]
    table = exhibit(
        plan, make_evidence(plan, {place: [80.0] * 3}, {place: {"round": [[0, 1, 2, 3]] * 3, "test_accuracy": series}})
    )
    found = learning.curves(table.plan, table.evidence, table.columns[place[1]])
    assert [(line.seeds, line.x, line.y) for line in found] == [
        ((8, 9, 10), (1,), (20.0,)),
        ((9, 10), (2,), (40.0,)),
        ((10,), (3, 4), (60.0, 70.0)),
    ]
    assert [(line.low, line.high) for line in found] == [((10.0,), (30.0,)), ((30.0,), (50.0,)), ((60.0, 70.0), (60.0, 70.0))]


def test_smoothed_curves() -> None:
    """A filter of order 2 keeps a parabola. At the middle of five rounds it keeps 17 of a spike of 35: its weights are (-3, 12,
    17, 12, -3)/35."""
    kind = make_kind("curves(smooth=5)")
    parabola = {i: float(i * i) for i in range(7)}
    assert kind._smoothed(parabola) == pytest.approx(parabola)
    assert kind._smoothed(dict.fromkeys(range(7), 0.0) | {3: 35.0})[3] == pytest.approx(17.0)
    assert kind._smoothed({0: 1.0, 1: 2.0}) == {0: 1.0, 1: 2.0}  # too few rounds for the filter


def test_bars(tmp_path: Path) -> None:
    """Means 84 and 85, deviation 2 for both."""
    found = lines(made("bars"), "row", "column", "value", "low", "high", "seeds")
    assert found == [
        ("fedavg", A, "84", "82", "86", "8 9 10"),
        ("fedavg", B, "72", "70", "74", "8 9 10"),
        ("fedlaw", A, "85", "83", "87", "8 9 10"),
    ]
    with mock.patch.object(Axes, "bar", autospec=True, side_effect=Axes.bar) as bar:
        make_kind("bars").draw(made("bars").figure, tmp_path / "a.svg")
    assert [call.args[2] for call in bar.call_args_list] == [[84, 72], [85]]
    assert lines(made("bars(band=range)"), "low", "high")[2] == ("83", "87")
    assert "low" not in figure_csv(made("bars(band=none)")).splitlines()[0]


def test_differences_are_paired_by_seed() -> None:
    """FedLAW minus FedAvg: 1, 3, -1, mean 1 and deviation 2. The other column has no FedLAW, and FedAvg itself is not drawn."""
    for kind in ("bars(minus=fedavg)", "heat_map(minus=fedavg)"):
        of = made(kind)
        assert of.figure.y == "difference"
        assert lines(of, "row", "column", "difference") == [("fedlaw", A, "1")]
    assert lines(made("bars(minus=fedavg)"), "low", "high") == [("-1", "3")]
    points = lines(made("scatter(x=client_lr, minus=fedavg)"), "client_lr", "difference", "seeds")
    assert points == [("0.08", "1", "8 9 10")]


def test_a_row_of_axes_is_compared_with_its_own_base() -> None:
    """`axes:` joins keys, so the pairs are law-a1 minus avg-a1 and law-a2 minus avg-a2. If `avg` alone is a row, it is the base
    of all rows."""
    assert bases(["avg-a1", "avg-a2", "law-a1", "law-a2"], "avg") == {"law-a1": "avg-a1", "law-a2": "avg-a2"}
    assert bases(["avg", "avg-swa", "law"], "avg") == {"avg-swa": "avg", "law": "avg"}
    assert bases(["avg", "avg+ima", "law+ima", "law", "sam"], "without +ima") == {"avg+ima": "avg", "law+ima": "law"}
    with pytest.raises(UserError, match=r"minus = 'without \+amy': no row has this ending"):
        bases(["avg", "avg+ima"], "without +amy")
    with pytest.raises(UserError, match=r"minus = 'agv': unknown row 'agv'; did you mean 'avg'\?"):
        bases(["avg", "law"], "agv")


def test_a_heat_map() -> None:
    assert lines(made("heat_map"), "row", "column", "value") == [("fedavg", A, "84"), ("fedavg", B, "72"), ("fedlaw", A, "85")]


def test_a_histogram() -> None:
    """FedAvg's gamma is 1 fifteen times, in the other column 0.9. FedLAW has 1, 0.9 and 0.8 three times each, then
    0.7, 0.6, 0.7 and 0.5, 0.6, 0.7. Five bins from 0.5 to 1 are each a tenth wide, and the last includes its upper end."""
    of = made("histogram(bins=5)", metric="gamma")
    found = lines(of, "row", "column", "from", "to", "count")
    assert [line[2:] for line in found if line[:2] == ("fedlaw", A)] == [
        ("0.5", "0.6", "1"),
        ("0.6", "0.7", "2"),
        ("0.7", "0.8", "3"),
        ("0.8", "0.9", "3"),
        ("0.9", "1", "6"),
    ]
    assert [line[4] for line in found if line[:2] == ("fedavg", A)] == ["0", "0", "0", "0", "15"]


def test_a_histogram_of_runs() -> None:
    """One gamma for each run, the mean of its last two rounds: FedAvg 1, and 0.9 in the other column. FedLAW 0.6, 0.6, 0.7."""
    found = lines(made("histogram(bins=4, runs=true)", metric="gamma"), "row", "column", "from", "count")
    assert [line[2:] for line in found if line[0] == "fedlaw"] == [("0.6", "2"), ("0.7", "1"), ("0.8", "0"), ("0.9", "0")]
    assert [line[3] for line in found if line[:2] == ("fedavg", A)] == ["0", "0", "0", "3"]


def test_scatter() -> None:
    """Gamma is read like the cells, over the last two rounds: 0.6, 0.6 and 0.7 by seed, mean 0.6333."""
    found = lines(made("scatter(x=gamma)"), "row", "column", "gamma", "value", "seeds")
    assert ("fedlaw", A, "0.63333333", "85", "8 9 10") in found
    assert ("fedavg", B, "0.9", "72", "8 9 10") in found
    assert lines(made("scatter(x=clients)"), "clients", "value") == [("4", "84"), ("4", "72"), ("4", "85")]
    with pytest.raises(UserError, match=r"figure3: kind: x: unknown metric or setting 'gama'; did you mean 'gamma'\?"):
        _ = made("scatter(x=gama)").figure


def test_a_diverged_seed_leaves_no_mean() -> None:
    """There is no mean, as in tables. A curve continues without the seed, here after the third of five rounds."""
    some: dict[tuple[str, str], list[float | None]] = {**BASE, ("fedlaw", A): [83.0, None, 85.0]}
    for kind in ("bars", "heat_map", "scatter(x=clients)"):
        of = made(kind, some)
        assert {one.row for one in of.figure.series} == {"fedavg"}
        assert any("1 of 9 runs diverged" in said for said in of.warnings)
    of = made("curves", some)
    assert [len(one.y) for one in of.figure.series if one.row == "fedlaw"] == [3, 2]
    assert any(said == "1 of 9 runs diverged; the figure shows the rounds before that." for said in of.warnings)


def test_the_round_of_divergence_has_no_value() -> None:
    """Accuracy is that of weights which are not finite there, 10 % by chance. Neither a curve nor a histogram takes it."""
    plan = make_plan("demo", "figure3", kind="curves(whole=true)", caption="", seeds=[8, 9])
    place = ("fedavg", A)
    curves = {"round": [[0, 1, 2], [0, 1, 2, 3, 4]], "test_accuracy": [[40.0, 50.0, 10.0], [42.0, 52.0, 62.0, 64.0, 66.0]]}
    of = exhibit(plan, make_evidence(plan, {place: [None, 80.0]}, {place: curves}))
    assert [(one.x, one.y) for one in of.figure.series] == [((1, 2), (41.0, 51.0)), ((3, 4, 5), (62.0, 64.0, 66.0))]
    plan["kind"] = "histogram(bins=1)"
    (bins,) = exhibit(plan, make_evidence(plan, {place: [None, 80.0]}, {place: curves})).figure.series
    assert (bins.x, bins.to, bins.y) == ((40.0,), (66.0,), (7,))


@pytest.mark.parametrize("kind", ["bars", "heat_map", "scatter(x=clients)", "curves"])
def test_seeds_of_different_code_make_no_mean(kind: str) -> None:
    of = made(kind)
    receipts = of.evidence[of.plan.cells[0].run_id or ""]
    for seed in receipts:
        receipts[seed] = replace(receipts[seed], code={"part mean": f"{RULE}{seed // 9}"})
    assert {(one.row, one.column) for one in of.figure.series} == {*BASE} - {("fedavg", A)}


def test_learning_curves_have_the_unit_of_what_they_show(tmp_path: Path) -> None:
    """A column of rounds to a target shows the accuracy over rounds; `rounds` is not its unit."""
    plan = make_plan("demo")
    for one in (*plan["columns"], *(cell for cell in plan["cells"] if cell["run_id"])):
        one["metric"] = one["metric"] | {"unit": "rounds", "better": "lower"}
    for cell in (cell for cell in plan["cells"] if cell["run_id"]):
        cell["read"] = "first_reaching(target=64.0)"
    table = exhibit(plan, make_evidence(plan, BASE))
    column = table.columns[A]
    found = learning.curves(table.plan, table.evidence, column)
    learning.draw(table.plan, column, "rounds to 64", found, tmp_path / "a.svg")
    assert "test accuracy (rounds)" not in (text := (tmp_path / "a.svg").read_text())
    assert "test accuracy" in text


def test_stacked_columns_beyond_the_colours_are_hatched(tmp_path: Path) -> None:
    """Two columns of the same colour differ by their hatch, which the legend has too."""
    with mock.patch.object(style, "COLOURS", style.COLOURS[:1]):
        make_kind("histogram(together=true)").draw(made("histogram(together=true)").figure, tmp_path / "a.svg")
    assert "<pattern " in (tmp_path / "a.svg").read_text()
    make_kind("histogram(together=true)").draw(made("histogram(together=true)").figure, tmp_path / "b.svg")
    assert "<pattern " not in (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize("kind", EVERY + MORE)
def test_every_kind_draws_its_data(kind: str, tmp_path: Path) -> None:
    """The picture has the title, the scale and the labels of its rows. The JSON has the points of the CSV."""
    of = made(kind)
    make_kind(kind).draw(of.figure, tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text()
    assert "A picture" in svg
    assert "[demo\u00a0scale]" in svg
    labels = {row.label for row in of.figure.rows}
    assert labels == ({"FedLAW"} if "minus" in kind else {"FedAvg", "FedLAW"})
    assert all(label in svg for label in labels)
    assert "FedAvg + GH" not in svg
    document = json.loads(figure_text(of))
    points = [(one["row"], one["column"], f"{y:.8g}") for one in document["series"] for y in one["y"]]
    assert lines(of, "row", "column", document["header"]["y"]) == points


def test_every_kind_is_tested() -> None:
    """The kinds that draw diagnostics are tested in test_places.py."""
    others = {"matrix", "counts", "plane", "line", "simplex", "clients"}
    assert {make_kind(one).name for one in EVERY} | others == set(KINDS.names())


@pytest.mark.parametrize("kind", sorted(KINDS.names()))
def test_a_figure_without_evidence_says_so(kind: str, tmp_path: Path) -> None:
    plan, _ = typed(make_plan("demo", "figure3"))
    make_kind(f"{kind}(x=clients)" if kind == "scatter" else kind).draw(Drawing(plan, ()), tmp_path / "a.svg")
    assert "no run yet" in (tmp_path / "a.svg").read_text()


def test_a_matrix_of_what_is_none() -> None:
    """A metric that runs record has no values at places, which gives one line."""
    with pytest.raises(UserError, match=r"figure3: kind: matrix draws a metric of a diagnostic, 'test_accuracy' is none"):
        _ = made("matrix").figure


AGAIN = """
import datetime, sys, time
today = time.time
time.time = lambda: today() + 40 * 86400
from pathlib import Path
from fedrepro.exhibits.render import render
from fedrepro.store import Store
for number in sys.argv[1:]:
    render(Path(f"plan{number}.json"), Store((Path("evidence"),)), Path(f"b{number}"))
"""


def test_bytes_are_the_same_in_another_process_on_another_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another hash seed, date, time zone and the user's matplotlib settings change nothing in figures of two kinds."""
    monkeypatch.chdir(tmp_path)
    for run_id, seeds in make_evidence(make_plan("demo", "figure3"), BASE, GAMMA).items():
        for seed, receipt in seeds.items():
            write_json(Path("evidence", run_id, f"seed{seed}.json"), seal(receipt))
    first, kinds = [], ("curves", "heat_map")
    for number, kind in enumerate(kinds):
        plan = write_json(Path(f"plan{number}.json"), make_plan("demo", "figure3", kind=kind, caption=""))
        first.append([path.read_bytes() for path in render(plan, Store((Path("evidence"),)), Path(f"a{number}"))])
        assert [path.read_bytes() for path in render(plan, Store((Path("evidence"),)), Path(f"a{number}"))] == first[-1]
    Path("matplotlibrc").write_text("font.size: 20\nsvg.hashsalt: mine\naxes.grid: True\n")
    other = {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1000000000", "TZ": "Asia/Tokyo", "MATPLOTLIBRC": str(tmp_path)}
    numbers = [str(number) for number in range(len(kinds))]
    subprocess.run([sys.executable, "-c", AGAIN, *numbers], env=os.environ | other, check=True)
    for kind, number, files in zip(kinds, numbers, first, strict=True):
        assert [Path(f"b{number}{ending}").read_bytes() for ending in (".svg", ".csv", ".json")] == files, kind


def page_of(evidence: dict[tuple[str, str], list[float | None]], *figures: str) -> tuple[Page, str]:
    """The HTML page and the Markdown of a paper with one table and these figures, all with the same evidence."""
    folder, paths = Path("reports/demo/fedlaw"), []
    for name in ("table3", *figures):
        about = {"kind": "bars", "caption": f"Caption of {name}."} if name != "table3" else {}
        plan = make_plan("demo", name, source=name.replace("figure", "Figure "), title=f"Title of {name}", **about)
        write_evidence(folder / "evidence", plan, evidence)
        paths.append(write_json(Path(f"results/plans/demo/fedlaw/{name}.json"), plan))
    markdown, html, *_ = render_page(paths, Store((folder / "evidence",)), folder, Words())
    return Page(html.read_text()), markdown.read_text()


@pytest.fixture
def in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_page_shows_figures(in_project: None) -> None:
    """The page has title, source, caption, missing runs, the picture, and links to CSV and JSON files that exist."""
    html, markdown = page_of(BASE, "figure3", "figure10")
    assert markdown.index("Figure 3: Title of figure3") < markdown.index("Figure 10: Title of figure10")
    for said in ("Caption of figure3.", "Incomplete: 9 of 15 runs", "![Figure 3: Title of figure3](figures/index/figure3.svg)"):
        assert said in markdown
    assert "1 of 1 tables" in markdown  # figures do not count as tables
    links = {one["href"] for one in html.of("a") if one.get("href")}
    for ending in ("csv", "json"):
        assert f"figures/index/figure3.{ending}" in links
        assert Path(f"reports/demo/fedlaw/figures/index/figure3.{ending}").is_file()
    assert any((one.get("aria-label") or "").startswith("Figure 3: Title") for one in html.of("figure"))
    details = Path("reports/demo/fedlaw/details.md").read_text()
    assert details.count("| table3, Figure 3, Figure 10 |") == 3


def test_a_page_shows_a_figures_own_report_where_it_says_the_same(in_project: None) -> None:
    """The page links the picture of the figure's own report if that report is up to date. After a change of the evidence the
    page draws the picture again."""
    page_of(BASE, "figure3")
    folder = Path("reports/demo/fedlaw")
    render(Path("results/plans/demo/fedlaw/figure3.json"), Store((folder / "evidence",)), folder / "figure3")
    _, markdown = page_of(BASE, "figure3")
    assert "(figure3.svg)" in markdown
    assert not (folder / "figures/index/figure3.svg").exists()
    _, markdown = page_of({**BASE, ("fedlaw", B): [1.0, 2.0, 3.0]}, "figure3")
    assert "(figures/index/figure3.svg)" in markdown


def test_a_figure_without_runs_is_listed(in_project: None) -> None:
    """The page names the file to make it, and nothing is drawn."""
    _, markdown = page_of({}, "figure3")
    assert "as in `snakemake --cores 8 reports/demo/fedlaw/" in markdown
    assert "- table3: Title of table3. `table3.md`" in markdown
    assert "- Figure 3: Title of figure3. `figure3.svg`" in markdown
    assert "2 tables and figures" in markdown
    assert not list(Path("reports/demo/fedlaw").rglob("figure3.*"))


def test_many_without_runs_are_named_and_the_details_list_them(in_project: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrepro.exhibits.sections.tables.LISTED", 1)
    _, markdown = page_of({}, "figure3")
    assert "table3; Figure 3. [Titles and commands](details.md)" in markdown
    assert "Title of figure3" not in markdown
    assert "- Figure 3: Title of figure3. `figure3.svg`" in Path("reports/demo/fedlaw/details.md").read_text()


@pytest.mark.parametrize(
    ("names", "diagnostic", "unit", "axis"),
    [
        (["coherence", "coherence_first"], "coherence(groups=10)", "ratio", "coherence"),
        (["global_gradient_norm", "shrink_gradient_norm"], None, "norm", "gradient norm"),
        (["test_accuracy", "proxy_accuracy"], None, "percent", "accuracy (%)"),
        (["test_accuracy"], None, "percent", "test accuracy (%)"),
        (["gamma", "r"], None, "factor", "gamma, r"),
    ],
)
def test_an_axis_has_what_its_metrics_share(names: list[str], diagnostic: str | None, unit: str, axis: str) -> None:
    """The axis has the words that all metrics share. Without a shared word it names all of them."""
    metrics = [Metric(name=name, unit=unit, description="x", diagnostic=diagnostic) for name in names]
    assert quantities(metrics) == axis


def test_a_figure_says_of_which_columns_it_draws_nothing() -> None:
    """If nothing at all has run, the picture says so, and no sentence does."""
    some = {place: values for place, values in BASE.items() if place[1] == A}
    said = [line for line in made("curves", some).warnings if "Nothing to draw" in line]
    assert said == ["Nothing to draw of FashionMNIST · MLP, α = 0.1."]
    assert not [line for found in (made("curves"), made("curves", {})) for line in found.warnings if "Nothing to draw" in line]


def test_an_axis_says_what_is_taken_away() -> None:
    metrics = [Metric(name="test_accuracy", unit="percent", description="accuracy")]
    said = {minus: " ".join(quantities(metrics, minus).split()) for minus in ("FedAvg", "without +ima")}
    assert said == {
        "FedAvg": "test accuracy (points), less that of FedAvg",
        "without +ima": "test accuracy (points), less the same without ima",
    }


def test_metrics_of_two_units_are_all_named() -> None:
    both = {"test_accuracy": "percent", "fair_accuracy": "ratio"}
    metrics = [Metric(name=name, unit=unit, description="x") for name, unit in both.items()]
    assert quantities(metrics) == "test accuracy (%), fair accuracy"
