"""The record of a finished seed, and the checks on it. The same JSON is manifest, receipt and committed evidence.

A record holds the sha256 of the files in its result folder, `metrics.parquet` among them, and a digest of all its content. So a
number in a table can be traced to the metrics file. A digest in the file itself protects against accidents and careless edits.
A forger can compute it anew, but `fedrepro verify` trains again and finds the forgery.

Nothing here imports torch. Functions that read a whole result folder import pyarrow.
"""

import math
import re
from pathlib import Path
from typing import Any

from fedrepro.engine.identity import require_settings
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, sha256_file

Record = dict[str, Any]
Row = tuple[int, str, float]  # round, metric, value

SCHEMA = 2  # raised when a key changes its meaning or goes away; since 2 it does not hold what a table reports
MANIFEST, METRICS = "manifest.json", "metrics.parquet"
KEYS = ("status", "summary", "curves", "inputs", "environment", "cost", "config", "method", "method_label", "files")
CHANGED = "its digest is not that of its content: it was changed after it was written"


def seal(record: Record) -> Record:
    """The record with the digest of its content added."""
    return record | {"digest": _digest(record)}


def digest_fault(record: Record) -> str:
    """Says what is wrong with the record's digest. "" if it matches the content."""
    if "digest" not in record:
        return "it has no digest: an older version wrote it, or a key was deleted"
    return "" if record["digest"] == _digest(record) else CHANGED


def _digest(record: Record) -> str:
    """Digest of canonical JSON, which writes a float as the shortest text that gives the same float again."""
    return canonical_hash({key: value for key, value in record.items() if key != "digest"}, 64)


def repair_advice(path: Path) -> str:
    """Says how to repair a damaged record at `path`."""
    if path.name == MANIFEST:
        return f"restore it with `dvc checkout`, or delete {path.parent} to compute it again"
    if path.parts[-5:-4] in (("short",), ("full",)) and path.parts[-3] == "evidence":  # committed evidence
        return f"restore it with `git checkout -- {path}`, or delete it and run the same command again"
    return "delete it and run the same command again"


def read(path: Path, sealed: bool = True) -> Record:
    """Reads the record at `<run_id>/seed<k>.json` or `<run_id>/seed<k>/manifest.json` and verifies it: run and seed are those
    of its path, the digest matches, and the settings have its run_id. With `sealed` False a record without a digest is
    accepted.

    UserError in one line that says how to repair it.
    """
    path, advice = Path(path), repair_advice(Path(path))
    try:
        record = read_json(path)
    except UserError as error:
        raise UserError(f"{path}: {'not valid JSON' if path.is_file() else 'no such file'}; {advice}") from error
    seed_folder = path.parent if path.name == MANIFEST else path.with_suffix("")
    seed_match = re.fullmatch(r"seed(\d+)", seed_folder.name)
    expected_values = {"schema": SCHEMA, "run_id": seed_folder.parent.name, "seed": int(seed_match[1]) if seed_match else None}
    for key, value in expected_values.items():
        if not isinstance(record, dict) or record.get(key) != value:
            actual_value = record.get(key) if isinstance(record, dict) else record
            raise UserError(f"{path}: {key} = {actual_value!r} where {value!r} belongs; {advice}")
    missing = [key for key in KEYS if key not in record]
    if missing:
        raise UserError(f"{path}: key {missing[0]!r} is missing; {advice}")
    fault = digest_fault(record)
    if fault and (sealed or "digest" in record):
        raise UserError(f"{path}: {fault}; {advice}")
    require_settings(record, path, advice)
    return record


def read_folder(folder: Path) -> Record:
    """Reads the record of a result folder and seals it. Verifies the sha256 of every file, curves and summary against
    metrics.parquet, and environment and cost against env.json. So a folder of an older version without a digest is as good as a
    new one.

    UserError in one line that says how to repair it.
    """
    path = folder / MANIFEST
    record, advice = read(path, sealed=False), repair_advice(path)
    for name in sorted({METRICS, "env.json", "model.safetensors"} | record["files"].keys()):
        if not _same(folder / name, record):
            raise UserError(f"{folder / name}: does not match the sha256 in its manifest; {advice}")
    recomputed_numbers = numbers(_rows(folder / METRICS), record["config"]["model"], record["status"])
    for key in ("curves", "summary"):
        if record[key] != recomputed_numbers[key]:
            raise UserError(f"{path}: {key} are not those of {METRICS} beside it; {advice}")
    if read_json(folder / "env.json") != record["environment"] | {"cost": record["cost"]}:
        raise UserError(f"{path}: environment or cost are not those of env.json beside it; {advice}")
    return seal(record)


def read_receipt(path: Path) -> Record:
    """The receipt at `path`, verified as by `read`, and against the files of its result folder if there is one."""
    path = Path(path)
    record, folder = read(path), path.with_suffix("")
    for name in record["files"] if folder.is_dir() else ():
        if not _same(folder / name, record):
            raise UserError(f"{path}: was made from another {name} than {folder / name}; {repair_advice(path)}")
    return record


def numbers(rows: list[Row], model: str, status: str) -> dict[str, Any]:
    """`summary` and `curves` of a record, from the rows of metrics.parquet. Numbers that are not finite become null."""
    from fedrepro.models.names import primary_metric

    values: dict[str, dict[int, float]] = {}
    for round, name, value in rows:
        values.setdefault(name, {})[round] = value
    metric = primary_metric(model)
    metric_values = list(values[metric].values())
    return {
        "summary": {
            f"last_{metric}": metric_values[-1] if status == "finished" else None,
            f"best_{metric}": max(metric_values),
            "test_loss": _finite(list(values["test_loss"].values())[-1]),
        },
        "curves": curves(rows, max(values[metric]) + 1),
    }


def curves(rows: list[Row], rounds: int) -> dict[str, list[Any]]:
    """Every metric of the first `rounds` rounds, and `round`, the rounds' numbers. null if a round has no finite value."""
    values_by_metric: dict[str, list[Any]] = {"round": list(range(rounds))}
    for name in sorted({name for _, name, _ in rows}):
        values_by_metric[name] = [None] * rounds
    for round, name, value in rows:
        if round < rounds:
            values_by_metric[name][round] = _finite(value)
    return values_by_metric


def _rows(path: Path) -> list[Row]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return list(zip(*(table[name].to_pylist() for name in ("round", "metric", "value")), strict=True))


def _same(path: Path, record: Record) -> bool:
    return path.is_file() and sha256_file(path) == record["files"].get(path.name)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
