"""Sections of pages. A section is a function from an exhibit or a paper to blocks. Most modules have one section.

A page is the list of the functions that are registered for it, in the order of their places. Importing this package loads
every module of its folder, so a new section is one new file.
"""

import importlib
import pkgutil

from fedrepro.exhibits.sections.section import blocks_of, section

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["blocks_of", "section"]
