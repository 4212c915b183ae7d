"""Imports between the package's modules: no circle, and the workflow does not import the command line."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (SOURCE / "fedrepro").rglob("*.py")
}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below `node`, except imports for the type checker only."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from statements(child)


def imported(name: str) -> set[str]:
    """The modules of this package that a module imports, also inside functions."""
    found = set()
    for node in statements(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fedrepro"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {one if one in MODULES else str(node.module) for one in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
    return found - {name}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """Module -> the modules that it imports."""
    return {name: imported(name) for name in MODULES}


def test_no_module_imports_itself_in_a_circle(graph: dict[str, set[str]]) -> None:
    """Every module can be loaded after the modules it needs. A circle raises an error that names it."""
    order = list(TopologicalSorter(graph).static_order())
    assert len(order) == len(MODULES) > 100


def test_the_workflow_does_not_import_the_command_line(graph: dict[str, set[str]]) -> None:
    """The command line may import the workflow, but not the other way round."""
    found = {name: wanted for name, wanted in graph.items() if name.startswith("fedrepro.workflow")}
    assert found
    assert not [(name, one) for name, wanted in found.items() for one in wanted if one.startswith("fedrepro.cli")]


CALLERS = {"cli", "api", "skeletons"}  # which import what they call


def test_subpackages_import_what_the_docs_say(graph: dict[str, set[str]]) -> None:
    """The table of docs/architecture.md has a row for each subpackage."""
    folders = {path.name for path in (SOURCE / "fedrepro").iterdir() if (path / "__init__.py").exists()} - CALLERS
    found = {name: set() for name in folders}
    for module, wanted in graph.items():
        (room, *others) = ([*one.split("."), ""][1] for one in (module, *wanted))
        if room in folders:
            found[room] |= {other for other in others if other in folders} - {room}
    table = (SOURCE.parent / "docs/architecture.md").read_text().partition("## What each subpackage may import")[2]
    rows = [line.split(" | ") for line in table.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    told = {name: {*re.findall(r"`(\w+)`", row[2])} for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert {name: wanted for name, wanted in told.items() if name not in CALLERS} == found


def test_writers_know_blocks_and_nothing_of_exhibits(graph: dict[str, set[str]]) -> None:
    """A new section is therefore one file in `exhibits.sections`."""
    known = ("fedrepro.exhibits.write", "fedrepro.pictures")
    found = {(name, one) for name, wanted in graph.items() if name.startswith("fedrepro.exhibits.write") for one in wanted}
    assert found
    assert {one for _, one in found if not one.startswith(known)} == set()
