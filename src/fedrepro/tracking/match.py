"""Which of the existing runs is shown, and which are removed. Pure.

In a shared store several folders may have a run of the same key. The newer result stays: else two folders would replace each
other's runs for ever.
"""

import time
from dataclasses import dataclass

from fedrepro.tracking.backend import KnownRun
from fedrepro.tracking.shown import DIGEST, LIVE, MEAN, ORIGIN, REACHED, ROUNDS, Running, Shown

SILENT_S = 24 * 3600


@dataclass(frozen=True)
class Match:
    """`since`: the rounds that `kept` shows of a training which goes on or has finished, and when they were done, in ms; None
    if it is as it shall be."""

    kept: KnownRun | None
    doomed: list[KnownRun]
    since: tuple[int, int] | None = None
    ours: bool = True  # as against one that another folder wrote, which is left as it is

    @classmethod
    def of(cls, shown: Shown, existing: list[KnownRun], origin: str | None) -> "Match":
        """Of the runs with the key of `shown`."""
        same = next((run for run in existing if shown.digest and run.tags.get(DIGEST) == shown.digest), None)
        theirs = next((run for run in existing if same is None and _stays(shown, run, origin)), None)
        training = next((run for run in existing if _goes_on(shown, run)), None)
        kept = same or theirs or training
        doomed = [run for run in existing if run is not kept]
        if kept is None or kept is not training:
            return cls(kept, doomed, ours=kept is None or kept.tags.get(ORIGIN) == origin or LIVE not in kept.tags)
        rounds = int(kept.tags[ROUNDS])
        unchanged = isinstance(shown, Running) and rounds >= shown.rounds and kept.status == "RUNNING"
        return cls(kept, doomed, None if unchanged else (rounds, int(kept.tags.get(REACHED, kept.started))))


def _goes_on(shown: Shown, run: KnownRun) -> bool:
    """Whether the run shows the first rounds of the same training."""
    return ROUNDS in run.tags and DIGEST not in run.tags and run.started == shown.span[0]


def _stays(shown: Shown, run: KnownRun, origin: str | None) -> bool:
    """Whether another folder wrote the run, with a newer result. A run without a digest is incomplete."""
    if run.tags.get(ORIGIN) == origin or DIGEST not in run.tags or LIVE not in run.tags:
        return False
    return isinstance(shown, Running) or _rank(run.tags["seed"], run.ended) > _rank(shown.tags["seed"], shown.span[1])


def _rank(seed: str, ended: int) -> tuple[int, int]:
    """A mean over more seeds comes first, then what ended later."""
    return (seed.count(",") if seed.startswith(MEAN) else 0, ended)


def old_news(run: KnownRun) -> bool:
    """Whether a training of another folder has shown nothing new for a day."""
    return time.time() - int(run.tags.get(REACHED, run.started)) / 1000 > SILENT_S
