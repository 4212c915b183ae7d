"""A data set in its own format: a reader, an entry of the registry, a test. It makes small pictures, to be replaced."""

from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.skeletons import Skeleton, fill, require_folder, require_name, title

_READER = '''
"""$title: what it is, who published it, in which files.

To be replaced by a reader of those files, see docs/adding-a-data-set.md, section 9. As it is, it draws squares whose brightness
tells their class, so that everything that follows can be tried.
"""

import numpy as np

from fedrepro import rng
from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source

TRAIN, TEST = 600, 200


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The four native arrays. UserError when they are not those of the registry's content_sha256."""
    train, test = (_draw(count, split, entry) for count, split in ((TRAIN, "train"), (TEST, "test")))
    return Source(*train, *test, files={}).checked(entry.name, entry.content_sha256, "the images of $name")


def _draw(count: int, split: str, entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    """(images uint8 [N, C, H, W], labels int64 [N]), drawn once and for all: no seed of a run changes them."""
    generator = rng.stream(0, f"$name/{split}")
    labels = generator.integers(entry.classes, size=count)
    brightness = 40 + 170 * labels / (entry.classes - 1)
    pixels = brightness.reshape(-1, 1, 1, 1) + generator.normal(0, 25, (count, *entry.native_shape))
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8), labels.astype(np.int64)
'''
_ENTRY = """

$name:
  title: "TITLE"
  homepage: HOMEPAGE
  licence: LICENCE
  kind: $name
  classes: 4
  class_names: ["a", "b", "c", "d"]
  native_shape: [1, 8, 8]
  images: [600, 200]
  content_sha256: "$sha"  # changes with what the reader gives; a wrong one is named with the right one
"""
_TEST = '''
"""$title: shapes, labels, and the same bytes each time."""

from pathlib import Path

import numpy as np

from fedrepro.data.arrays import load_arrays
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import load_registry

ROOT = Path(__file__).parents[3]


def test_it_is_what_the_registry_says(tmp_path: Path) -> None:
    """Prepared as the workflow does it: counts, classes and the checksum are looked at there."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/registry.yaml").write_bytes((ROOT / "data/registry.yaml").read_bytes())
    entry = load_registry(tmp_path / "data/registry.yaml")["$name"]
    found = load_arrays(prepare("$name", root=tmp_path))
    assert found.train_images.shape == (entry.images[0], *entry.native_shape)
    assert set(np.unique(found.train_labels)) == set(range(entry.classes))
    again = load_arrays(prepare("$name", root=tmp_path))
    assert found.test_images.tobytes() == again.test_images.tobytes()


def test_classes_can_be_told_apart(tmp_path: Path) -> None:
    """By the mean brightness of a picture, which rises with its class."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/registry.yaml").write_bytes((ROOT / "data/registry.yaml").read_bytes())
    found = load_arrays(prepare("$name", root=tmp_path))
    means = [found.train_images[found.train_labels == c].mean() for c in range(found.classes)]
    assert means == sorted(means)
    assert len(set(means)) == found.classes
'''
_REGISTRY, _SOURCE = Path("data/registry.yaml"), Path("src/fedrepro/data/registry.py")


def files(root: Path, name: str) -> Skeleton:
    """A reader, its kind in the registry's module, an entry in data/registry.yaml, a test."""
    from fedrepro.data.registry import load_registry

    require_name("dataset", name)
    require_folder(root, "src/fedrepro/data")
    if name in load_registry(root / _REGISTRY):
        raise UserError(f"new dataset {name}: {_REGISTRY} has an entry of that name; choose another one")
    reader, test = Path("src/fedrepro/data", f"{name}.py"), Path("tests/unit/data", f"test_{name}.py")
    if (root / reader).exists():  # it may be the very module that gets a line more
        raise UserError(f"new dataset {name}: {reader} is there already; choose another name")
    text = fill(_READER, title=title(name), name=name)
    found = {
        reader: text,
        _SOURCE: _with_kind((root / _SOURCE).read_text(), name),
        _REGISTRY: (root / _REGISTRY).read_text().rstrip("\n") + fill(_ENTRY, name=name, sha=_sha(text)).join(["\n\n", ""]),
        test: fill(_TEST, title=title(name), name=name),
    }
    steps = (
        f"edit {reader} and the entry at the end of {_REGISTRY}, then: fedrepro data {name}",
        "it names the new checksum after each change of the reader: write it into content_sha256, then give it again",
        f"python -m pytest -n 0 {test}",
        f"fedrepro run --method fedavg --dataset {name} --model mlp --rounds 5 --seeds 8",
        "docs/adding-a-data-set.md explains every key; a data set in a known format needs an entry alone",
    )
    return Skeleton(found, steps, frozenset({_SOURCE, _REGISTRY}))


def _with_kind(source: str, name: str) -> str:
    """The registry's module with one more kind. UserError where it does not look as expected."""
    last = '    "digit_domains": (("class_names", "content_sha256"), ()),\n'
    if source.count(f"{last}}}\n") != 1:
        raise UserError(f"{_SOURCE}: its kinds are not where they were; add the kind {name!r} there by hand")
    return source.replace(last, last + last.replace("digit_domains", name))


def _sha(reader: str) -> str:
    """The checksum of what the reader gives, which it is asked for itself."""
    from types import SimpleNamespace

    from fedrepro.data.source import Source

    module: dict[str, object] = {}
    exec(compile(reader, "reader", "exec"), module)
    entry = SimpleNamespace(classes=4, native_shape=(1, 8, 8))
    draw = module["_draw"]
    train, test = (draw(module[count], split, entry) for count, split in (("TRAIN", "train"), ("TEST", "test")))  # type: ignore[operator]
    return Source(*train, *test, files={}).content_sha256
