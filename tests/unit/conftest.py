"""Lets unit tests import from tests/helpers, and leaves pictures empty where no test looks at them."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "helpers"))

_EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="374pt" height="200pt" version="1.1"></svg>\n'


@pytest.fixture(autouse=True)
def _empty_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test without the mark `drawn` writes an empty SVG in place of each picture, which takes most of a picture's time. All
    before the writing runs as ever. A process that has not loaded matplotlib yet does not load it for this: its first pictures
    are drawn."""
    figure = sys.modules.get("matplotlib.figure")
    if figure and not request.node.get_closest_marker("drawn"):
        monkeypatch.setattr(figure.Figure, "savefig", lambda _, path, **options: Path(path).write_text(_EMPTY))
