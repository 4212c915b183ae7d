"""The name of a run: its run_id ends with a hash of its settings. A file with other settings under that name is refused."""

from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import canonical_hash

# Part of every run's hash: raise it when a change of the code is meant to change results.
RESULTS_VERSION = 1


def settings_hash(config: dict[str, Any]) -> str:
    """The last part of the run_id of these settings, given as `RunSpec.as_dict` makes them or as a JSON file holds them."""
    return canonical_hash({"spec": config, "version": RESULTS_VERSION}, 8)


def require_settings(run: dict[str, Any], path: Path | str, repair: str) -> None:
    """UserError unless `run` has the run_id of its settings, and the method that they name; `repair` ends the line."""
    end = f"-{run['method_label']}-{settings_hash(run['config'])}"
    if not str(run["run_id"]).endswith(end) or run["method"] != run["config"].get("method"):
        raise UserError(f"{path}: its settings are not those of run_id = {run['run_id']!r} (was it edited?); {repair}")
