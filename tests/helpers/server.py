"""A real HTTP server on this machine that misbehaves on request."""

import contextlib
import http.server
import threading
from collections import Counter, defaultdict
from pathlib import Path

from tests.helpers.published import md5


class Server(http.server.ThreadingHTTPServer):
    """Serves `folder`; `faults[path]` lists what the next requests get.

    A status code; "truncate" (half of what was asked for); "hang up"; ("break", n): n bytes; ("stall", n): n bytes, and then
    nothing until `resume` is set.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.faults, self.requests = folder, defaultdict(list), Counter()
        self.answers: list[tuple[int, str | None]] = []  # status and Range header of every answer with content
        self.ranges, self.validator, self.resume = True, "etag", threading.Event()

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
        validator = self.validator(content)
        start = self.start(validator)
        if start and start >= len(content):
            return self.send_error(416)
        self.server.answers.append((206 if start else 200, self.headers.get("Range")))
        self.send_response(206 if start else 200)
        for name, value in validator.items():
            self.send_header(name, value)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        content = content[start:]
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        sent = len(content) // 2 if fault == "truncate" else fault[1] if isinstance(fault, tuple) else len(content)
        self.wfile.write(content[:sent])
        self.wfile.flush()
        if isinstance(fault, tuple) and fault[0] == "stall":
            self.server.resume.wait(60)
        return None

    def validator(self, content):
        """The header by which a client recognises this version of the content."""
        choices = {"etag": ("ETag", f'"{md5(content)}"'), "weak": ("ETag", f'W/"{md5(content)}"')}
        choices["date"] = ("Last-Modified", f"Sat, 01 Jan 2000 00:00:{content[-1] % 60:02} GMT")
        return dict([choices[self.server.validator]]) if self.server.validator else {}

    def start(self, validator):
        """The first byte to send: 0 without a range, without support for ranges, or when If-Range names another version."""
        wanted, condition = self.headers.get("Range"), self.headers.get("If-Range")
        if not self.server.ranges or not wanted or (condition and condition not in validator.values()):
            return 0
        return int(wanted.removeprefix("bytes=").removesuffix("-"))

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(folder: Path):
    """A server over `folder` for the length of the block."""
    with Server(folder) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.resume.set()
        running.shutdown()
        thread.join()
