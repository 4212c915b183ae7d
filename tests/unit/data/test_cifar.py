"""CIFAR-10 and CIFAR-100 from archives in the real format, with pickles as Python 2 wrote them."""

import pickle

import numpy as np
import pytest

from fedrepro.data.arrays import load_arrays
from fedrepro.data.prepare import prepare
from tests.helpers.published import cifar, md5, tar, zipped
from tests.helpers.server import serving

IMAGES = np.random.default_rng(0).integers(0, 256, (11, 3, 32, 32), dtype=np.uint8)
LABELS = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]
CLASSES = ["apple", "bear", "can"]


def archive_of(of_100):
    return "cifar-100-python.tar.gz" if of_100 else "cifar-10-python.tar.gz"


def register(published, of_100, content=None, members=None, **entry):
    """Registers a small CIFAR archive; returns its members."""
    made = cifar(IMAGES, LABELS, CLASSES, of_100) if members is None else members
    file = published.put(archive_of(of_100), tar(made) if content is None else content)
    file["members"] = {name: md5(content) for name, content in made.items()}
    common = {"kind": "cifar", "torchvision_class": "CIFAR100" if of_100 else "CIFAR10", "native_shape": [3, 32, 32]}
    published.register(**common | {"classes": 3, "class_names": CLASSES, "files": [file]} | entry)
    return made


@pytest.mark.parametrize("of_100", [False, True])
def test_from_a_server(of_100, published):
    """The archive is downloaded and verified. Batches keep their order, labels are the fine ones, and nothing unpacked
    stays."""
    register(published, of_100)
    with serving(published.folder) as server:
        register(published, of_100, urls=[server.url])
        arrays = load_arrays(prepare("small", root=published.root))
    assert (arrays.train_images == IMAGES[:10]).all()
    assert arrays.train_labels.tolist() == LABELS[:10]
    assert (arrays.test_images == IMAGES[10:]).all()
    assert arrays.test_labels.tolist() == LABELS[10:]
    raw = published.root / "data/raw/small"
    assert sorted(path.name for path in raw.iterdir()) == [archive_of(of_100), "sha256.json"]


@pytest.mark.parametrize("pack", [lambda members: tar(members, ""), lambda members: tar(members, "xz"), zipped])
def test_a_repacked_archive_passes(pack, published):
    """An archive with other packing or another suffix passes if every member has its MD5."""
    made = register(published, False)
    register(published, False, members=made, content=tar(made))
    published.put(archive_of(False), pack({"extra/readme.txt": b"hello"} | made))
    assert (load_arrays(published.prepare()).train_images == IMAGES[:10]).all()


def test_each_member_is_checked_even_so(published):
    """With a wrong list of members and the right MD5 of the archive, torchvision still checks each member before it unpickles
    it."""
    register(published, False)
    path = published.root / "data/registry.yaml"
    wrong = md5(cifar(IMAGES, LABELS, CLASSES, False)["cifar-10-batches-py/data_batch_3"])
    path.write_text(path.read_text().replace(wrong, "f" * 32))
    published.refused("not readable as CIFAR10 .*corrupted")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("unpickled something whose checksum is not right",))


@pytest.mark.parametrize("name", ["data_batch_2", "test_batch", "batches.meta"])
def test_nothing_unknown_is_unpickled(name, published):
    """An archive with an unknown member is refused before any member is opened."""
    made = register(published, False)
    published.put(archive_of(False), tar(made | {f"cifar-10-batches-py/{name}": pickle.dumps(Bomb(), 2)}))
    published.refused(
        r"corrupt, or not the published file \(md5 of the file .*, expected .*, and its members are not those listed"
    )


def test_the_bomb_would_have_gone_off(published):
    """This shows that the test above can fail: with its MD5 in the registry, the member is unpickled."""
    made = cifar(IMAGES, LABELS, CLASSES, False) | {"cifar-10-batches-py/data_batch_2": pickle.dumps(Bomb(), 2)}
    register(published, False, members=made)
    with pytest.raises(pytest.fail.Exception, match="unpickled something"):
        published.prepare()


def drop(made, name):
    return {key: content for key, content in made.items() if not key.endswith(name)}


def test_faults_are_one_line(published):
    """Each gives one line: a truncated archive, and an entry that does not list a member."""
    made = register(published, False)
    published.put(archive_of(False), tar(made)[:-400])
    published.refused("corrupt, or not the published file")
    register(published, False, members=drop(made, "test_batch"))
    published.refused(r"members of its entry in data/registry\.yaml lack cifar-10-batches-py/test_batch; add it")


def test_labels_and_names_that_belie_the_entry(published):
    register(published, True, members=cifar(IMAGES, [*LABELS[:-1], 5], CLASSES, True))
    published.refused(r"the source's test labels are 5\.\.5, expected 0\.\.2")


def test_class_names_that_belie_the_entry(published):
    register(published, True, class_names=["bear", "apple", "can"])
    published.refused(r"its class names are not class_names of small in data/registry\.yaml")


def test_images_of_another_size(published):
    register(published, True, members=cifar(IMAGES[:, :, :30], LABELS, CLASSES, True))
    published.refused("not readable as CIFAR100 .*reshape")
