"""The commit of the code, tables and settings that a training reads."""

import subprocess

from fedrepro.engine.environment import git_state

READ = ("src", "papers", "data/registry.yaml")


def state() -> tuple[str | None, bool | None]:
    """(commit, whether the files that a training reads differ from it); (None, None) outside a git checkout.

    An untracked part or table counts as a difference: other people cannot check it out.
    """
    commit, dirty = git_state()
    if dirty is not False:
        return commit, dirty
    command = ["git", "ls-files", "--others", "--exclude-standard", "--", *READ]
    return commit, bool(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip())
