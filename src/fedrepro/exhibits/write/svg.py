"""SVG files inside an HTML page."""

import re
from pathlib import Path

from fedrepro.pictures import INK


def inline(path: Path, prefix: str) -> str:
    """Returns an SVG file's root element, for a page with other pictures: with unique identifiers, and the page's text colour
    and font."""
    text = path.read_text()
    text = text[text.index("<svg") :]
    text = re.sub(r'(?<= )((?:d|points|x|y)="[^"]*")', _lean, text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<image\b[^>]*?) id="[^"]*"', r"\1", text)  # a bar of colours has the same one in every panel
    # Half of the remaining text: fonts of every word, rotations by 0 degrees, and indentation.
    text = re.sub(r'font-family: [^;"]*;? ?| transform="rotate\(-?0 [^"]*"|(?<=\n)\s+', "", text)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'<svg ([^>]*?)\bwidth="([^"]*)"', r'<svg \1 style="max-width: \2"', text, count=1)
    text = re.sub(r'<svg ([^>]*?)\bheight="[^"]*"', r"<svg \1", text, count=1)
    return text.replace(INK.lower(), "currentColor").replace(INK, "currentColor")


def _lean(attribute: re.Match[str]) -> str:
    """Shortens coordinates: a hundredth of a point is finer than any screen, and a letter separates two numbers without a
    space."""
    return re.sub(r"(\.\d\d)\d+|\s+(?=[A-Za-z])|(?<=[A-Z])\s", r"\1", attribute[1])
