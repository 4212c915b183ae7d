"""The evidence that a report is made from: a receipt for each run and seed. `fedrepro.reports.load` reads it."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fedrepro.config.reading import Reading
from fedrepro.typed import doc


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
    """What a run and seed cost."""

    wall_s: Annotated[float, doc("seconds; a seed's share, where several trained at once")]
    peak_rss_mib: Annotated[
        float | None, doc("peak memory, without what the workflow's loaded process shares and never touched")
    ]
    samples: int
    samples_per_second: float | None
    finished_at: str
    client_rounds: Annotated[int | None, doc("with the bytes: what a real deployment would send in the whole run")] = None
    bytes_up: int | None = None
    bytes_down: int | None = None
    shared_rounds: Annotated[int, doc("rounds that another run trained, which this one went on from")] = 0
    shared_s: Annotated[float, doc("what they took, of wall_s")] = 0.0


@dataclass(frozen=True)
class Receipt:
    """The evidence of one run and seed."""

    run_id: str
    seed: int
    status: Literal["finished", "diverged"]
    method: str
    config: dict[str, Any]
    curves: dict[str, list[float | None]]
    inputs: dict[str, str | None]
    environment: Environment
    cost: Cost
    surfaces: dict[str, Any] = field(default_factory=dict)  # of diagnostics: name of the curve -> {(x, y): value}
    measured: dict[str, Any] = field(default_factory=dict)  # likewise: name of the curve -> its `diagnosed.Measured`
    path: str = ""  # from the project's root
    code: dict[str, str] = field(default_factory=dict)  # fingerprints of what made it; empty in older evidence

    @property
    def diverged(self) -> bool:
        """Whether it has no last value."""
        return self.status == "diverged"

    def has(self, reading: Reading) -> bool:
        """Whether there is something to read: what a diagnostic measures may come later than the run."""
        return self.diverged or reading.diagnostic is None or reading.curve in self.curves


Evidence = dict[str, dict[int, Receipt]]  # run_id -> seed -> receipt
