"""What `fedrepro verify --renew` writes into published evidence, and when a result of other code counts as published."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fedrepro.engine import checkout, fingerprints, receipts, renewal
from fedrepro.engine.fingerprints import Changed
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.files import read_json, write_json

RECORD = {"run_id": "a", "seed": 8, "config": {}, "environment": {"device": "cpu"}, "files": {"metrics.parquet": "1"}}


def published(root: Path, paper: str, **changes: Any) -> Path:
    return write_json(
        root / f"reports/full/{paper}/evidence/a/seed8.json", seal(RECORD | {"code": {"part x": "2:old"}} | changes)
    )


def test_sources_that_differ_from_their_commit_verify_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise evidence would name a commit that did not make it."""
    monkeypatch.setattr(checkout, "state", lambda: ("abc", True))
    with pytest.raises(UserError, match=r"^--renew: src, .* differ from the commit; commit them"):
        renewal.stamp()
    monkeypatch.setattr(checkout, "state", lambda: ("abc", False))
    assert renewal.stamp() == {"commit": "abc", "at": datetime.now(UTC).date().isoformat()}


def test_only_copies_of_the_same_evidence_are_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second paper has the same file, a third one another training of the run and seed."""
    monkeypatch.setattr(fingerprints, "today", lambda config, device: {"part x": "2:new"})
    first, same = published(tmp_path, "one"), published(tmp_path, "two")
    other = published(tmp_path, "three", files={"metrics.parquet": "2"})
    before = other.read_bytes()
    assert {*renewal.renew(tmp_path, read_json(first), {"commit": "abc"})} == {first, same}
    for path in (first, same):
        assert (read_json(path)["code"], read_json(path)["verified"]) == ({"part x": "2:new"}, {"commit": "abc"})
    assert other.read_bytes() == before
    assert renewal.renew(tmp_path, read_json(first), {"commit": "def"}) == [], "its code is today's"


@pytest.mark.parametrize(("files", "is_published"), [({"metrics.parquet": "1"}, True), ({"metrics.parquet": "2"}, False)])
def test_a_published_training_is_only_marked(
    files: dict[str, str], is_published: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result here of the same files is the published one. One of other files is trained again where its code has changed."""
    monkeypatch.setattr(fingerprints, "changed", lambda code, config: Changed(retrain=("part x",)) if code else Changed())
    published(tmp_path, "one")
    write_json(receipts.receipt_path(tmp_path, "a", 8), seal(RECORD | {"code": {"part x": "2:old"}, "files": files}))
    expected = Changed(mark=("part x",)) if is_published else Changed(retrain=("part x",))
    assert receipts.changed(tmp_path, "a", 8, {}) == expected
