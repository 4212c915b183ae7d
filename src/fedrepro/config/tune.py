"""`tune:` of a table, its rows and its columns, and of their budgets, as models."""

import itertools
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from fedrepro.config.schema import Count, Scalar, Seeds, UnitName
from fedrepro.errors import UserError
from fedrepro.typed import Strict

if TYPE_CHECKING:
    from fedrepro.config.table import Metric


class _Trials(Strict):
    """Values to try, written flat: keys of the grid beside `seeds`, `rounds` and the like."""

    grid: dict[str, Annotated[list[Scalar], Field(min_length=1)]]
    seeds: Seeds | None = None
    rounds: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _written_flat(cls, value: Any) -> Any:
        if not isinstance(value, dict) or "grid" in value:
            return value
        options = {key: value[key] for key in cls.model_fields if key in value}
        return options | {"grid": {key: values for key, values in value.items() if key not in options}}


class TuneBudget(_Trials):
    """What tuning spends at one scale.

    The values of a key in `grid` replace the cell's values; a cell that does not tune the key is unchanged. A trial has `seeds`
    and `rounds`, those of that scale, not the protocol's; None leaves what the cell says.
    """

    grid: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = Field({})


class Also(Strict):
    """The metric of a second reading. `unit` and `better` default to the cell's, for a metric of the same kind only
    (`proxy_accuracy` beside `test_accuracy`)."""

    name: str
    unit: UnitName | None = None
    better: Literal["higher", "lower"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    def beside(self, metric: "Metric") -> "Metric":
        """The full metric, beside the cell's own `metric`. UserError for another kind of metric without unit and direction."""
        if None in (self.unit, self.better) and self._kind(self.name) != self._kind(metric.name):
            example = f"{{name: {self.name}, better: lower, unit: loss}}"
            raise UserError(
                f"tune: also = {self.name!r}: it is not of the kind of {metric.name}; say which way: {example}, say"
            )
        return type(metric)(
            name=self.name,
            unit=self.unit or metric.unit,
            better=self.better or metric.better,
            description=f"second reading of the trials, beside {metric.name}",
        )

    @staticmethod
    def _kind(name: str) -> str:
        return name.removeprefix("proxy_").removeprefix("test_")


class Tune(_Trials):
    """A cell of several candidate runs, of which one is chosen: every combination of the values in `grid`.

    Its keys are settings (`client_lr`) or arguments of parts (`fedprox.mu`). A candidate runs at `seeds` (None: the table's; as
    many of those where it has none of them) for `rounds` of the protocol's (None: all of them). The one with the best mean of
    what the cell reads is chosen, of equal ones the first, and runs as any other cell does. `also` is another metric of the
    same trials, read in the same way: the report says what it would have chosen.
    """

    grid: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = Field(min_length=1)
    also: Also | None = None

    @property
    def candidates(self) -> list[dict[str, Scalar]]:
        """{setting or argument: value} of each, in the grid's order."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    def without(self, keys: Collection[str]) -> "Tune":
        """The tuning without `keys`. An empty grid is left where nothing else is tuned."""
        return self.model_copy(update={"grid": {key: values for key, values in self.grid.items() if key not in keys}})

    def within(self, budget: TuneBudget) -> "Tune":
        """The tuning with the budget's seeds and its values of the keys that are tuned here. Its rounds are not taken here."""
        grid = self.grid | {key: values for key, values in budget.grid.items() if key in self.grid}
        return self.model_copy(update={"grid": grid, "seeds": budget.seeds or self.seeds})
