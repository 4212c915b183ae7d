"""Lines for a person are whole, also from trainings that share a terminal, and none of them stops a training."""

import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro.console import duration, say

SPEAKER = "import sys; from fedrepro.console import say\nfor i in range(20000): say(sys.argv[1] * 50)"


def test_lines_of_several_processes_stay_whole(tmp_path: Path) -> None:
    """The processes run unbuffered, as under `python -u`, where each write reaches the file separately."""
    said = tmp_path / "said"
    with said.open("ab") as stream:
        letters = "abcd"
        speakers = [subprocess.Popen([sys.executable, "-u", "-c", SPEAKER, letter], stderr=stream) for letter in letters]
        assert [speaker.wait(timeout=60) for speaker in speakers] == [0] * 4
    assert sorted(said.read_text().splitlines()) == sorted(letter * 50 for letter in letters for _ in range(20000))


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_a_line_that_cannot_be_shown_stops_nothing(redirect: str) -> None:
    """Standard error is closed or full."""
    command = f"{sys.executable} -c \"from fedrepro.console import say; say('x'); print('on')\" {redirect}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout == "on\n"


def test_a_line_is_shown_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    say("seed 8 trained")
    assert capfd.readouterr().err == "seed 8 trained\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.34, "12.3 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min 00 s"),
        (245, "4 min 05 s"),
        (3599.6, "1 h 00 min"),
        (4_442_400, "1,234 h"),
    ],
)
def test_a_duration_has_no_60_seconds(seconds: float, text: str) -> None:
    assert duration(seconds) == text
