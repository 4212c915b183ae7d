"""What matplotlib is told to draw: each mark, field, number and band stands where the data say. Other tests read the CSV beside
a picture, and its words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch
from small_table import exhibit, make_evidence, make_plan

from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.kinds import make_kind, style
from fedrepro.exhibits.pictures import agreement, gaps
from tests.unit.exhibits import test_gaps, test_kinds, test_places
from tests.unit.exhibits.test_places import COUNTS, LINE, PLANE, SIMPLEX

pytestmark = pytest.mark.drawn

A, B = "mlp-a100", "mlp-a01"
ONE = {"evidence": {("fedavg", A): [82.0]}, "seeds": [8]}  # one row, one column, one seed


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were drawn, in the place of files."""
    found: list[Any] = []
    monkeypatch.setattr(style, "save", lambda figure, path: found.append(figure))
    return found


def panels(kind: str, of: Exhibit, figures: list[Any]) -> list[Axes]:
    """The axes of each panel."""
    make_kind(kind).draw(of.figure, Path("unused.svg"))
    return [axes for axes in figures[-1].axes if axes.get_title(loc="left")]


def field(axes: Axes) -> np.ndarray:
    """The values of a heat map; the first line is on top."""
    assert axes.yaxis_inverted()
    return np.ma.filled(axes.collections[0].get_array().astype(float), np.nan)


def texts(axes: Axes) -> dict[tuple[float, float], str]:
    """(x, y) -> the number that stands there."""
    return {text.get_position(): text.get_text() for text in axes.texts}


def lines(axes: Axes) -> Iterator[tuple[list[float], list[float]]]:
    for line in axes.lines:
        yield list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))


def at_places(found: dict[tuple[float, float], float]) -> Any:
    return lambda _, at: test_places.at_places(at, found)


def test_a_matrix_has_the_sender_down_and_the_receiver_across(figures: list[Any]) -> None:
    """From client 0 to client 2 the value is 0.7. It stands in line 0, column 2."""
    of = test_places.made("matrix", "class_counts", at_places({(0.0, 2.0): 0.7, (2.0, 0.0): 0.1}), COUNTS, **ONE)
    (axes,) = panels("matrix", of, figures)
    found = field(axes)
    assert (found[0, 2], found[2, 0]) == (0.7, 0.1)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("client x", "client y")


def test_a_matrix_of_a_diagonal_alone_is_empty(figures: list[Any]) -> None:
    """A cohort of one client has no other field."""
    of = test_places.made("matrix", "class_counts", at_places({(0.0, 0.0): 1.0}), COUNTS, **ONE)
    (axes,) = panels("matrix", of, figures)
    assert np.isnan(field(axes)).all()


def test_counts_stand_in_their_fields(figures: list[Any]) -> None:
    """Client 2 has 31 samples of class 1: line 2, column 1."""
    of = test_places.made("counts", "class_counts", at_places({(0.0, 0.0): 17.0, (2.0, 1.0): 31.0}), COUNTS, **ONE)
    (axes,) = panels("counts", of, figures)
    assert field(axes)[2, 1] == 31
    assert texts(axes) == {(0.5, 0.5): "17", (1.5, 2.5): "31"}
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("client", "class")


def test_a_heat_map_has_its_numbers_in_their_fields(figures: list[Any]) -> None:
    """Rows go down, columns across. FedLAW, in the second row, has no run in the other column."""
    of = test_kinds.made("heat_map")
    (axes,) = panels("heat_map", of, figures)
    rows, columns = [row.key for row in of.figure.rows], [column.key for column in of.figure.columns]
    places = {("fedavg", A): "84.00", ("fedlaw", A): "85.00", ("fedavg", B): "72.00", ("fedlaw", B): "–"}
    expected = {(columns.index(c) + 0.5, rows.index(r) + 0.5): text for (r, c), text in places.items()}
    assert texts(axes) == expected
    assert field(axes)[rows.index("fedlaw"), columns.index(A)] == 85


def test_contours_and_marks_share_their_axes(figures: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bowl is lowest at x = 9, y = 0, and so is the field beneath the marks."""
    drawn: list[tuple[Any, ...]] = []
    contourf = Axes.contourf
    monkeypatch.setattr(Axes, "contourf", lambda axes, *values, **how: drawn.append(values) or contourf(axes, *values, **how))
    of = test_places.made("plane", "plane_loss", test_places.surface, PLANE, **ONE)
    (axes,) = panels("plane", of, figures)
    xs, ys, values = drawn[0][:3]
    row, column = np.unravel_index(values.argmin(), values.shape)
    assert (xs[column], ys[row]) == (9, 0)
    assert ([0.5], [0.5]) in lines(axes)  # the average's mark


def test_corners_of_a_simplex(figures: list[Any]) -> None:
    """All weight on the first model is the origin, on the second (1, 0), on the third the top."""
    of = test_places.made("simplex", "simplex_loss", test_places.triangle, SIMPLEX, **ONE)
    (axes,) = panels("simplex", of, figures)
    assert {text.get_text(): tuple(np.round(text.xy, 2)) for text in axes.texts} == {  # type: ignore[attr-defined]
        "first": (0, 0),
        "second": (1, 0),
        "third": (0.5, 0.87),
    }


def test_the_lowest_point_of_a_line_is_marked(figures: list[Any]) -> None:
    """The parabola of seed 8 is lowest at x = 1, with 4.8."""
    of = test_places.made("line", "line_loss", test_places.curve, LINE, **ONE)
    (axes,) = panels("line", of, figures)
    assert [*lines(axes)] == [([-1, 0, 1, 2], pytest.approx([8.8, 5.8, 4.8, 5.8])), ([1], [pytest.approx(4.8)])]


def test_points_lie_where_their_axes_say(figures: list[Any]) -> None:
    """FedLAW has a gamma of 0.65 in the mean of its last two rounds, and an accuracy of 85."""
    of = test_kinds.made("scatter(x=gamma)")
    axes = next(axes for axes in panels("scatter(x=gamma)", of, figures) if axes.lines)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("gamma", "test accuracy (%)")
    (point,) = (one for one in of.figure.series if one.row == "fedlaw")
    assert ([point.x[0]], [85.0]) in lines(axes)
    assert 0 < point.x[0] < 1


def test_bands_reach_to_both_sides(figures: list[Any]) -> None:
    """FedAvg has 82, 84 and 86: the deviation is 2 to both sides of the mean, and the range the same."""
    (axes, *_) = panels("bars", test_kinds.made("bars"), figures)
    assert any(ys == [82.0, 86.0] for _, ys in lines(axes))
    (axes, *_) = panels("curves", test_kinds.made("curves"), figures)
    outlines = [band.get_paths()[0].vertices for band in axes.collections]
    rounds = [{y for x, y in outline if x == 5} for outline in outlines]
    assert {82.5, 86.5} in rounds


def test_columns_together_stand_on_each_other(figures: list[Any]) -> None:
    """Each histogram begins where the one below it ends. The last one ends at the sum of all counts."""
    of = test_kinds.made("histogram(bins=3,together=true)", {**test_kinds.BASE, ("fedlaw", B): [75.0, 76.0, 77.0]})
    make_kind("histogram(bins=3,together=true)").draw(of.figure, Path("unused.svg"))
    (axes,) = figures[-1].axes
    filled = [patch.get_data() for patch in axes.patches if isinstance(patch, StepPatch) and patch.get_fill()]
    assert len(filled) == 4
    below = np.zeros(3)
    for data in filled:
        assert np.array_equal(data.baseline, below)
        below = data.values
    assert np.array_equal(below, np.sum([bins.y for bins in of.figure.series], axis=0))


def test_printed_across_and_measured_up(figures: list[Any]) -> None:
    """FedAvg is printed 89.29 and measured 88; the axes say which is which."""
    plan = make_plan("full")
    cell = exhibit(plan, make_evidence(plan, {("fedavg", A): [87.5, 88.0, 88.5]})).cell("fedavg", A)
    agreement.draw([cell], Path("unused.svg"))
    (axes,) = figures[-1].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("printed (%)", "measured (%)")
    assert ([cell.printed], [cell.mean]) in lines(axes)
    assert cell.printed != cell.mean


def test_an_interval_of_a_gap_reaches_from_end_to_end(figures: list[Any]) -> None:
    (gap,) = test_gaps.gaps_of(test_gaps.FOUND)
    gaps.draw(gap, Path("unused.svg"))
    (axes,) = figures[-1].axes
    place, setting = next((place, one) for place, one in enumerate(gap.settings) if one.low is not None)
    assert ([setting.low, setting.high], [place, place]) in lines(axes)
    assert setting.low < setting.ours < setting.high
