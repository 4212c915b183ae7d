"""The command `fedrepro`, also as `python -m fedrepro`: a process for `fedrepro.cli.main`."""

from fedrepro import startup


def command() -> None:
    """Runs the command line and ends the process with its exit code."""
    startup.begin()
    from fedrepro.cli import main

    startup.end(main())


if __name__ == "__main__":
    command()
