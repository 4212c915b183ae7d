"""The JSON schema and the documentation say what the types say; and types read JSON strictly."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from fedrepro.reports.model.codec import Mismatch, decode, encode
from small_table import make_plan, typed

from fedrepro.errors import UserError
from fedrepro.files import write_json
from fedrepro.reports import schema
from fedrepro.reports.analysis.table import table
from fedrepro.reports.load import load_plan, load_table

ROOT = Path(__file__).parents[3]
AGAIN = "; write them anew with `python -m fedrepro.reports.schema`"


@pytest.mark.parametrize("path", schema.SCHEMAS, ids=lambda path: path.name)
def test_the_schema_is_that_of_the_types(path: Path) -> None:
    assert path.read_text() == schema.json_schema(path), f"{path} is stale{AGAIN}"


def test_the_documentation_is_that_of_the_types() -> None:
    """Every marked table; a table that loses a row is made whole again."""
    text = (ROOT / schema.DOCUMENT).read_text()
    assert text.count("<!-- model: ") > 8
    assert text == schema.tables(text), f"{schema.DOCUMENT} is stale{AGAIN}"
    row = next(line for line in text.splitlines() if line.startswith("| `per_seed`"))
    assert schema.tables(text.replace(f"{row}\n", "")) == text


@dataclass(frozen=True)
class Inner:
    """For a test."""

    name: str = field(metadata={"key": "as"})
    number: float | None = None


@dataclass(frozen=True)
class Outer:
    """For a test."""

    inner: tuple[Inner, ...]
    by_seed: dict[int, float]
    kind: Literal["a", "b"]
    extra: dict[str, Any] = field(default_factory=dict)


def test_types_come_back_from_json() -> None:
    """Names of keys, whole numbers as keys, and defaults; what a type does not name is left out."""
    content = {"inner": [{"as": "x", "number": 1}, {"as": "y"}], "by_seed": {"8": 1.5}, "kind": "a", "extra": {"any": [1]}}
    made = decode(Outer, content | {"unknown": 1})
    assert made == Outer((Inner("x", 1), Inner("y")), {8: 1.5}, "a", {"any": [1]})
    assert decode(Outer, encode(made)) == made
    assert encode(made)["inner"][1] == {"as": "y", "number": None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "c"}, "kind = 'c' where one of a, b belongs"),
        ({"inner": [{}]}, "key 'as' is missing in inner"),
        ({"inner": [{"as": 1}]}, "as = 1 where a text belongs"),
        ({"inner": [{"as": "x", "number": "1"}]}, "number = '1' where a number belongs"),
        ({"by_seed": []}, "by_seed = [] where a mapping belongs"),
        ({"by_seed": {"8": True}}, "by_seed.8 = True where a number belongs"),
    ],
)
def test_what_is_not_of_its_type_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Mismatch) as caught:
        decode(Outer, {"inner": [], "by_seed": {}, "kind": "a"} | change)
    assert str(caught.value) == said


def test_a_damaged_document_is_one_line(tmp_path: Path) -> None:
    """A plan without a key, a report with a status that does not exist: file, key, value and what to do."""
    plan = make_plan()
    path = write_json(tmp_path / "plan.json", {key: value for key, value in plan.items() if key != "rows"})
    with pytest.raises(UserError, match=r"plan\.json: key 'rows' is missing; delete it and run the same command again"):
        load_plan(path)
    report = encode(table(*typed(plan)))
    assert encode(load_table(write_json(tmp_path / "table.json", report))) == report
    report["cells"][0]["status"] = "fine"
    with pytest.raises(UserError, match=r"table\.json: status = 'fine' where one of reproduced, .* belongs; delete it"):
        load_table(write_json(tmp_path / "table.json", report))
