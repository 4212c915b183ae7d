"""Run ids, plans, evidence and published numbers are those in `tests/golden/frozen.json`."""

import json

from tests import freeze
from tests.helpers.bare import ROOT, without_large


def test_nothing_that_is_published_has_moved() -> None:
    """Planning works without any of the large libraries. After an intended change, `python -m tests.freeze --write` updates the
    file."""
    found = without_large("from tests import freeze", "freeze.tree()")
    assert freeze.differences(json.loads((ROOT / freeze.FILE).read_text()), found) == []
