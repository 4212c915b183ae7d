"""The server's proxy set: images from the TEST set. The rest of the test set remains for evaluation.

FedLAW (ICML 2023, https://arxiv.org/abs/2302.10911, appendix D) trains its server on a class-balanced set and tests every
method on the remainder, also methods that use no proxy data. Each class is shuffled by the stream of (seed, class) and gives
its first `per_class` images. So at one seed a smaller proxy set is part of a larger one. per_class = 0 leaves the whole test
set for evaluation.

With kind = long_tailed (Table 6) class c of C keeps the first floor(per_class * ratio^(-c / (C - 1))) of these images, as in
the authors' code. The others are in neither set (our choice), so that the test set is the same as for the balanced proxy set;
the paper prints the same accuracies of FedAvg beside both.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro import rng
from fedrepro.data import artifact
from fedrepro.data.long_tail import tail_size
from fedrepro.errors import UserError
from fedrepro.registry import Registry, parse, require

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

PROXY = Path("data/proxy")
KINDS = Registry("kind of proxy set")
BALANCED = "balanced"


@KINDS.register(BALANCED)
@dataclass(frozen=True)
class Balanced:
    """The same number of images for every class."""

    def size(self, per_class: int, c: int, classes: int) -> int:
        """The number of images of class c."""
        return per_class


@KINDS.register("long_tailed")
@dataclass(frozen=True)
class LongTailed:
    """`ratio`: images of the first class divided by images of the last class, at least 1 and finite; FedLAW's is 10."""

    ratio: float = 10.0

    def __post_init__(self) -> None:
        require(self.ratio >= 1, "long_tailed(ratio=...)", self.ratio, "must be at least 1")

    def size(self, per_class: int, c: int, classes: int) -> int:
        """The number of images of class c. Late classes of a small set may have none."""
        return tail_size(per_class, c, classes, self.ratio)


@dataclass(frozen=True)
class Proxy(artifact.Artifact):
    """Two disjoint index sets. For a balanced proxy set they make up the whole test set."""

    proxy_index: np.ndarray  # int64 [classes * per_class, or fewer], ascending
    evaluation_index: np.ndarray  # int64 [test images - classes * per_class], ascending


def definition(entry: "Entry", per_class: int, kind: str = BALANCED) -> dict[str, Any]:
    """Everything that decides the split except the seed. per_class: images of each class that the test set gives up, >= 0.

    kind: how many of them are in the proxy set. Balanced is not written down, so that older files keep their names.
    """
    artifact.require_whole("proxy_per_class", per_class, least=0)
    kind = canonical(kind)
    optional_entries = {} if kind == BALANCED else {"kind": kind}
    return {"dataset": entry.name, "dataset_sha": entry.sha, "per_class": per_class} | optional_entries


def canonical(kind: str) -> str:
    """`balanced`, or `long_tailed(ratio=10.0)` with every argument. UserError for an unknown kind or argument."""
    return str(KINDS.canonical(_kind(kind)))


def artifact_id(definition: dict[str, Any]) -> str:
    """For example `digits-perclass10-1a2b3c`, `digits-perclass10-long_tailed-ratio10-1a2b3c`."""
    slug = f"{definition['dataset']}-perclass{definition['per_class']}"
    if "kind" in definition:
        call = parse(definition["kind"])[0]
        slug = "-".join([slug, call.name, *(f"{key}{value:g}" for key, value in call.arguments.items())])
    return artifact.make_id(slug, definition)


def draw(labels: np.ndarray, classes: int, per_class: int, seed: int, kind: str = BALANCED) -> tuple[np.ndarray, np.ndarray]:
    """(proxy_index, evaluation_index) for test labels [N]. UserError if a class would keep no image for evaluation."""
    candidates_by_class, proxy_kind = [], _kind(kind)
    for c in range(classes):
        class_index = np.flatnonzero(labels == c)
        if per_class and per_class >= len(class_index):
            raise UserError(
                f"proxy_per_class = {per_class}: class {c} has {len(class_index)} test images, and at least one must stay for "
                f"evaluation; use {max(len(class_index) - 1, 0)} at most"
            )
        candidates_by_class.append(rng.stream(seed, "proxy", c).permutation(class_index)[:per_class])
    proxy_by_class = [
        class_index[: proxy_kind.size(per_class, c, classes)] for c, class_index in enumerate(candidates_by_class)
    ]
    evaluation_index = np.setdiff1d(np.arange(len(labels), dtype=np.int64), np.concatenate(candidates_by_class))
    return np.sort(np.concatenate(proxy_by_class)).astype(np.int64), evaluation_index


def _kind(text: str) -> Balanced | LongTailed:
    try:
        calls = parse(text)
        if len(calls) == 1:
            return KINDS.make(calls[0])
    except UserError as error:
        raise UserError(f"proxy = {text!r}: {error}") from error
    raise UserError(f"proxy = {text!r}: must be one of {', '.join(KINDS.names())}")


def create(definition: dict[str, Any], seed: int, root: Path = Path()) -> Path:
    """Draws and saves one split with its manifest; returns the npz. Needs the arrays of the native shape."""
    from fedrepro.data.labels import read_labels

    artifact.require_seed(seed)
    name = artifact_id(definition)
    labels = read_labels(definition, "test", root)
    kind = definition.get("kind", BALANCED)
    proxy_index, evaluation_index = draw(labels.values, labels.classes, definition["per_class"], seed, kind)
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
