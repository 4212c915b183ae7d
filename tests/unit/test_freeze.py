"""Run ids, plans, evidence and published numbers are those that `tests/golden/frozen.json` records."""

import json

from tests import freeze
from tests.helpers.bare import ROOT, without_large


def test_nothing_that_is_published_has_moved() -> None:
    """Planned where none of the large libraries can be imported. Where a change is meant to move something,
    `python -m tests.freeze --write` records it anew."""
    found = without_large("from tests import freeze", "freeze.tree()")
    assert freeze.differences(json.loads((ROOT / freeze.FILE).read_text()), found) == []
