"""A table of an existing paper: two methods in one setting on embedded data, to be edited."""

import re
from pathlib import Path

from fedrepro.config.places import table_path
from fedrepro.errors import UserError
from fedrepro.skeletons import Skeleton, fill

TABLE = """
title: "TITLE"
source: Own table
metric: {name: test_accuracy, unit: percent, description: top-1 accuracy of the global model on the test set}
base:
  dataset: {value: digits, source: "our choice: embedded data"}
  model: {value: mlp, source: "our choice"}
rows:
  - {key: fedavg, label: FedAvg, method: fedavg}
  - {key: fedprox, label: FedProx, method: fedprox}
columns:
  - key: alpha0.1
    group: Digits
    label: α = 0.1
    demo: true
    setting: {partition: dirichlet_per_class(alpha=0.1)}
"""


def files(root: Path, target: str) -> Skeleton:
    """papers/<paper>/tables/<table>.yaml, for `target`, paper/table7. UserError for a paper that is not there."""
    from fedrepro.registry import unknown

    paper, slash, name = target.partition("/")
    if not slash:
        raise UserError(f"new table {target}: write paper/table, for example fedlaw/table30")
    if not re.fullmatch(r"table\d+(-[a-z0-9]+)*", name):
        raise UserError(f"new table {name}: take table and a number, table30 or table3-mine")
    papers = sorted(path.parent.name for path in root.glob("papers/*/paper.yaml"))
    if paper not in papers:
        raise UserError(f"new table {target}: {unknown('paper', paper, papers)}; `fedrepro new paper {paper}` begins one")
    path = table_path(Path(), paper, name)
    steps = (
        f"edit {path}, then: fedrepro run {target} --dry-run",
        f"snakemake --cores 2 reports/demo/{target}.md",
        "docs/adding-a-paper.md explains rows, columns, printed numbers, and `fedrepro list` what can be named",
    )
    return Skeleton({path: fill(TABLE)}, steps)
