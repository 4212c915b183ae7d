"""One line in a table's file adds a network or a partition."""

from pathlib import Path

import pytest
from real_papers import enter

from fedrepro.config.grid import plan
from fedrepro.config.project import load_project


@pytest.mark.parametrize(
    ("table", "line", "setting"),
    [
        ("table5", "  - {key: resnet8, label: ResNet8, setting: {model: resnet8}}", ("model", "resnet8")),
        (
            "table7",
            "  - {key: shards, label: two shards, setting: {partition: shards(per_client=2)}}",
            ("partition", "shards(per_client=2, distinct_labels=false)"),
        ),
    ],
)
def test_a_line_adds_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, line: str, setting: tuple[str, str]
) -> None:
    """The new column has a run in every row, and the other runs stay the same."""
    root = enter(tmp_path, monkeypatch, "seeds: [8]\n")
    before = plan(load_project(root).as_published("full"), "fedlaw", table, "full")
    path = root / f"papers/fedlaw/tables/{table}.yaml"
    path.write_text(f"{path.read_text()}{line}\n")
    after = plan(load_project(root).as_published("full"), "fedlaw", table, "full")
    key = after.columns[-1].key
    new = [after.runs[place.run_id or ""] for place in after.planned if place.column == key]
    assert {run.config[setting[0]] for run in new} == {setting[1]}
    assert len(new) == len({run.run_id for run in new}) == len(before.rows)
    assert before.runs.items() <= after.runs.items()
