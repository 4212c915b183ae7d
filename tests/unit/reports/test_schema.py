"""The JSON schema and the documentation say what the types say; and types read JSON strictly."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from small_table import make_plan
from small_table import typed as typed_table

from fedrepro.config.plan import load_plan
from fedrepro.errors import UserError
from fedrepro.files import write_json
from fedrepro.reports import schema
from fedrepro.reports.analysis.table import table
from fedrepro.reports.load import load_table
from fedrepro.typed import plain, typed

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

    name: str
    number: float | None = None


@dataclass(frozen=True)
class Outer:
    """For a test."""

    inner: tuple[Inner, ...]
    by_seed: dict[int, float]
    kind: Literal["a", "b"]
    extra: dict[str, Any] = field(default_factory=dict)


def test_types_come_back_from_json() -> None:
    """Lists as tuples, whole numbers as keys, and defaults; what a type does not name is left out."""
    content = {"inner": [{"name": "x", "number": 1}, {"name": "y"}], "by_seed": {"8": 1.5}, "kind": "a", "extra": {"any": [1]}}
    made = typed(Outer, content | {"unknown": 1}, "a.json")
    assert made == Outer((Inner("x", 1), Inner("y")), {8: 1.5}, "a", {"any": [1]})
    assert typed(Outer, plain(made), "a.json") == made
    assert plain(made)["inner"][1] == {"name": "y", "number": None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "c"}, "kind = 'c': input should be 'a' or 'b'"),
        ({"inner": [{}]}, "key 'inner.0.name' is missing"),
        ({"inner": [{"name": 1}]}, "inner.0.name = 1: input should be a valid string"),
        ({"inner": [{"name": "x", "number": "1"}]}, "inner.0.number = '1': input should be a valid number"),
        ({"by_seed": []}, "by_seed = []: input should be an object"),
        ({"by_seed": {"8": True}}, "by_seed.8 = True: input should be a valid number"),
    ],
)
def test_what_is_not_of_its_type_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as caught:
        typed(Outer, {"inner": [], "by_seed": {}, "kind": "a"} | change, "a.json", "mend it")
    assert str(caught.value) == f"a.json: {said}; mend it"


def test_a_damaged_document_is_one_line(tmp_path: Path) -> None:
    """A plan without a key, a report with a status that does not exist: file, key, value and what to do."""
    plan = make_plan()
    path = write_json(tmp_path / "plan.json", {key: value for key, value in plan.items() if key != "rows"})
    with pytest.raises(UserError, match=r"plan\.json: key 'rows' is missing; delete it and run the same command again"):
        load_plan(path)
    report = plain(table(*typed_table(plan)))
    assert plain(load_table(write_json(tmp_path / "table.json", report))) == report
    report["cells"][0]["status"] = "fine"
    with pytest.raises(UserError, match=r"table\.json: cells\.0\.status = 'fine': input should be 'reproduced', .*; delete it"):
        load_table(write_json(tmp_path / "table.json", report))
