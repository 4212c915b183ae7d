"""Small files in the formats of published data sets."""

import hashlib
import io
import pickle
import struct
import tarfile
import zipfile

import numpy as np
from PIL import Image


def md5(content: bytes) -> str:
    """Hex MD5."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def idx(array: np.ndarray) -> bytes:
    """An IDX file of bytes: two zeros, type 8, number of axes, then each length as a big-endian word."""
    return struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def tar(members: dict[str, bytes], packing: str = "gz") -> bytes:
    """A tar archive, compressed or not ("")."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{packing}") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def image(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    """An encoded image of pixels uint8 [3, H, W] or grey [1, H, W]. PNG keeps every pixel."""
    stream = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(stream, kind)
    return stream.getvalue()


def cifar(images: np.ndarray, labels: list[int], class_names: list[str], of_100: bool, test: int = 1) -> dict[str, bytes]:
    """Members of a CIFAR archive. The last `test` images are the test set. For CIFAR-10 the others fill five batches."""
    rows = images.reshape(len(images), -1)
    if of_100:
        folder, names, key = "cifar-100-python", ["train"], "fine_labels"
        meta = {"meta": {"fine_label_names": class_names, "coarse_label_names": ["coarse"]}}
    else:
        folder, names, key = "cifar-10-batches-py", [f"data_batch_{number}" for number in range(1, 6)], "labels"
        meta = {"batches.meta": {"num_cases_per_batch": 10000, "label_names": class_names, "num_vis": 3072}}
    parts = dict(zip(names, np.array_split(np.arange(len(rows) - test), len(names)), strict=True))
    parts["test" if of_100 else "test_batch"] = np.arange(len(rows) - test, len(rows))
    batches = {
        name: {
            "batch_label": name,
            key: [labels[i] for i in index],
            "data": rows[index],
            "filenames": [f"{i}.png" for i in index],
        }
        for name, index in parts.items()
    }
    return {f"{folder}/{name}": python2_pickle(content) for name, content in (batches | meta).items()}


def python2_pickle(value: object) -> bytes:
    """A pickle as Python 2 and the NumPy of 2009 wrote it: protocol 2, byte strings for text, numbers for truth values."""
    stream = io.BytesIO()
    _Python2(stream, protocol=2).dump(value)
    return stream.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


class _Python2(pickle._Pickler):
    def _string(self, text):
        content = text.encode("latin1") if isinstance(text, str) else bytes(text)
        short = len(content) < 256
        head = pickle.SHORT_BINSTRING + bytes([len(content)]) if short else pickle.BINSTRING + struct.pack("<i", len(content))
        self.write(head + content)
        self.memoize(text)

    def _truth(self, value):
        self.save(int(value))

    dispatch = pickle._Pickler.dispatch | {str: _string, bytes: _string, bool: _truth}
