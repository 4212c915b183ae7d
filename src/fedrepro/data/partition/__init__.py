"""Which training sample belongs to which client: drawn once per definition and seed, saved, and the same for every method.

`data/partitions/<id>/seed<k>.npz` holds the indices, the JSON beside it says how they were drawn, and the SVG shows them. A new
scheme is one file in this folder: importing this package loads all of them.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrepro import rng
from fedrepro.console import say
from fedrepro.data import artifact
from fedrepro.data.partition.scheme import SCHEMES, Draw, GroupedScheme, Scheme
from fedrepro.engine import fingerprints
from fedrepro.errors import UserError
from fedrepro.files import lock, read_json
from fedrepro.registry import Call, parse, require

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

__all__ = [
    "PARTITIONS",
    "SCHEMES",
    "Draw",
    "Partition",
    "Scheme",
    "artifact_id",
    "create",
    "definition",
    "draw",
    "load",
    "renew",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

PARTITIONS = Path("data/partitions")
LOCKS = Path("results/checkpoints")  # outside the folders that DVC versions


@dataclass(frozen=True)
class Partition(artifact.Artifact):
    """A loaded partition of n clients. Client i's training samples are train_index[train_offsets[i]:train_offsets[i + 1]]."""

    train_index: np.ndarray  # int64 [sum of train sizes], into the training set; ascending within a client
    train_offsets: np.ndarray  # int64 [n + 1]
    validation_index: np.ndarray  # int64, the local validation samples, laid out the same way
    validation_offsets: np.ndarray  # int64 [n + 1]
    sizes: np.ndarray  # int64 [n]: training plus validation; aggregation weights are made from these
    class_counts: np.ndarray  # int64 [n, classes], of training plus validation

    @property
    def clients(self) -> int:
        """n, the number of clients."""
        return len(self.sizes)

    def train(self, client: int) -> np.ndarray:
        """A client's training indices, as a view."""
        return self.train_index[self.train_offsets[client] : self.train_offsets[client + 1]]

    def validation(self, client: int) -> np.ndarray:
        """A client's local validation indices, as a view."""
        return self.validation_index[self.validation_offsets[client] : self.validation_offsets[client + 1]]


def definition(entry: "Entry", scheme: str, clients: int, local_validation: float = 0.0) -> dict[str, Any]:
    """Everything that decides a partition except the seed. `scheme` is a call such as "dirichlet_per_class(alpha=0.1)".

    local_validation: share in [0, 1) of every client's samples that is held out from training (see `split_locally`).
    """
    artifact.require_whole("clients", clients, least=1)
    is_number = isinstance(local_validation, int | float) and not isinstance(local_validation, bool)
    require(is_number and 0 <= local_validation < 1, "local_validation", local_validation, "must lie in [0, 1)")
    return {
        "dataset": entry.name,
        "dataset_sha": entry.sha,
        "scheme": str(SCHEMES.canonical(make_scheme(scheme))),
        "clients": clients,
        "local_validation": float(local_validation),
    }


def artifact_id(definition: dict[str, Any]) -> str:
    """For example `digits-dirichlet_per_class-alpha0.1-n10-1a2b3c`."""
    call = _one_call(definition["scheme"])
    arguments = [f"{key}{value:g}" if isinstance(value, float) else f"{key}{value}" for key, value in call.arguments.items()]
    return artifact.make_id("-".join([definition["dataset"], call.name, *arguments, f"n{definition['clients']}"]), definition)


def create(definition: dict[str, Any], seed: int, root: Path = Path()) -> Path:
    """Draws and saves one partition with its manifest and picture; returns the npz. Needs the arrays of the native shape."""
    from fedrepro.data.labels import read_groups, read_labels
    from fedrepro.data.partition.picture import save_picture

    artifact.require_seed(seed)
    name = artifact_id(definition)
    labels = read_labels(definition, "train", root)
    groups = read_groups(definition, "train", root) if needs_groups(definition["scheme"]) else None
    scheme_draw = draw(definition["scheme"], labels.values, labels.classes, definition["clients"], seed, groups)
    splits = [
        split_locally(part, definition["local_validation"], seed, client) for client, part in enumerate(scheme_draw.parts)
    ]
    train_index, train_offsets = _flat([train for train, _ in splits])
    validation_index, validation_offsets = _flat([validation for _, validation in splits])
    class_counts = np.stack([np.bincount(labels.values[part], minlength=labels.classes) for part in scheme_draw.parts])
    arrays = {
        "train_index": train_index,
        "train_offsets": train_offsets,
        "validation_index": validation_index,
        "validation_offsets": validation_offsets,
        "sizes": class_counts.sum(axis=1),
        "class_counts": class_counts,
    }
    manifest = {
        "id": name,
        "definition": definition,
        "seed": seed,
        "sizes": arrays["sizes"].tolist(),
        "train_sizes": np.diff(train_offsets).tolist(),
        "class_counts": class_counts.tolist(),
        "redraws": scheme_draw.redraws,
        "arrays_manifest_sha256": labels.arrays_sha256,
        "code": _code(definition),
    }
    path = artifact.npz_path(root, PARTITIONS, name, seed)
    save_picture(path.with_suffix(".svg"), class_counts, title=f"{definition['dataset']}, {definition['scheme']}, seed {seed}")
    return artifact.save(path, arrays, manifest)


def renew(root: Path, artifact_id: str, seed: int) -> bool:
    """Draws a partition again if other code of its scheme drew it. False if there is nothing to draw again.

    A partition without `code` in its manifest stays, since it is unknown which code drew it.
    """
    path = artifact.npz_path(root, PARTITIONS, artifact_id, seed)
    if not _outdated(path):
        return False

    def report_waiting(holder: str) -> None:
        say(f"{path}: waiting for process {holder}, which is drawing it")

    with lock(Path(root) / LOCKS / f"{artifact_id}-seed{seed}.lock", busy=report_waiting):
        definition = _outdated(path)  # several trainings may have noticed at once
        if definition:
            say(f"{path}: {definition['scheme']} changed since it was drawn; drawing it again")
            create(definition, seed, root)
    return True


def _outdated(path: Path) -> dict[str, Any]:
    """The definition of a partition that other code drew. {} for all others."""
    manifest_path = path.with_suffix(".json")
    manifest = read_json(manifest_path) if manifest_path.exists() else None
    if not isinstance(manifest, dict) or manifest.get("code") is None:
        return {}
    return manifest["definition"] if manifest["code"] != _code(manifest["definition"]) else {}


def _code(definition: dict[str, Any]) -> str | None:
    return fingerprints.load().of(f"partition {_one_call(definition['scheme']).name}")


def load(root: Path, artifact_id: str, seed: int) -> Partition:
    """The verified partition. UserError in one line when a file is missing, damaged or belongs to another id or seed."""
    arrays, manifest = artifact.load(root, PARTITIONS, artifact_id, seed)
    return Partition(manifest=manifest, **arrays)


def draw(
    scheme: str | Scheme, labels: np.ndarray, classes: int, clients: int, seed: int, groups: np.ndarray | None = None
) -> Draw:
    """One part per client, each ascending. labels: int64 [N] in 0..classes-1; groups: int64 [N], for schemes that read them.

    Depends only on the arguments. UserError for more clients than samples.
    """
    if clients > len(labels):
        raise UserError(f"clients = {clients}: more clients than the {len(labels)} training samples; use {len(labels)} at most")
    partition_scheme = make_scheme(scheme) if isinstance(scheme, str) else scheme
    group_argument = {"groups": groups} if isinstance(partition_scheme, GroupedScheme) else {}
    scheme_draw = partition_scheme(labels, classes, clients, rng.stream(seed, "partition"), **group_argument)
    parts = [np.sort(part).astype(np.int64) for part in scheme_draw.parts]
    samples = np.concatenate(parts)
    if len(parts) != clients or len(np.unique(samples)) != len(samples):  # a bug of the scheme, never a user's mistake
        raise ValueError(f"{scheme}: {len(parts)} parts for {clients} clients, or a sample in two parts")
    return Draw(parts, scheme_draw.redraws)


def split_locally(part: np.ndarray, fraction: float, seed: int, client: int) -> tuple[np.ndarray, np.ndarray]:
    """(training, validation) of one client's part [N_i], both ascending, drawn from the stream of (seed, client).

    Validation gets floor(fraction * N_i) samples, so a client with any sample keeps at least one to train on.
    """
    validation_size = artifact.floor_share(fraction, len(part))
    order = rng.stream(seed, "local-validation", client).permutation(part)
    return np.sort(order[validation_size:]), np.sort(order[:validation_size])


def needs_groups(scheme: str) -> bool:
    """Whether a scheme reads the groups of samples."""
    return isinstance(make_scheme(scheme), GroupedScheme)


def make_scheme(text: str) -> Scheme:
    """The scheme that a call names. UserError for an unknown name or argument, a value out of range, or more than one call."""
    return SCHEMES.make(_one_call(text))


def _one_call(text: str) -> Call:
    calls = parse(text)
    if len(calls) != 1:
        raise UserError(f"{text!r}: a partition has one scheme, not {len(calls)}; Known: {', '.join(SCHEMES.names())}")
    return calls[0]


def _flat(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return np.concatenate(parts).astype(np.int64), offsets.astype(np.int64)
