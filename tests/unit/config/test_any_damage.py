"""A wrong value anywhere in a paper's files gives a plan, or one line that says what is wrong. It never gives a traceback."""

import copy
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import yaml
from small_papers import Files

from fedrepro.config import project
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.errors import UserError

WRONG: list[Any] = [None, "", [], {}, "x", -1, 1e300, float("nan"), True, [None], {"a": 1}, "f(", {1: 2}, 3.7, {"value": None}]
EACH = 3  # wrong values tried at a place; the next place takes the next ones
FIGURE = {"title": "Curves", "source": "Figure 3", "kind": "curves", "of": "table1", "rows": ["fedavg"], "columns": ["mnist"]}
PLACES = [("table1", "demo"), ("table1", "short"), ("figure3", "short")]


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every (mapping or list, key or position) of `content`."""
    for key in list(content) if isinstance(content, dict) else range(len(content)):
        yield content, key
        if isinstance(content[key], dict | list):
            yield from places(content[key])


def complaints(files: Files, name: str, content: dict[str, Any]) -> Iterator[str]:
    """Plans the paper with each wrong value in `content`, which is written to the file `name`. Yields what is no single
    line."""
    file, wrong = files.root / "papers" / name, cycle(WRONG)
    for place, key in places(content):
        good = place[key]
        for value in [copy.deepcopy(next(wrong)) for _ in range(EACH)]:
            place[key] = value
            file.write_text(yaml.safe_dump(content))
            project._read_cached.cache_clear()
            try:
                loaded = load_project(files.root, {"scale": "short"})
                for exhibit, scale in PLACES:
                    plan(loaded, "some", exhibit, scale)
            except UserError as error:
                if "\n" in str(error):
                    yield f"{name}: {key} = {value!r}: {error}"
            except Exception as error:
                yield f"{name}: {key} = {value!r}: {error!r}"
        place[key] = good
    file.write_text(yaml.safe_dump(content))


def test_no_wrong_value_gives_a_traceback(files: Files) -> None:
    files.table["budget"] = {"short": {"note": "A part.", "rows": ["fedavg", "fedlaw"], "settings": {"rounds": 5}}}
    files.table["rows"][1]["tune"] = {"fedprox.mu": [0.1, 0.01], "rounds": 3}
    files.figures["figure3"] = copy.deepcopy(FIGURE)
    files.plan({"scale": "short"}, "figure3")
    contents = {"some/paper.yaml": files.paper, "scales.yaml": files.scales}
    contents |= {"some/tables/table1.yaml": files.table, "some/figures/figure3.yaml": files.figures["figure3"]}
    assert [line for name, content in contents.items() for line in complaints(files, name, content)] == []
