"""The command `fedrepro`, also as `python -m fedrepro`: a process for `fedrepro.cli.main`."""

import atexit
import gc
import sys


def command() -> None:
    """Runs the command line and ends the process with its exit code.

    Importing torch creates hundreds of thousands of objects that live until the process ends. The garbage collector would scan
    them repeatedly during the import and once more at exit: 0.7 of 3.1 s of a short training (AMD EPYC). So its threshold is
    raised here; `environment.prepare` restores Python's default.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    from fedrepro.cli import main

    sys.exit(main())


if __name__ == "__main__":
    command()
