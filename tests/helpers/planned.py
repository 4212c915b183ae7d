"""What is decided before anything is computed: the plans of the project's tables, and the names of methods."""

from pathlib import Path

import fedrepro.methods  # noqa: F401
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.files import canonical_hash
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS
from tests.freeze import plain

ROOT = Path(__file__).parents[2]


def plans() -> dict[str, str]:
    """paper/table -> sha256 of its plan at scale demo."""
    project = load_project(ROOT)
    return {name: canonical_hash(plain(plan(project, *name.split("/"), "demo"))) for name in project.table_names()}


def methods() -> dict[str, list[str]]:
    """Every part -> what composing it alone gives: the canonical name, the label, what a run must provide."""
    made = {name: compose(name) for name in PARTS.names()}
    return {name: [str(method), method.label, *sorted(method.needs)] for name, method in made.items()}
