"""The stand-in for Digit Five: what each domain does to an image, and that domains share none."""

import numpy as np
import pytest

from fedrepro.data import digit_domains, digits, partition
from fedrepro.data.arrays import Arrays, load_arrays
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import load_registry

GREY = np.array([[[[0, 255], [100, 7]]]], dtype=np.uint8)


@pytest.fixture
def made(project) -> Arrays:
    return load_arrays(prepare("digit_domains", root=project))


def test_domains_by_hand() -> None:
    """Of one image of 2 x 2: all channels alike where no colour is drawn."""
    plain, inverted, rotated = (digit_domains.changed(GREY, name, "train") for name in ("plain", "inverted", "rotated"))
    for channel in range(3):
        assert plain[0, channel].tolist() == [[0, 255], [100, 7]]
        assert inverted[0, channel].tolist() == [[255, 0], [155, 248]]
        assert rotated[0, channel].tolist() == [[255, 7], [0, 100]]  # the right column is now the top row


def test_tints_and_noise() -> None:
    """Paper is darker than ink in every channel, and what is grey lies between; noise is bounded, and differs by channel."""
    tinted, noisy = (digit_domains.changed(GREY, name, "train").astype(int)[0] for name in ("tinted", "noisy"))
    paper, ink = tinted[:, 0, 0], tinted[:, 0, 1]
    assert (paper < 128).all()
    assert (ink >= 128).all()
    assert ((paper <= tinted[:, 1, 0]) & (tinted[:, 1, 0] <= ink)).all()
    assert np.array_equal(tinted[:, 1, 0], (155 * paper + 100 * ink) // 255)
    assert (np.abs(noisy - GREY[0].astype(int)) <= digit_domains.NOISE).all()
    assert not np.array_equal(noisy[0], noisy[1])


def test_domains_share_no_image(made: Arrays) -> None:
    """Turned back and inverted back, the images of three domains are embedded ones, each once; every domain has ten test images
    of each class."""
    originals = {image.tobytes(): number for number, image in enumerate(digits.embedded()[0])}
    labels, seen = digits.embedded()[1], []
    for split in ("train", "test"):
        x, y, groups = (getattr(made, f"{split}_{what}") for what in ("images", "labels", "groups"))
        back = {"plain": lambda x: x, "inverted": lambda x: 255 - x, "rotated": lambda x: np.rot90(x, -1, axes=(2, 3))}
        for name, undo in back.items():
            mine = groups == digit_domains.DOMAINS.index(name)
            numbers = [originals[image[:1].tobytes()] for image in undo(x[mine])]
            assert labels[numbers].tolist() == y[mine].tolist()
            seen += numbers
    assert len(seen) == len(set(seen)) >= 3 * 359
    counts = np.stack([np.bincount(made.test_labels[made.test_groups == g], minlength=10) for g in range(5)])
    assert counts.tolist() == [[10] * 10] * 5
    assert np.ptp(np.bincount(made.train_groups)) == 1


@pytest.mark.parametrize(
    "within", ["classes_per_client(k=2)", "dirichlet_balanced(alpha=0.5, min_size=3)", "shards(per_client=2)"]
)
def test_clients_stay_within_a_domain(project, made: Arrays, within: str) -> None:
    """FedIMA's skews inside domains: four clients each, no client of two domains."""
    entry = load_registry(project / "data/registry.yaml")["digit_domains"]
    definition = partition.definition(entry, f"by_group(within='{within}')", 20)
    partition.create(definition, 8, project)
    found = partition.load(project, partition.artifact_id(definition), 8)
    owners = [np.unique(made.train_groups[found.train(client)]) for client in range(20)]
    assert all(len(owner) == 1 for owner in owners)
    assert np.bincount(np.concatenate(owners)).tolist() == [4] * 5
