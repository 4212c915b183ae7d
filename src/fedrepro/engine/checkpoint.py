"""Checkpoints: the state after a round, written atomically beside the results and outside any rule's outputs.

The clock decides when to save, never the result. So a run's numbers do not depend on how often it is saved or killed. A file
starts with the sha256 of the rest, which torch saved: without it, training would continue unnoticed after a flipped bit.
"""

import dataclasses
import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fedrepro.console import say
from fedrepro.files import write_atomic
from fedrepro.methods.compose import ServerState
from fedrepro.tree import Layout, Tree

FOLDER = Path("results/checkpoints")
VERSION = 3  # raised when the layout of a checkpoint's content changes


@dataclass
class Progress:
    """How far a run has come: rounds done, its rows (round, metric, value) so far, and its cost over all attempts."""

    round: int
    rows: list[tuple[int, str, float]]
    wall_s: float
    samples: int
    started_at: str
    shared: int = 0  # rounds that another run trained, see `fedrepro.engine.fork_point`
    shared_s: float = 0.0  # their part of wall_s


# Path, key of the run, the server's state, what each client keeps, and the progress.
Saved = tuple[Path, str, ServerState, dict[int, dict[str, Tree]], Progress]


def save(
    path: Path,
    key: str,
    state: ServerState,
    client_states: dict[int, dict[str, Tree]],
    progress: Progress,
    other_checkpoints: Sequence[Saved] = (),
) -> None:
    """Writes a checkpoint of the run `key`, and those of the seeds that train with it. All are on the disk before the first
    replaces an old file, so a kill rarely leaves one of them behind."""
    fields = {field.name: _pack(getattr(state, field.name)) for field in dataclasses.fields(state)}
    content = {
        "version": VERSION,
        "key": key,
        "state": fields,
        "client_states": _pack(client_states),
        "progress": dataclasses.asdict(progress),
    }
    buffer = io.BytesIO()  # torch hides a full disk behind its own error; writing bytes shows the real one
    torch.save(content, buffer)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            with buffer.getbuffer() as view:
                stream.write(hashlib.sha256(view).digest())
                stream.write(view)
            buffer.close()  # large states leave memory for one copy at a time
            stream.flush()
            os.fsync(stream.fileno())
        if other_checkpoints:
            save(*other_checkpoints[0], other_checkpoints=other_checkpoints[1:])

    write_atomic(path, write)


def load(
    path: Path, key: str, device: torch.device | str = "cpu"
) -> tuple[ServerState, dict[int, dict[str, Tree]], Progress] | None:
    """The checkpoint at `path`. None if there is none, it is damaged or it belongs to another run; the run then starts over."""
    try:
        with path.open("rb") as stream:
            expected_digest = stream.read(hashlib.sha256().digest_size)
            if hashlib.file_digest(stream, "sha256").digest() != expected_digest:
                say(f"{path}: checkpoint damaged or of an older version (another sha256); the seed starts over from round 0")
                return None
            stream.seek(len(expected_digest))
            content = torch.load(stream, map_location=device, weights_only=True)
        if content.get("version") != VERSION:
            say(f"{path}: checkpoint of another version of fedrepro; the seed starts over from round 0")
            return None
        if content["key"] != key:
            say(
                f"{path}: checkpoint of another training (device, engine, arithmetic, inputs, code of a part, or the seeds "
                "beside it); the seed starts over from round 0"
            )
            return None
        fields = {name: _unpack(value) for name, value in content["state"].items()}
        progress = Progress(**content["progress"])
        progress.rows = [(round, name, value) for round, name, value in progress.rows]
        return ServerState(**fields), _unpack(content["client_states"]), progress
    except FileNotFoundError:
        return None
    except Exception as error:  # torch.load raises many types on a damaged file; for each of them the run starts again
        say(f"{path}: checkpoint not readable ({type(error).__name__}); the seed starts over from round 0")
        return None


def _pack(value: Any) -> Any:
    if isinstance(value, Tree):
        return {"__tree__": value.flat, "names": list(value.layout.names), "shapes": [list(s) for s in value.layout.shapes]}
    if isinstance(value, tuple | list):
        return type(value)(_pack(item) for item in value)
    if isinstance(value, dict):
        return {key: _pack(item) for key, item in value.items()}
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, dict):
        if "__tree__" in value:
            return Tree(Layout(tuple(value["names"]), tuple(map(tuple, value["shapes"]))), value["__tree__"])
        return {key: _unpack(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_unpack(item) for item in value)
    return value
