"""Start and end of a process of ours: without the work that Python does for objects that stay as long as it lives.

Importing torch or MLflow makes hundreds of thousands of them. The collector of cycles looks through them again and again
while they come into being, and once more when the process ends: of the 2.0 s of a process that only imports torch 0.7 s, of
2.1 s with MLflow 1.0 s, of 1.8 s of a workflow with nothing to do 0.5 s (measured on an AMD EPYC). Taking them apart one by
one at the end is another 0.17 s with torch; the system takes back memory at once.
"""

import atexit
import gc
import os
import sys
from typing import NoReturn

_USUAL = gc.get_threshold()
_SELDOM = 100_000  # new objects between two looks
_code: int | None = None  # with which the process ends, once that is known


def begin() -> None:
    """Early in a process, before its large imports; what is there already stays and is never looked at again."""
    gc.freeze()
    gc.set_threshold(_SELDOM)
    atexit.register(_leave)  # registered first, it runs last: after threads have ended and everybody else has tidied up


def loaded() -> None:
    """What is there now stays and is never looked at again; from here on the collector works as usual."""
    gc.freeze()
    gc.set_threshold(*_USUAL)


def end(code: int) -> NoReturn:
    """Ends the process with this exit code: as `sys.exit`, but what Python holds is not taken apart."""
    global _code
    _code = code
    sys.exit(code)


def _leave() -> None:
    gc.freeze()
    if _code is None:  # an exception, or a `sys.exit` elsewhere, whose code cannot be known here
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        return  # Python says what went wrong, with its own exit code
    os._exit(_code)
