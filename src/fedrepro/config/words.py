"""The words on a paper beside its numbers: its claims, what a person reads first, changes after results.

papers/<paper>/summary.yaml is what a person reads of a paper in half a minute. Its sentences are those of `config.prose`.
"""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from fedrepro.choices import require_known
from fedrepro.config.changes import Change, load_changes
from fedrepro.config.claims import OVER_COLUMNS, Claim, claims_path, load_claims
from fedrepro.config.printed import printed_total
from fedrepro.config.project import Project
from fedrepro.config.prose import Prose
from fedrepro.errors import UserError
from fedrepro.files import read_yaml
from fedrepro.typed import Strict, check


class Answers(Strict):
    """What the evidence of one scale shows: what does not hold, what stays open, what holds, and results of our controls that
    the paper does not mention. Pages keep this order. `in_brief`: question -> answer; these stand first, and the rest goes
    below the tables."""

    in_brief: dict[str, Prose] = Field({})
    fails: list[Prose] = Field([])
    open: list[Prose] = Field([])
    holds: list[Prose] = Field([])
    controls: list[Prose] = Field([])


class Summary(Strict):
    """`missing`: what could not be obtained; `answers` by scale, of those that are published. `pictured`: the row of the first
    table whose gap a page shows first if it judges no number; without it, the last row with printed numbers."""

    proposes: Prose
    missing: Prose
    pictured: str = ""
    answers: dict[str, Answers] = Field({})


def load_summary(root: Path, paper: str) -> Summary | None:
    """The summary of a paper; None where it has no such file. UserError for a mistake in it."""
    path = Path(root) / "papers" / paper / "summary.yaml"
    return check(Summary, read_yaml(path), str(path)) if path.exists() else None


@dataclass(frozen=True)
class Words:
    """`printed`: how many results its tables print."""

    claims: list[Claim] = field(default_factory=list)
    summary: Summary | None = None
    changes: list[Change] = field(default_factory=list)
    printed: int = 0


def load_words(root: Path, paper: str) -> Words:
    """Reads the words on a paper. UserError for a mistake in one of their files."""
    claims = load_claims(root, paper)
    changes = load_changes(root).of(paper, {claim.id for claim in claims})
    return Words(claims, load_summary(root, paper), changes, printed_total(Path(root) / "papers" / paper / "published"))


def check_claims(project: Project, paper: str) -> None:
    """UserError for a claim of `paper` that names a row or a column that its table has not, or averages over unlike metrics.

    Rows are those of the table and its companions, which a page finds where a budget runs them. A table without a file is not
    checked: its claims have not run.
    """
    claims, table_names = load_claims(project.root, paper), project.table_names()
    names = dict.fromkeys(claim.table for claim in claims if f"{paper}/{claim.table}" in table_names)
    tables = {name: project.table(paper, name) for name in names}
    for claim in (claim for claim in claims if claim.table in tables):
        table, where = tables[claim.table], f"{claims_path(project.root, paper)}: {claim.id}"
        rows, columns = [row.key for row in (*table.rows, *table.companions)], {header.key: header for header in table.columns}
        for noun, claimed_keys, keys in (("row", claim.rows, rows), ("column", claim.columns, [*columns])):
            for name in claimed_keys:
                require_known(f"{where}: {claim.table}", noun, name, keys)
        metrics = {(columns[key].metric or table.metric).name for key in claim.columns}
        if len(metrics) > 1 and (claim.kind in OVER_COLUMNS or claim.combine == "mean"):
            raise UserError(
                f"{where}: columns hold {' and '.join(sorted(metrics))}, which have no mean or trend; make a claim for each"
            )
