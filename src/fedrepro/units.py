"""Units of metrics: how their values are written, and what counts as one point of difference. Needs no library."""

from dataclasses import dataclass

from fedrepro.errors import UserError
from fedrepro.registry import unknown

RELATIVE = 0.02  # of the printed value: one point where a unit has none of its own (our choice)


def decimal(value: float | None, digits: int = 2, sign: str = "") -> str:
    """The value with `digits` decimals and the minus sign −; a dash for None. With `sign` "+" a positive value has its sign
    too.

    Rounds to 9 decimals first, so that float errors in the last bits do not decide ties: 3.535 is always written the same way.
    """
    return "–" if value is None else f"{round(value, 9):{sign}.{digits}f}".replace("-", "−")


def rounded(value: float, digits: int) -> float:
    """The value that `decimal` writes."""
    return float(f"{round(value, 9):.{digits}f}")


@dataclass(frozen=True)
class Unit:
    """`digits`: decimals that values are written with. `point`: one point in this unit; None: 2 % of the value compared with.
    `sign`: after a value; `difference`: what a difference is counted in; `none`: the word for a seed without a value, such as
    diverged.
    """

    name: str
    digits: int
    point: float | None
    sign: str = ""
    difference: str = ""
    none: str = "diverged"

    def one_point(self, value: float | None = None) -> float:
        """Returns one point. A unit without a fixed point takes 2 % of `value`, the value compared with (None counts as 0)."""
        return self.point if self.point is not None else RELATIVE * abs(value or 0.0)

    def text(self, value: float | None, sign: str = "") -> str:
        """`85.20`, with `sign` "+" `+0.42`; `none` for None."""
        return self.none if value is None else decimal(value, self.digits, sign)


UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit("percent", 2, 1.0, " %", "points"),
        Unit("rounds", 1, 1.0, " rounds", "rounds", none="not reached"),
        Unit("epochs", 1, 1.0, " epochs", "epochs"),
        Unit("count", 0, 1.0),
        Unit("fraction", 3, 0.01),  # a share between 0 and 1, mAP too
        Unit("weight", 3, 0.01),  # of an average, between 0 and 1
        Unit("ratio", 3, 0.01),  # of two values of one unit
        Unit("cosine", 4, 0.01),  # mean over pairs of clients; small where there are many
        Unit("loss", 3, None),
        Unit("norm", 3, None),
        Unit("eigenvalue", 3, None),
        Unit("factor", 4, 0.005),  # of weights, near 1: a tenth of the 0.05 that FedLAW's learnt gamma prints below it
        Unit("correlation", 3, 0.1),  # Pearson's, between -1 and 1
    )
}


def unit(name: str) -> Unit:
    """The unit called `name`. UserError, with the names that there are, for another."""
    if name not in UNITS:
        raise UserError(unknown("unit", name, sorted(UNITS)))
    return UNITS[name]
