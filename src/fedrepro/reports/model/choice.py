"""How a tuned cell came to its run, as JSON has it."""

from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class ReadAgain:
    """The second reading of a candidate's trial."""

    per_seed: Annotated[dict[int, float | None], "as that of the first"]
    mean: Annotated[float | None, "over seeds; null when one diverged, or none was run"]
    chosen: Annotated[bool, "whether the second reading would choose this one, of equal ones the first"] = False


@dataclass(frozen=True)
class Tried:
    """A candidate of a tuned cell, and how its trial went."""

    values: Annotated[dict[str, Any], "setting or `part.argument` -> what it tries"]
    run_id: Annotated[str, "of the trial"]
    read: Annotated[str, "what is compared of it"]
    seeds: Annotated[tuple[int, ...], "of the trial"]
    per_seed: Annotated[dict[int, float | None], "null: that seed diverged; absent: it was not run"]
    mean: Annotated[float | None, "over seeds; null when one diverged, or none was run"]
    chosen: bool = False
    also: Annotated[ReadAgain | None, "where there is a second reading"] = None

    @property
    def shown(self) -> str:
        """`client_lr = 0.1, mu = 0.5`."""
        return ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in self.values.items())


@dataclass(frozen=True)
class Second:
    """What another metric of the same trials would have chosen."""

    metric: str
    unit: str
    digits: Annotated[int, "decimals at which its values are shown"]
    worth: Annotated[
        float | None,
        "by how much the shown choice leads the one of this reading, by the first reading and in its unit: what choosing on "
        "the data of the table is worth; null while either has none",
    ]


@dataclass(frozen=True)
class Choice:
    """How a tuned cell came to its run: the best mean of all trials, of equal ones the first."""

    method: Annotated[str, "key of the row"]
    setting: Annotated[str, "key of the column"]
    method_label: str
    setting_label: str
    metric: str
    unit: str
    digits: Annotated[int, "decimals at which its values are shown"]
    tried: tuple[Tried, ...]
    ahead: Annotated[float | None, "by how much the chosen one leads the second, in the metric's unit"]
    reason: Annotated[str | None, "why nothing is chosen"]
    second: Annotated[Second | None, "where there is a second reading"] = None

    @property
    def agreed(self) -> bool:
        """Whether both readings choose the same candidate."""
        return any(one.chosen and one.also is not None and one.also.chosen for one in self.tried)
