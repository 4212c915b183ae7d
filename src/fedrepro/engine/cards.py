"""GPUs of one machine, one training per GPU: a process takes a free card before torch is loaded, and hides the others.

A card is free when no process holds the lock on its file, which the kernel frees when the holder ends for any reason. Cards
that CUDA_VISIBLE_DEVICES hides (schedulers set it too) are not used.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import TextIO

from fedrepro import files
from fedrepro.console import say
from fedrepro.engine import environment
from fedrepro.files import canonical_hash

DEVICES = Path("/dev")
VISIBLE = "CUDA_VISIBLE_DEVICES"
# Schedulers number a job's cards from 0 where they hide the others: the same number is another card in another job.
_JOB = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
_LOOK_S = 0.2

_locks: list[TextIO] = []  # the lock on this process's card, for as long as it lives


def visible(devices: Path | None = None) -> list[str]:
    """The cards that this process may use, as CUDA_VISIBLE_DEVICES names them: numbers, or names of parts of cards."""
    setting = os.environ.get(VISIBLE)
    if setting is not None:
        return [card for card in (part.strip() for part in setting.split(",")) if card not in ("", "-1")]
    devices = DEVICES if devices is None else devices
    count = len([path for path in devices.glob("nvidia[0-9]*") if path.name[len("nvidia") :].isdigit()])
    uncounted = any(any(devices.glob(name)) for name in ("nvhost*", "dxg", "kfd"))  # their files do not say how many
    return [str(number) for number in range(count or int(uncounted))]


def choose(requested: str) -> str:
    """`environment.pick_device`, with a card taken for this process where it is "cuda"."""
    before = os.environ.get(VISIBLE)
    if requested != "cpu" and environment.gpu_possible():
        take()
    device = environment.pick_device(requested)
    if device == "cpu" and _locks:
        _locks.pop().close()
        os.environ.pop(VISIBLE)
        os.environ |= {} if before is None else {VISIBLE: before}
    return device


def take(devices: Path | None = None) -> str | None:
    """Takes a free card until this process ends, and hides the others from it; None where there is none at all. Waits for one
    while all are taken, and says so. To be called before torch looks for a GPU.
    """
    if _locks:
        return os.environ[VISIBLE]
    cards, announced = visible(devices), False
    while cards:
        holders = []
        for card in cards:
            stream = files.opened(_path(card))
            if files.try_lock(_path(card), stream):
                files.sign(_path(card), stream)
                _locks.append(stream)
                os.environ[VISIBLE] = card
                return card
            holders.append(f"process {files.holder(stream)}")
            stream.close()
        if not announced:
            say(f"waiting for a GPU: all {len(cards)} are taken, by {', '.join(holders)}")
        announced = True
        time.sleep(_LOOK_S)
    return None


def _path(card: str) -> Path:
    """The card's lock file, in the system's temporary folder: several machines may share a project folder, but not cards."""
    job = next((os.environ[name] for name in _JOB if os.environ.get(name)), "")
    return Path(tempfile.gettempdir(), f"fedrepro-gpus-{os.getuid()}", f"{canonical_hash([job, card])}.lock")
