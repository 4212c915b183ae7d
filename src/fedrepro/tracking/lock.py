"""One writer of an experiment at a time, wherever it runs: a lock kept in the tracking store, in tags of the experiment.

Every kind of store lets a process write its own tag and read the other tags. A process writes its tag, then reads the others.
If it finds one, it deletes its own tag and waits. Two processes never hold the lock at once: each writes before it reads, so
the later writer finds the other tag. The holder updates its tag while it works. A tag that does not change for `GONE_S` seconds
belongs to a process that has ended; clocks of different machines are not compared.
"""

import contextlib
import os
import random
import time
import uuid
from typing import Any

from fedrepro import console
from fedrepro.engine.live import is_running, machine_name
from fedrepro.errors import UserError

WRITER = "fedrepro.writer."
BEAT_S, GONE_S, LOOK_S = 5.0, 45.0, 0.5


class ExperimentLock:
    """The lock of an experiment, held by this process inside a `with` block. `keep` updates its tag."""

    def __init__(self, client: Any, experiment: str) -> None:
        self._client, self._experiment = client, experiment
        self._key, self._beats, self._last = f"{WRITER}{uuid.uuid4().hex[:12]}", 0, 0.0
        self._last_changes: dict[str, tuple[str, float]] = {}  # tag of another one -> its value, and since when it has that

    def keep(self) -> None:
        """Updates the tag. UserError if another process has deleted it, assuming that this process had ended: then it must not
        write."""
        if time.monotonic() - self._last > BEAT_S:
            if self._key not in self._tags():
                raise UserError("MLflow: another process took over; `fedrepro track` catches up")
            self._beat()

    def __enter__(self) -> "ExperimentLock":
        """Waits until no other process holds the lock, then takes it."""
        announced = ""
        while True:
            holder = self._other_process()
            if not holder:
                self._beat()
                if not self._other_process():
                    return self
                self._give_back()
            elif holder != announced:
                console.say(f"MLflow: waiting for {holder}, which is writing")
                announced = holder
            time.sleep(LOOK_S * random.uniform(0.5, 1.5))

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        with contextlib.suppress(Exception):  # the server or the tag is gone: the lock expires
            self._client.delete_experiment_tag(self._experiment, self._key)

    def _beat(self) -> None:
        self._beats += 1
        self._client.set_experiment_tag(self._experiment, self._key, f"{machine_name()} {os.getpid()} {self._beats}")
        self._last = time.monotonic()

    def _other_process(self) -> str:
        """The process that holds or requests the lock; "" when there is none."""
        tags = {key: value for key, value in self._tags().items() if key.startswith(WRITER) and key != self._key}
        for key, value in tags.items():
            before, since = self._last_changes.get(key, ("", 0.0))
            now = time.monotonic()
            self._last_changes[key] = (value, since if value == before else now)
            machine, pid, _ = value.rsplit(" ", 2)
            ended = machine == machine_name() and not is_running(int(pid))
            if now - self._last_changes[key][1] > GONE_S or ended:
                with contextlib.suppress(Exception):  # another process has deleted it
                    self._client.delete_experiment_tag(self._experiment, key)
            else:
                return f"process {pid} on {machine.partition('/')[0]}"
        return ""

    def _tags(self) -> dict[str, str]:
        return self._client.get_experiment(self._experiment).tags
