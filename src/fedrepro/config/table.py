"""papers/<paper>/tables/<table>.yaml as a model. Rows and columns are written in one grammar; a cell merges both."""

import itertools
import re
from functools import reduce
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from fedrepro.config.prose import Prose
from fedrepro.config.reading import READINGS, make
from fedrepro.config.schema import Count, Scalar, Seeds, Sourced, UnitName
from fedrepro.config.tune import Tune, TuneBudget
from fedrepro.errors import UserError
from fedrepro.registry import unknown
from fedrepro.typed import Strict
from fedrepro.units import unit


class Budget(Strict):
    """What a column spends at one scale instead of what the scale asks for; null leaves the scale's value."""

    rounds: Count | None = None
    average_last: Count | None = None
    settings: dict[str, Scalar] = Field({})  # other settings in place of the scale's, such as the data set
    rows: list[str] | None = None  # keys of the rows that are run; the others say that the budget leaves them out
    tune: TuneBudget | None = None  # of the cells that are tuned

    @property
    def changes(self) -> dict[str, Scalar]:
        """The settings it changes."""
        return self.settings | {key: value for key in ("rounds", "average_last") if (value := getattr(self, key)) is not None}


class TableBudget(Budget):
    """What a whole table spends at one scale; columns may say more."""

    note: str  # what the page says of it, in the place of the scale's note
    remarks: list[Prose] = Field([])  # what the committed numbers show
    seeds: Seeds | None = None  # instead of those of params.yaml


class Metric(Strict):
    """What a cell shows."""

    name: str
    unit: UnitName
    description: str
    better: Literal["higher", "lower"] = "higher"
    ranked: bool = True  # false: no value is better than another, it describes a method
    diagnostic: str | None = None  # what measures it on kept models; without: every run records it

    @property
    def digits(self) -> int:
        """Decimals at which its values are shown."""
        return unit(self.unit).digits

    @property
    def higher(self) -> bool:
        """Whether more is better."""
        return self.better == "higher"

    @model_validator(mode="after")
    def _measured(self) -> "Metric":
        if self.diagnostic is not None:
            from fedrepro.diagnostics.diagnostic import canonical

            try:
                object.__setattr__(self, "diagnostic", canonical(self.diagnostic, self.name))
            except UserError as error:
                raise ValueError(str(error)) from error
        return self


class Header(Strict):
    """A row or a column. A cell merges its row and its column; what both give is the row's.

    `method`: parts, joined with those of the other axis. `published`: the columns of the published CSV that pick the cell's
    line; a bare word is the CSV's `method`, and a column's that begins with + is added to the row's. An entry of the axis of
    methods goes by its key. On the other axis an entry without `published` is ours and has no printed numbers.
    """

    key: str
    label: str
    group: str | None = None
    method: str | None = None
    pending: str | None = None  # why there is no method yet: the cells show their printed numbers and this
    published: dict[str, str] | str | None = None
    variant: str | None = None  # entries that read the paper in the same way; without: as the paper's own table
    setting: dict[str, Scalar] = Field({})
    replace: dict[str, dict[str, Scalar]] = Field({})  # setting -> {the other axis's value: what this entry takes instead}
    metric: Metric | None = None  # instead of the table's
    read: str | None = None  # instead of the protocol's mean over the last rounds: at(200), best(), first_reaching(64)
    tune: Tune | None = None  # instead of the table's
    demo: bool = False  # a column that is shown at scale demo too
    budget: dict[str, Budget] = Field({})  # of a column by scale, beside the table's

    @property
    def full_label(self) -> str:
        """Its label, and after it the reading that it belongs to."""
        return f"{self.label}, {self.variant}" if self.variant else self.label

    def settings(self, other: "Header") -> dict[str, Scalar]:
        """The settings of a cell, of a row with its column."""
        replaced = {key: self.replace.get(key, {}).get(str(value), value) for key, value in other.setting.items()}
        return replaced | self.setting

    @field_validator("read")
    @classmethod
    def _reads(cls, text: str | None) -> str | None:
        try:
            return text and str(READINGS.canonical(make(text)))
        except UserError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _method_or_reason(self) -> "Header":
        if self.method is not None and self.pending is not None:
            raise ValueError("give either the method, or `pending` with the reason why there is none")
        return self


class Table(Strict):
    """papers/<paper>/tables/<table>.yaml: a table as data."""

    title: str
    source: str
    published: str | None = None  # file name under papers/<paper>/published/; without it nothing in the table is printed
    metric: Metric
    tune: Tune | None = None  # of every cell whose row and column have none
    variant_of: str | None = None  # the table that this one varies, and whose columns it takes unless it has its own
    stand_in: str | None = None  # why this is not the printed table: then nothing in it is ever compared with a printed number
    budget: dict[str, TableBudget] = Field({})  # by scale
    remarks: dict[str, list[Prose]] = Field({})  # by scale: what the committed numbers show
    seeds: Seeds | None = None  # instead of those of params.yaml, for what is about many draws
    base: dict[str, Sourced] = Field({})
    sources: dict[str, str] = Field({})  # setting -> source of what columns give it, where `source` alone does not say it
    keep: list[Count] = Field([])  # rounds of the protocol whose models are kept, for diagnostics
    rows: list[Header] = Field(min_length=1)
    companions: list[Header] = Field([])  # additional rows (ours), without printed numbers; shown where a budget names them
    columns: list[Header]

    @property
    def reads(self) -> bool:
        """Whether one number is read of each run; some kinds of figures show every round."""
        return True

    def criteria(self, row: Header, column: Header) -> dict[str, str] | None:
        """Columns of the published CSV and their values, which pick the cell's line; None when the cell is not printed."""
        criteria: dict[str, str] = {}
        for entry, axis, other_axis in ((row, self.rows, self.columns), (column, self.columns, self.rows)):
            entry_criteria = {"method": entry.published} if isinstance(entry.published, str) else entry.published
            if (
                entry_criteria is None
                and not any(header.method for header in other_axis)
                and any(header.method or header.pending for header in axis)
            ):
                entry_criteria = {"method": entry.key}
            if entry_criteria is None or entry in self.companions:
                return None
            name = entry_criteria.get("method", "")
            criteria |= entry_criteria | ({"method": criteria.get("method", "") + name} if name.startswith("+") else {})
        return criteria

    @field_validator("rows", "companions", "columns", mode="before")
    @classmethod
    def product(cls, value: Any) -> Any:
        """`{axes: [[...], [...]]}` stands for every combination of one entry from each list."""
        if not isinstance(value, dict):
            return value
        axes = value.get("axes") if set(value) == {"axes"} else None
        if not isinstance(axes, list) or not axes or not all(isinstance(axis, list) and axis for axis in axes):
            raise ValueError("give a list of entries, or `axes:` with lists of entries to combine")
        return [reduce(_joined, entries) for entries in itertools.product(*axes)]

    @field_validator("rows", "companions", "columns")
    @classmethod
    def _distinct(cls, items: list[Header]) -> list[Header]:
        keys = [item.key for item in items]
        for key in keys:
            if not re.fullmatch(r"[^\s,]+( [^\s,]+)*", key):
                raise ValueError(f"key {key!r}: write a word without a comma, so that --rows and --columns can name it")
        if len(set(keys)) != len(keys):
            raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)!r} is used twice")
        names: dict[tuple[str | None, str], str] = {}
        for item in items:
            other_key = names.setdefault((item.group, item.full_label), item.key)
            if other_key != item.key:
                raise ValueError(f"{other_key} and {item.key} have one label, {item.full_label!r}; give each its own")
        return items

    @model_validator(mode="after")
    def _fits_together(self) -> "Table":
        if not any(column.demo for column in self.columns):
            raise ValueError("no column is shown at scale demo; give at least one of them `demo: true`")
        rows = [*self.rows, *self.companions]
        for metric in (self.metric, *(entry.metric for entry in (*rows, *self.columns) if entry.metric)):
            if metric.diagnostic and not self.keep:
                raise ValueError(
                    f"metric {metric.name}: {metric.diagnostic} measures kept models; add `keep:` with rounds to the table"
                )
        for row, column in itertools.product(rows, self.columns):
            self._check_cell(row, column)
        self._check_sources()
        self._check_axes(rows)
        for row in rows:
            for key, values in row.replace.items():
                for value in sorted(values.keys() - {str(column.setting.get(key)) for column in self.columns}):
                    raise ValueError(f"row {row.key}: replace: no column has {key} = {value!r}")
        self._check_budgets([row.key for row in rows])
        return self

    def _check_axes(self, rows: list[Header]) -> None:
        """Refuses what would have no effect on its axis, and a companion with the key of another row."""
        for kind, entries, useless in (("row", rows, ("budget", "demo")), ("column", self.columns, ("replace",))):
            for entry, key in itertools.product(entries, useless):
                if getattr(entry, key):
                    raise ValueError(f"{kind} {entry.key}: {key} has no effect on a {kind}; leave it out")
        for row in self.companions:
            if any(row.key == other.key and row != other for other in self.rows):
                raise ValueError(f"companion {row.key}: another row has this key; give it its own")

    def _check_sources(self) -> None:
        for key in sorted(self.sources.keys() - {key for column in self.columns for key in column.setting}):
            raise ValueError(f"sources: no column gives {key}")

    def _check_cell(self, row: Header, column: Header) -> None:
        if not (row.method or row.pending or column.method or column.pending):
            raise ValueError(f"row {row.key}: give either the method, or `pending` with the reason why there is none")
        for entry, kind in ((row, "row"), (column, "column")):
            if isinstance(entry.published, dict) and self.published is None:
                raise ValueError(
                    f"{kind} {entry.key} has printed numbers, but the table names no file of them: add `published`"
                )

    def _check_budgets(self, rows: list[str]) -> None:
        for column in self.columns:
            for scale in sorted(column.budget.keys() - self.budget.keys()):
                raise ValueError(f"column {column.key} has a budget at scale {scale}, the table has none there to explain it")
        for place, columns, budgets in [
            ("the table", self.columns, self.budget),
            *((f"column {c.key}", [c], c.budget) for c in self.columns),
        ]:
            entries = [self, *self.rows, *self.companions, *columns]
            tuned = sorted({key for entry in entries if entry.tune for key in entry.tune.grid})
            for budget in budgets.values():
                for row in (row for row in budget.rows or [] if row not in rows):
                    raise ValueError(f"budget of {place}: {unknown('row', row, rows)}")
                for key in (key for key in (budget.tune.grid if budget.tune else {}) if key not in tuned):
                    raise ValueError(f"budget of {place}: tune: {unknown('key that a cell tunes', key, tuned)}")


# How those of several axes are joined. What begins with + is added: `fedavg` and `+ima` are `fedavg+ima`.
_TEXTS = {"key": "-", "label": ", ", "group": " · ", "variant": ", ", "method": "+", "published": "+"}
_ADDED = {"label": " "}  # what stands before the + then


def _joined(entry: Any, other: Any) -> dict[str, Any]:
    """Makes one entry of two: texts are joined, dictionaries merged; it is shown at scale demo if no part says otherwise.

    A name in print is a method's: `fedavg` with `ima` is `fedavg+ima`, with {data: mnist} it is {method: fedavg, data: mnist}.
    An entry `{}` adds nothing: `[{}, {key: +ima, label: + IMA, method: ima}]` gives each entry before it without and with IMA.
    """
    for part in (entry, other):
        if not isinstance(part, dict):
            raise ValueError(f"an entry of an axis is written {{key: ..., label: ...}}, not {part!r}")
    joined = {**entry, **other}
    for key in sorted(entry.keys() & other.keys()):
        value, added = entry[key], other[key]
        if key == "published" and isinstance(value, dict) != isinstance(added, dict):
            value, added = (part if isinstance(part, dict) else {"method": part} for part in (value, added))
        if key == "demo":
            joined[key] = value and added
        elif isinstance(value, dict) and isinstance(added, dict) and not (value.keys() & added.keys()):
            joined[key] = value | added
        elif key in _TEXTS and isinstance(value, str) and isinstance(added, str):
            between = _ADDED.get(key, "") if added.startswith("+") else _TEXTS[key]
            joined[key] = f"{value}{between}{added}"
        else:
            raise ValueError(f"two axes give {key}: {value!r} and {added!r}")
    return joined
