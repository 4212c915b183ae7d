"""Of which commit the code, the tables and the settings are that a training reads."""

import subprocess

from fedrepro.engine.environment import git_state

READ = ("src", "papers", "sweeps", "data/registry.yaml")


def state() -> tuple[str | None, bool | None]:
    """(commit, whether a file that a training reads differs from it or is not in it); (None, None) outside a git checkout.

    A part or a table that was begun and never added is of no commit, and nobody else has it.
    """
    commit, dirty = git_state()
    if dirty is not False:
        return commit, dirty
    command = ["git", "ls-files", "--others", "--exclude-standard", "--", *READ]
    return commit, bool(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip())
