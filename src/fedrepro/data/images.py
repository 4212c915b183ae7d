"""Encoded images (JPEG, PNG, ...) as one array. Decoded by Pillow, never resized: a file of another size is an error."""

import io
from collections.abc import Iterable, Sequence

import numpy as np
from PIL import ExifTags, Image

from fedrepro.errors import UserError

_MODES = {1: "L", 3: "RGB"}  # channels -> Pillow's mode
_TURNED = range(2, 9)  # EXIF orientations; 1 is upright, and viewers ignore any other value
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_BITS = 24  # place of the bits of a channel in the header
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP")


def decode(encoded: Iterable[tuple[str, bytes | None]], count: int, shape: Sequence[int]) -> np.ndarray:
    """Images uint8 [count, C, H, W] from `count` pairs (where it is from, encoded bytes), in their order.

    A grey image becomes three equal channels where C = 3, a colour image its luminance where C = 1. UserError naming the image
    that cannot be decoded, is not of size HxW, has more than 8 bits a channel, is transparent anywhere, or has an EXIF
    rotation.
    """
    channels, height, width = shape
    images = np.empty((count, channels, height, width), dtype=np.uint8)
    for number, (where, content) in enumerate(encoded):
        images[number] = _decode(where, content, channels, (width, height))
    return images


def _decode(where: str, content: bytes | None, channels: int, size: tuple[int, int]) -> np.ndarray:
    try:
        with Image.open(io.BytesIO(content or b"")) as image:
            if image.size == size:  # checked before decoding: a decompression bomb has a small header
                _require_plain(where, image, (content or b"")[: _PNG_BITS + 1])
                pixels = np.asarray(image.convert(_MODES[channels]))
                return pixels.reshape(*size[::-1], channels).transpose(2, 0, 1)
            actual = image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        problem = " ".join(str(error).split()) if content else "no bytes"
        raise UserError(f"{where}: not a readable image ({problem}); get the file again from its source") from error
    expected = f"{size[0]}x{size[1]}"
    raise UserError(f"{where}: {actual[0]}x{actual[1]} pixels, expected {expected}; correct native_shape in data/registry.yaml")


def is_image(content: bytes) -> bool:
    """Whether the first bytes are those of an image of a usual format. It may be damaged further on."""
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS):
            return True
    except Image.DecompressionBombError:
        return True
    except (OSError, ValueError, SyntaxError):
        return False


def _require_plain(where: str, image: Image.Image, head: bytes) -> None:
    """UserError for images that Pillow converts silently: it clips values above 255, drops the lower half of a PNG's 16 bits,
    drops transparency and ignores rotation. `head`: the encoded image's first bytes."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        raise UserError(f"{where}: has more than 8 bits a channel ({image.mode}); save it with values from 0 to 255")
    if head.startswith(_PNG) and head[_PNG_BITS] > 8:
        raise UserError(f"{where}: has more than 8 bits a channel ({head[_PNG_BITS]}); save it with values from 0 to 255")
    if image.has_transparency_data and np.asarray(image.convert("RGBA"))[..., 3].min() < 255:
        raise UserError(f"{where}: is transparent; save it on a background")
    if image.getexif().get(ExifTags.Base.Orientation) in _TURNED:
        raise UserError(f"{where}: its EXIF orientation says that viewers turn or mirror it; save it upright, without that tag")
