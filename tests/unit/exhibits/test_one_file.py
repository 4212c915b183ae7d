"""A new section or kind of figure is one new file beside the others. Pages and plans find it."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from small_table import exhibit, make_evidence, make_plan, write_evidence

from fedrepro.exhibits import kinds, sections
from fedrepro.exhibits.kinds import KINDS, make_kind
from fedrepro.exhibits.records import figure_csv
from fedrepro.exhibits.render import render
from fedrepro.exhibits.sections.section import PAGES, section
from fedrepro.files import write_json
from fedrepro.store import Store

pytestmark = pytest.mark.drawn

VALUES = {("fedavg", "mlp-a100"): [82.0, 84.0, 86.0]}
SECTION = """
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

@section("table", at=35.5)
def seeds_counted(table):
    return [b.Section("Seeds counted", (b.Paragraph(f"{len(table.receipts)} seeds of {table.plan.table}"),))]
"""
KIND = """
from dataclasses import dataclass
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series

@KINDS.register("fields")
@dataclass(frozen=True)
class Fields(Kind):
    each: float = 2.0

    def drawn(self, plan, evidence):
        cells = [cell for cell in plan.planned if cell.run_id in evidence]
        return Drawing(plan, tuple(Series.of(cell, evidence[cell.run_id], y=(self.each,)) for cell in cells))

    def draw(self, figure, path):
        with style.drawing(path, 1) as (_, (axes,)):
            axes.set_title(f"{len(figure.series)} field, {self.each} each")
"""
Add = Callable[[ModuleType, str, str], None]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Add:
    """Writes a module and reloads the package, as if the file were in the package's folder. The test's end removes it."""
    monkeypatch.setattr(KINDS, "_classes", dict(KINDS._classes))
    for page, places in PAGES.items():
        monkeypatch.setitem(PAGES, page, dict(places))

    def add(package: ModuleType, name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        full = f"{package.__name__}.{name}"
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        monkeypatch.setattr(package, name, None, raising=False)
        monkeypatch.setitem(sys.modules, full, ModuleType(full))  # monkeypatch removes the module after the test
        del sys.modules[full]
        assert package.__spec__
        assert package.__spec__.loader
        package.__spec__.loader.exec_module(package)

    return add


def test_a_new_section_is_one_file(add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The section is at its place in both formats of the page."""
    monkeypatch.chdir(tmp_path)
    add(sections, "seeds_counted", SECTION)
    plan = make_plan()
    write_evidence(Path("evidence"), plan, VALUES)
    markdown, html, *_ = render(write_json(Path("plan.json"), plan), Store((Path("evidence"),)), Path("out/table3"))
    text = markdown.read_text()
    assert "## Seeds counted\n\n3 seeds of table3" in text
    assert text.index("## The table") < text.index("## Seeds counted") < text.index("## About the runs")
    assert "<h2>Seeds counted</h2>" in html.read_text()


def test_two_sections_at_one_place_are_refused() -> None:
    """The error names both modules. Loading a module twice is no second section."""
    make = PAGES["table"][10]
    assert section("table", at=10)(make) is make
    with pytest.raises(ValueError, match=rf"table: place 10 has {make.__module__} already; give {__name__} another one"):
        section("table", at=10)(lambda _: [])


def test_a_new_kind_is_one_file(add: Add, tmp_path: Path) -> None:
    """A plan can name the kind with its arguments. The CSV has its numbers, and its own picture is drawn."""
    add(kinds, "fields", KIND)
    plan = make_plan("demo", "figure3", kind="fields(each=3.0)", caption="")
    of = exhibit(plan, make_evidence(plan, VALUES))
    assert figure_csv(of).splitlines() == ["row,column,metric,value,seeds", "fedavg,mlp-a100,test_accuracy,3,8 9 10"]
    make_kind("fields(each=3.0)").draw(of.figure, tmp_path / "a.svg")
    assert "1 field, 3.0 each" in (tmp_path / "a.svg").read_text()
