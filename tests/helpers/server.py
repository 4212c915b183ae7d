"""A real HTTP server on this machine, with faults on request."""

import contextlib
import http.server
import threading
from collections import Counter, defaultdict
from pathlib import Path


class Server(http.server.ThreadingHTTPServer):
    """Serves `folder`. `faults[path]` lists the faults of the next requests.

    A fault is a status code, "truncate" (half of the file), "hang up", "odd length" (all of the file, with a length that is no
    number), or "stall": half of the file, then nothing until `resume` is set.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.faults, self.requests = folder, defaultdict(list), Counter()
        self.resume = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        path = self.path.lstrip("/")
        self.server.requests[path] += 1
        fault = self.server.faults[path].pop(0) if self.server.faults[path] else None
        file = self.server.folder / path
        if isinstance(fault, int) or not file.is_file():
            return self.send_error(fault or 404)
        if fault == "hang up":
            return None
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", "abc" if fault == "odd length" else str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault in ("truncate", "stall") else content)
        self.wfile.flush()
        if fault == "stall":
            self.server.resume.wait(60)
        return None

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(folder: Path):
    """A server over `folder` for the block."""
    with Server(folder) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.resume.set()
        running.shutdown()
        thread.join()
