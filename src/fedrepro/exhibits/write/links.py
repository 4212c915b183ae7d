"""Where a link leads, seen from the page that has it."""

import os
from pathlib import Path


def relative(path: str, folder: Path, page: str = "") -> str:
    """`path`, from the project root, as seen from `folder`. A path that ends with `.page` is a page, which ends with `page`."""
    path = path.removesuffix(".page") + page if path.endswith(".page") else path
    return Path(os.path.relpath(path, folder)).as_posix().replace(" ", "%20")
