"""FashionMNIST and CIFAR-10 from download to a trained cell: real file formats over HTTP."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import real_papers
import yaml
from published import cifar, idx, md5, tar
from server import serving

from fedrepro.cli import main
from fedrepro.data.arrays import arrays_folder, load_arrays

COLUMN_OF = {"fashion_mnist": "fashion_mnist-mlp-100", "cifar10": "cifar10-simple_cnn-100"}
PER_CLASS, TEST_PER_CLASS = 6, 2


def images(shape: tuple[int, ...], classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise images with labels: 6 training images of each class, then 2 test images of each class."""
    labels = np.tile(np.arange(classes), PER_CLASS + TEST_PER_CLASS)
    return np.random.default_rng(classes).integers(0, 256, (len(labels), *shape), dtype=np.uint8), labels


def publish(project: Path, folder: Path, url: str) -> dict[str, np.ndarray]:
    """Writes files in the real formats to `folder`, and their checksums and URL to the project's registry. Returns all images
    by data set."""
    path = project / "data/registry.yaml"
    registry = yaml.safe_load(path.read_text())
    made = {
        name: images((1, 28, 28) if name == "fashion_mnist" else (3, 32, 32), registry[name]["classes"]) for name in COLUMN_OF
    }
    pixels, labels = made["fashion_mnist"]
    train = PER_CLASS * 10
    contents = [idx(pixels[:train, 0]), idx(labels[:train]), idx(pixels[train:, 0]), idx(labels[train:])]
    for file, content in zip(registry["fashion_mnist"]["files"], contents, strict=True):
        (folder / file["name"]).write_bytes(gzip.compress(content))
        file["md5"] = md5((folder / file["name"]).read_bytes())
    pixels, labels = made["cifar10"]
    names, (file,) = registry["cifar10"]["class_names"], registry["cifar10"]["files"]
    members = cifar(pixels, labels.tolist(), names, False, test=TEST_PER_CLASS * len(names))
    content = tar(members)
    (folder / file["name"]).write_bytes(content)
    file |= {"md5": md5(content), "members": {member: md5(inside) for member, inside in members.items()}}
    for name in COLUMN_OF:
        registry[name]["urls"] = [url]
        registry[name]["images"] = [each * registry[name]["classes"] for each in (PER_CLASS, TEST_PER_CLASS)]
    path.write_text(yaml.safe_dump(registry))
    return {name: pixels for name, (pixels, _) in made.items()}


def test_from_download_to_a_trained_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command downloads each file once and trains. The arrays have every published pixel."""
    project = real_papers.enter(tmp_path / "project", monkeypatch, "seeds: [8]\n", "fedlaw")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "published"
    folder.mkdir()
    settings = ("--set", "rounds=1", "proxy_per_class=1", "batch_size=64")
    select = ("--scale", "short", "--rows", "fedavg", "--columns", *COLUMN_OF.values(), "--seeds", "8")
    command = ["run", "fedlaw/table3", *select, *settings, "--device", "cpu"]
    with serving(folder) as server:
        published = publish(project, folder, server.url)
        assert main(command) == 0
        assert set(server.requests.values()) == {1}
        assert len(server.requests) == 5
    for name, pixels in published.items():
        arrays = load_arrays(arrays_folder(project, name, pixels.shape[1:]))
        assert (np.concatenate([arrays.train_images, arrays.test_images]) == pixels).all()
        (metrics,) = (project / "results/runs").glob(f"{name}-*/seed8/metrics.parquet")
        accuracy = pd.read_parquet(metrics).query("metric == 'test_accuracy'")["value"]
        assert accuracy.between(0, 100).all()
        assert len(accuracy) == 1
    assert main(command) == 0  # the server is down, and nothing is downloaded again
