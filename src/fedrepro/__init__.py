"""fedrepro re-runs the tables of federated-learning papers and compares them with the printed numbers.

In Python: `load` and `runs` give results as data frames, `train` trains on tensors of your own, `compose` and `partition` make
a method and a partition by name. See docs/python.md. Modules are imported on first use, so the command line starts in a tenth
of a second.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrepro.api.by_name import compose, partition
    from fedrepro.api.frames import load, runs
    from fedrepro.api.training import train

__all__ = ["compose", "load", "partition", "runs", "train"]
__version__ = "0.1.0"

# name -> the module that has it
_LAZY = {
    "compose": "fedrepro.api.by_name",
    "partition": "fedrepro.api.by_name",
    "load": "fedrepro.api.frames",
    "runs": "fedrepro.api.frames",
    "train": "fedrepro.api.training",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'fedrepro' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
