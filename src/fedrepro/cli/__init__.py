"""The command line. Each command imports what it needs when it runs: `fedrepro evidence` starts in a tenth of a second.

Under a workflow those that need torch run in a fork of a process that has it (`fedrepro.cli.forkserver`).
"""

import contextlib
import importlib
import os
import sys
from argparse import Namespace

from fedrepro import arithmetic, console, forkclient, stopping
from fedrepro.cli.parser import parser
from fedrepro.errors import UserError

# Commands that import torch. Of `run` and `diagnose` only with --device cpu: a GPU's driver does not survive a fork.
FORKED = ("run", "diagnose", "data", "init", "draw", "announce")
# Commands whose results depend on the arithmetic, and the process that some of them are forked from.
_DRAWING = ("data", "partition", "participation", "proxy", "init", "draw")
COMPUTE = ("run", "verify", "diagnose", *_DRAWING, "announce", "forkserver", "doctor")
# Commands that save what they have done when SIGTERM comes.
_STOPPABLE = ("run",)


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `fedrepro`; returns the exit code."""
    options = parser().parse_args(arguments)
    with stopping.listening() if options.command in _STOPPABLE else contextlib.nullcontext():
        return _run(options, arguments)


def _run(options: Namespace, arguments: list[str] | None) -> int:
    """The command, here or in a fork of the server; mistakes and signals become a line and an exit code."""
    try:
        forked = options.command in FORKED and getattr(options, "device", "cpu") == "cpu"
        if options.command in COMPUTE and getattr(options, "device", None) != "cuda":
            wanted = arithmetic.chosen(getattr(options, "arithmetic", None))
            forked = forked and wanted == arithmetic.chosen(None)  # which is what the fork server has loaded
            arithmetic.settle(wanted)
        if forked:
            code = forkclient.delegate(sys.argv[1:] if arguments is None else arguments)
            if code is not None:
                return code
            stopping.check()
        module = importlib.import_module(f"fedrepro.cli.{options.module}")
        return getattr(module, options.function)(options) or 0
    except BrokenPipeError:  # `fedrepro list methods | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except stopping.Stopped as error:
        console.fail(f"fedrepro: {error}")
        return stopping.EXIT_CODE
    except KeyboardInterrupt:
        say = console.note if os.environ.get("FEDREPRO_ERRORS") else console.say  # the workflow says it for all of its jobs
        say("fedrepro: interrupted; the same command goes on from where it stopped")
        return 130
    except Exception as error:
        if options.debug:
            raise
        expected = isinstance(error, UserError)
        detail = str(error) if expected else f"{type(error).__name__}: {error}; run again with --debug for the traceback"
        console.fail("fedrepro: error: " + " ".join(detail.split()))
        return UserError.exit_code if expected else 1
