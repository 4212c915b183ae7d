"""How a tuned cell came to its run, as JSON has it."""

from dataclasses import dataclass
from typing import Annotated, Any

from fedrepro.config.table import Metric
from fedrepro.typed import doc


@dataclass(frozen=True)
class ReadAgain:
    """The second reading of a candidate's trial."""

    per_seed: Annotated[dict[int, float | None], doc("as that of the first")]
    mean: Annotated[float | None, doc("over seeds; null when one diverged, or none was run")]
    chosen: Annotated[bool, doc("whether the second reading would choose this one, of equal ones the first")] = False


@dataclass(frozen=True)
class Tried:
    """A candidate of a tuned cell, and how its trial went."""

    values: Annotated[dict[str, Any], doc("setting or `part.argument` -> what it tries")]
    run_id: Annotated[str, doc("of the trial")]
    read: Annotated[str, doc("what is compared of it")]
    seeds: Annotated[tuple[int, ...], doc("of the trial")]
    per_seed: Annotated[dict[int, float | None], doc("null: that seed diverged; absent: it was not run")]
    mean: Annotated[float | None, doc("over seeds; null when one diverged, or none was run")]
    chosen: bool = False
    also: Annotated[ReadAgain | None, doc("where there is a second reading")] = None

    @property
    def shown(self) -> str:
        """`client_lr = 0.1, mu = 0.5`."""
        return ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in self.values.items())


@dataclass(frozen=True)
class Second:
    """What another metric of the same trials would have chosen."""

    metric: str
    unit: str
    digits: Annotated[int, doc("decimals at which its values are shown")]
    worth: Annotated[
        float | None,
        doc(
            "by how much the shown choice leads the one of this reading, by the first reading and in its unit: what choosing "
            "on the data of the table is worth; null while either has none"
        ),
    ]


@dataclass(frozen=True)
class Choice:
    """How a tuned cell came to its run: the best mean of all trials, of equal ones the first."""

    method: Annotated[str, doc("key of the row")]
    setting: Annotated[str, doc("key of the column")]
    method_label: str
    setting_label: str
    metric: str
    unit: str
    digits: Annotated[int, doc("decimals at which its values are shown")]
    tried: tuple[Tried, ...]
    ahead: Annotated[float | None, doc("by how much the chosen one leads the second, in the metric's unit")]
    reason: Annotated[str | None, doc("why nothing is chosen")]
    second: Annotated[Second | None, doc("where there is a second reading")] = None

    @property
    def quantity(self) -> Metric:
        """What the trials were compared by, as far as an axis says it."""
        return Metric(name=self.metric, unit=self.unit, description="")

    @property
    def agreed(self) -> bool:
        """Whether both readings choose the same candidate."""
        return any(one.chosen and one.also is not None and one.also.chosen for one in self.tried)
