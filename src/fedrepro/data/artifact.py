"""One drawn artifact on disk: `<folder>/<id>/seed<k>.npz` with its arrays, and a JSON manifest with the same name beside it.

The bytes depend only on the arrays and the manifest, under every Python version: see `fedrepro.data.npz`. The manifest is
written last, so an npz with a manifest is complete.
"""

import hashlib
import io
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data import npz
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, sha256_file, write_atomic, write_json
from fedrepro.registry import require

SCHEMA = 1


@dataclass(frozen=True)
class Artifact:
    """What every loaded artifact has: its manifest, and the sha256 that a run records among its inputs."""

    manifest: dict[str, Any]

    @property
    def sha256(self) -> str:
        """Hex sha256 of the npz, as verified on loading."""
        return self.manifest["sha256"]


def make_id(slug: str, definition: dict[str, Any]) -> str:
    """`<slug>-<hash6>`: readable, unique to the definition, and safe as a folder name."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '', slug)}-{canonical_hash(definition, 6)}"


def npz_path(root: Path, folder: Path, artifact_id: str, seed: int) -> Path:
    """`root/folder/<id>/seed<k>.npz`."""
    return Path(root) / folder / artifact_id / f"seed{seed}.npz"


def save(path: Path, arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> Path:
    """Writes the npz, then its manifest with `schema` and `sha256` added. Returns `path`."""
    write_atomic(path, lambda temporary: npz.save(temporary, arrays))
    write_json(path.with_suffix(".json"), {"schema": SCHEMA, **manifest, "sha256": sha256_file(path)})
    return path


def load(root: Path, folder: Path, artifact_id: str, seed: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Reads arrays and manifest and verifies them: the sha256 of the npz, and that the manifest belongs to this id and seed.

    UserError in one line that names the file if either file is missing, damaged or swapped.
    """
    path = npz_path(root, folder, artifact_id, seed)
    manifest_path = path.with_suffix(".json")
    manifest = read_json(manifest_path)
    try:
        identity_matches = (manifest["schema"], manifest["id"], manifest["seed"]) == (SCHEMA, artifact_id, seed)
        definition_matches = artifact_id.endswith(f"-{canonical_hash(manifest['definition'], 6)}")
        expected_sha256 = manifest["sha256"]
    except (KeyError, TypeError) as error:
        raise UserError(f"{manifest_path}: not a manifest (no {error}); delete it and run the same command again") from error
    if not (identity_matches and definition_matches):
        raise UserError(f"{manifest_path}: belongs to another artifact or version; delete it and run the same command again")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; delete {manifest_path.name} and run the step that makes both") from error
    if sha256_bytes(content) != expected_sha256:
        raise UserError(f"{path}: does not match the sha256 in {manifest_path.name}; delete both and run again")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}, manifest


def sha256_bytes(content: bytes) -> str:
    """Hex sha256."""
    return hashlib.sha256(content).hexdigest()


def require_seed(seed: object) -> None:
    """Raises a UserError unless `seed` is a whole number >= 0."""
    require(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0, "seed", seed, "must be a whole number >= 0")


def require_whole(where: str, value: object, least: int) -> None:
    """Raises a UserError unless `value` is a whole number of at least `least`. true and false do not count as numbers."""
    is_int = isinstance(value, int) and not isinstance(value, bool)
    require(is_int and value >= least, where, value, f"must be a whole number >= {least}")  # pyright: ignore[reportOperatorIssue]


def floor_share(share: float, count: int) -> int:
    """floor(share * count), with `share` read as the decimal a person wrote: 0.29 of 100 is 29, where int(0.29 * 100) is 28."""
    return math.floor(Fraction(str(share)) * count)
