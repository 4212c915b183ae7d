"""Which clients take part in which round: `data/participation/<id>/seed<k>.npz`, the same for every method.

Row t is drawn uniformly without replacement from the stream of (seed, t) alone. So a longer run begins with the same cohorts as
a shorter one. The cohort size is m = max(1, floor(ratio * clients)), truncated as in FedLAW's code. The ratio counts as the
decimal that was written: 0.29 of 100 clients are 29, where binary floating point truncates to 28.

With cohorts = "fixed" the cohort of round 0 takes part in every round. This is a reading of papers that do not say how often
clients are drawn. Our choice is "drawn": a new cohort for each round. "late" cohorts are the drawn ones, with the same files:
all clients train, and the server takes the cohort from their messages, as in FedLAW's Algorithm 1 and its authors' code.

The cohorts do not depend on the partition: the engine leaves out a client without samples.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro import rng
from fedrepro.data import artifact
from fedrepro.registry import require

PARTICIPATION = Path("data/participation")
COHORTS = ("drawn", "fixed", "late")


@dataclass(frozen=True)
class Participation(artifact.Artifact):
    """The cohorts of all rounds."""

    cohorts: np.ndarray  # int64 [rounds, m], each row ascending


def definition(clients: int, ratio: float, rounds: int, cohorts: str = "drawn") -> dict[str, Any]:
    """Everything that decides the cohorts except the seed. ratio: share of the clients in each round, in (0, 1].

    cohorts: drawn anew for each round (late ones too), or fixed, one for all. Only fixed is written down, so that older files
    keep their names.
    """
    artifact.require_whole("clients", clients, least=1)
    artifact.require_whole("rounds", rounds, least=1)
    is_number = isinstance(ratio, int | float) and not isinstance(ratio, bool)
    require(is_number and 0 < ratio <= 1, "participation", ratio, "must lie in (0, 1]")
    require(cohorts in COHORTS, "cohorts", cohorts, f"must be one of {', '.join(COHORTS)}")
    optional_entries = {"cohorts": cohorts} if cohorts == "fixed" else {}
    return {"clients": clients, "ratio": float(ratio), "rounds": rounds} | optional_entries


def cohort_size(definition: dict[str, Any]) -> int:
    """m, the number of clients in every round."""
    return max(1, artifact.floor_share(definition["ratio"], definition["clients"]))


def artifact_id(definition: dict[str, Any]) -> str:
    """For example `n100-ratio0.1-rounds200-1a2b3c`."""
    slug = f"n{definition['clients']}-ratio{definition['ratio']:g}-rounds{definition['rounds']}"
    slug += f"-{definition['cohorts']}" if "cohorts" in definition else ""
    return artifact.make_id(slug, definition)


def draw(definition: dict[str, Any], seed: int) -> np.ndarray:
    """Cohorts int64 [rounds, m], each row ascending."""
    clients, size, rounds = definition["clients"], cohort_size(definition), definition["rounds"]
    is_fixed = definition.get("cohorts") == "fixed"
    drawn_rounds = range(1 if is_fixed else rounds)
    rows = [np.sort(rng.stream(seed, "participation", t).choice(clients, size, replace=False)) for t in drawn_rounds]
    return np.stack(rows * rounds if is_fixed else rows).astype(np.int64)


def create(definition: dict[str, Any], seed: int, root: Path = Path()) -> Path:
    """Draws and saves the cohorts with their manifest; returns the npz. Needs no data."""
    artifact.require_seed(seed)
    name = artifact_id(definition)
    cohorts = draw(definition, seed)
    manifest = {"id": name, "definition": definition, "seed": seed, "cohort_size": cohorts.shape[1]}
    return artifact.save(artifact.npz_path(root, PARTICIPATION, name, seed), {"cohorts": cohorts}, manifest)


def load(root: Path, artifact_id: str, seed: int) -> Participation:
    """The verified cohorts. UserError in one line when a file is missing, damaged or belongs to another id or seed."""
    arrays, manifest = artifact.load(root, PARTICIPATION, artifact_id, seed)
    return Participation(manifest=manifest, **arrays)
