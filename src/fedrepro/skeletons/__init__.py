"""What `fedrepro new` writes: a method, a table, a paper or a data set that runs as it is, to be edited from there.

Each module has `files(root, name, ...)`, which gives the content of every file, and what to do next.
"""

import keyword
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template

from fedrepro.errors import UserError
from fedrepro.files import write_text


@dataclass(frozen=True)
class Skeleton:
    """Files to write, relative to the project's root; `edited` ones are there already and get a line more."""

    files: dict[Path, str]
    next: tuple[str, ...]  # commands to give, and what to edit
    edited: frozenset[Path] = frozenset()


def write(root: Path, skeleton: Skeleton) -> list[Path]:
    """Writes all files. UserError, and nothing is written, where one that is not `edited` is there already."""
    for path in skeleton.files:
        if path not in skeleton.edited and (root / path).exists():
            raise UserError(f"{path}: is there already; choose another name, or move it away")
    return [write_text(root / path, text) for path, text in skeleton.files.items()]


def fill(template: str, **values: str) -> str:
    """`$name` and `${name}` in `template`, each from `values`."""
    return Template(template.lstrip("\n")).substitute(values)


def title(name: str) -> str:
    """A name as a docstring begins with it: `Trimmed mean`."""
    return name.replace("_", " ").capitalize()


RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "demo", "short", "full"}  # words of YAML, scales


def require_name(kind: str, name: str) -> None:
    """UserError unless `name` can be that of a module, or a folder, and means nothing else here."""
    if name in RESERVED or name.startswith("sweep_"):
        raise UserError(f"new {kind} {name}: the name means something else here; choose another")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(f"new {kind} {name}: take lower-case letters, digits and _, beginning with a letter")


def require_folder(root: Path, folder: str) -> None:
    """UserError where `root` is no project with this folder."""
    if not (root / folder).is_dir():
        raise UserError(f"{folder}: no such folder; give the command in the project's root folder")
