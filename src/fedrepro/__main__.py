"""The command `fedrepro`, also as `python -m fedrepro`: a process for `fedrepro.cli.main`."""

import sys

from fedrepro import startup


def command() -> None:
    """Runs the command line and ends the process with its exit code."""
    startup.begin()
    from fedrepro.cli import main

    sys.exit(main())


if __name__ == "__main__":
    command()
