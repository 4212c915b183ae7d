"""The command `fedrepro`, also as `python -m fedrepro`: a process for `fedrepro.cli.main`."""

import atexit
import gc
import sys


def command() -> None:
    """Runs the command line and ends the process with its exit code.

    Importing torch makes hundreds of thousands of objects that stay. The collector of cycles would look through them again and
    again while they come, and once more at the end: 0.7 of 3.1 s of a short training (AMD EPYC).
    `environment.prepare` sets it back.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    from fedrepro.cli import main

    sys.exit(main())


if __name__ == "__main__":
    command()
