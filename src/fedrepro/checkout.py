"""Checks that this process runs the code of the project folder. Uses only the standard library."""

from pathlib import Path

from fedrepro.errors import UserError

PACKAGE = Path(__file__).parent


def require_own_code(root: Path = Path()) -> None:
    """UserError where `root` has its own `src/fedrepro` and this process runs another one: an environment of another clone is
    active, or the folder was copied with its environment. The results would then name the commit of code that did not compute
    them."""
    local_package = root / "src" / PACKAGE.name
    if not local_package.is_dir() or local_package.resolve() == PACKAGE.resolve():
        return
    if ".dvc" in root.resolve().parts:
        raise UserError(
            f"{root.resolve()}: a copy that DVC made of the project; leave out --temp and --queue: experiments run here"
        )
    raise UserError(
        f"this environment runs {PACKAGE}, not the {local_package} of this folder; give `deactivate`, `make env` and "
        "`. .venv/bin/activate` here"
    )
