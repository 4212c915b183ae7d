"""Encoded images (JPEG, PNG, ...) as one array. Decoded by Pillow, never resized: a file of another size is an error."""

import io
from collections.abc import Iterable, Sequence

import numpy as np
from PIL import ExifTags, Image

from fedrepro.errors import UserError

_MODES = {1: "L", 3: "RGB"}  # channels -> Pillow's mode
UPRIGHT = 1  # EXIF orientation


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
                _require_plain(where, image)
                pixels = np.asarray(image.convert(_MODES[channels]))
                return pixels.reshape(*size[::-1], channels).transpose(2, 0, 1)
            actual = image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        problem = " ".join(str(error).split()) if content else "no bytes"
        raise UserError(f"{where}: not a readable image ({problem}); get the file again from its source") from error
    expected = f"{size[0]}x{size[1]}"
    raise UserError(f"{where}: {actual[0]}x{actual[1]} pixels, expected {expected}; correct native_shape in data/registry.yaml")


def _require_plain(where: str, image: Image.Image) -> None:
    """UserError for images that Pillow converts silently: it clips values above 255, drops transparency and ignores
    rotation."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        raise UserError(f"{where}: has more than 8 bits a channel ({image.mode}); save it with values from 0 to 255")
    if image.has_transparency_data and np.asarray(image.convert("RGBA"))[..., 3].min() < 255:
        raise UserError(f"{where}: is transparent; save it on a background")
    if image.getexif().get(ExifTags.Base.Orientation, UPRIGHT) != UPRIGHT:
        raise UserError(f"{where}: its EXIF orientation says that viewers turn or mirror it; save it upright, without that tag")
