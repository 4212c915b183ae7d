"""Published files of handwritten and street digits, each read as images uint8 [N, C, H, W] and labels int64 [N] in 0..9.

IDX (MNIST), MATLAB 5 (SVHN, and SynthDigits, which has its layout), LIBSVM's text packed by bzip2 or HDF5 (USPS), an archive of
PNG files with lists of labels (MNIST-M). Every function raises UserError naming the file when it is none of its format.
"""

import bz2
import itertools
import zlib
from pathlib import Path, PurePosixPath

import numpy as np

from fedrepro.data import idx
from fedrepro.data.archive import members
from fedrepro.data.images import decode
from fedrepro.data.source import Samples
from fedrepro.errors import UserError

_AGAIN = "get it again from its source"
_USPS_SIDE = 16
_MNIST_M_SIDE = 32


def read_idx(images: Path, labels: Path) -> Samples:
    """One split of MNIST: unpacked IDX files, grey."""
    return _checked(images, *idx.load(images, labels))


def read_mat(path: Path) -> Samples:
    """One split of SVHN or of SynthDigits: X uint8 [H, W, C, N] and y [N, 1], where 10 is the digit 0."""
    from scipy.io import loadmat  # imported here, since it takes a while
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path)
        images, labels = content["X"], content["y"].ravel()
    except (MatReadError, zlib.error, ValueError, NotImplementedError, TypeError, OSError, LookupError) as error:
        raise UserError(f"{path}: not a MATLAB file with X and y ({' '.join(str(error).split())}); {_AGAIN}") from error
    if images.ndim != 4 or images.dtype != np.uint8:
        raise UserError(f"{path}: X is {images.dtype} {images.shape}, expected bytes [H, W, C, N]; {_AGAIN}")
    if labels.dtype.kind not in "iuf" or (labels % 1 != 0).any():
        raise UserError(f"{path}: y is {labels.dtype} and not whole numbers; {_AGAIN}")
    return _checked(path, images.transpose(3, 2, 0, 1), labels.astype(np.int64) % 10 + 10 * (labels > 10))


def read_libsvm(path: Path) -> Samples:
    """One split of USPS as LIBSVM has it: lines `label 1:value ... 256:value`, labels 1..10 for 0..9, values -1..1; grey."""
    side, images, labels = _USPS_SIDE, [], []
    try:
        for line in bz2.decompress(path.read_bytes()).decode("ascii").splitlines():
            label, *pairs = line.split()
            values = dict(pair.split(":") for pair in pairs)
            images.append([float(values[str(place)]) for place in range(1, side * side + 1)])
            labels.append(int(float(label)) - 1)
    except (OSError, EOFError, ValueError, OverflowError, KeyError) as error:
        raise UserError(f"{path}: not LIBSVM's text of {side * side} values a line ({error}); {_AGAIN}") from error
    return _checked(path, _grey(path, (np.array(images) + 1) / 2), np.array(labels, dtype=np.int64))


def read_h5(path: Path, split: str) -> Samples:
    """One split ("train" or "test") of USPS in HDF5: <split>/data [N, 256] in 0..1, <split>/target [N]; grey."""
    import h5py  # imported here: few readers need it

    try:
        with h5py.File(path) as file:
            images, labels = (np.asarray(file[f"{split}/{what}"]) for what in ("data", "target"))
        return _checked(path, _grey(path, images.astype(np.float64)), labels.astype(np.int64))
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise UserError(f"{path}: not an HDF5 file with {split}/data and {split}/target; {_AGAIN}") from error


def _grey(path: Path, values: np.ndarray) -> np.ndarray:
    """uint8 [N, 1, 16, 16] of values [N, 256] in 0..1, the nearest of 0..255."""
    inside = values.ndim == 2 and values.shape[1] == _USPS_SIDE**2 and bool(((values >= 0) & (values <= 1)).all())
    if not inside:
        raise UserError(f"{path}: values of {values.shape} outside 0..1, or of another size; {_AGAIN}")
    return np.rint(255 * values).astype(np.uint8).reshape(-1, 1, _USPS_SIDE, _USPS_SIDE)


def read_mnist_m(path: Path) -> dict[str, Samples]:
    """Both splits of MNIST-M by name, in the order of its lists: mnist_m_train/<name>.png and mnist_m_train_labels.txt with
    lines `<name>.png label`; mnist_m_test likewise. Colour."""
    content = {PurePosixPath(name).name if name.endswith(".txt") else "/".join(PurePosixPath(name).parts[-2:]): data
               for name, data in members(path, lambda name: name.endswith((".txt", ".png")))}  # fmt: skip
    parts = {}
    for split in ("train", "test"):
        try:
            lines = content[f"mnist_m_{split}_labels.txt"].decode("ascii").splitlines()
            pairs = [
                (f"mnist_m_{split}/{name}", int(label)) for name, label in (line.split() for line in lines if line.strip())
            ]
            encoded = [(f"{path}: {name}", content[name]) for name, _ in pairs]
        except (KeyError, ValueError) as error:
            raise UserError(f"{path}: no list of labels, or one that does not fit its images ({error}); {_AGAIN}") from error
        images = decode(encoded, len(encoded), (3, _MNIST_M_SIDE, _MNIST_M_SIDE))
        parts[split] = _checked(path, images, np.array([label for _, label in pairs], dtype=np.int64))
    return parts


def joined(parts: list[Samples]) -> Samples:
    """Joins several sets of images into one."""
    images, labels = zip(*parts, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def _checked(path: Path, images: np.ndarray, labels: np.ndarray) -> Samples:
    if len(images) != len(labels):
        raise UserError(f"{path}: {len(images)} images and {len(labels)} labels; {_AGAIN}")
    strange = next(itertools.chain(labels[(labels < 0) | (labels > 9)].tolist()), None)
    if strange is not None:
        raise UserError(f"{path}: label {strange}, expected digits 0..9; {_AGAIN}")
    return images, labels
