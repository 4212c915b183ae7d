"""A run's folder: per seed metrics, model and environment with their manifest.

    results/runs/<run_id>/config.json
    results/runs/<run_id>/seed8/{metrics.parquet, model.safetensors, env.json, manifest.json}
    results/runs/<run_id>/seed8.json      the receipt: the seed's evidence, written last

What is read of it without torch is in `fedrepro.engine.receipts`.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.torch import save

from fedrepro.engine import fingerprints
from fedrepro.engine.columns import column
from fedrepro.engine.loop import Outcome
from fedrepro.engine.receipts import receipt_path
from fedrepro.engine.records import MANIFEST, METRICS, SCHEMA, numbers, seal
from fedrepro.engine.spec import RunSpec
from fedrepro.files import fresh_folder, sha256_file, write_json


def write_seed(root: Path, run_id: str, evidence: dict[str, Any], outcome: Outcome) -> None:
    """Writes a finished seed's folder at once or not at all; the evidence goes into its manifest."""
    folder = receipt_path(root, run_id, evidence["seed"]).with_suffix("")
    with fresh_folder(folder) as new:
        rounds, names, values = zip(*outcome.progress.rows, strict=True)
        columns = [column(rounds, pa.int32()), column(names, pa.string()), column(values, pa.float64())]
        pq.write_table(pa.Table.from_arrays(columns, ["round", "metric", "value"]), new / METRICS)
        tensors = {
            name: tensor.contiguous().cpu() for tree in (outcome.params, outcome.buffers) for name, tensor in tree.items()
        }
        (new / "model.safetensors").write_bytes(save(tensors))  # `save_file` hides a full disk behind its own error
        write_json(new / "env.json", evidence["environment"] | {"cost": evidence["cost"]})
        files = {path.name: sha256_file(path) for path in sorted(new.iterdir())}
        write_json(new / MANIFEST, seal(evidence | {"files": files}))


def evidence(
    spec: RunSpec, run: dict[str, Any], seed: int, outcome: Outcome, environment: dict, inputs: dict[str, str], cost: dict
):
    """Returns what a report needs of one seed, as plain JSON values: numbers that are not finite become null."""
    return {
        "schema": SCHEMA,
        "run_id": run["run_id"],
        "seed": seed,
        "status": outcome.status,
        "method": run["method"],
        "method_label": run["method_label"],
        "config": run["config"],
        **numbers(outcome.progress.rows, spec.model, outcome.status),
        "inputs": inputs,
        "environment": environment,
        "code": fingerprints.today(run["config"], environment.get("device", "cpu")),
        "cost": cost,
    }
