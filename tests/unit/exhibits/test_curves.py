"""Lines of learning curves: the rounds that were evaluated, until a seed diverges."""

import pytest
from small_table import exhibit, make_evidence, make_plan

from fedrepro.exhibits.pictures.learning import curves


@pytest.mark.parametrize(
    ("series", "rounds"),
    [
        ([[10.0, 20.0, 30.0, 40.0]] * 2, (0, 1, 2, 3)),
        ([[None, 20.0, None, 40.0]] * 2, (1, 3)),  # evaluated after every second round
        ([[10.0, 20.0, None, None], [10.0, 20.0, 30.0, 40.0]], (0, 1)),  # one seed diverged
        ([[10.0, 20.0, None, None]] * 2, (0, 1)),  # both did
    ],
)
def test_a_line_has_the_rounds_that_were_evaluated(series: list[list[float | None]], rounds: tuple[int, ...]) -> None:
    plan = make_plan("demo", seeds=[8, 9])
    place = (plan["cells"][0]["row"], plan["cells"][0]["column"])
    evidence = make_evidence(plan, {place: [80.0, 80.0]}, {place: {"round": [[0, 1, 2, 3]] * 2, "test_accuracy": series}})
    table = exhibit(plan, evidence)
    (line,) = curves(table.plan, table.evidence, table.columns[place[1]])
    assert line.x == tuple(number + 1 for number in rounds)  # readers count from 1
