"""Names and looks of methods."""

from pathlib import Path

import pytest
from bare import python

from fedrepro import looks
from fedrepro.config.project import load_project

PROJECT = load_project(Path(__file__).parents[2])


@pytest.mark.parametrize("table", PROJECT.table_names())
def test_rows_of_a_table_look_different(table):
    """The lists cover every printed row. No two methods of a table have the same colour. Readings of a method differ in dash or
    shade."""
    rows = PROJECT.table(*table.split("/")).rows
    found = {row.label: looks.look_of(row.label) for row in rows}
    assert not [label for label, look in found.items() if look is None]
    assert len({look.colour for look in found.values()}) == len(found)
    labels = [f"{row.label}, {row.variant}" if row.variant else row.label for row in rows]
    drawn = looks.looks_of(labels)
    for label, row in zip(labels, rows, strict=True):
        assert drawn[label].colour in {looks._mixed(found[row.label].colour, end, share) for end, share in looks.SHADES}
    assert len(set(drawn.values())) == len(set(labels))


def test_a_method_has_one_look():
    """The look does not depend on a table's name for the method. Added parts change tone and dash."""
    assert looks.name_of("naive") == looks.name_of("no decay") == "FedAvg"
    assert (looks.name_of("server_ft"), looks.name_of("fedprox(mu=1)+gh")) == ("Server-FT", "FedProx + GH")
    assert looks.name_of("my method") == "my method"
    assert looks.look_of("elastic") == looks.look_of("FedAvg + elastic") != looks.look_of("FedAvg")
    assert looks.look_of("FedProx + GH").colour == looks.look_of("FedProx + IMA").colour != looks.look_of("FedProx").colour
    assert looks.look_of("my method") is None
    names = {"A  gh, alpha 1": "gh", "B  gh, alpha 2": "gh", "C  fedavg": "fedavg", "D  mine": "mine"}
    first, second, third, last = (looks.looks_of(names, names)[label] for label in names)
    assert (first.colour, third.colour) == (looks.look_of("FedAvg + GH").colour, looks.look_of("FedAvg").colour)
    assert (second.colour, second.dash != first.dash) == (first.colour, True)
    assert last.colour not in (first.colour, third.colour)


def test_what_no_list_has_takes_what_is_free():
    """A label without a fixed look gets a free one. While a look is free, the order of the rows does not change any look."""
    labels = ["FedAvg", *(f"mine {number}" for number in range(39))]
    found = looks.looks_of(labels)
    assert found == looks.looks_of(reversed(labels))
    assert len(set(found.values())) == len(labels)
    assert found["FedAvg"] == looks.look_of("FedAvg")
    assert len(looks.looks_of(f"mine {number}" for number in range(99))) == 99


def test_lines_without_dashes_differ_in_the_shade():
    """On pages FedDyn and a row that varies FedAvg are both green, and the dash distinguishes them."""
    labels = ["FedAvg with FedLAW's weights", "FedDyn", "FedAvg + GH", *(f"mine {number}" for number in range(20))]
    found = looks.colours_of(labels)
    assert len({*found.values()}) == len(labels)
    assert (found["FedDyn"], found["FedAvg + GH"]) == (looks.look_of("FedDyn").colour, looks.look_of("FedAvg + GH").colour)


def test_looks_cost_no_import():
    """Figures and MLflow both use looks."""
    code = "import sys, fedrepro.looks; print({'torch', 'mlflow', 'matplotlib'} & set(sys.modules))"
    assert python(code).strip() == "set()"
