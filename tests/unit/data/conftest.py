"""A project folder per test, digits prepared once, small published files, and a server with faults on request."""

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from fedrepro.data import download, transfer
from fedrepro.data.prepare import prepare
from tests.helpers.one_line import one_line
from tests.helpers.published import idx, md5
from tests.helpers.server import serving

REGISTRY = Path(__file__).parents[3] / "data" / "registry.yaml"
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """No pauses between attempts, and no mirror or proxy from the environment."""
    monkeypatch.setattr(transfer, "BACK_OFF_S", (0.0, 0.0))
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
class Published:
    """A folder of published files, and the registry of a project that knows one data set made of them."""

    root: Path
    folder: Path
    dataset: str = "small"

    def put(self, name: str, content: bytes) -> dict[str, str]:
        """Writes a file; returns its line for `register(files=[...])`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(content)
        return {"name": name, "md5": md5(content)}

    def register(self, **entry) -> None:
        """Writes data/registry.yaml with this one entry, which extends the keys that every entry has."""
        common = {"title": self.dataset, "homepage": "none", "licence": "none"}
        path = self.root / "data" / "registry.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({self.dataset: common | entry}))

    def prepare(self) -> Path:
        """Prepares the arrays at the native shape, with the folder as the mirror."""
        return prepare(self.dataset, root=self.root, mirror=str(self.folder))

    def refused(self, line: str) -> str:
        """`prepare` fails with one line that matches, and leaves no array and no partial file. Returns the line."""
        with one_line(line) as caught:
            self.prepare()
        assert not (self.root / "data/arrays").exists()
        stored = [path.name for path in (self.root / "data/raw").rglob("*")]
        assert not [name for name in stored if name.endswith((".partial", ".download", ".unpacked"))]
        return str(caught.value)


@pytest.fixture
def published(tmp_path) -> Published:
    """A `Published` without files."""
    return Published(tmp_path / "project", tmp_path / "published")


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
        Published(self.root, self.folder, "tiny").register(
            kind="idx", torchvision_class="MNIST", classes=3, class_names=["a", "b", "c"], native_shape=[1, 5, 4],
            channel_mean=[0.5], channel_std=[0.25], urls=list(urls), files=files,
        )  # fmt: skip


@pytest.fixture
def tiny(tmp_path) -> Tiny:
    """Registered without any address; call `register` to add some."""
    generator = np.random.default_rng(0)
    contents, images, labels = {}, [], []
    for count, image_name, label_name in ((6, *NAMES[:2]), (3, *NAMES[2:])):
        images.append(generator.integers(0, 256, (count, 5, 4), dtype=np.uint8))
        labels.append(np.arange(count, dtype=np.uint8) % 3)
        contents |= {f"{image_name}.gz": idx(images[-1]), f"{label_name}.gz": idx(labels[-1])}
    folder = tmp_path / "published"
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(gzip.compress(content, mtime=1))
    made = Tiny(tmp_path / "project", folder, contents, images[0], labels[0])
    made.register()
    return made


@pytest.fixture
def server(tiny):
    """A server over the folder of the tiny data set."""
    with serving(tiny.folder) as running:
        yield running


def flip_a_byte(path: Path) -> None:
    """Damages a file without changing its length."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
