"""The stand-in for Digit Five: what each domain does to an image. Domains share no image."""

import numpy as np
import pytest

from fedrepro.data import digit_domains, digits
from fedrepro.data.arrays import Arrays, load_arrays
from fedrepro.data.prepare import prepare


@pytest.fixture
def made(project) -> Arrays:
    return load_arrays(prepare("digit_domains", root=project))


def test_domains_share_no_image(made: Arrays) -> None:
    """With rotation and inversion undone, every image of the three domains is an embedded one, and no image occurs twice. Every
    domain has ten test images of each class."""
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
