"""The command line. The module of a command, and all that it needs, is imported when the command runs: `fedrepro list methods`
starts in a tenth of a second.
"""

import contextlib
import importlib
import os
import sys
import traceback
from argparse import Namespace
from pathlib import Path

from fedrepro import arithmetic, console, stopping
from fedrepro.checkout import require_own_code
from fedrepro.cli.parser import parser
from fedrepro.errors import UserError

# Commands whose results depend on the arithmetic.
COMPUTE = ("run", "verify", "diagnose", "data", "draw", "doctor")
# Folders for a user's own files. The message of an unexpected error names the line in such a file.
EXTENDED = ("methods", "diagnostics", "models", "data", "exhibits/kinds", "exhibits/sections")
# Commands that save what they have done when SIGTERM comes.
_STOPPABLE = ("run", "diagnose")


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `fedrepro`; returns the exit code."""
    options = parser().parse_args(arguments)
    with stopping.listening() if options.command in _STOPPABLE else contextlib.nullcontext():
        return _run(options)


def _run(options: Namespace) -> int:
    """Runs the command; mistakes and signals become a line and an exit code."""
    try:
        require_own_code()
        if options.command in COMPUTE and getattr(options, "device", None) != "cuda":
            arithmetic.use(arithmetic.chosen(getattr(options, "arithmetic", None)))
        module = importlib.import_module(f"fedrepro.cli.{options.module}")
        return getattr(module, options.function)(options) or 0
    except BrokenPipeError:  # `fedrepro list methods | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except stopping.Stopped as error:
        console.fail(f"fedrepro: {error}")
        return stopping.EXIT_CODE
    except KeyboardInterrupt:
        say = console.note if os.environ.get("FEDREPRO_ERRORS") else console.say  # the workflow prints it once for all jobs
        say("fedrepro: interrupted; the same command goes on from where it stopped")
        return 130
    except Exception as error:
        if options.debug:
            raise
        expected, detail = _message(error)
        if not expected and os.environ.get("FEDREPRO_ERRORS"):
            console.note(traceback.format_exc())  # a job is not repeated with --debug
        detail += "" if expected else f" ({_where(error)}); run again with --debug for the traceback"
        console.fail("fedrepro: error: " + " ".join(detail.split()))
        return UserError.exit_code if expected else 1


def _message(error: Exception) -> tuple[bool, str]:
    """Returns (whether the user can correct the error, the message). An OSError with a path counts as the user's."""
    if isinstance(error, OSError) and (path := error.filename2 or error.filename):
        return True, f"{path}: {(error.strerror or type(error).__name__).lower()}"
    return isinstance(error, UserError), str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"


def _where(error: Exception) -> str:
    """`src/fedrepro/methods/aggregate/median.py:12`: the innermost line in a folder for users' files, else in the package, else
    anywhere."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    package = Path(__file__).parents[1]
    for folders in ([package / name for name in EXTENDED], [package], [Path("/")]):
        for name, line in reversed(frames):
            if any(Path(name).is_relative_to(folder) for folder in folders):
                return f"{os.path.relpath(name)}:{line}"
    return "no line"
