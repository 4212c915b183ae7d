"""Receipts and evidence of finished seeds, read without torch by the workflow's process and by commands that only read.

    results/runs/<run_id>/seed8/manifest.json    beside the results themselves, see `fedrepro.engine.results`
    results/runs/<run_id>/seed8.json             the receipt: the seed's evidence, written last
    reports/<scale>/<paper>/evidence/<run_id>/seed8.json    a copy that is committed

The receipt is all that the workflow sees of a seed. It can be lost (a failed job loses its outputs) and is then written
again from the folder, at no cost.
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedrepro.choices import PUBLISHED
from fedrepro.engine import fingerprints
from fedrepro.engine.fingerprints import Changed
from fedrepro.engine.records import MANIFEST, Record, read, read_folder
from fedrepro.errors import UserError
from fedrepro.files import json_text, read_json, write_json

RUNS = Path("results/runs")
IDENTITY = ("run_id", "method", "method_label", "config", "inputs")  # keys that the run_id determines


def identity(run: dict[str, Any]) -> dict[str, Any]:
    """The part of a plan's run that its run_id determines. It leaves out the texts on the sources of values, which may
    change."""
    return {key: run[key] for key in IDENTITY}


def receipt_path(root: Path, run_id: str, seed: int) -> Path:
    """`results/runs/<run_id>/seed<k>.json`."""
    return Path(root) / RUNS / run_id / f"seed{seed}.json"


def confirm(root: Path, run_id: str, seed: int, inputs: dict[str, str]) -> bool:
    """Writes the receipt of a complete seed, from its folder or from evidence that is committed; without either, a receipt that
    is there counts. False when there is none of them.

    UserError when a file of it is damaged, or was computed from other inputs than today's: results are never overwritten.
    The receipt has a digest even where an older version wrote the folder without one.
    """
    receipt = receipt_path(root, run_id, seed)
    folder = receipt.with_suffix("")
    if not folder.exists():
        candidates = map(read, committed(root, run_id, seed))
        evidence = next((record for record in candidates if record["inputs"] == inputs), None)
        if evidence is not None:
            write_json(receipt, evidence)
        elif receipt.exists():
            _same_inputs(receipt, read(receipt), inputs)
        return receipt.exists()
    both = f"{folder} and {receipt}" if receipt.exists() else f"{folder}"  # the receipt alone would count, too
    try:
        with _without_pandas():
            record = read_folder(folder)
    except UserError as error:
        raise UserError(str(error).replace(f"delete {folder} to", f"delete {both} to")) from error
    _same_inputs(folder, record, inputs, both)
    if not receipt.exists() or receipt.read_bytes() != json_text(record).encode():  # an unchanged receipt keeps its time
        write_json(receipt, record)
    return True


@contextlib.contextmanager
def _without_pandas() -> Iterator[None]:
    """`pyarrow.parquet` reads a single file without `pyarrow.dataset` too, which would import pandas in each training job."""
    name = "pyarrow.dataset"
    hidden = sys.modules.setdefault(name, None) is None  # type: ignore[call-overload]
    try:
        yield
    finally:
        if hidden:
            del sys.modules[name]


def existing(root: Path, run_id: str, seed: int, config: Mapping[str, Any] | None = None) -> str | None:
    """Names what a complete seed has: receipt, result folder or evidence. None if it has to be trained. With the run's `config`
    a stale result counts as missing, see `changed`."""
    if config is not None and changed(root, run_id, seed, config).retrain:
        return None
    return trained(root, run_id, seed) or ("evidence" if committed(root, run_id, seed) else None)


def changed(root: Path, run_id: str, seed: int, config: Mapping[str, Any]) -> Changed:
    """Returns the code that made this machine's result of a seed and has changed since. If `retrain` names any, the result is
    stale. Empty if there is no result or its code is unknown. A published result is only marked, whatever has changed.

    Usually reads the first lines of one file only, so it is fast enough for thousands of seeds. `config`: the run's.
    """
    receipt = receipt_path(root, run_id, seed)
    path = next((file for file in (receipt.with_suffix("") / MANIFEST, receipt) if file.exists()), None)
    change = fingerprints.changed(path and code_of(path), config)
    if path and change.retrain and _published(path, committed(root, run_id, seed)):
        return Changed(mark=change.names)
    return change


def fresh(root: Path, run_id: str, seed: int, config: Mapping[str, Any]) -> bool:
    """Whether a seed was trained in this folder, by today's code of its parts and its scheme. If not, a job must train it.

    Also False if a kill left a new result folder beside an old receipt, since reports read the receipt.
    """
    if trained(root, run_id, seed) is None or changed(root, run_id, seed, config).retrain:
        return False
    receipt = receipt_path(root, run_id, seed)
    manifest = receipt.with_suffix("") / MANIFEST
    return not (receipt.exists() and manifest.exists()) or code_of(receipt) == code_of(manifest)


def code_of(path: Path) -> dict[str, str] | None:
    """The `code` of a record: the first key of its file, since keys are sorted, so the rest is not read. None without one, or
    if it is damaged: whoever reads the whole file reports that."""
    start, key = "", '{\n "code": '
    with contextlib.suppress(UnicodeDecodeError), path.open() as stream:
        while text := stream.read(4096):
            start += text
            if not start.startswith(key):
                return None
            with contextlib.suppress(json.JSONDecodeError):
                code = json.JSONDecoder().raw_decode(start, len(key))[0]
                valid = isinstance(code, dict) and all(isinstance(fingerprint, str) for fingerprint in code.values())
                return code if valid else None
    return None


def _published(path: Path, evidence: list[Path]) -> bool:
    """Whether the record at `path` is of a training that was published: of the same files."""
    with contextlib.suppress(UserError, KeyError, TypeError):  # a table that reads it reports the error
        files = read_json(path)["files"]
        return any(read_json(file)["files"] == files for file in evidence)
    return False


def trained(root: Path, run_id: str, seed: int) -> str | None:
    """Names the result of a seed that was trained in this folder: its receipt or its result folder. None if there is
    neither."""
    receipt = receipt_path(root, run_id, seed)
    if receipt.exists():
        return "receipt"
    return "result folder" if (receipt.with_suffix("") / MANIFEST).exists() else None


def committed(root: Path, run_id: str, seed: int) -> list[Path]:
    """Published evidence of a seed; several where papers share the run."""
    return [path for s in PUBLISHED for path in Path(root).glob(f"reports/{s}/*/evidence/{run_id}/seed{seed}.json")]


def together(record: Record) -> list[int]:
    """The seeds that trained together with this one on the vectorised engine, itself among them, in their order: its last bits
    depend on them. Only this seed if the record does not name them."""
    seeds = record["environment"].get("together")
    return seeds if isinstance(seeds, list) and record["seed"] in seeds else [record["seed"]]


def beside(root: Path, run_id: str, seeds: list[int]) -> list[int]:
    """`seeds`, then the seeds that trained together with finished ones of them, according to the readable files."""
    all_seeds = dict.fromkeys(seeds)
    for seed in seeds:
        receipt = receipt_path(root, run_id, seed)
        for path in (receipt, receipt.with_suffix("") / MANIFEST, *committed(root, run_id, seed)):
            with contextlib.suppress(UserError, KeyError, TypeError, AttributeError):  # the training reports the error
                all_seeds |= dict.fromkeys(together(read_json(path)))
    return list(all_seeds)


def _same_inputs(path: Path, record: Record, inputs: dict[str, str], delete: str = "") -> None:
    """UserError unless the record at `path` has these inputs. `delete`: what to delete instead of `path`."""
    changed = [kind for kind, value in inputs.items() if record["inputs"].get(kind) != value]
    if changed:
        raise UserError(
            f"{path}: was computed from another {changed[0]} than today's; restore that file with `dvc checkout`, or delete "
            f"{delete or path} to compute it again"
        )
