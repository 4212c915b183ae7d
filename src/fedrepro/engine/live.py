"""How far a seed has come, beside its checkpoint and told without torch: what shows a training before it has a result.

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
class Reached:
    """The rounds of the last checkpoint. `rows`: (round from 0, metric, value); `pause_s`: seconds to the next
    one, at least; times in ISO 8601."""

    rounds: int
    rows: list[tuple[int, str, float]]
    started_at: str
    written_at: str
    pause_s: float
    host: str
    pid: int

    @property
    def alive(self) -> bool:
        """Whether the training goes on, as far as can be told: its process is there, or it wrote a short while ago."""
        if self.host == here() and not is_running(self.pid):
            return False
        silent = (datetime.now(UTC) - datetime.fromisoformat(self.written_at)).total_seconds()
        return silent < max(600.0, 10 * self.pause_s)


def here() -> str:
    """This machine; a container is another one, since it numbers its processes itself."""
    try:
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def file(root: Path, run_id: str, seed: int) -> Path:
    """Where it lies."""
    return Path(root) / FOLDER / run_id / f"seed{seed}.json"


def write(checkpoint: Path, progress: "Progress", every_s: float) -> None:
    """Beside `checkpoint`, which is of the same round. Values that are not finite are left out, as JSON has none."""
    rows = [row for row in progress.rows if math.isfinite(row[2])]
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    pause = max(every_s, progress.wall_s / progress.round)
    reached = Reached(progress.round, rows, progress.started_at, now, round(pause, 1), here(), os.getpid())
    write_json(checkpoint.with_suffix(".json"), asdict(reached))


def remove(checkpoint: Path) -> None:
    """Removes a checkpoint and what is told of it."""
    for path in (checkpoint.with_suffix(".json"), checkpoint):
        path.unlink(missing_ok=True)


def read(root: Path, run_id: str, seed: int) -> Reached | None:
    """How far the seed has come; None when it does not train, or the file is damaged: a view can do without."""
    path = file(root, run_id, seed)
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = read_json(path)
        rows = [(int(number), str(name), float(value)) for number, name, value in content.pop(ROWS)]
        return Reached(rows=rows, **content)
    except (UserError, TypeError, ValueError, KeyError, AttributeError):
        return None


def is_running(pid: int) -> bool:
    """Whether this machine has the process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
