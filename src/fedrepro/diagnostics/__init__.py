"""What is measured on kept models, a diagnostic a file. Importing this package, or any module in it, registers all of them."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
