"""Reads a tracking database as another MLflow client does."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrepro.tracking import store
from fedrepro.tracking.address import default_address
from fedrepro.tracking.content import KEY


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Any]:
    """A client of the project's database."""
    with store.connected(default_address(root), root) as backend:
        yield backend.client


def runs_in(root: Path, experiment: str = "fedlaw/demo") -> dict[str, list]:
    """Run key -> MLflow runs of the seeds, as another MLflow client sees them."""
    return {key: runs for key, runs in all_in(root, experiment).items() if "/" in key}


def means_in(root: Path, experiment: str = "fedlaw/demo") -> dict[str, list]:
    """run_id -> MLflow runs of the means over seeds."""
    return {key: runs for key, runs in all_in(root, experiment).items() if "/" not in key}


def all_in(root: Path, experiment: str = "fedlaw/demo") -> dict[str, list]:
    with opened(root) as client:
        identity = client.get_experiment_by_name(experiment).experiment_id
        found: dict[str, list] = {}
        for run in client.search_runs([identity], max_results=1000):
            found.setdefault(run.data.tags.get(KEY, "none"), []).append(run)
        return found
