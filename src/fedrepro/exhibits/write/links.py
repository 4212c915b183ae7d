"""Where a link leads, seen from the page that has it."""

import os
from pathlib import Path


def relative(path: str, folder: Path, page: str = "") -> str:
    """`path`, from the project root, as seen from `folder`; `./name` stands beside the page. A path that ends with `.page` is a
    page, which ends with `page`. What stands behind a `#` stays."""
    path, sign, anchor = path.partition("#")
    path = path.removesuffix(".page") + page if path.endswith(".page") else path
    seen = path if path.startswith("./") else os.path.relpath(path, folder)
    return Path(seen).as_posix().replace(" ", "%20") + sign + anchor
