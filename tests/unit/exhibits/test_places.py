"""Kinds that draw a diagnostic's values at places: the numbers of their CSV, their marks, and what they refuse."""

import csv
import io
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from matplotlib.axes import Axes
from small_table import exhibit, make_evidence, make_plan

from fedrepro.diagnostics.diagnostic import canonical
from fedrepro.engine.measurements import Measurements, Value
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.kinds import make_kind
from fedrepro.exhibits.records import figure_csv

pytestmark = pytest.mark.drawn

A, B = "mlp-a100", "mlp-a01"
BASE = {("fedavg", A): [82.0, 84.0, 86.0], ("fedlaw", A): [83.0, 87.0, 85.0], ("fedavg", B): [70.0, 72.0, 74.0]}
PLANE, LINE, COUNTS = canonical("plane"), canonical("line"), canonical("class_counts")
XS = (-1.0, 0.0, 1.0, 2.0)


def surface(seed: int, round: int) -> list[Value]:
    """A bowl with its minimum, of height `round`, at x = 1 + seed, y = 0; and four marks."""
    found = [Value(round, "plane_loss", round + (x - 1) ** 2 + y * y, x=x + seed, y=y) for y in (0.0, 2.0, -1.0) for x in XS]
    marks = [("model_1", 0.0, 0.0, 1.0), ("average", 0.5, 0.5, 0.5), ("global", 0.6, 0.5, 0.4), ("lowest", 1.0, 0.0, 0.0)]
    for mark, x, y, value in marks:
        found += [
            Value(round, f"plane_loss/{mark}", round + value),
            Value(round, f"plane_loss/{mark}", round + value, x=x, y=y),
        ]
    return [*found, Value(round, "plane_loss/gain", 0.5)]


def curve(seed: int, round: int) -> list[Value]:
    """A parabola around 1, raised by a tenth of the seed. Seed 10 lacks the last place."""
    xs = XS[:-1] if seed == 10 else XS
    found = [Value(round, "line_loss", round + (x - 1) ** 2 + seed / 10, x=x) for x in xs]
    return [*found, Value(round, "line_loss/first", 9.0)]


def at_places(round: int, found: dict[tuple[float, float], float]) -> list[Value]:
    return [Value(round, "class_counts", value, x=x, y=y) for (x, y), value in found.items()]


def made(kind: str, metric: str, of: Any, call: str, evidence: Any = BASE, **changes: Any) -> Exhibit:
    """A figure whose runs keep and measure rounds 2 and 4 of five. Round 3 is measured for another figure. Column B reads round
    2."""
    plan = make_plan("demo", "figure3", kind=kind, caption="", source="Figure 3", title="A picture", **changes)
    named = {"name": metric, "unit": "loss", "description": metric, "better": "lower", "diagnostic": call}
    plan["cells"] = [cell | {"metric": named} for cell in plan["cells"]]
    for cell in plan["cells"]:
        if cell["run_id"]:
            plan["runs"][cell["run_id"]] |= {"keep": [2, 4], "measures": {call: [2, 4]}}
            cell["read"] = "at(round=2)" if cell["column"] == B else "last(rounds=1)"
    figure = exhibit(plan, make_evidence(plan, evidence))
    name = f"{call}: {metric}"
    for receipts in figure.evidence.values():
        for seed, one in receipts.items():
            values = [value for round in (2, 3, 4) for value in of(seed, round)]
            one.measured[name] = Measurements({"models": dict.fromkeys("234", "")}, values).within([2, 4])
            one.curves[name] = one.measured[name].curve(metric, 5)
    return figure


def lines(of: Exhibit, *keys: str) -> list[tuple[str, ...]]:
    return [tuple(one[key] for key in keys) for one in csv.DictReader(io.StringIO(figure_csv(of)))]


def test_matrix(tmp_path: Path) -> None:
    """The mean over seeds at each place, in the last kept round. The data have the diagonal, and the picture has not. A place
    that a seed lacks is left out."""

    def fields(seed: int, round: int) -> list[Value]:
        found = {(0.0, 0.0): 9.0, (0.0, 1.0): seed / 10 + round - 4, (1.0, 0.0): 0.2}
        return at_places(round, {at: value for at, value in found.items() if (seed, at) != (10, (1.0, 0.0))})

    of = made("matrix", "class_counts", fields, COUNTS)
    found = lines(of, "row", "column", "x", "to", "value")
    assert [line[2:] for line in found if line[:2] == ("fedavg", A)] == [("0", "0", "9"), ("0", "1", "0.9")]
    images = []
    for name in ("a.svg", "b.svg"):
        with mock.patch.object(Axes, "pcolormesh", autospec=True, side_effect=Axes.pcolormesh) as mesh:
            make_kind("matrix").draw(of.figure, tmp_path / name)
        images += [call.args[1] for call in mesh.call_args_list if isinstance(call.args[1], list)]  # not the colour bar's
    assert [np.isnan(np.diagonal(fields)).all() for fields in images] == [True] * 2 * len(of.figure.series)
    assert b"of client x to client y" in (tmp_path / "a.svg").read_bytes()
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "a.svg").read_bytes()


def test_counts(tmp_path: Path) -> None:
    """Clients go down, classes across. A zero has no number."""
    counts = {(0.0, 0.0): 17.0, (0.0, 1.0): 0.0, (2.0, 1.0): 31.0}
    one = {"evidence": {("fedavg", A): [82.0]}, "seeds": [8]}
    of = made("counts", "class_counts", lambda _, at: at_places(at, counts), COUNTS, **one)
    assert lines(of, "x", "to", "value") == [("0", "0", "17"), ("0", "1", "0"), ("2", "1", "31")]
    make_kind("counts").draw(of.figure, tmp_path / "a.svg")
    texts = re.findall(r">([^<>]+)</text>", (tmp_path / "a.svg").read_text())
    assert {"17", "31"} <= set(texts)
    assert texts.count("0") == 2, "a tick on each axis alone"
    halves = made("counts", "class_counts", lambda seed, at: at_places(at, {(0.0, 0.0): 17.0, (0.0, 1.0): seed % 2}), COUNTS)
    make_kind("counts").draw(halves.figure, tmp_path / "b.svg")
    assert ">0.3</text>" in (tmp_path / "b.svg").read_text(), "one of three seeds has a sample"


def test_a_plane_is_of_one_seed_and_of_the_round_that_is_read() -> None:
    """The plane is of the first seed, 8, so x begins at 7. Column A has the last kept round, 4, and column B round 2. Marks
    have the round of their surface."""
    of = made("plane", "plane_loss", surface, PLANE)
    found = lines(of, "row", "column", "metric", "x", "to", "value", "seeds")
    own = [line[3:] for line in found if line[:3] == ("fedavg", A, "plane_loss")]
    assert len(own) == 12
    assert own[0] == ("7", "-1", "9", "8")  # 4 + (-2)^2 + 1
    assert ("fedavg", B, "plane_loss", "7", "-1", "7", "8") in found
    assert ("fedavg", A, "plane_loss/average", "0.5", "0.5", "4.5", "8") in found
    assert ("fedavg", B, "plane_loss/lowest", "1", "0", "2", "8") in found
    assert {line[2] for line in found} == {
        "plane_loss",
        *(f"plane_loss/{m}" for m in ("model_1", "average", "global", "lowest")),
    }


def test_a_line_is_the_mean_over_seeds() -> None:
    """Seeds 8, 9 and 10 lie a tenth apart: 4 + 0.9 at x = 1, from 4.8 to 5. A seed lacks x = 2, which is left out. The
    diagnostic names the axis."""
    of = made("line", "line_loss", curve, LINE)
    assert of.figure.x == "from the first model (0) to the second (1)"
    found = lines(of, "row", "column", of.figure.x, "value", "low", "high")
    assert [line[2:] for line in found if line[:2] == ("fedlaw", A)] == [
        ("-1", "8.9", "8.8", "9"),
        ("0", "5.9", "5.8", "6"),
        ("1", "4.9", "4.8", "5"),
    ]
    assert ("fedavg", B, "1", "2.9", "2.8", "3") in found
    assert lines(made("line(band=std)", "line_loss", curve, LINE), "low", "high")[2] == ("4.8", "5")


@pytest.mark.parametrize(
    ("kind", "metric", "of", "call"),
    [("plane", "plane_loss", surface, PLANE), ("line", "line_loss", curve, LINE)],
)
def test_the_pictures(kind: str, metric: str, of: Any, call: str, tmp_path: Path) -> None:
    """The picture has title, columns and rows, and is the same bytes twice. A plane has a legend, and each mark has its own
    shape."""
    found = made(kind, metric, of, call).figure
    for name in ("a", "b"):
        make_kind(kind).draw(found, tmp_path / f"{name}.svg")
    svg = (tmp_path / "a.svg").read_text()
    assert (tmp_path / "b.svg").read_text() == svg
    for said in ("A picture", "FashionMNIST", "FedLAW"):
        assert said in svg
    if kind == "plane":
        assert all(f">{name}</text>" in svg for name in ("model", "average of the three", "global model", "lowest point"))
        assert len({*re.findall(r'<path id="(m[0-9a-f]+)" d="[^"]+"', svg)}) >= 4
    else:
        assert "from the first model (0)" in svg


def test_a_lowest_point_can_be_left_unmarked(tmp_path: Path) -> None:
    found = made("line", "line_loss", curve, LINE).figure
    for kind in ("line", "line(lowest=false)"):
        make_kind(kind).draw(found, tmp_path / f"{kind[:5]}.svg")
    assert (tmp_path / "line.svg").read_text().count("<use") > (tmp_path / "line(.svg").read_text().count("<use")


def test_a_flat_plane_is_drawn_too(tmp_path: Path) -> None:
    """All points are equal, so the picture has no contours. Drawing gives no warning."""
    flat = lambda seed, at: [one._replace(value=1.0) for one in surface(seed, at)]  # noqa: E731
    make_kind("plane").draw(made("plane", "plane_loss", flat, PLANE).figure, tmp_path / "a.svg")
    assert "model" in (tmp_path / "a.svg").read_text()


def test_a_point_without_a_value_stays_empty(tmp_path: Path) -> None:
    """The point is missing in the data and empty in the picture."""

    def holes(seed: int, at: int) -> list[Value]:
        return [one._replace(value=None) if (one.x, one.y) == (8.0, 2.0) else one for one in surface(seed, at)]

    of = made("plane", "plane_loss", holes, PLANE)
    assert len(of.figure.series[0].y) == 11
    fields = mock.patch.object(Axes, "contourf", autospec=True, side_effect=Axes.contourf)
    points = mock.patch.object(Axes, "plot", autospec=True, side_effect=Axes.plot)
    with fields as field, points as plot:
        make_kind("plane").draw(of.figure, tmp_path / "a.svg")
    assert np.isnan(field.call_args_list[0].args[3]).sum() == 1
    marks = [one for one in of.figure.series if "/" in one.metric]
    assert [call.args[1:3] for call in plot.call_args_list] == [(one.x, one.to) for one in marks]


def test_what_they_refuse() -> None:
    """One line each refuses a metric of the runs, a metric with one value a round, a plane's metric for a line, and a line's
    metric for a plane."""
    with pytest.raises(UserError, match=r"figure3: kind: plane draws a metric of a diagnostic, 'test_accuracy' is none of one"):
        _ = exhibit(plan := make_plan("demo", "figure3", kind="plane", caption=""), make_evidence(plan, BASE)).figure
    with pytest.raises(UserError, match=r"draws values at places, 'line_loss/first' has one value a round; take curves"):
        _ = made("line", "line_loss/first", curve, LINE).figure
    with pytest.raises(UserError, match=r"kind: line draws a metric over x, 'plane_loss' is none"):
        _ = made("line", "plane_loss", surface, PLANE).figure
    with pytest.raises(UserError, match=r"kind: plane draws a metric with values at \(x, y\), 'line_loss' has none"):
        _ = made("plane", "line_loss", curve, LINE).figure
    with pytest.raises(UserError, match="unknown band 'stdd'"):
        make_kind("line(band=stdd)")


def test_a_diverged_seed_and_nothing_measured_leave_a_cell_out() -> None:
    """A row with a diverged seed has no line, and a plane without measurements is not drawn, as in other kinds."""
    diverged = {("fedavg", A): [82.0, None, 86.0], ("fedlaw", A): [83.0, 87.0, 85.0]}
    assert {one.row for one in made("line", "line_loss", curve, LINE, diverged).figure.series} == {"fedlaw"}
    assert made("plane", "plane_loss", lambda *_: [], PLANE).figure.series == ()


def test_what_is_not_finite_at_a_seed_leaves_a_cell_out() -> None:
    """A kept model may have no finite loss anywhere. The other cells are drawn."""

    def fields(seed: int, at: int) -> list[Value]:
        return at_places(at, {(0.0, 1.0): 1.0})

    def lost(of: Any, at_round: int) -> Any:
        return lambda seed, at: [v._replace(value=None) if (seed, at) == (8, at_round) else v for v in of(seed, at)]

    for kind, metric, of, call in (("line", "line_loss", curve, LINE), ("plane", "plane_loss", surface, PLANE)):
        assert {one.column for one in made(kind, metric, lost(of, 2), call).figure.series} == {A}, "column B reads round 2"
    assert {one.column for one in made("matrix", "class_counts", lost(fields, 4), COUNTS).figure.series} == {B}


SIMPLEX, WEIGHTS, LEARNING = canonical("simplex"), canonical("client_weights"), canonical("server_learning")


def triangle(seed: int, round: int) -> list[Value]:
    """Six points in a triangle and three marks. The lowest point moves with the round."""
    places = [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.25, 0.4), (0.75, 0.4), (0.5, 0.8)]
    marks = [("model_1", 0.0, 0.0), ("average", 0.5, 0.3), ("lowest", round / 10, 0.0)]
    found = [Value(round, "simplex_loss", round + x + y, x=x, y=y) for x, y in places]
    return [*found, *(Value(round, f"simplex_loss/{mark}", 1.0, x=x, y=y) for mark, x, y in marks)]


def test_a_simplex_and_the_way_of_its_best_points(tmp_path: Path) -> None:
    """It is drawn like a plane. `path` adds the lowest points of both kept rounds, but not of round 3."""
    of = made("simplex(path=true)", "simplex_loss", triangle, SIMPLEX)
    found = lines(of, "column", "metric", "x", "to", "value")
    assert [line[2:] for line in found if line[:2] == (A, "simplex_loss/path")][:2] == [("0.2", "0", "1"), ("0.4", "0", "1")]
    assert (A, "simplex_loss", "0.5", "0.8", "5.3") in found
    plain = made("simplex", "simplex_loss", triangle, SIMPLEX)
    assert {line[0] for line in lines(plain, "metric")} == {
        "simplex_loss",
        *(f"simplex_loss/{m}" for m in ("model_1", "average", "lowest")),
    }
    path = [line[2] for line in lines(of, "column", "metric", "x") if line[:2] == (B, "simplex_loss/path")]
    assert path == ["0.2"], "column B reads round 2, so its path ends there"
    unmarked = made("simplex(path=true)", "simplex_loss", lambda *at: triangle(*at)[:-1], SIMPLEX)
    assert "simplex_loss/path" not in {line[0] for line in lines(unmarked, "metric")}
    for kind in ("simplex(path=true)", "simplex"):
        make_kind(kind).draw((of if "path" in kind else plain).figure, tmp_path / "a.svg")
        assert ("lowest points of all rounds" in (tmp_path / "a.svg").read_text()) == ("path" in kind)
        assert "average by data size" in (tmp_path / "a.svg").read_text()


def of_clients(seed: int, round: int) -> list[Value]:
    """Three clients' weights in a round, and one value of the round itself."""
    each = [Value(round, "client_weight", seed + round + client / 10, client=client) for client in (0, 1, 12)]
    return [*each, Value(round, "weight_first", 0.5)]


def learning(seed: int, round: int) -> list[Value]:
    """Two clients' weights at two server epochs."""
    return [
        Value(round, "learning_lambda", round + client / 10 + x, client=client, x=x) for client in (0, 1) for x in (0.0, 1.0)
    ]


def test_a_line_for_each_client(tmp_path: Path) -> None:
    """Values of the first seed: over the kept rounds up to the column's round, or over x in the last kept round."""
    of = made("clients(groups=10)", "client_weight", of_clients, WEIGHTS)
    assert of.figure.x == "round"
    found = lines(of, "column", "metric", "round", "value", "seeds")
    assert [line[2:] for line in found if line[:2] == (A, "client_weight/12")][:2] == [("2", "11.2", "8"), ("4", "13.2", "8")]
    assert [line[2:] for line in found if line[:2] == (B, "client_weight/0")] == [("2", "10", "8")]
    curves = made("clients", "learning_lambda", learning, LEARNING)
    assert curves.figure.x == "server epoch"
    found = lines(curves, "column", "metric", "server epoch", "value")
    assert [line[2:] for line in found if line[:2] == (A, "learning_lambda/1")][:2] == [("0", "4.1"), ("1", "5.1")]
    for kind, figure, said in (
        ("clients(groups=10)", of, ("clients 0 to 9", "the others", "communication round")),
        ("clients", curves, ("client 0", "client 1", "server epoch")),
    ):
        make_kind(kind).draw(figure.figure, tmp_path / "a.svg")
        assert all(one in (tmp_path / "a.svg").read_text() for one in said)
    with pytest.raises(UserError, match=r"draws values of clients, 'weight_first' has none"):
        _ = made("clients", "weight_first", of_clients, WEIGHTS).figure
