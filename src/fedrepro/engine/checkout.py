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


def objection() -> str | None:
    """Why `fedrepro publish` would refuse what is trained here now, and what to do; None if it would take it."""
    commit, differs = state()
    if commit:
        return f"src, papers or data/registry.yaml differ from commit {commit[:8]}; commit them" if differs else None
    try:
        _git("rev-parse", "HEAD")
    except OSError:
        return "git is not installed"
    except subprocess.CalledProcessError as error:
        answer = [line.strip() for line in error.stderr.splitlines() if line.strip()] or ["nothing"]
        remedy = "`git init`, `git add --all` and `git commit` make a repository, which DVC needs too"
        if answer[-1].startswith("git config"):  # the folder belongs to another user, as in a container
            remedy = f"give `{answer[-1]}`"
        return f"git says {answer[0]!r}; {remedy}"
    return None


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()
