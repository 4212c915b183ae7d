"""Kinds of figure, one a file. matplotlib is imported when one is drawn; equal content gives equal bytes.

Importing this package registers every kind that a paper's files may ask for: each module of this folder is loaded.
"""

import importlib
import pkgutil

from fedrepro.exhibits.kinds.kind import KINDS, Kind, make_kind

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["KINDS", "Kind", "make_kind"]
