"""What a table takes of a run: which metric, over which rounds. Needs neither torch nor a schema library."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

EDITED = "params.yaml"  # the source of every value that a person put there in the place of the paper's


class Reading(NamedTuple):
    """The mean of `metric` over the `average_last` rounds up to the `until_round`-th (None: the last), those that have it."""

    metric: str
    average_last: int
    until_round: int | None = None

    def of(self, receipt: dict[str, Any]) -> float | None:
        """The value of one seed; None: it diverged. A run with fewer rounds is averaged over all of them."""
        return None if receipt["status"] == "diverged" else self.mean(receipt["curves"])

    def mean(self, curves: dict[str, list[float | None]]) -> float:
        """The value of one seed that did not diverge, from its curves. Rounds without a value do not count."""
        known = [value for value in curves[self.metric][: self.until_round][-self.average_last :] if value is not None]
        return math.fsum(known) / len(known)

    def rounds(self, rounds: int) -> str:
        """`mean of the last 10 of 200 rounds`, `after 100 of 500 rounds`."""
        until = rounds if self.until_round is None else min(self.until_round, rounds)
        last = min(self.average_last, until)
        if until < rounds:
            return f"after {until} of {rounds} rounds" + (f", mean of {last}" if last > 1 else "")
        if last == 1:
            return f"the last of {rounds} rounds" if rounds > 1 else "the only round"
        return f"mean of the last {last} of {rounds} rounds" if last < rounds else f"mean of all {rounds} rounds"


def readings(plan: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Reading]]:
    """Every cell of a plan that has a run, and what it takes of it."""
    metrics = {column["key"]: column["metric"]["name"] for column in plan["columns"]}
    for cell in plan["cells"]:
        if cell["run_id"]:
            yield cell, reading(cell, metrics[cell["column"]])


def reading(cell: dict[str, Any], metric: str) -> Reading:
    """What a cell of a plan takes of its run."""
    return Reading(metric, cell["average_last"], cell["until_round"])
