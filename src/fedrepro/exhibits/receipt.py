"""The receipt of one run and seed, as reports read it, and the evidence of a plan."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from fedrepro.config.reading import Reading
from fedrepro.engine import fingerprints
from fedrepro.engine.measurements import Measurements


@dataclass(frozen=True)
class Environment:
    """What computed a run. Older evidence lacks some of it."""

    python: str | None = None
    torch: str | None = None
    numpy: str | None = None
    platform: str | None = None
    engine: str | None = None
    arithmetic: str | None = None
    linear_kernel: str | None = None
    products: str | None = None
    device: str | None = None
    processor: str | None = None
    threads: int | None = None
    commit: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True)
class Cost:
    """What a run and seed cost; where several seeds train at once, a seed's share.

    `client_rounds` and the bytes are what a real deployment would send. `shared_s` of `wall_s` went into rounds that another
    run trained.
    """

    wall_s: float
    peak_rss_mib: float | None
    samples: int
    samples_per_second: float | None
    finished_at: str
    client_rounds: int | None = None
    bytes_up: int | None = None
    bytes_down: int | None = None
    shared_rounds: int = 0
    shared_s: float = 0.0


@dataclass(frozen=True)
class Receipt:
    """The evidence of one run and seed. `code`: fingerprints of the code that made it, empty in older evidence. `measured`:
    what diagnostics found in the rounds that the plan keeps, by the name of the curve."""

    run_id: str
    seed: int
    status: Literal["finished", "diverged"]
    method: str
    config: dict[str, Any]
    curves: dict[str, list[float | None]]
    inputs: dict[str, str | None]
    environment: Environment
    cost: Cost
    measured: dict[str, Measurements] = field(default_factory=dict)
    path: str = ""  # from the project's root
    code: dict[str, str] = field(default_factory=dict)

    @property
    def diverged(self) -> bool:
        """Whether weights or loss stopped being finite, in the last round that it records."""
        return self.status == "diverged"

    @property
    def key(self) -> str:
        """`<run_id>/seed<k>`, as MLflow's tag `fedrepro.run_key`."""
        return f"{self.run_id}/seed{self.seed}"

    def recorded(self, curve: str) -> dict[int, float]:
        """Round, counted from 0, -> value, of the rounds that were evaluated and have one. The round in which it diverged has
        none: its weights or its loss are not finite."""
        pairs = [*zip(self.curves["round"], self.curves.get(curve, []), strict=False)]
        return {int(number or 0): value for number, value in (pairs[:-1] if self.diverged else pairs) if value is not None}

    def has(self, reading: Reading) -> bool:
        """Whether it has the curve that is read, or diverged before: a diagnostic may not have measured it yet."""
        return self.diverges(reading) or reading.diagnostic is None or reading.curve in self.curves

    def diverges(self, reading: Reading) -> bool:
        """Whether it diverged before the last round that is read, so that there is no number."""
        return not reading.precedes(self.status, self.curves)

    def value(self, reading: Reading) -> float | None:
        """The number that is read. None: it diverged before it was read, never reached the target, or a diagnostic found no
        finite value."""
        return None if self.diverges(reading) or self._is_not_finite(reading) else reading.value(self.curves)

    def _is_not_finite(self, reading: Reading) -> bool:
        """Whether a diagnostic measured rounds that are read and found no finite value. An earlier round must not stand in."""
        measured, rounds = self.measured.get(reading.curve), reading.window(len(self.curves["round"]))
        read = measured.measured_in(rounds) if measured else []
        return bool(read) and all(self.curves[reading.curve][number] is None for number in read)


def why_mixed(receipts: Collection[Receipt]) -> str:
    """Says why seeds have no mean: `different code of part gh`, `different arrays of the data set`. Empty if they have one."""
    code = fingerprints.apart(receipt.code for receipt in receipts)
    data = {digest for receipt in receipts if (digest := receipt.inputs.get("arrays"))}
    reasons = [f"different code of {fingerprints.listed(code)}"] if code else []
    reasons += ["different arrays of the data set"] if len(data) > 1 else []
    return " and ".join(reasons)


Evidence = dict[str, dict[int, Receipt]]  # run_id -> seed -> receipt


def receipts(evidence: Evidence) -> list[Receipt]:
    """Lists the receipts of all runs and seeds."""
    return [receipt for seeds in evidence.values() for receipt in seeds.values()]
