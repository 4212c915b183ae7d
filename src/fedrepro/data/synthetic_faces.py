"""Face-like drawings with their boxes, made here: 400 training and 160 test images of 64x64, one to three faces each.

They stand in for FedGH's photographs, whose source its slides do not name, so that detection runs without a download. A face is
an ellipse with hair, two eyes and a mouth, of 14 to 34 pixels height and varying skin, light and place; on a sloping background
with rectangles, plain ovals of skin colour without features, and noise. Faces lie within the image and hardly overlap. Image k
depends on k alone.

Drawn from whole random numbers with +, -, *, / and comparisons only, so that the bytes are the same on every machine.
"""

from typing import NamedTuple

import numpy as np

from fedrepro import rng
from fedrepro.data.boxes import Row, labels, packed
from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source

SIDE, TRAIN, TEST, MOST_FACES = 64, 400, 160, 3
NOISE = 14  # largest change of a pixel's value
OVERLAP = 0.1  # most of a new shape's box that earlier ones may cover
TRIES = 20  # to find a free place; then the shape is left out, which the first of an image never is
_GRID = np.arange(SIDE) + 0.5  # centres of pixels


class _Oval(NamedTuple):
    """An upright ellipse: centre and half axes in pixels."""

    x: float
    y: float
    a: float
    b: float

    def depth(self) -> np.ndarray:
        """[H, W]: 0 in the centre, 1 on the edge, more outside."""
        return ((_GRID[None, :] - self.x) / self.a) ** 2 + ((_GRID[:, None] - self.y) / self.b) ** 2

    def part(self, x: float, y: float, a: float, b: float) -> "_Oval":
        """A smaller one, given in half axes from this one's centre."""
        return _Oval(self.x + x * self.a, self.y + y * self.b, a * self.a, b * self.b)

    def covered(self, others: list["_Oval"]) -> float:
        """The largest share of its box that one of the others' boxes covers."""
        shares = [0.0]
        for other in others:
            wide = min(self.x + self.a, other.x + other.a) - max(self.x - self.a, other.x - other.a)
            high = min(self.y + self.b, other.y + other.b) - max(self.y - self.b, other.y - other.b)
            shares.append(max(wide, 0) * max(high, 0) / (4 * self.a * self.b))
        return max(shares)


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The arrays. UserError when they are not those that the registry knows.

    `fetcher` is unused: all readers have the same arguments.
    """
    drawn = [draw(number) for number in range(TRAIN + TEST)]
    images, rows = np.stack([pixels for pixels, _ in drawn]), [faces for _, faces in drawn]
    boxes, classes = packed(rows, MOST_FACES), labels(rows)
    source = Source(
        images[:TRAIN],
        classes[:TRAIN],
        images[TRAIN:],
        classes[TRAIN:],
        {},
        train_boxes=boxes[:TRAIN],
        test_boxes=boxes[TRAIN:],
    )
    return source.checked(entry.name, entry.content_sha256, "the faces drawn here")


def draw(number: int) -> tuple[np.ndarray, list[Row]]:
    """Image uint8 [3, H, W] and its faces."""
    generator = rng.stream(0, "synthetic-faces", number)
    image = _background(generator)
    placed: list[_Oval] = []
    for _ in range(int(generator.integers(1, MOST_FACES + 1))):
        place = _free(generator, placed)
        placed += [place] if place else []
    for _ in range(int(generator.integers(0, 3))):
        oval = _free(generator, placed)
        if oval:
            _paint(image, oval, _skin(generator), shade=0.3)
    rows: list[Row] = []
    for face in placed:
        _face(image, face, generator)
        rows.append((0, face.x / SIDE, face.y / SIDE, 2 * face.a / SIDE, 2 * face.b / SIDE))
    noise = generator.integers(-NOISE, NOISE + 1, image.shape)
    return np.clip(np.floor(image + noise + 0.5), 0, 255).astype(np.uint8), rows


def _between(generator: np.random.Generator, low: float, high: float) -> float:
    """One of 1,001 values, evenly spaced."""
    return low + (high - low) * (int(generator.integers(0, 1001)) / 1000)


def _background(generator: np.random.Generator) -> np.ndarray:
    """float64 [3, H, W]: a slope between two colours, and two to five rectangles."""
    first, second = (generator.integers(20, 236, 3)[:, None, None] for _ in range(2))
    along = _GRID[None, :, None] if generator.integers(0, 2) else _GRID[None, None, :]
    image = np.broadcast_to(first + (second - first) * (along / SIDE), (3, SIDE, SIDE)).copy()
    for _ in range(int(generator.integers(2, 6))):
        (top, left), (height, width) = generator.integers(0, SIDE - 4, 2), generator.integers(4, 28, 2)
        image[:, top : top + height, left : left + width] = generator.integers(20, 236, 3)[:, None, None]
    return image


def _free(generator: np.random.Generator, placed: list[_Oval]) -> _Oval | None:
    """An oval of a face's size and shape within the image, where there is little else."""
    for _ in range(TRIES):
        b = _between(generator, 7, 17)
        a = b * _between(generator, 0.66, 0.86)
        oval = _Oval(_between(generator, a, SIDE - a), _between(generator, b, SIDE - b), a, b)
        if oval.covered(placed) <= OVERLAP:
            return oval
    return None


def _skin(generator: np.random.Generator) -> np.ndarray:
    """A colour from pale to dark, in more or less light."""
    pale, dark = np.array([240.0, 205.0, 180.0]), np.array([105.0, 70.0, 50.0])
    return (dark + (pale - dark) * _between(generator, 0, 1)) * _between(generator, 0.7, 1.05)


def _face(image: np.ndarray, face: _Oval, generator: np.random.Generator) -> None:
    """Skin, hair above, eyes and a mouth, slightly out of place."""
    skin = _skin(generator)
    _paint(image, face, skin, shade=0.3)
    hair = skin * _between(generator, 0.15, 0.6)
    line = face.y - _between(generator, 0.4, 0.7) * face.b
    _paint(image, face, hair, shade=0.2, above=line)
    dx, dy = _between(generator, -0.12, 0.12), _between(generator, -0.08, 0.08)
    eye = skin * _between(generator, 0.1, 0.35)
    for side in (-0.42, 0.42):
        _paint(image, face.part(side + dx, -0.12 + dy, 0.19, 0.11), eye)
    mouth = skin * np.array([0.75, 0.4, 0.4])
    _paint(image, face.part(dx, 0.5 + dy, _between(generator, 0.3, 0.5), _between(generator, 0.07, 0.14)), mouth)


def _paint(image: np.ndarray, oval: _Oval, colour: np.ndarray, shade: float = 0.0, above: float = SIDE) -> None:
    """Fills the oval above a line, darker by `shade` towards its edge; what is small still gets its nearest pixel."""
    depth = oval.depth()
    inside = depth <= max(1.0, float(depth.min()))
    inside &= (above >= _GRID)[:, None]
    image[:, inside] = colour[:, None] * (1 - shade * depth[inside])
