"""The commit of the code and the papers' files that a training reads."""

import subprocess

SOURCES = ("src", "papers", "data/registry.yaml")  # not params.yaml: receipts hold what it gives a training


def state() -> tuple[str | None, bool | None]:
    """(commit, whether sources differ from it); (None, None) outside a git checkout.

    An untracked part or table counts as a difference: other people cannot check it out.
    """
    try:
        commit = _git("rev-parse", "HEAD")
        return commit, bool(_git("status", "--porcelain", "--untracked-files=all", "--", *SOURCES))
    except (OSError, subprocess.CalledProcessError):
        return None, None


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()
