"""How far a seed has come, in a file beside its checkpoint. Views read it without torch, before a training has a result.

results/checkpoints/<run_id>/seed8.json    written with the checkpoint, removed with it
"""

import math
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError
from fedrepro.files import read_json, write_json

if TYPE_CHECKING:  # it imports torch
    from fedrepro.engine.checkpoint import Progress

FOLDER = Path("results/checkpoints")
ROWS = "rows"


@dataclass(frozen=True)
class LiveState:
    """The state at the last checkpoint. `rows` are (round from 0, metric, value). `pause_s` is the shortest time in seconds
    until the next checkpoint. Times are in ISO 8601."""

    rounds: int
    rows: list[tuple[int, str, float]]
    started_at: str
    written_at: str
    pause_s: float
    host: str
    pid: int

    @property
    def alive(self) -> bool:
        """Whether the training seems to go on: it wrote recently and, if it is on this machine, its process still runs."""
        if self.host == machine_name() and not is_running(self.pid):
            return False
        silence_s = (datetime.now(UTC) - datetime.fromisoformat(self.written_at)).total_seconds()
        return silence_s < max(600.0, 10 * self.pause_s)


def machine_name() -> str:
    """The name of this machine. A container counts as another machine, since it numbers its processes itself."""
    try:
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def file(root: Path, run_id: str, seed: int) -> Path:
    """Path of the file."""
    return Path(root) / FOLDER / run_id / f"seed{seed}.json"


def write(checkpoint: Path, progress: "Progress", every_s: float) -> None:
    """Writes the state beside `checkpoint`, which is of the same round. Leaves out non-finite values: JSON has none."""
    rows = [row for row in progress.rows if math.isfinite(row[2])]
    written_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    pause_s = max(every_s, progress.wall_s / progress.round)
    state = LiveState(progress.round, rows, progress.started_at, written_at, round(pause_s, 1), machine_name(), os.getpid())
    write_json(checkpoint.with_suffix(".json"), asdict(state))


def remove(checkpoint: Path) -> None:
    """Removes a checkpoint and the file that describes it."""
    for path in (checkpoint.with_suffix(".json"), checkpoint):
        path.unlink(missing_ok=True)


def read(root: Path, run_id: str, seed: int) -> LiveState | None:
    """How far the seed has come. None if it is not training, or if the file is damaged: a view works without it."""
    path = file(root, run_id, seed)
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = read_json(path)
        rows = [(int(number), str(name), float(value)) for number, name, value in content.pop(ROWS)]
        return LiveState(rows=rows, **content)
    except (UserError, TypeError, ValueError, KeyError, AttributeError):
        return None


def is_running(pid: int) -> bool:
    """Whether the process runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
