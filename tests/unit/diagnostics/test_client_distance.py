"""Distances by hand, and what every diagnostic promises."""

import dataclasses
import math
import re
from pathlib import Path

import pytest
import torch

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, canonical, checked, make
from fedrepro.engine import measurements
from fedrepro.engine.evaluate import evaluate
from fedrepro.engine.kept import Global, RoundModels
from fedrepro.engine.measurements import Value
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.tree import Layout, Tree
from tests import toy

ROOT = Path(__file__).parents[3]


def models(dtype: torch.dtype = torch.float64) -> RoundModels:
    """Two clients, two weights and a running statistic: w = (0, 0), w_1 = (3, 4), w_4 = (-1, 0), and (1, 2) after the round."""
    params, statistics = Layout.of({"w": (2,)}), Layout.of({"mean": (1,)})
    tree = lambda layout, *values: Tree(layout, torch.tensor(values, dtype=dtype))  # noqa: E731
    model = lambda *values: Global(tree(params, *values), tree(statistics, 100.0))  # noqa: E731
    clients = Tree(params, torch.tensor([[3.0, 4.0], [-1.0, 0.0]], dtype=dtype))
    own = Tree(statistics, torch.tensor([[7.0], [8.0]], dtype=dtype))
    return RoundModels(50, model(0.0, 0.0), model(1.0, 2.0), [1, 4], clients, own, torch.tensor([0.5, 0.5], dtype=dtype))


def measured(text: str, kept: RoundModels) -> list[Value]:
    made = make(text)
    return list(checked(made, kept, made.measure(kept, lambda: pytest.fail("needs no data"))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("client_distance(to=before)", [5.0, 1.0]),
        ("client_distance", [math.sqrt(8), math.sqrt(8)]),  # (2, 2) and (-2, -2)
        ("client_distance(relative=true)", [math.sqrt(8 / 5), math.sqrt(8 / 5)]),
    ],
)
def test_client_distance_by_hand(text: str, expected: list[float]) -> None:
    """The values are the cohort's mean, then each client by its id, then the largest. Statistics do not count."""
    mean, *each, largest = measured(text, models())
    assert largest == Value(50, "client_distance_max", pytest.approx(max(expected), rel=1e-15))
    assert mean == Value(50, "client_distance", pytest.approx(sum(expected) / 2, rel=1e-15))
    assert [(one.client, one.value) for one in each] == [(1, pytest.approx(expected[0])), (4, pytest.approx(expected[1]))]
    assert measured(text, models(torch.float32)) == measured(text, models()), "float32 models are measured in float64"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (None, "round 50: `measure` returns nothing; yield Value(kept.round, metric, number)"),
        ([1.5], "round 50: yields 1.5; yield Value"),
        ([Value(50, "client_distanc", 1.0)], "unknown metric 'client_distanc'; did you mean 'client_distance'?"),
        ([Value(0, "client_distance", 1.0)], "client_distance: round = 0: must be kept.round"),
        ([Value(50, "client_distance", 1.0, client=2)], "client_distance: client = 2: must be one of kept.clients"),
        ([Value(50, "client_distance", 1.0)] * 2, "client_distance = 1.0: is a second value at (None, None, None)"),
    ],
)
def test_what_a_diagnostic_gives_is_checked(values: list[Value] | None, words: str) -> None:
    """Invalid values raise an error before the file is written."""
    with pytest.raises(UserError) as error:
        list(checked(make("client_distance"), models(), values))
    assert str(error.value).startswith("client_distance: round 50")
    assert words in str(error.value)


@pytest.mark.parametrize("row", [0, 1])
def test_a_client_that_diverged_leaves_no_largest_distance(row: int) -> None:
    """The largest distance is NaN, whichever client diverged."""
    found = models()
    found.params.flat[row, 0] = float("nan")
    assert math.isnan(measured("client_distance", found)[-1].value or 0)


def test_nothing_to_measure() -> None:
    """Without clients there are no values. Relative to a model of norm 0 the value is not a number, which the file stores as
    null."""
    found = models()
    none = dataclasses.replace(found, clients=[], params=found.params.like(found.params.flat[:0]))
    assert measured("client_distance", none) == []
    assert math.isnan(measured("client_distance(to=before, relative=true)", found)[0].value or 0)


def test_every_diagnostic_says_what_it_measures() -> None:
    """Every diagnostic has distinct metric names and a docstring, and gives the same values twice if it needs no data."""
    for name in DIAGNOSTICS.names():
        cls = DIAGNOSTICS.get(name)
        assert cls.metrics
        assert len({*cls.metrics}) == len(cls.metrics)
        assert cls.__doc__
    assert canonical("client_distance") == canonical("client_distance(relative=false, to=after)", "client_distance")


def test_the_documented_diagnostic() -> None:
    """The code of docs/adding-a-diagnostic.md works as written on a toy round: it loads the data, and a client's value is its
    model's."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/adding-a-diagnostic.md").read_text(), flags=re.DOTALL)
    task = toy.make_task(rounds=2)
    method = compose("fedavg")
    cohort, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    received = Global(task.params, task.buffers)
    kept = RoundModels(1, received, received, cohort.clients, cohort.models, cohort.buffers, cohort.weights)
    try:
        exec(code, {"__name__": "documented"})
        mean, *each = make("client_accuracy").measure(kept, lambda: task)
    finally:
        DIAGNOSTICS._classes.pop("client_accuracy", None)
    params, buffers = (tree.like(tree.flat[1]) for tree in (kept.params, kept.buffers))
    expected = evaluate(task.model, params, buffers, task.evaluation)["test_accuracy"]
    assert each[1] == Value(1, "client_accuracy", expected, client=1)
    assert mean.value == pytest.approx(sum(one.value or 0 for one in each) / 4)
    assert {one.value for one in each} != {expected}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("client_distnce", "did you mean 'client_distance'"),
        ("client_distance(too=after)", "did you mean 'to'"),
        ("client_distance(to=later)", "must be after or before"),
        ("client_distance+client_distance", "must be one diagnostic"),
    ],
)
def test_mistakes_are_one_line(text: str, word: str) -> None:
    with pytest.raises(UserError, match=word):
        canonical(text)
    with pytest.raises(UserError, match="unknown metric 'hessian'"):
        canonical("client_distance", "hessian")


# --- the file ------------------------------------------------------------------------------------------------------------

CALL = canonical("client_distance")
ABOUT = {"run_id": "r", "seed": 8, "diagnostic": CALL, "models": {"1": "a", "3": "b"}, "reached": 4}
VALUES = [
    Value(1, "client_distance", 0.1),
    Value(1, "client_distance", 0.2, client=4),
    Value(3, "client_distance", float("nan")),
    Value(3, "loss", 0.5, x=-1.0, y=0.25),
]


def test_a_line_has_the_values_of_a_round_without_those_of_clients() -> None:
    values = [Value(1, "loss", 0.5, x=0.0), Value(1, "loss", 0.7, client=2, x=0.0), Value(1, "loss", 0.4, x=1.0, y=0.0)]
    assert measurements.Measurements(ABOUT, values).line("loss", 1) == {0.0: 0.5}


def test_a_file_comes_back_and_has_the_same_bytes(tmp_path: Path) -> None:
    """Values that are not finite become null. A curve has a value in the requested kept rounds and None in the others."""
    path = measurements.measurements_path(tmp_path, "r", CALL, 8)
    content = measurements.write(path, ABOUT, VALUES).read_bytes()
    found = measurements.read(path)
    assert found.values == [*VALUES[:2], VALUES[2]._replace(value=None), VALUES[3]]
    assert found.about == ABOUT
    assert found.within([1, 3]).curve("client_distance", 4) == [0.1, None, None, None]
    assert found.within([3]).curve("client_distance", 4) == [None] * 4
    assert [found.covers(rounds) for rounds in ([1, 3], [1, 2], [3, 5], [3, 4])] == [True, False, True, False]
    assert measurements.write(path, ABOUT, VALUES).read_bytes() == content


def test_a_file_of_another_run_or_with_other_numbers_is_refused(tmp_path: Path) -> None:
    """A file is refused if it was moved to another run's place, changed without its digest, or cut."""
    path = measurements.measurements_path(tmp_path, "r", CALL, 8)
    measurements.write(path, ABOUT, VALUES)
    other = measurements.measurements_path(tmp_path, "other", CALL, 8)
    other.parent.mkdir(parents=True)
    other.write_bytes(path.read_bytes())
    path.write_bytes(path.read_bytes()[:-20])
    for bad in (other, path):
        with pytest.raises(UserError, match="delete it and run the same command again"):
            measurements.read(bad)
