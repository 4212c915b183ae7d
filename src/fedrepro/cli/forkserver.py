"""fedrepro forkserver: a process that loads torch once and forks a child for each command that is handed to it.

One thread, which only waits, forks and passes on exit codes; it never computes, so a child starts as clean as a fresh process.
A child dies with the process that asked for it. When the process that started the server dies, the server takes nothing new,
waits for what it began, and ends.

On the socket, for each command: 4 bytes of length with the descriptors 0, 1 and 2, then JSON with arguments, folder and
environment; back come the child's process id and, once it has ended, its exit code (-9 for signal 9), a line each.
"""

import atexit
import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from fedrepro import startup
from fedrepro.forkclient import VARIABLE

_REQUEST_TIMEOUT_S = 10.0


def forkserver(options: Namespace) -> None:
    """All that a training needs is loaded before the first command is looked at."""
    import pandas  # noqa: F401  by pyarrow, with its first array

    import fedrepro.engine.run
    import fedrepro.models.ops  # noqa: F401  by the first model that is built
    from fedrepro.engine import fingerprints

    fingerprints.load()  # of the code that is loaded here: a child may begin after an edit
    # What is loaded stays shared: the collector of a child would touch, and so copy, every page of it.
    gc.collect()
    startup.loaded()
    Server(socket.socket(fileno=options.listener), options.alive).serve()


class Server:
    """`listener`: where commands arrive. `alive`: reading end of a pipe that reports the starter's death."""

    def __init__(self, listener: socket.socket, alive: int) -> None:
        self.listener, self.alive = listener, alive
        self.children: dict[int, socket.socket] = {}  # process id -> who asked for it
        self.open = True
        self.selector = selectors.DefaultSelector()
        self.wakes, self.waker = socket.socketpair()  # a child's end arrives here as a byte
        for each in (self.listener, self.wakes, self.waker):
            each.setblocking(False)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # the byte is only written for signals that have a handler
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which the starter sends in case we are still loading
        for source, react in ((listener, self._accept), (alive, self._close), (self.wakes, self._reap)):
            self.selector.register(source, selectors.EVENT_READ, react)

    def serve(self) -> None:
        """Until the starter is dead and all children are."""
        while self.open or self.children:
            for ready, _ in self.selector.select():
                ready.data(ready.fileobj)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # it has gone away
            return
        descriptors: list[int] = []
        try:
            connection.settimeout(_REQUEST_TIMEOUT_S)
            length, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
            with connection.makefile("rb") as stream:
                request = json.loads(stream.read(int.from_bytes(length, "big")))
            pid = os.fork()
            if pid == 0:
                connection.close()
                _become(request, descriptors, self._forget)
        except (OSError, ValueError):  # it has gone, is not one of ours, or no process can be added
            connection.close()
            return
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # the child does it too, since either may come first
        self.children[pid] = connection
        self.selector.register(connection, selectors.EVENT_READ, self._hang_up)
        _tell(connection, pid)

    def _hang_up(self, connection: socket.socket) -> None:
        """A caller sends nothing after its request, so the connection becomes readable when the caller is gone."""
        if connection.fileno() < 0:  # its child ended in the same moment
            return
        self.selector.unregister(connection)
        for pid, asked in self.children.items():
            if asked is connection:
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)

    def _reap(self, wakes: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            wakes.recv(4096)
        for pid in list(self.children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                connection = self.children.pop(pid)
                _tell(connection, os.waitstatus_to_exitcode(status))
                with contextlib.suppress(KeyError):
                    self.selector.unregister(connection)
                connection.close()

    def _close(self, alive: int) -> None:
        """The starter is dead. A caller that waits to be accepted sees the connection end, and runs by itself."""
        self.open = False
        for source in (self.listener, alive):
            self.selector.unregister(source)
        path = Path(self.listener.getsockname())
        self.listener.close()
        with contextlib.suppress(OSError):  # the starter may have removed both
            path.unlink()
            path.parent.rmdir()

    def _forget(self) -> None:
        """In a child: closes all that is the server's, and takes back what it set."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for key in list(self.selector.get_map().values()):
            os.close(key.fd)
        self.selector.close()
        self.waker.close()


def _become(request: dict[str, Any], descriptors: list[int], forget: Callable[[], None]) -> NoReturn:
    """In a child: a process as if the command had been started by itself, to its end."""
    code: Any = 1
    try:
        os.setpgid(0, 0)
        forget()
        for stream, descriptor in enumerate(descriptors):
            os.dup2(descriptor, stream)
            os.close(descriptor)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        del os.environ[VARIABLE]
        sys.argv[1:] = request["arguments"]
        from fedrepro import cli

        code = cli.main(request["arguments"])
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:  # whatever happened: never back into the server
            os._exit(code if isinstance(code, int) else 1)


def _tell(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(f"{number}\n".encode())
