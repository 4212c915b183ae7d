"""The files a person edits, as models: params.yaml, papers/scales.yaml, papers/<paper>/paper.yaml. Tables: `config.table`.

Unknown keys are errors everywhere. A validation error becomes one line that names file, key and value.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from fedrepro.errors import UserError
from fedrepro.typed import Strict
from fedrepro.units import unit

Scalar = bool | int | float | str | None
Arguments = dict[str, Scalar]


def _distinct_seeds(seeds: list[int]) -> list[int]:
    if len(set(seeds)) != len(seeds):
        raise ValueError("a seed is listed twice")
    return seeds


def _known_unit(name: str) -> str:
    try:
        return unit(name).name
    except UserError as error:
        raise ValueError(str(error)) from error


UnitName = Annotated[str, AfterValidator(_known_unit)]
Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_distinct_seeds)]


class Params(Strict):
    """params.yaml: what a user changes between runs."""

    scale: str = Field("demo", description="demo, short or full: see papers/scales.yaml")
    seeds: Seeds = Field([8, 9, 10], description="one run per seed; adding one trains it alone")
    tables: list[str] = Field(
        ["fedlaw/table3"], min_length=1, description="what `snakemake` and `dvc repro` build without a target"
    )
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to train; auto takes a GPU when there is one")
    arithmetic: Literal["auto", "portable", "native"] = Field(
        "auto",
        description="on a CPU: the same bits on every x86-64 processor with AVX2, or this processor's fastest kernels; "
        "auto is portable where it can be",
    )
    workers: int = Field(
        1, ge=1, strict=True, description="processes a training shares its clients out among; each counts as a core"
    )
    settings: dict[str, Scalar] = Field({}, description="settings that every run takes instead of its table's, e.g. rounds: 5")
    methods: dict[str, dict[str, Arguments | None] | None] = Field(
        {}, description="<paper>: <method>: <argument>: value; null keeps the paper's value"
    )

    @field_validator("settings", "methods", mode="before")
    @classmethod
    def _empty(cls, value: Any) -> Any:
        return {} if value is None else value


class Sourced(Strict):
    """A value and where it comes from: "paper, appendix D", "authors' code", "our choice: why"."""

    value: Scalar
    source: str

    @model_validator(mode="before")
    @classmethod
    def _has_a_source(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        raise ValueError(f'write {{value: {value}, source: "..."}}, for example source: "our choice: why"')


class PrintedSeeds(Strict):
    """How many seeds a printed number is the mean of: its own noise, when ours is compared with it."""

    value: int | None = Field(ge=1, strict=True, description="null: the paper does not say; the margin then takes 1")
    source: str

    @property
    def assumed(self) -> int:
        """How many seeds the margin takes; 1 where the paper does not say."""
        return self.value or 1


class Deviation(Strict):
    """A numbered deviation from the paper, or of the paper's text from its authors' code.

    `short`: in a few words, where what is run departs from what the paper states; pages list these at their top.
    """

    id: str
    text: str
    short: str = ""


class Disagreement(Strict):
    """Where the paper's text and the authors' code part ways, and which one we follow."""

    what: str
    paper: str
    authors_code: str
    followed: str
    other: dict[str, Any] = Field({})  # what to write into params.yaml to run the other one


class Paper(Strict):
    """papers/<paper>/paper.yaml: citation, protocol with the source of every value, and what is known to differ."""

    name: str  # what people call it: FedLAW
    title: str
    authors: str
    venue: str
    url: str
    printed_seeds: PrintedSeeds = PrintedSeeds(value=1, source="not stated: taken as one")  # behind each printed number
    protocol: dict[str, Sourced]
    datasets: dict[str, dict[str, Sourced]] = Field({})
    stand_ins: dict[str, str] = Field({})  # a data set that the paper has not -> the one whose settings it takes, and arguments
    methods: dict[str, dict[str, Sourced]] = Field({})
    methods_by_dataset: dict[str, dict[str, dict[str, Sourced]]] = Field({})
    methods_by_model: dict[str, dict[str, dict[str, Sourced]]] = Field({})
    deviations: list[Deviation] = Field([])
    disagreements: list[Disagreement] = Field([])
    known_gaps: list[str] = Field([])


class Times(Strict):
    """A share of the paper's value; a whole number is rounded and stays at least 1."""

    times: float


class Scale(Strict):
    """One entry of papers/scales.yaml: a declared transformation of every setting."""

    note: str
    comparable: bool = False  # whether measured numbers may be compared with printed ones
    published_seeds: Seeds | None = None  # of its committed reports, which params.yaml does not touch; None: there are none
    only_demo_columns: bool = False
    settings: dict[str, Times | Scalar] = Field({})
    methods: dict[str, Arguments] = Field({})
