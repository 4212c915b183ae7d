"""The collector of cycles: out of the way of imports and of an end, and back while a process works. Ends that lose nothing."""

import json
import subprocess
import sys

LOOK = """
import gc, json, sys
usual = gc.get_threshold()
from fedrepro import __main__, cli
def main():
    from fedrepro.engine import environment
    during = gc.get_threshold()
    kept = gc.get_freeze_count()
    environment.prepare("cpu")
    print(json.dumps([usual, during, gc.get_threshold(), kept, gc.get_freeze_count()]))
    return 3
cli.main = main
__main__.command()
"""


def test_the_collector_waits_for_the_imports() -> None:
    """Seldom until torch is there, which is then set aside for good; afterwards as Python has it. The exit code is `main`'s."""
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True)
    usual, during, after, before, kept = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    assert during[0] > 100 * usual[0]
    assert after == usual
    assert kept - before > 100_000


END = """
from fedrepro import startup
startup.begin()
import atexit, threading, time

class Kept:
    def __del__(self):
        print("taken apart")

kept = Kept()
atexit.register(print, "tidied up")
threading.Thread(target=lambda: (time.sleep(0.2), print("a thread is done"))).start()
print("x" * 100_000)
startup.end(3)
"""


def test_the_end_waits_for_threads_and_handlers_and_writes_everything() -> None:
    """In that order, with the exit code; only objects that stay are not taken apart."""
    done = subprocess.run([sys.executable, "-c", END], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == ["x" * 100_000, "a thread is done", "tidied up"]


def test_the_end_without_a_standard_output() -> None:
    """Closed by whoever started the process: nothing to flush, and no traceback."""
    done = subprocess.run(["sh", "-c", f"'{sys.executable}' -m fedrepro list methods >&-"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
