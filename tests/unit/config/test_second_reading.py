"""A second reading of tuned cells: the candidate that another metric of the same trials would choose, and what the pages say of
it."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from small_papers import FULL, Files
from trials import FOLDER, report, tried, write_trials

from fedrepro.config.words import Words
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.pictures import candidates
from fedrepro.exhibits.render import render, render_page
from fedrepro.files import read_json, write_json
from fedrepro.store import Store

RATES = {"client_lr": [0.1, 0.02, 0.5], "seeds": [8]}


def tuned(files: Files, also: Any = "proxy_accuracy", **changes: Any) -> dict[str, Any]:
    """The plan with FedProx tuned and a second reading."""
    files.table["rows"][1]["tune"] = RATES | {"also": also} | changes
    files.table["base"]["evaluate_proxy"] = {"value": True, "source": "ours"}
    return files.plan(FULL)


@pytest.mark.parametrize(
    ("values", "again", "chosen", "other", "worth"),
    [
        ([50.0, 60.0, 55.5], [51.0, 58.0, 52.0], 1, 1, 0.0),
        ([50.0, 60.0, 55.5], [51.0, 52.0, 58.0], 1, 2, 4.5),
        ([50.0, 60.0, 55.5], [51.0, 51.0, 50.0], 1, 0, 10.0),  # a tie: the first one
        ([50.0, None, 55.5], [57.0, None, 51.0], 2, 0, 5.5),  # a diverged candidate is never chosen
        ([60.0, 60.0, 55.5], [51.0, 52.0, 50.0], 0, 1, 0.0),  # the first reading's tie costs nothing
    ],
)
def test_the_second_reading_says_what_it_would_choose(
    files: Files, tmp_path: Path, values: list, again: list, chosen: int, other: int, worth: float
) -> None:
    """The cell still shows the first reading's choice."""
    made = tuned(files)
    shown, found = report(made, tmp_path, values, proxy_accuracy=again)
    assert shown["run_id"] == tried(made)[chosen]["run_id"]
    assert [one["chosen"] for one in found] == [place == chosen for place in range(3)]
    assert [one["second_chosen"] for one in found] == [place == other for place in range(3)]
    assert [one["second_mean"] for one in found] == again
    assert {(one["second_metric"], one["worth"]) for one in found} == {("proxy_accuracy", worth)}


@pytest.mark.parametrize(("values", "again"), [([50.0, 60.0], [51.0, 52.0]), ([None] * 3, [None] * 3)])
def test_while_nothing_is_chosen_it_chooses_nothing(files: Files, tmp_path: Path, values: list, again: list) -> None:
    """A trial is missing, or all diverged."""
    _, found = report(tuned(files), tmp_path, values, proxy_accuracy=again)
    assert {(one["second_chosen"], one["worth"]) for one in found} == {(False, None)}


def test_a_loss_is_better_when_it_is_lower(files: Files, tmp_path: Path) -> None:
    """`also` can have its own direction and unit."""
    made = tuned(files, also={"name": "proxy_loss", "better": "lower", "unit": "loss"})
    _, found = report(made, tmp_path, [50.0, 60.0, 55.5], proxy_loss=[0.9, 0.4, 0.3])
    assert [one["second_chosen"] for one in found] == [False, False, True]
    assert {(one["second_metric"], one["worth"]) for one in found} == {("proxy_loss", 4.5)}


def test_it_is_read_in_the_same_way(files: Files, tmp_path: Path) -> None:
    """The second reading takes the best round, as the row says, and not the last."""
    files.table["rows"][1]["read"] = "best()"
    made = tuned(files)
    write_trials(made, tmp_path, [50.0, 60.0, 55.5], proxy_accuracy=[1.0, 2.0, 3.0])
    path = tmp_path / FOLDER / "evidence" / tried(made)[0]["trial"]["run_id"] / "seed8.json"
    receipt = read_json(path)
    receipt["curves"]["proxy_accuracy"] = [90.0, 1.0]
    write_json(path, seal(receipt))
    write_json(tmp_path / "plan.json", made)
    render(tmp_path / "plan.json", Store((tmp_path / FOLDER / "evidence",)), tmp_path / "table1")
    found = read_json(tmp_path / "table1.json")["candidates"]
    assert [one["second_mean"] for one in found if one["column"] == "mnist"] == [90.0, 2.0, 3.0]


def test_without_an_evaluation_on_the_proxy_set_it_is_one_line(files: Files) -> None:
    files.table["rows"][1]["tune"] = RATES | {"also": "proxy_accuracy"}
    with pytest.raises(UserError, match=r"fedprox, mnist: tune: also = 'proxy_accuracy': evaluate_proxy is false"):
        files.plan(FULL)


def test_a_metric_that_trials_do_not_record_is_one_line(files: Files, tmp_path: Path) -> None:
    also = {"name": "update_size", "better": "lower", "unit": "norm"}
    with pytest.raises(UserError, match=r"curves have no 'update_size'.*correct `metric` in the file of the table"):
        report(tuned(files, also=also), tmp_path, [50.0, 60.0, 55.5])


def test_the_same_trials_serve_both_readings(files: Files) -> None:
    """`also` adds no run and changes none."""
    once, twice = tuned(files, also=None), tuned(files)
    assert once["runs"] == twice["runs"]
    assert once["seeds_by_run"] == twice["seeds_by_run"]


@pytest.mark.drawn
def test_pages_say_what_the_choice_is_worth(files: Files, tmp_path: Path) -> None:
    """The table's page and the paper's page state what the choice gains in the mean: 4.5 points in one cell and 0 in the other,
    2.25 on average."""
    made = tuned(files)
    write_trials(made, tmp_path, [50.0, 60.0, 55.5], proxy_accuracy=[51.0, 52.0, 58.0])
    write_trials(made, tmp_path, [50.0, 60.0, 55.5], ("fedprox", "fashion_mnist"), proxy_accuracy=[51.0, 53.0, 52.0])
    folder = tmp_path / FOLDER
    write_json(tmp_path / "plan.json", made)
    render(tmp_path / "plan.json", Store((folder / "evidence",)), folder / "table1")
    render_page([tmp_path / "plan.json"], Store((folder / "evidence",)), folder, Words())
    said = (
        "In the trials, choosing by test accuracy instead of proxy accuracy raises test accuracy by 2.25 points in the mean "
        "over 2 cells, by 4.50 at most. Both choose the same candidate in 1 of them."
    )
    for name in ("table1", "index"):
        text = (folder / f"{name}.md").read_text()
        assert said in text
        assert "a method that trains on it is not measured on held-out data" in text.lower()
        assert "candidates/table1.svg" in text
        assert len((folder / f"{name}.html").read_text()) < 300_000
    rows = [
        line for line in (folder / "table1.md").read_text().splitlines() if line.startswith("| FedProx | g · mnist | client_lr")
    ]
    assert rows[1].split("|")[6:9] == [" chosen, 4.50 ahead of the second ", " 52.00 ", "  "]
    assert rows[2].split("|")[7:9] == [" **58.00** ", " this one, 4.50 behind the one shown "]


def test_a_choice_lowers_what_is_better_lower(files: Files, tmp_path: Path) -> None:
    """The choice gives a loss of 0.4 instead of 0.9."""
    files.table["metric"] = {"name": "test_loss", "description": "loss", "unit": "loss", "better": "lower"}
    files.numbers = files.numbers.replace("percent", "loss")
    made = tuned(files, also={"name": "proxy_accuracy", "better": "higher", "unit": "percent"})
    write_trials(made, tmp_path, [50.0, 60.0, 55.5], test_loss=[0.9, 0.4, 0.5], proxy_accuracy=[58.0, 51.0, 52.0])
    folder = tmp_path / FOLDER
    write_json(tmp_path / "plan.json", made)
    render(tmp_path / "plan.json", Store((folder / "evidence",)), folder / "table1")
    text = (folder / "table1.md").read_text()
    assert "choosing by test loss instead of proxy accuracy lowers test loss by 0.500 in the mean over 1 cell" in text
    assert "a cross one that diverged." in text


def test_a_cross_may_be_a_target_never_reached(files: Files, tmp_path: Path) -> None:
    """If the cells read rounds to a target, the legend of the picture says so."""
    files.table["metric"] = {"name": "test_accuracy", "description": "rounds", "unit": "rounds", "better": "lower"}
    files.numbers = files.numbers.replace("percent", "rounds")
    for column in files.table["columns"]:
        column["read"] = "first_reaching(55)"
    report(tuned(files), tmp_path, [50.0, 60.0, 55.5], proxy_accuracy=[1.0, 2.0, 3.0])
    assert (
        "a cross one that has no value: it diverged, or never reached the target."
        in (tmp_path / FOLDER / "table1.md").read_text()
    )


@pytest.mark.drawn
def test_the_picture_has_equal_bytes_and_goes_when_there_is_nothing(files: Files, tmp_path: Path) -> None:
    made = tuned(files)
    report(made, tmp_path, [50.0, 60.0, None], proxy_accuracy=[51.0, 52.0, None])
    picture = tmp_path / FOLDER / "figures/candidates/table1.svg"
    first = picture.read_bytes()
    for text in (b"client_lr", b"0.02", b"test accuracy (%)", b"[full"):
        assert text in first
    report(made, tmp_path, [50.0, 60.0, None], proxy_accuracy=[51.0, 52.0, None])
    assert picture.read_bytes() == first
    report(made, tmp_path, [50.0, 60.0, None], proxy_accuracy=[51.0, 53.0, None])
    assert picture.read_bytes() != first
    report(made, tmp_path, [None] * 3, proxy_accuracy=[None] * 3)
    assert not picture.exists()


@pytest.mark.parametrize(
    ("values", "rings", "crosses"),
    [
        ([50.0, 60.0, 55.5], [(0.02, 60.0)], []),
        ([50.0, None, 55.5], [(0.5, 55.5)], [0.02]),
        ([50.0, 60.0], [], []),  # the third has not run yet: nothing is chosen, and no cross
    ],
)
def test_a_ring_for_the_chosen_one_and_a_cross_for_one_that_diverged(
    values: list, rings: list, crosses: list, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, save = list[Any](), style.save
    monkeypatch.setattr(style, "save", lambda figure, path: figures.append(figure) or save(figure, path))
    report(tuned(files, also=None), tmp_path, values)
    lines = [
        (line.get_marker(), line.get_markersize(), [*line.get_xdata()], [*line.get_ydata()])
        for line in figures[0].axes[0].lines
    ]
    assert [pair for _, size, xs, ys in lines if size == 9 for pair in zip(xs, ys, strict=True)] == rings
    assert [x for marker, _, xs, _ in lines if marker == "x" for x in xs] == crosses


@pytest.mark.parametrize(
    ("values", "scale", "places"),
    [
        ([0.1, 0.01], "log", {"0.1": 0.1, "0.01": 0.01}),
        ([0, 5], "linear", {"0": 0.0, "5": 5.0}),
        (["size", "uniform"], "linear", {"size": 0, "uniform": 1}),
        ([True, False], "linear", {"True": 0, "False": 1}),
    ],
)
def test_where_a_value_lies_in_the_picture(values: list, scale: str, places: dict[str, float]) -> None:
    axes = Figure().add_subplot()
    assert candidates._axis(axes, "fedprox.mu", values) == places
    assert (axes.get_xscale(), axes.get_xlabel()) == (scale, "mu")
