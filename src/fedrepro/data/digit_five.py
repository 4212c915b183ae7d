"""Domains of digits at 28x28 in colour: MNIST, SVHN, USPS, SynthDigits and MNIST-M, or those whose files an entry names.

FedIMA's Digit Five after the public preparation of FedBN (Li et al., ICLR 2021, https://arxiv.org/abs/2102.07623): all images
of a domain, of its published training and test parts, are split 80/20 within each class, and every domain is reduced to the
training images that the smallest, USPS, has: 7,438 of 9,298. Up to 1,000 images of each class of a domain are tested.

The split and the reduction are drawn once and do not depend on a run's seed. Reduced classes keep their shares, rounded by
largest remainders (our choice). Grey images are repeated over three channels; other sizes are scaled as `prepare.fit` does.
"""

from collections.abc import Callable, Iterable

import numpy as np

from fedrepro import rng
from fedrepro.data import digit_files as files
from fedrepro.data.artifact import floor_share
from fedrepro.data.download import Fetcher
from fedrepro.data.prepare import fit
from fedrepro.data.registry import Entry
from fedrepro.data.source import Samples, Source
from fedrepro.errors import UserError

TRAIN, TEST_PER_CLASS, TEST_SHARE = 7438, 1000, 0.2

_MNIST = tuple(f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))
_Read = Callable[..., Iterable[Samples]]
# (domain, its files, how their parts are read): in this order. USPS is published in two formats.
_READERS: tuple[tuple[str, tuple[str, ...], _Read], ...] = (
    ("mnist", _MNIST, lambda *paths: [files.read_idx(*paths[:2]), files.read_idx(*paths[2:])]),
    ("svhn", ("train_32x32.mat", "test_32x32.mat"), lambda *paths: map(files.read_mat, paths)),
    ("usps", ("usps.bz2", "usps.t.bz2"), lambda *paths: map(files.read_libsvm, paths)),
    ("usps", ("usps.h5",), lambda path: [files.read_h5(path, split) for split in ("train", "test")]),
    ("synth_digits", ("synth_train_32x32.mat", "synth_test_32x32.mat"), lambda *paths: map(files.read_mat, paths)),
    ("mnist_m", ("mnist_m.tar.gz",), lambda path: files.read_mnist_m(path).values()),
)


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The native arrays, domains as groups.

    UserError when a file cannot be had, is not of its format, or belongs to no domain.
    """
    readers = _find_readers(entry)
    sums = {}
    for file in entry.files:
        target = _unpacked(file.name)
        sums[target] = fetcher.fetch(file, target, unpack=target != file.name)
    parts: dict[str, dict[str, Samples]] = {"train": {}, "test": {}}
    for domain, names, read_parts in readers:
        images, labels = files.joined([*read_parts(*(fetcher.folder / _unpacked(name) for name in names))])
        train, test = split(labels, domain, f"{entry.name}: {domain}")
        for part, index in (("train", train), ("test", test)):
            parts[part][domain] = fit(images[index], entry.native_shape), labels[index]
    return Source.of_groups(parts, sums)


def _unpacked(name: str) -> str:
    return name if name.endswith(".tar.gz") else name.removesuffix(".gz")


def _find_readers(entry: Entry) -> list[tuple[str, tuple[str, ...], _Read]]:
    """Returns the domains whose files `entry` names. UserError for a domain that lacks a file, and for a file of no domain."""
    file_names, assigned = {file.name for file in entry.files}, set[str]()
    readers: list[tuple[str, tuple[str, ...], _Read]] = []
    for domain, names, reader in _READERS:
        present = file_names & {*names}
        if not present:
            continue
        if len(present) < len(names):
            missing = min({*names} - present)
            raise UserError(f"{entry.name}: files: {domain} also needs {missing}; add it in data/registry.yaml")
        if any(other == domain for other, *_ in readers):
            raise UserError(f"{entry.name}: files: {domain} is named twice, in two formats; leave one in data/registry.yaml")
        readers.append((domain, names, reader))
        assigned |= present
    if strange := sorted(file_names - assigned):
        possible = ", ".join(name for _, names, _ in _READERS for name in names)
        raise UserError(f"{entry.name}: files: {strange[0]} is of no domain; known: {possible}")
    return readers


def split(labels: np.ndarray, domain: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """(training, test) indices of one domain, both ascending. UserError for too few images, beginning with `where`."""
    train, test = [], []
    for c in range(10):
        order = rng.stream(0, f"digit-five/{domain}", c).permutation(np.flatnonzero(labels == c))
        held_out = floor_share(TEST_SHARE, len(order))
        test.append(order[: min(held_out, TEST_PER_CLASS)])
        train.append(order[held_out:])
    available = sum(map(len, train))
    if available < TRAIN:
        raise UserError(f"{where} has {available} training images, and {TRAIN} are needed; get its files again")
    counts = _shares(np.array([len(part) for part in train]), TRAIN)
    reduced = [part[:count] for part, count in zip(train, counts, strict=True)]
    return np.sort(np.concatenate(reduced)), np.sort(np.concatenate(test))


def _shares(sizes: np.ndarray, total: int) -> np.ndarray:
    """`total` in the shares of whole `sizes`, whole numbers: the largest remainders are rounded up, earlier ones first."""
    floor, remainders = np.divmod(sizes * total, sizes.sum())
    up = np.argsort(-remainders, kind="stable")[: total - floor.sum()]
    floor[up] += 1
    return floor
