"""The server's proxy set: class-balanced images from the TEST set, and what is left of it for evaluation.

FedLAW (ICML 2023, https://arxiv.org/abs/2302.10911, appendix D) trains its server on such a set and tests every method, also
those that use no proxy data, on the remainder. Each class is shuffled by the stream of (seed, class) and gives its first
`per_class` images, so that at one seed a smaller proxy set is part of a larger one. per_class = 0 leaves the whole test set for
evaluation.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro import rng
from fedrepro.data import artifact
from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

PROXY = Path("data/proxy")


@dataclass(frozen=True)
class Proxy(artifact.Artifact):
    """Two disjoint index sets that make up the test set."""

    proxy_index: np.ndarray  # int64 [classes * per_class], ascending
    evaluation_index: np.ndarray  # int64 [the rest], ascending


def definition(entry: "Entry", per_class: int) -> dict[str, Any]:
    """Everything that decides the split except the seed. per_class: images of each class in the proxy set, >= 0."""
    artifact.require_whole("proxy_per_class", per_class, least=0)
    return {"dataset": entry.name, "dataset_sha": entry.sha, "per_class": per_class}


def artifact_id(definition: dict[str, Any]) -> str:
    """For example `digits-perclass10-1a2b3c`."""
    return artifact.make_id(f"{definition['dataset']}-perclass{definition['per_class']}", definition)


def draw(labels: np.ndarray, classes: int, per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(proxy_index, evaluation_index) for test labels [N]. UserError when a class would keep no image for evaluation."""
    chosen = []
    for c in range(classes):
        members = np.flatnonzero(labels == c)
        if per_class and per_class >= len(members):
            raise UserError(
                f"proxy_per_class = {per_class}: class {c} has {len(members)} test images, and at least one must stay for "
                f"evaluation; use {max(len(members) - 1, 0)} at most"
            )
        chosen.append(rng.stream(seed, "proxy", c).permutation(members)[:per_class])
    proxy_index = np.sort(np.concatenate(chosen)).astype(np.int64)
    return proxy_index, np.setdiff1d(np.arange(len(labels), dtype=np.int64), proxy_index)


def create(definition: dict[str, Any], seed: int, root: Path = Path()) -> Path:
    """Draws and saves one split with its manifest; returns the npz. Needs the arrays of the native shape."""
    from fedrepro.data.labels import read_labels

    artifact.require_seed(seed)
    name = artifact_id(definition)
    labels = read_labels(definition, "test", root)
    proxy_index, evaluation_index = draw(labels.values, labels.classes, definition["per_class"], seed)
    manifest = {
        "id": name,
        "definition": definition,
        "seed": seed,
        "sizes": {"proxy": len(proxy_index), "evaluation": len(evaluation_index)},
        "arrays_manifest_sha256": labels.arrays_sha256,
    }
    arrays = {"proxy_index": proxy_index, "evaluation_index": evaluation_index}
    return artifact.save(artifact.npz_path(root, PROXY, name, seed), arrays, manifest)


def load(root: Path, artifact_id: str, seed: int) -> Proxy:
    """The verified split. UserError in one line when a file is missing, damaged or belongs to another id or seed."""
    arrays, manifest = artifact.load(root, PROXY, artifact_id, seed)
    return Proxy(manifest=manifest, **arrays)
