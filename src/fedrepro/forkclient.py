"""Hands a command to the process that has loaded torch (`fedrepro.cli.forkserver`), and starts that process.

A job of the workflow is still a separate process: it sends its arguments, environment and streams, waits, and ends as the
command ended. Standard library only, and little of it: this is all that such a job loads.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from fedrepro import stopping

VARIABLE = "FEDREPRO_FORKSERVER"  # the path of the server's socket; empty: no server is wanted
LONGEST_WAIT_S = 5.0  # for the server to end
# A process that was forked may break where a fresh one does not: some libraries of macOS forbid to be used after a fork.
_CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGTRAP}


def start() -> None:
    """Starts a server for the commands that this process will start, unless it is itself started under one.

    It ends when this process ends, however it ends. Where it cannot be started, commands load torch themselves.
    """
    if VARIABLE in os.environ:
        return
    with contextlib.suppress(OSError):
        folder = tempfile.mkdtemp(prefix="fedrepro-")  # other users may not enter it
        path = f"{folder}/socket"
        try:
            # Made here, so that commands can queue while the server loads.
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen(128)
                alive, end = os.pipe()
                command = [sys.executable, "-P", "-m", "fedrepro", "forkserver", str(listener.fileno()), str(alive)]
                server = subprocess.Popen(
                    command,
                    pass_fds=(listener.fileno(), alive),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the commands, whose end ends what was forked for them
                )
                os.close(alive)
        except OSError:  # among others where the system's temporary folder has too long a name for a socket
            shutil.rmtree(folder)
            raise
        os.environ[VARIABLE] = path
        atexit.register(_stop, server, end, folder)


def _stop(server: subprocess.Popen, end: int, folder: str) -> None:
    """Forks that still run are left to end as they do when this process is killed."""
    os.close(end)
    os.environ.pop(VARIABLE, None)
    server.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(LONGEST_WAIT_S)
    shutil.rmtree(folder, ignore_errors=True)  # of a server that was killed


def delegate(arguments: list[str]) -> int | None:
    """Runs `fedrepro arguments` in a fork of the server; its exit code. None without a server: then run it here.

    None, too, when the server dies or the fork crashes; nothing of the fork is then left running.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    pid = None
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            request = {"arguments": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ)}
            content = json.dumps(request).encode()
            socket.send_fds(connection, [len(content).to_bytes(4, "big")], [0, 1, 2])
            connection.sendall(content)
            answers = connection.makefile()
            pid = int(answers.readline())  # comes when the server has loaded
            with stopping.passing_on(partial(_terminate, pid)):
                code = int(answers.readline())
    except (OSError, ValueError):  # ValueError: an answer is empty, the server is gone
        if pid is not None:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        return None
    if code in _CRASHES:
        return None
    return code if code >= 0 else 128 - code  # as a shell tells of a signal


def _terminate(pid: int) -> None:
    """Asks the fork to end; its workers are asked by it."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGTERM)
