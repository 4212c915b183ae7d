"""FashionMNIST and CIFAR-10 from download to a trained cell, in their true file formats, over HTTP."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from fedrepro.data.arrays import arrays_folder, load_arrays
from tests.helpers.published import cifar, idx, md5, tar
from tests.helpers.server import serving
from tests.workflow.conftest import ROOT, Project

COLUMN_OF = {"fashion_mnist": "fashion_mnist-mlp-100", "cifar10": "cifar10-simple_cnn-100"}
PER_CLASS, TEST_PER_CLASS = 6, 2


def images(shape: tuple[int, ...], classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise, with 6 training images of each class and then 2 test images of each."""
    labels = np.tile(np.arange(classes), PER_CLASS + TEST_PER_CLASS)
    return np.random.default_rng(classes).integers(0, 256, (len(labels), *shape), dtype=np.uint8), labels


def publish(project: Project, folder: Path, url: str) -> dict[str, np.ndarray]:
    """Files of the true formats in `folder`, and their checksums and address in the project's registry; returns all images."""
    path = project.root / "data/registry.yaml"
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


def test_from_download_to_a_trained_cell(project: Project, tmp_path: Path) -> None:
    """One command fetches what it needs, once, and trains; the arrays hold every pixel that was published."""
    table = "papers/fedlaw/tables/table3.yaml"
    (project.root / table).write_text((ROOT / table).read_text())  # with the columns that the small project leaves out
    folder = tmp_path / "published"
    folder.mkdir()
    with serving(folder) as server:
        published = publish(project, folder, server.url)
        command = ("fedrepro", "run", "fedlaw/table3", "--scale", "short", "--rows", "fedavg", "--seeds", "8")
        settings = ("--set", "rounds=1", "proxy_per_class=1", "batch_size=64")
        project.run(*command, "--columns", *COLUMN_OF.values(), *settings, no_proxy="127.0.0.1")
        assert set(server.requests.values()) == {1}
        assert len(server.requests) == 5
    for name, pixels in published.items():
        arrays = load_arrays(arrays_folder(project.root, name, pixels.shape[1:]))
        assert (np.concatenate([arrays.train_images, arrays.test_images]) == pixels).all()
        (metrics,) = (project.root / "results/runs").glob(f"{name}-*/seed8/metrics.parquet")
        accuracy = pd.read_parquet(metrics).query("metric == 'test_accuracy'")["value"]
        assert accuracy.between(0, 100).all()
        assert len(accuracy) == 1
    project.run(*command, "--columns", *COLUMN_OF.values(), *settings)  # without the server: nothing is asked for again
