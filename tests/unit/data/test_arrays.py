"""Prepared arrays: digits from end to end, resizing by hand, and damaged files."""

import json
import subprocess
import sys

import numpy as np
import pytest

from fedrepro.data import digits as digits_source
from fedrepro.data.arrays import arrays_folder, load_arrays
from fedrepro.data.prepare import fit, prepare
from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError
from fedrepro.files import sha256_file
from tests.helpers.one_line import one_line

from .conftest import flip_a_byte


def test_digits_native(digits):
    """1,297 training and 500 test images of 8x8 use the full range of a byte. The test set has 50 of each class, as the
    manifest says."""
    arrays = load_arrays(arrays_folder(digits, "digits", (1, 8, 8)))
    assert (arrays.train_images.shape, arrays.train_images.dtype) == ((1297, 1, 8, 8), np.uint8)
    assert (arrays.test_images.shape, arrays.test_labels.dtype) == ((500, 1, 8, 8), np.int64)
    assert np.bincount(arrays.test_labels).tolist() == [50] * 10
    assert (arrays.train_images.min(), arrays.train_images.max()) == (0, 255)
    manifest = arrays.manifest
    assert (manifest["schema"], manifest["dataset"], arrays.shape, arrays.classes) == (2, "digits", (1, 8, 8), 10)
    assert manifest["counts"] == {"train": 1297, "test": 500}
    pixels = arrays.train_images / 255
    assert manifest["statistics"] == {"mean": [round(pixels.mean(), 4)], "std": [round(pixels.std(), 4)]}
    assert manifest["source"] == {"entry_sha": load_registry(digits / "data/registry.yaml")["digits"].sha, "files": {}}
    assert arrays.sha256 == sha256_file(digits / "data/arrays/digits/1x8x8/manifest.json")


def test_digits_resized_to_colour(own_digits):
    """Images are 28x28 with three equal channels, and the statistics have one value per channel. The same input gives the same
    bytes."""
    folder = prepare("digits", (3, 28, 28), own_digits)
    arrays = load_arrays(folder)
    assert arrays.train_images.shape == (1297, 3, 28, 28)
    assert (arrays.train_images[:, 0] == arrays.train_images[:, 2]).all()
    native = load_arrays(arrays_folder(own_digits, "digits", (1, 8, 8))).manifest["statistics"]
    assert arrays.manifest["statistics"] == {"mean": native["mean"] * 3, "std": native["std"] * 3}
    before = {path.name: sha256_file(path) for path in folder.iterdir()}
    assert prepare("digits", (3, 28, 28), own_digits) == folder
    assert {path.name: sha256_file(path) for path in folder.iterdir()} == before


def test_a_changed_embedded_copy_is_noticed(project, monkeypatch):
    """If scikit-learn's digits are not those of the registry, nothing is written."""
    import sklearn.datasets

    pixels, labels = sklearn.datasets.load_digits(return_X_y=True)
    pixels[0, 20] += 1
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda **_: (pixels, labels))
    with pytest.raises(UserError, match=r"not those of data/registry\.yaml"):
        prepare("digits", root=project)
    assert not (project / "data/arrays").exists()


def test_the_split_is_ours_alone():
    """The test images do not depend on the global random generator."""
    labels = np.arange(1000) % 10
    np.random.seed(1)  # noqa: NPY002
    first = digits_source.test_index(labels, 10)
    np.random.seed(2)  # noqa: NPY002
    assert (first == digits_source.test_index(labels, 10)).all()


def test_bilinear_by_hand():
    """2 -> 4 samples at -1/4 (clamped to 0), 1/4, 3/4 and 5/4 (clamped to 1) of the way from the first pixel to the second.

    0, 255: 0, 63.75, 191.25, 255. 0, 2: 0, 0.5, 1.5, 2, and halves go up.
    """
    images = np.array([[[[0, 255]]], [[[0, 2]]]], dtype=np.uint8)  # [2, 1, 1, 2]
    assert fit(images, (1, 1, 4)).tolist() == [[[[0, 64, 191, 255]]], [[[0, 1, 2, 2]]]]


def test_halves_do_not_hang_on_the_last_bit():
    """Some output pixels of 8 -> 28 lie exactly between two bytes. The bytes equal those of integer arithmetic, since weights
    are multiples of 1/14 in each direction."""
    images = np.random.default_rng(0).integers(0, 256, (20, 1, 8, 8), dtype=np.uint8)
    position = np.clip(2 * np.arange(28) + 1 - 3.5, 0, None)  # of each output pixel, in sevenths of an input pixel
    weight_14 = np.zeros((28, 8), dtype=np.int64)
    for out, twice in enumerate((position * 2).astype(int)):
        low, rest = divmod(twice, 14)
        weight_14[out, low] += 14 - rest
        weight_14[out, min(low + 1, 7)] += rest
    exact_196 = np.einsum("yh,xw,nchw->ncyx", weight_14, weight_14, images.astype(np.int64))
    assert (exact_196 % 196 == 98).any()
    assert (fit(images, (1, 28, 28)) == (exact_196 + 98) // 196).all()


def test_resizing_does_not_hang_on_how_many_go_at_a_time(monkeypatch):
    """Resizing images one by one, a few at a time or all together gives the same bytes."""
    images = np.random.default_rng(0).integers(0, 256, (7, 3, 5, 6), dtype=np.uint8)
    expected = fit(images, (3, 12, 8))
    for values in (1, 2 * 3 * 12 * 8 + 5):
        monkeypatch.setattr("fedrepro.data.prepare._CHUNK_VALUES", values)
        assert (fit(images, (3, 12, 8)) == expected).all()


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 0), (1, 8, 8.0), (1, 8, 4096), (0, 8, 8)])
def test_impossible_shapes(shape, project):
    with pytest.raises(UserError, match=r"digits: shape .* is not \(channels, height, width\)"):
        prepare("digits", shape, project)


def test_colour_does_not_become_grey(tiny):
    import yaml

    path = tiny.root / "data/registry.yaml"
    content = yaml.safe_load(path.read_text())
    content["tiny"] |= {"native_shape": [3, 5, 4], "channel_mean": [], "channel_std": []}
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match="tiny: cannot make 1 channels of 3; use 3x5x4"):
        prepare("tiny", (1, 5, 4), tiny.root)


def damage_array(folder):
    flip_a_byte(folder / "test_images.npy")


def truncate_array(folder):
    (folder / "train_labels.npy").write_bytes((folder / "train_labels.npy").read_bytes()[:50])


def remove_array(folder):
    (folder / "train_images.npy").unlink()


def remove_manifest(folder):
    (folder / "manifest.json").unlink()


def garble_manifest(folder):
    (folder / "manifest.json").write_text('{"schema": 1,')


def age_manifest(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"schema": 0}))


def forget_file(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["test_labels.npy"]
    (folder / "manifest.json").write_text(json.dumps(manifest))


DAMAGES = [
    (damage_array, r"test_images\.npy: does not match the sha256"),
    (truncate_array, r"train_labels\.npy: does not match the sha256"),
    (remove_array, r"train_images\.npy: no such file"),
    (remove_manifest, r"manifest\.json: no such file"),
    (garble_manifest, r"manifest\.json: not valid JSON"),
    (forget_file, r"test_labels\.npy: does not match the sha256"),
    (age_manifest, r"manifest\.json: not a manifest of this version"),
]


@pytest.mark.parametrize(("damage", "line"), DAMAGES)
def test_damage_is_one_line(damage, line, own_digits):
    """The line names the file and what to do."""
    folder = arrays_folder(own_digits, "digits", (1, 8, 8))
    damage(folder)
    with one_line(line) as caught:
        load_arrays(folder)
    assert "run the s" in str(caught.value)


def test_unverified_loading_still_checks_shapes(own_digits):
    folder = arrays_folder(own_digits, "digits", (1, 8, 8))
    flip_a_byte(folder / "train_images.npy")
    load_arrays(folder, verify=False)
    truncate_array(folder)
    with pytest.raises(UserError, match=r"train_labels\.npy: not a readable array"):
        load_arrays(folder, verify=False)
    np.save(folder / "train_labels.npy", np.zeros(3, dtype=np.int32))
    with pytest.raises(UserError, match=r"train_labels\.npy: int32 \(3,\) where manifest\.json says int64 \(1297,\)"):
        load_arrays(folder, verify=False)


def test_loading_needs_numpy_alone():
    """Reading arrays, partitions, cohorts and proxy splits imports no torch, scikit-learn, YAML or pydantic."""
    code = (
        "import sys; import fedrepro.data.arrays, fedrepro.data.partition, fedrepro.data.participation, fedrepro.data.proxy; "
        "slow = {'torch', 'sklearn', 'scipy', 'pandas', 'yaml', 'pydantic', 'matplotlib', 'torchvision'}; "
        "print(sorted(slow & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
