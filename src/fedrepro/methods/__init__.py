"""Methods, made of parts. Importing this package, or any module in it, loads those of all slots, which register the parts."""

import importlib
import pkgutil

from fedrepro.methods import parts

for _slot in parts.SLOTS:
    _package = importlib.import_module(f"fedrepro.methods.{_slot}")
    for _module in pkgutil.iter_modules(_package.__path__):
        importlib.import_module(f"{_package.__name__}.{_module.name}")
