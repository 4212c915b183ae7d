"""Memory and time to request from a cluster. On one machine they limit nothing.

A margin covers what `fedrepro.cost.rates` leaves out, such as another processor. Each further attempt requests more memory,
and more time up to MOST_MINUTES: a training resumes from its checkpoint.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedrepro.cost.rates import Rates

MARGIN_TIME, MARGIN_MEMORY = 2.0, 1.3
START_MINUTES, START_MIB = 10, 500  # to load the libraries and the data, on a node that has not done it before
# Seconds of a seed and MiB, where no run with that network is published; and where its data need no files.
UNKNOWN, EMBEDDED = (3600.0, 2000.0), (120.0, 1000.0)
SHORT_S = 600.0  # shorter trainings share a job
MOST_MINUTES = 24 * 60  # of a further attempt, unless the first one asks for more
CUDA_MIB = 3000  # at least: torch and CUDA alone take more than a small training on a CPU, whose runs may be all that is known


@dataclass(frozen=True)
class Needs:
    """What one attempt is given."""

    mem_mb: int = 0
    minutes: int = 0
    group: str | None = None  # the trainings that share a job, since starting one takes longer

    def at(self, attempt: int) -> "Needs":
        """Returns the request of an attempt, counted from 1: `attempt` times the first request, the time up to MOST_MINUTES."""
        return Needs(self.mem_mb * attempt, max(self.minutes, min(self.minutes * attempt, MOST_MINUTES)), self.group)


def of(rates: Rates, config: Mapping[str, Any], device: str, seeds: int, workers: int = 1) -> Needs:
    """Returns the first request for `seeds` seeds of a run, trained one after another. `workers`: its processes. Each may need
    as much memory as the first; the time assumes no speed-up."""
    embedded = not rates.registry[config["dataset"]].files
    measured = rates.at_most(config, device)
    seconds, mib = measured or (EMBEDDED if embedded else UNKNOWN)
    short = device == "cpu" and (seconds * seeds < SHORT_S if measured else embedded)
    memory = max(math.ceil(START_MIB + MARGIN_MEMORY * mib * workers), CUDA_MIB if device == "cuda" else 0)
    return Needs(memory, math.ceil(START_MINUTES + MARGIN_TIME * seconds * seeds / 60), "short" if short else None)
