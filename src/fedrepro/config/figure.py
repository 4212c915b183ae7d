"""papers/<paper>/figures/<figure>.yaml as a model: the grammar of tables, and how the cells of rows x columns are drawn."""

import contextlib
from typing import Any

from pydantic import field_validator, model_validator

from fedrepro.choices import require_known
from fedrepro.config.table import Table
from fedrepro.errors import UserError
from fedrepro.exhibits.kinds import KINDS, make_kind

# What a figure takes from the table that it is `of`, unless it has its own.
TAKEN = ("metric", "base", "sources", "rows", "companions", "columns", "budget", "stand_in", "tune", "keep", "seeds")


class Figure(Table):
    """papers/<paper>/figures/<figure>.yaml: a figure as data. Its runs are the cells of rows x columns."""

    kind: str  # how it is drawn, a call: `curves(band=std)`
    caption: str = ""  # what it shows, and what to look for
    of: str | None = None  # the table whose rows, columns, base and metric it takes; lists of keys choose from that one's

    @property
    def reads(self) -> bool:
        """Whether its kind takes one number of a seed's curve."""
        return make_kind(self.kind).reads

    @field_validator("kind")
    @classmethod
    def _drawable(cls, text: str) -> str:
        try:
            return str(KINDS.canonical(make_kind(text)))
        except UserError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _fits_its_kind(self) -> "Figure":
        for key in ("published", "variant_of"):
            if getattr(self, key) is not None:
                raise ValueError(f"a figure takes no `{key}`: nothing in it is compared with printed numbers")
        kind = make_kind(self.kind)
        # Its table's `read` stays: it decides between the candidates of a tuned cell.
        for entry in (*self.rows, *self.columns) if not kind.reads and self.of is None else ():
            if entry.read is not None:
                raise ValueError(f"{entry.key}: read = {entry.read!r}: {kind.name} shows every round; leave out `read`")
        try:
            kind.check([row.key for row in self.rows])
        except UserError as error:
            raise ValueError(f"kind = {self.kind!r}: {error}") from error
        return self

    def _check_sources(self) -> None:
        """Checks no sources of a figure that is `of` a table: it may show a part of the table's columns."""
        if self.of is None:
            super()._check_sources()


def taken(content: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """A figure's `content` with what it takes from its table's, which has been checked. It takes no printed numbers and no
    remarks on cells, and of a budget the rows that it shows.

    UserError for a key that the table does not have, and for another metric than the table's where cells are tuned.
    """
    merged = {key: table[key] for key in TAKEN if key in table} | content
    for axis in ("rows", "companions", "columns"):
        if axis in table:
            entries = [_without(entry, "published") for entry in Table.product(table[axis])]
            entries_by_key = {entry["key"]: entry for entry in entries}
            merged[axis] = _select_entries(content[axis], entries_by_key, axis) if axis in content else entries
    if "budget" in table and "budget" not in content:
        row_keys = [entry.get("key") for axis in ("rows", "companions") for entry in _entries(merged, axis)]
        merged["budget"] = {scale: _without(budget, "remarks") for scale, budget in table["budget"].items()}
        for budget in merged["budget"].values():
            if budget.get("rows") is not None:
                budget["rows"] = [row for row in budget["rows"] if row in row_keys]
    _require_same_choice(content, table, merged)
    return merged


def _require_same_choice(content: dict[str, Any], table: dict[str, Any], merged: dict[str, Any]) -> None:
    """UserError for another metric of tuned cells: these show the candidate that is best by what they read, which would not be
    the table's."""
    entries = [entry for axis in ("rows", "columns") for entry in _entries(merged, axis)]
    if "tune" in content or not any(entry.get("tune") for entry in (merged, *entries)):
        return
    known = [_metric(entry) for entry in (table, *_entries(table, "rows"), *_entries(table, "columns"))]
    for name in (name for name in map(_metric, (merged, *entries)) if name and name not in known):
        raise UserError(
            f"metric = {name!r}: {content['of']} is tuned, and candidates are chosen by what the cells read; another metric "
            f"would choose others. Take the table's metric, or write rows and columns here instead of `of: {content['of']}`"
        )


def _entries(content: dict[str, Any], axis: str) -> list[dict[str, Any]]:
    """The entries of an axis, as far as the content is well formed: the table's own check says what is not."""
    with contextlib.suppress(ValueError, TypeError):
        return [entry for entry in Table.product(content.get(axis, [])) or [] if isinstance(entry, dict)]
    return []


def _metric(entry: dict[str, Any]) -> Any:
    metric = entry.get("metric")
    return metric.get("name") if isinstance(metric, dict) else metric


def _without(mapping: dict[str, Any], left_out: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != left_out}


def _select_entries(entries: Any, table_entries: dict[str, dict[str, Any]], axis: str) -> Any:
    if not isinstance(entries, list):
        return entries
    for entry in entries:
        if isinstance(entry, str):
            require_known(axis, axis.removesuffix("s"), entry, table_entries)
    return [table_entries[entry] if isinstance(entry, str) else entry for entry in entries]
