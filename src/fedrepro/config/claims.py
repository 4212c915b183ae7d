"""papers/<paper>/claims.yaml: what a paper says of its numbers, each with the rule that decides it.

Claims name tables, rows and columns; the printed numbers follow from those and are never typed in again. What each kind's rule
is stands in `fedrepro.exhibits.judge`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fedrepro.choices import require_known
from fedrepro.errors import UserError
from fedrepro.files import read_yaml
from fedrepro.typed import Strict, check

Combine = Literal["each", "mean"]
Columns = Annotated[list[str], Field(min_length=1)]
Rows = str | Annotated[list[str], Field(min_length=1)]
Pairs = Annotated[dict[str, Rows], Field(min_length=1)]  # row -> the row, or rows, that it is compared with


class Claim(Strict):
    """What every claim has. `columns` are those of `table`, in the order in which the claim speaks of them."""

    id: str
    text: str
    says: str | None = None  # the paper's own words, letter by letter; null: no sentence, the claim is read off printed numbers
    where: str  # where those words, or the numbers, stand: "section 6.2", "Table 1"
    kind: str  # one of KINDS
    table: str
    columns: Columns
    combine: Combine = "each"  # how several numbers make one verdict

    @property
    def rows(self) -> list[str]:
        """Every row that is looked at."""
        raise NotImplementedError


class _Paired(Claim):
    pairs: Pairs

    @property
    def compared(self) -> list[tuple[str, str]]:
        """Every row with each row that it is compared with."""
        return [
            (row, partner)
            for row, partners in self.pairs.items()
            for partner in ([partners] if isinstance(partners, str) else partners)
        ]

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(row for pair in self.compared for row in pair))


class _OfRows(Claim):
    of: Annotated[list[str], Field(min_length=1)]  # rows

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(self.of))


class Difference(_Paired):
    """A row is ahead of another, or behind it, by as much as is printed.

    `side`: ahead where the paper's text says so, whatever its numbers say; else the side of the printed difference.
    """

    side: Literal["printed", "ahead"] = "printed"


class Trend(_Paired):
    """That difference rises or falls from the first column to the last."""

    columns: Annotated[list[str], Field(min_length=2)]
    direction: Literal["rises", "falls"]


class Equal(_Paired):
    """Two rows are the same, seed by seed."""


class Small(_Paired):
    """Two rows differ by no more than `value`, in the metric's unit, either way."""

    value: Annotated[float, Field(gt=0)]


class Steady(Small):
    """The difference of two rows changes by no more than `value`, either way, from the first column to the last."""

    columns: Annotated[list[str], Field(min_length=2)]


class Across(_OfRows):
    """A row in one column is ahead of itself in another, or behind it, by as much as is printed; `side` as of a difference.

    `behind`: with `side: ahead`, by how much, in the metric's unit, the row may lie behind: it is claimed not to lose more.
    """

    columns: Annotated[list[str], Field(min_length=2, max_length=2)]
    side: Literal["printed", "ahead"] = "printed"
    behind: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _behind_is_of_ahead(self) -> Self:
        if self.behind and self.side != "ahead":
            raise ValueError(f"behind = {self.behind:g} needs side: ahead; printed differences have no such bound")
        return self


class Level(_OfRows):
    """A recorded metric of a row, its mean over the rounds or its last value, is above or below a value.

    Without `metric`: what the cell shows, in its unit.
    """

    metric: str | None = None  # one of the curves that a run records
    unit: Literal["ratio", "percent", "rounds", "fraction", "weight", "loss", "norm", "eigenvalue"] = "ratio"  # of the metric
    side: Literal["above", "below"]
    value: float
    read: Literal["mean", "last"] = "mean"  # over the rounds


class Speed(_Paired):
    """A row needs fewer rounds than another to get where that one ends."""


KINDS: dict[str, type[Claim]] = {
    kind.__name__.lower(): kind for kind in (Difference, Trend, Equal, Small, Steady, Across, Level, Speed)
}


OVER_COLUMNS = ("trend", "steady", "across")  # kinds that make one number of several columns


def claims_path(root: Path, paper: str) -> Path:
    """papers/<paper>/claims.yaml below `root`."""
    return Path(root) / "papers" / paper / "claims.yaml"


def load_claims(root: Path, paper: str) -> list[Claim]:
    """The claims of a paper, in the file's order; none where it has no such file. UserError for a mistake in it."""
    path = claims_path(root, paper)
    content = (read_yaml(path) if path.exists() else None) or []
    if not isinstance(content, list):
        raise UserError(f"{path}: {content!r}: give a list of claims, each with an `id`")
    claims = [_claim(entry, path, number) for number, entry in enumerate(content, start=1)]
    ids = [claim.id for claim in claims]
    repeated = next((claim_id for claim_id in ids if ids.count(claim_id) > 1), None)
    if repeated is not None:
        raise UserError(f"{path}: id = {repeated!r} is used twice; give each claim its own")
    return claims


def _claim(entry: Any, path: Path, number: int) -> Claim:
    if not isinstance(entry, dict):
        raise UserError(
            f"{path}: claim {number}: {entry!r} is not a valid claim; give id, text, where, kind, table and columns"
        )
    where, kind = f"{path}: {entry.get('id', f'claim {number}')}", entry.get("kind")
    require_known(where, "kind", kind, [*KINDS])  # not a dict: of YAML it may be a list
    return check(KINDS[str(kind)], entry, where)
