"""The collector of cycles: out of the way of imports and of a process's end, and back while it works."""

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
