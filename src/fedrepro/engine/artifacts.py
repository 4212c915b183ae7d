"""The drawn artifacts that a run reads. They follow from its settings, so a file with other artifacts is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fedrepro.data import participation, partition, proxy
from fedrepro.data.arrays import MANIFEST, arrays_folder
from fedrepro.engine.identity import require_settings
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.models import initial

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

# kind of artifact -> the module that defines, draws and loads it
MODULES = {"partition": partition, "participation": participation, "proxy": proxy, "init": initial}
FOLDERS = {
    "partition": partition.PARTITIONS,
    "participation": participation.PARTICIPATION,
    "proxy": proxy.PROXY,
    "init": initial.FOLDER,
}
# the files of one seed
SUFFIXES = {
    "partition": (".npz", ".json", ".svg"),
    "participation": (".npz", ".json"),
    "proxy": (".npz", ".json"),
    "init": (".safetensors", ".json"),
}


def drawn(kind: str, artifact: str, seed: int | str, root: Path = Path()) -> Path | None:
    """The manifest of an artifact's seed; None unless every file of it is there."""
    stem = root / FOLDERS[kind] / artifact / f"seed{seed}"
    return stem.with_suffix(".json") if all(stem.with_suffix(suffix).exists() for suffix in SUFFIXES[kind]) else None


def prepared(entry: "Entry", folder: Path) -> bool:
    """Whether `folder` has the data set's arrays, made from its entry of the registry as it is today. Damaged ones count as
    missing."""
    try:
        return entry.made(read_json(folder / MANIFEST))
    except UserError:
        return False


def artifacts(spec: RunSpec, entry: Any) -> dict[str, str]:
    """The artifacts that a run reads: the arrays' folder and the ids of the others."""
    ids = {kind: MODULES[kind].artifact_id(definition) for kind, definition in definitions(spec, entry).items()}
    return {"arrays": str(arrays_folder(Path(), spec.dataset, spec.input_shape))} | ids


def definitions(spec: RunSpec, entry: Any) -> dict[str, dict[str, Any]]:
    """Returns by kind what decides each drawn artifact of a run. `entry`: the data set's `name` and `sha` of the registry."""
    return {
        "partition": partition.definition(entry, spec.partition, spec.clients, spec.local_validation),
        "participation": participation.definition(spec.clients, spec.participation, spec.rounds, spec.cohorts),
        "proxy": proxy.definition(entry, spec.proxy_per_class, spec.proxy),
        "init": initial.definition(spec.model, spec.input_shape, spec.classes),
    }


def require_run(run: dict[str, Any], path: Path | str, repair: str) -> None:
    """UserError unless run_id, method and artifacts of `run` follow from its settings; `repair` ends the line."""
    require_settings(run, path, repair)
    spec = RunSpec(**run["config"])
    for kind, expected in artifacts(spec, SimpleNamespace(name=spec.dataset, sha=spec.dataset_sha)).items():
        recorded = run["inputs"].get(kind)
        if recorded != expected:
            raise UserError(f"{path}: inputs: {kind} = {recorded!r}, but its settings ask for {expected!r}; {repair}")
