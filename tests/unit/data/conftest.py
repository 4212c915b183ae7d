"""A project folder per test, digits prepared once, tiny files in the IDX format, and a server that misbehaves on request."""

import gzip
import hashlib
import http.server
import shutil
import struct
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from fedrepro.data import download
from fedrepro.data.prepare import prepare

REGISTRY = Path(__file__).parents[3] / "data" / "registry.yaml"
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """No pauses between attempts, no mirror and no proxy from the environment."""
    monkeypatch.setattr(download, "BACK_OFF_S", (0.0, 0.0))
    monkeypatch.delenv(download.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def project(tmp_path) -> Path:
    """An empty project folder with the real registry."""
    (tmp_path / "project" / "data").mkdir(parents=True)
    shutil.copy(REGISTRY, tmp_path / "project" / "data")
    return tmp_path / "project"


@pytest.fixture(scope="session")
def digits(tmp_path_factory) -> Path:
    """A project folder with digits at 1x8x8. Shared: do not damage it, copy it (`own_digits`)."""
    root = tmp_path_factory.mktemp("digits")
    (root / "data").mkdir()
    shutil.copy(REGISTRY, root / "data")
    prepare("digits", root=root)
    return root


@pytest.fixture
def own_digits(digits, tmp_path) -> Path:
    """A copy of `digits` that a test may damage."""
    return Path(shutil.copytree(digits, tmp_path / "own"))


@dataclass
class Tiny:
    """A data set in the MNIST format: 6 training and 3 test images of 5x4, served from `folder`, registered as `tiny`."""

    root: Path
    folder: Path
    contents: dict[str, bytes]  # name.gz -> unpacked bytes
    images: np.ndarray  # [6, 5, 4]
    labels: np.ndarray  # [6]

    def register(self, *urls: str, checksums: str = "md5 unpacked_md5") -> None:
        """Writes data/registry.yaml with this one entry."""
        files = []
        for name, content in self.contents.items():
            sums = {"md5": md5((self.folder / name).read_bytes()), "unpacked_md5": md5(content)}
            files.append({"name": name, **{key: sums[key] for key in checksums.split()}})
        entry = {
            "title": "tiny", "homepage": "none", "licence": "none", "kind": "idx", "torchvision_class": "MNIST",
            "classes": 3, "class_names": ["a", "b", "c"], "native_shape": [1, 5, 4],
            "normalise": {"mean": [0.5], "std": [0.25]}, "urls": list(urls), "files": files,
        }  # fmt: skip
        (self.root / "data" / "registry.yaml").write_text(yaml.safe_dump({"tiny": entry}))


@pytest.fixture
def tiny(tmp_path) -> Tiny:
    """Registered without any address; call `register` for more."""
    generator = np.random.default_rng(0)
    contents, images, labels = {}, [], []
    for count, image_name, label_name in ((6, *NAMES[:2]), (3, *NAMES[2:])):
        images.append(generator.integers(0, 256, (count, 5, 4), dtype=np.uint8))
        labels.append(np.arange(count, dtype=np.uint8) % 3)
        contents[f"{image_name}.gz"] = struct.pack(">IIII", 0x803, count, 5, 4) + images[-1].tobytes()
        contents[f"{label_name}.gz"] = struct.pack(">II", 0x801, count) + labels[-1].tobytes()
    folder = tmp_path / "published"
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(gzip.compress(content, mtime=1))
    (tmp_path / "project" / "data").mkdir(parents=True, exist_ok=True)
    made = Tiny(tmp_path / "project", folder, contents, images[0], labels[0])
    made.register()
    return made


class Server(http.server.ThreadingHTTPServer):
    """Serves `folder`; `faults[path]` lists what the next requests get: a status code, "truncate" or "hang up"."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.faults, self.requests = folder, defaultdict(list), Counter()

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
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault == "truncate" else content)
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tiny):
    """A server over the tiny data set's folder."""
    with Server(tiny.folder) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def flip_a_byte(path: Path) -> None:
    """Damages a file without changing its length."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
