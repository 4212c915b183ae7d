"""A paper: its protocol, a table without printed numbers yet, and a claim on it."""

from pathlib import Path

from fedrepro.skeletons import Skeleton, fill, require_folder, require_name
from fedrepro.skeletons.table import TABLE

_PAPER = """
name: $title
title: "TITLE"
authors: AUTHORS
venue: "VENUE"
url: https://arxiv.org/abs/...
printed_seeds: {value: null, source: "not stated"}

# Every setting with its source: "paper, section 4", "authors' code", or "our choice: why"; see `fedrepro list settings`.
protocol:
$protocol

methods:
  fedprox: {mu: {value: 0.01, source: "our choice: to be replaced by the paper's"}}
deviations:
  - {id: $short-D1, text: "Seeds 8, 9 and 10; the paper's are not known."}
known_gaps: ["The printed numbers are not transcribed yet."]
"""
_CLAIMS = """
# The paper's own words in `says`, letter by letter; null where no sentence makes the claim. Write claims before the runs.
- id: $short-1
  text: The proximal term helps where clients differ.
  says: null
  where: Table 1
  kind: difference
  table: table1
  pairs: {fedprox: fedavg}
  columns: [alpha0.1]
  side: ahead
"""


def files(root: Path, name: str) -> Skeleton:
    """papers/<name>/ with paper.yaml, tables/table1.yaml and claims.yaml."""
    from fedrepro.config.defaults import SETTINGS
    from fedrepro.config.run_differences import argument_text

    require_name("paper", name)
    require_folder(root, "papers")
    own = {key: value for key, value in SETTINGS.items() if key not in ("dataset", "model", "partition")}
    source = "our choice: to be replaced by the paper's"
    lines = [f'  {key}: {{value: {argument_text(value)}, source: "{source}"}}' for key, value in own.items()]
    folder = Path("papers", name)
    found = {
        folder / "paper.yaml": fill(_PAPER, title=name.capitalize(), short=name[:2].upper(), protocol="\n".join(lines)),
        folder / "tables/table1.yaml": fill(TABLE),
        folder / "claims.yaml": fill(_CLAIMS, short=name[:2].upper()),
    }
    steps = (
        f"edit {folder}, then: fedrepro run {name}/table1 --dry-run",
        f"snakemake --cores 2 reports/demo/{name}/table1.md",
        "docs/adding-a-paper.md explains each file, and how printed numbers come in",
    )
    return Skeleton(found, steps)
