"""The files a person edits, as models: params.yaml, papers/scales.yaml, papers/<paper>/paper.yaml and tables/*.yaml.

Unknown keys are errors everywhere. A validation error becomes one line that names file, key and value.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fedrepro.errors import UserError
from fedrepro.registry import unknown

Scalar = bool | int | float | str | None
Arguments = dict[str, Scalar]
_SCALARS = ("bool", "int", "float", "str")  # what pydantic adds to the place of a value that is none of them


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _distinct_seeds(seeds: list[int]) -> list[int]:
    if len(set(seeds)) != len(seeds):
        raise ValueError("a seed is listed twice")
    return seeds


Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(_distinct_seeds)]


class Params(_Strict):
    """params.yaml: what a user changes between runs."""

    scale: str = Field("demo", description="demo, short or full: see papers/scales.yaml")
    seeds: Seeds = Field([8, 9, 10], description="one run per seed; adding one trains it alone")
    tables: list[str] = Field(
        ["fedlaw/table3"], min_length=1, description="what `snakemake` and `dvc repro` build without a target"
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to train; auto takes a GPU when there is one")
    arithmetic: Literal["portable", "native"] = Field(
        "portable",
        description="on a CPU: the same bits on every x86-64 processor with AVX2, or this processor's fastest kernels",
    )
    workers: int = Field(1, ge=1, description="processes a training shares its clients out among; each counts as a core")
    settings: dict[str, Scalar] = Field({}, description="settings that every run takes instead of its table's, e.g. rounds: 5")
    methods: dict[str, dict[str, Arguments | None] | None] = Field(
        {}, description="<paper>: <method>: <argument>: value; null keeps the paper's value"
    )


class Sourced(_Strict):
    """A value and where it comes from: "paper, appendix D", "authors' code", "our choice: why"."""

    value: Scalar
    source: str


class Choice(_Strict):
    """A numbered deviation from the paper, or of the paper's text from its authors' code."""

    id: str
    text: str


class Disagreement(_Strict):
    """Where the paper's text and the authors' code part ways, and which one we follow."""

    what: str
    paper: str
    authors_code: str
    followed: str
    other: dict[str, Any] = {}  # what to write into params.yaml to run the other one


class Paper(_Strict):
    """papers/<paper>/paper.yaml: citation, protocol with the source of every value, and what is known to differ."""

    name: str  # what people call it: FedLAW
    title: str
    authors: str
    venue: str
    url: str
    protocol: dict[str, Sourced]
    datasets: dict[str, dict[str, Sourced]] = {}
    stand_ins: dict[str, str] = {}  # a data set that the paper does not use -> the one whose settings and arguments it takes
    methods: dict[str, dict[str, Sourced]] = {}
    methods_by_dataset: dict[str, dict[str, dict[str, Sourced]]] = {}
    deviations: list[Choice] = []
    disagreements: list[Disagreement] = []
    known_gaps: list[str] = []


class Row(_Strict):
    """A row of a table. Without `method` it is shown with its printed numbers and the reason in `pending`."""

    key: str
    label: str
    method: str | None = None
    pending: str | None = None
    # The method's name in the published CSV, where that is not the row's key. A row that the CSV does not name is ours.
    published: str | None = None
    variant: str | None = None  # rows that read the paper in the same way; without: as the paper's own table
    setting: dict[str, Scalar] = {}  # over the column's
    replace: dict[str, dict[str, Scalar]] = {}  # setting -> {the column's value: what the row takes instead}

    @property
    def shown(self) -> str:
        """Its label, and after it the reading that it belongs to."""
        return f"{self.label}, {self.variant}" if self.variant else self.label

    def settings(self, column: "Column") -> dict[str, Scalar]:
        """The column's settings as this row has them."""
        replaced = {key: self.replace.get(key, {}).get(str(value), value) for key, value in column.setting.items()}
        return replaced | self.setting

    @model_validator(mode="after")
    def _method_or_reason(self) -> "Row":
        if (self.method is None) == (self.pending is None):
            raise ValueError("give either the method, or `pending` with the reason why there is none")
        return self


class Budget(_Strict):
    """What a column spends at one scale instead of what the scale asks for; null leaves the scale's value."""

    rounds: Annotated[int, Field(ge=1)] | None = None
    average_last: Annotated[int, Field(ge=1)] | None = None
    settings: dict[str, Scalar] = {}  # any others, where a scale's do not fit: another data set, say
    rows: list[str] | None = None  # keys of the rows that are run; the others say that the budget leaves them out

    @property
    def changes(self) -> dict[str, Scalar]:
        """The settings it changes."""
        return self.settings | {key: value for key in ("rounds", "average_last") if (value := getattr(self, key)) is not None}


class TableBudget(Budget):
    """What a whole table spends at one scale; columns may say more."""

    note: str  # what the page says of it, in the place of the scale's note
    remarks: list[str] = []  # what the committed numbers show, and why they may differ from the printed ones
    seeds: Seeds | None = None  # instead of those of params.yaml


class Metric(_Strict):
    """What a cell shows."""

    name: str
    unit: str
    description: str
    better: Literal["higher", "lower"] = "higher"


class Column(_Strict):
    """A column: the setting it stands for, what of it is shown, and how the published CSV names it."""

    key: str
    label: str
    group: str
    setting: dict[str, Scalar]
    published: dict[str, str] = {}  # without it the column is ours: nothing in it is printed
    metric: Metric | None = None  # instead of the table's
    round: Annotated[int, Field(ge=1)] | None = (
        None  # read after so many of the protocol's rounds; the same share of fewer rounds
    )
    demo: bool = False  # shown at scale demo too
    pending: str | None = None
    budget: dict[str, Budget] = {}  # by scale, beside the table's


class Table(_Strict):
    """papers/<paper>/tables/<table>.yaml: a table as data."""

    title: str
    source: str
    published: str | None = None  # file name under papers/<paper>/published/; without it nothing in the table is printed
    metric: Metric
    variant_of: str | None = None  # the table that this one varies, and whose columns it takes unless it has its own
    stand_in: str | None = None  # why this is not the printed table: then nothing in it is ever held against a printed number
    budget: dict[str, TableBudget] = {}  # by scale
    remarks: dict[str, list[str]] = {}  # by scale: what the numbers show, and why they may differ from the printed ones
    base: dict[str, Sourced] = {}
    rows: list[Row]
    companions: list[Row] = []  # rows of ours, without printed numbers; shown where a budget names them
    columns: list[Column]

    @field_validator("rows", "companions", "columns")
    @classmethod
    def _distinct(cls, items: list) -> list:
        keys = [item.key for item in items]
        if len(set(keys)) != len(keys):
            raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)!r} is used twice")
        return items

    @model_validator(mode="after")
    def _fits_together(self) -> "Table":
        if not any(column.demo for column in self.columns):
            raise ValueError("no column is shown at scale demo; give at least one of them `demo: true`")
        rows = [row.key for row in (*self.rows, *self.companions)]
        for row in (*self.rows, *self.companions):
            for key, values in row.replace.items():
                for value in values.keys() - {str(column.setting.get(key)) for column in self.columns}:
                    raise ValueError(f"row {row.key}: replace: no column has {key} = {value!r}")
        for column in self.columns:
            if column.published and self.published is None:
                raise ValueError(
                    f"column {column.key} has printed numbers, but the table names no file of them: add `published`"
                )
            for scale in column.budget.keys() - self.budget.keys():
                raise ValueError(f"column {column.key} has a budget at scale {scale}, the table has none there to explain it")
        for place, budgets in [("the table", self.budget), *((f"column {c.key}", c.budget) for c in self.columns)]:
            for row in (row for budget in budgets.values() for row in budget.rows or [] if row not in rows):
                raise ValueError(f"budget of {place}: {unknown('row', row, rows)}")
        return self


class Times(_Strict):
    """A share of the paper's value; a whole number is rounded and stays at least 1."""

    times: float


class Scale(_Strict):
    """One entry of papers/scales.yaml: a declared transformation of every setting."""

    note: str
    comparable: bool = False  # may a measured number be held against a printed one?
    published_seeds: Seeds | None = None  # of its committed reports, which params.yaml does not touch; None: there are none
    only_demo_columns: bool = False
    settings: dict[str, Times | Scalar] = {}
    methods: dict[str, Arguments] = {}


Model = TypeVar("Model", bound=BaseModel)


def check(model: type[Model], value: Any, where: str) -> Model:
    """`value` as `model`. UserError naming `where`, the key and the value."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # A misspelt key also leaves the true one missing: the misspelling is the better news.
        first = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        loc = first["loc"][:-1] if first["loc"][-1:] and first["loc"][-1] in _SCALARS else first["loc"]
        key = ".".join(str(part) for part in loc) or "the whole file"
        if first["type"] == "extra_forbidden":
            *inside, last = first["loc"]
            what = unknown("key", last, _fields_at(model, tuple(inside)))
            raise UserError(": ".join(filter(None, [where, ".".join(map(str, inside)), what]))) from error
        message = first["msg"].removeprefix("Value error, ")
        if loc != first["loc"]:
            message = "give a number, a word, true, false or null"
        what = f"{key} = {first['input']!r}: " if loc or first["type"] != "value_error" else ""
        raise UserError(f"{where}: {what}{message[:1].lower() + message[1:]}") from error


def read_yaml(path: Path) -> Any:
    """The parsed file. UserError when it is missing or not YAML."""
    try:
        return yaml.safe_load(Path(path).read_text()) or {}
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise UserError(f"{path}: not valid YAML{line}: {getattr(error, 'problem', error)}") from error


def _fields_at(model: type[BaseModel], loc: tuple) -> list[str]:
    """Names of the fields that are allowed at `loc`, as far as it leads through models."""
    for part in loc:
        field = model.model_fields.get(str(part)) if isinstance(part, str) else None
        inner = _flatten(field.annotation) if field else []
        models = [a for a in inner if isinstance(a, type) and issubclass(a, BaseModel)]
        if models:
            model = models[0]
    return sorted(model.model_fields)


def _flatten(annotation: Any) -> list[Any]:
    arguments = getattr(annotation, "__args__", ())
    return [annotation, *(leaf for a in arguments for leaf in _flatten(a))]
