"""Real processes share GPUs: each gets one, none is idle while a process waits, and none is lost if its holder is killed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrepro.engine import cards

# Takes a card of the machine whose /dev is given, prints it, and holds it until standard input ends.
HOLD = """
import os, sys
from pathlib import Path
from fedrepro.engine import cards
print(cards.take(Path(sys.argv[1])), flush=True)
assert "torch" not in sys.modules
sys.stdin.read()
"""


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The /dev of a machine with two cards, and a separate temporary folder."""
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"):
        (tmp_path / "dev" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "dev" / name).touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in (cards.VISIBLE, *cards._JOB):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "dev"


class Holders:
    """Starts processes that want a card, and ends them."""

    def __init__(self, devices: Path) -> None:
        self.devices, self.processes = devices, []

    def start(self, **environment: str) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-c", HOLD, str(self.devices)], subprocess.PIPE
        more = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "text": True}
        self.processes.append(subprocess.Popen(command, env=os.environ | environment, **more))
        return self.processes[-1]

    def having(self) -> dict[subprocess.Popen[str], str]:
        """Processes that have a card now -> the card. A process prints its card only once, so the card is stored."""
        for one in self.processes:
            os.set_blocking(one.stdout.fileno(), False)
            told = one.stdout.readline().strip()
            one.card = told or getattr(one, "card", "")
        return {one: one.card for one in self.processes if one.poll() is None and one.card}

    def wait_until(self, count: int) -> dict[subprocess.Popen[str], str]:
        """Waits until `count` processes have a card."""
        until = time.monotonic() + 30
        while len(found := self.having()) < count:
            assert time.monotonic() < until, found
            time.sleep(0.02)
        return found


@pytest.fixture
def holders(devices: Path) -> Iterator[Holders]:
    made = Holders(devices)
    yield made
    for one in made.processes:
        one.kill()
        one.communicate()


def test_as_many_at_once_as_there_are_cards(holders: Holders) -> None:
    """Six processes want two cards. Whenever a holder ends or is killed, a waiting process gets its card at once, and no card
    has two holders."""
    for _ in range(6):
        holders.start()
    for left, how in zip(range(6, 0, -1), [signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, 9, 9], strict=True):
        found = holders.wait_until(min(left, 2))
        assert sorted(found.values()) == ["0", "1"][: len(found)] or len(found) == 1
        time.sleep(0.5)
        assert holders.having() == found, "more holders than cards"
        first = next(iter(found))
        first.send_signal(how)
        first.wait()
    assert all(one.poll() is not None for one in holders.processes)


def test_who_waits_says_for_whom(holders: Holders) -> None:
    """A line names the number of cards and the processes that have them."""
    first, second = (holders.start() for _ in range(2))
    holders.wait_until(2)
    third = holders.start()
    os.set_blocking(third.stderr.fileno(), True)
    line = third.stderr.readline()
    assert line.startswith("waiting for a GPU: all 2 are taken, by process ")
    assert {str(first.pid), str(second.pid)} <= set(line.split())


def test_only_the_cards_of_a_scheduler_are_shared_out(holders: Holders) -> None:
    """Processes use only the cards in CUDA_VISIBLE_DEVICES, MIG names included. The same number in another Slurm job is another
    card."""
    for visible, job in (("1", "7"), ("1", "8"), ("MIG-5", "9"), ("1", "")):
        process = holders.start(CUDA_VISIBLE_DEVICES=visible, SLURM_JOB_ID=job)
        assert holders.wait_until(len(holders.processes))[process] == visible
    waits = holders.start(CUDA_VISIBLE_DEVICES="1", SLURM_JOB_ID="7")
    os.set_blocking(waits.stderr.fileno(), True)
    assert "all 1 are taken" in waits.stderr.readline()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [(None, ["0", "1"]), ("", []), ("-1", []), ("1", ["1"]), (" 3, 0 ", ["3", "0"]), ("GPU-8a,1", ["GPU-8a", "1"])],
)
def test_visible_cards(shown: str | None, expected: list[str], devices: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA_VISIBLE_DEVICES names the cards; without it they are those of /dev. Hidden cards do not count."""
    if shown is not None:
        monkeypatch.setenv(cards.VISIBLE, shown)
    assert cards.visible(devices) == expected


def test_without_a_card_nothing_is_taken(tmp_path: Path, holders: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a card a process starts at once and takes none. A GPU of another maker counts as at least one card."""
    (tmp_path / "none").mkdir()
    holders.devices = tmp_path / "none"
    holders.start()
    assert [*holders.wait_until(1).values()] == ["None"]
    (tmp_path / "none" / "kfd").touch()
    assert cards.visible(tmp_path / "none") == ["0"]


def test_who_trains_on_the_cpu_after_all_gives_the_card_back(
    devices: Path, holders: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If torch cannot use the GPU under `device: auto`, the process releases its card for others and restores the
    environment."""
    monkeypatch.setattr(cards, "DEVICES", devices)
    monkeypatch.setattr(cards.environment, "gpu_possible", lambda: True)
    monkeypatch.setattr(cards.environment, "pick_device", lambda wanted: "cpu")
    assert cards.choose("auto") == "cpu"
    assert cards.VISIBLE not in os.environ
    monkeypatch.setenv(cards.VISIBLE, "1,0")
    assert cards.choose("auto") == "cpu"
    assert os.environ[cards.VISIBLE] == "1,0"
    monkeypatch.delenv(cards.VISIBLE)
    holders.start(), holders.start()
    holders.wait_until(2)
