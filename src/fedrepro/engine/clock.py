"""What a seed's training has cost so far, and when its checkpoint is due."""

import contextlib
import time
from collections.abc import Iterator


class Clock:
    """Seconds spent over all attempts, and when to save: saving takes a twentieth of the time at most."""

    def __init__(self, before: float) -> None:
        self._spent, self._last, self._took = before, time.monotonic(), 0.0
        self._saved = self._last
        self.at_once = 1  # seeds that share the time since the last call of `total`

    def total(self) -> float:
        """Seconds so far: this seed's share, where several trained at once."""
        now = time.monotonic()
        self._spent += (now - self._last) / self.at_once
        self._last = now
        return self._spent

    def save_is_due(self, every_s: float) -> bool:
        """Whether `every_s` seconds have passed since the last save, and 20 times the duration of that save."""
        share = 20 * self._took if every_s else 0.0
        return time.monotonic() - self._saved >= max(every_s, share)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Times the save that runs in the block."""
        begun = time.monotonic()
        yield
        self._saved = time.monotonic()
        self._took = self._saved - begun
