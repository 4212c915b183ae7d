"""A run's folder: per seed metrics, model and environment with their manifest, and the receipt that says a seed is complete.

    results/runs/<run_id>/config.json
    results/runs/<run_id>/seed8/{metrics.parquet, model.safetensors, env.json, manifest.json}
    results/runs/<run_id>/seed8.json      the receipt: the seed's evidence, written last

The receipt is all that the workflow sees of a seed. It can be lost (a failed job loses its outputs) and is then written
again from the folder, at no cost.
"""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.torch import save

from fedrepro.engine.loop import Outcome
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.files import fresh_folder, read_json, sha256_file, write_json

RUNS = Path("results/runs")
SCHEMA = 2  # raised when a key changes its meaning or goes away; 2: what a table reports is no longer in it


def identity(run: dict[str, Any]) -> dict[str, Any]:
    """The part of a plan's run that its run_id decides alone; the sources of its values may be told differently one day."""
    return {key: run[key] for key in ("run_id", "method", "method_label", "config", "inputs")}


def receipt_path(root: Path, run_id: str, seed: int) -> Path:
    """`results/runs/<run_id>/seed<k>.json`."""
    return Path(root) / RUNS / run_id / f"seed{seed}.json"


def write_seed(root: Path, run_id: str, evidence: dict[str, Any], outcome: Outcome) -> None:
    """Writes a finished seed's folder at once or not at all; the evidence goes into its manifest."""
    folder = receipt_path(root, run_id, evidence["seed"]).with_suffix("")
    with fresh_folder(folder) as new:
        rounds, names, values = zip(*outcome.progress.rows, strict=True)
        columns = {"round": pa.array(rounds, pa.int32()), "metric": pa.array(names), "value": pa.array(values, pa.float64())}
        pq.write_table(pa.table(columns), new / "metrics.parquet")
        tensors = {
            name: tensor.contiguous().cpu() for tree in (outcome.params, outcome.buffers) for name, tensor in tree.items()
        }
        (new / "model.safetensors").write_bytes(save(tensors))  # `save_file` hides a full disk behind an error of its own
        write_json(new / "env.json", evidence["environment"] | {"cost": evidence["cost"]})
        files = {path.name: sha256_file(path) for path in sorted(new.iterdir())}
        write_json(new / "manifest.json", evidence | {"files": files})


def confirm(root: Path, run_id: str, seed: int, inputs: dict[str, str]) -> bool:
    """Writes the receipt of a complete seed, from its folder or from evidence that is committed. False when there is neither.

    UserError when a file of it is damaged, or was computed from other inputs than today's: results are never overwritten.
    """
    receipt = receipt_path(root, run_id, seed)
    folder = receipt.with_suffix("")
    if not folder.exists():
        committed = map(read_json, _committed(root, run_id, seed))
        wanted = {"schema": SCHEMA, "run_id": run_id, "seed": seed, "inputs": inputs}
        found = next((content for content in committed if wanted.items() <= content.items()), None)
        if found is not None:
            write_json(receipt, found)
        return found is not None
    evidence = read_json(folder / "manifest.json")
    again = f"delete {folder} to compute it again"
    for name, expected in evidence["files"].items():
        if not (folder / name).exists() or sha256_file(folder / name) != expected:
            raise UserError(
                f"{folder / name}: does not match the sha256 in its manifest; restore it with `dvc checkout`, or {again}"
            )
    _same_inputs(folder, evidence, inputs, again)
    write_json(receipt, evidence)
    return True


def kept(root: Path, run_id: str, seed: int) -> str | None:
    """What there is, unread, of a seed that is complete: receipt, result folder or evidence; None when it would be trained."""
    receipt = receipt_path(root, run_id, seed)
    if receipt.exists():
        return "receipt"
    if (receipt.with_suffix("") / "manifest.json").exists():
        return "result folder"
    return "evidence" if _committed(root, run_id, seed) else None


def _committed(root: Path, run_id: str, seed: int) -> list[Path]:
    scales = ("short", "full")
    return [path for s in scales for path in Path(root).glob(f"reports/{s}/*/evidence/{run_id}/seed{seed}.json")]


def _same_inputs(path: Path, evidence: dict[str, Any], inputs: dict[str, str], again: str) -> None:
    changed = [kind for kind, value in inputs.items() if evidence["inputs"].get(kind) != value]
    if changed:
        raise UserError(
            f"{path}: was computed from another {changed[0]} than today's; restore that file with `dvc checkout`, or {again}"
        )


def evidence(
    spec: RunSpec, run: dict[str, Any], seed: int, outcome: Outcome, environment: dict, inputs: dict[str, str], cost: dict
):
    """What a report needs of one seed, as plain JSON values: numbers that are not finite become null."""
    curves: dict[str, dict[int, float]] = {}
    for round, name, value in outcome.progress.rows:
        curves.setdefault(name, {})[round] = value
    rounds = range(outcome.progress.round)
    accuracy = list(curves["test_accuracy"].values())
    finished = outcome.status == "finished"
    return {
        "schema": SCHEMA,
        "run_id": run["run_id"],
        "seed": seed,
        "status": outcome.status,
        "method": run["method"],
        "method_label": run["method_label"],
        "config": run["config"],
        "summary": {
            "last_test_accuracy": accuracy[-1] if finished else None,
            "best_test_accuracy": max(accuracy),
            "test_loss": _finite(list(curves["test_loss"].values())[-1]),
        },
        "curves": {"round": list(rounds)} | {n: [_finite(c.get(t)) for t in rounds] for n, c in sorted(curves.items())},
        "inputs": inputs,
        "environment": environment,
        "cost": cost,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
