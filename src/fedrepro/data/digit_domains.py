"""Five domains made from the digits embedded in scikit-learn: a stand-in for Digit Five that needs no download.

The 1,297 training and 500 test images of `fedrepro.data.digits` are dealt out among the domains, class by class, so that no two
domains share an image: each has 259 or 260 training images, and of every class ten test images. Plain; inverted; tinted (ink
and paper each of a colour drawn for every image); rotated by a quarter turn to the left; noisy (every value of every channel up
to 80 more or less). 8x8 in colour. Whole numbers throughout, so the bytes are the same on every machine.
"""

import numpy as np

from fedrepro import rng
from fedrepro.data import digits
from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Samples, Source

DOMAINS = ("plain", "inverted", "tinted", "rotated", "noisy")
NOISE = 80  # largest change of a value


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The arrays, domains as groups. UserError when they are not those that the registry knows.

    `fetcher` is unused: all readers have the same arguments.
    """
    images, labels = digits.embedded()
    test = digits.test_index(labels, entry.classes)
    train = np.setdiff1d(np.arange(len(labels)), test)
    parts: dict[str, dict[str, Samples]] = {}
    for part, index in (("train", train), ("test", test)):
        owned = _dealt(labels[index], entry.classes, part)
        members = {domain: index[owned == number] for number, domain in enumerate(DOMAINS)}
        parts[part] = {
            domain: (changed(images[positions], domain, part), labels[positions]) for domain, positions in members.items()
        }
    return Source.of_groups(parts, {}).checked(entry.name, entry.content_sha256, "the domains made here")


def _dealt(labels: np.ndarray, classes: int, part: str) -> np.ndarray:
    """The domain of each image, int64 [N]: the images of a class are shuffled and dealt to the domains in turn."""
    domain = np.empty(len(labels), dtype=np.int64)
    for c in range(classes):
        members = rng.stream(0, f"digit-domains/{part}", c).permutation(np.flatnonzero(labels == c))
        domain[members] = (np.arange(len(members)) + c) % len(DOMAINS)  # each class starts with another domain
    return domain


def changed(images: np.ndarray, domain: str, part: str) -> np.ndarray:
    """uint8 [N, 3, H, W] of grey images [N, 1, H, W] as `domain` shows them."""
    colour = np.repeat(images, 3, axis=1).astype(np.int64)
    generator = rng.stream(0, f"digit-domains/{part}/{domain}")
    if domain == "inverted":
        colour = 255 - colour
    elif domain == "tinted":
        paper = generator.integers(0, 128, (len(images), 3, 1, 1))
        ink = generator.integers(128, 256, (len(images), 3, 1, 1))
        colour = (paper * (255 - colour) + ink * colour) // 255
    elif domain == "rotated":
        colour = np.rot90(colour, axes=(2, 3))
    elif domain == "noisy":
        colour = np.clip(colour + generator.integers(-NOISE, NOISE + 1, colour.shape), 0, 255)
    return np.ascontiguousarray(colour.astype(np.uint8))
