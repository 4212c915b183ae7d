"""Run ids, plans, evidence and published numbers are those that `tests/golden/frozen.json` records."""

import json

from tests import freeze


def test_nothing_that_is_published_has_moved() -> None:
    """Where a change is meant to move something, `python -m tests.freeze --write` records it anew."""
    assert freeze.differences(json.loads(freeze.FILE.read_text()), freeze.tree()) == []
