"""papers/changes.yaml lists every change of a rule or a claim after results, with what the change moved."""

import json
from pathlib import Path

import pytest
from fingerprint import claim_fingerprint, rule_fingerprint, unlisted

from fedrepro.config.changes import Changes, load_changes
from fedrepro.config.claims import Claim, load_claims
from fedrepro.exhibits import verdict

ROOT = Path(__file__).parents[3]
PAPERS = sorted(path.parent.name for path in ROOT.glob("papers/*/claims.yaml"))


@pytest.fixture
def changes() -> Changes:
    return load_changes(ROOT)


@pytest.fixture
def claims() -> dict[str, list[Claim]]:
    return {paper: load_claims(ROOT, paper) for paper in PAPERS}


def test_no_claim_and_no_rule_has_changed_unlisted(changes: Changes, claims: dict[str, list[Claim]]) -> None:
    assert unlisted(changes, claims, rule_fingerprint()) == []


def test_a_changed_claim_is_refused_by_name(changes: Changes, claims: dict[str, list[Claim]]) -> None:
    """A changed bound, side or column gives a line with the claim and the entry to add. A changed text gives none."""
    by_id = {claim.id: claim for claim in claims["fedgh"]}
    for id, edit in (("GH-7", {"value": 1.05}), ("GH-3", {"side": "printed"}), ("GH-1", {"columns": ["clients5-top1", "x"]})):
        edited = [claim.model_copy(update=edit) if claim.id == id else claim for claim in claims["fedgh"]]
        (said,) = unlisted(changes, claims | {"fedgh": edited}, rule_fingerprint())
        assert said.startswith(f"fedgh: {id} is ")
        assert f"`{id}: {claim_fingerprint(by_id[id].model_copy(update=edit))}`" in said
    said_otherwise = [claim.model_copy(update={"text": "Said otherwise.", "says": None}) for claim in claims["fedgh"]]
    assert unlisted(changes, claims | {"fedgh": said_otherwise}, rule_fingerprint()) == []


def test_a_dropped_claim_and_a_new_one_are_refused_by_name(changes: Changes, claims: dict[str, list[Claim]]) -> None:
    first, *others = claims["igfl"]
    assert unlisted(changes, claims | {"igfl": others}, rule_fingerprint()) == [
        f"igfl: {first.id} is gone: list it as `{first.id}: dropped`"
    ]
    new = first.model_copy(update={"id": "IG-99"})
    (said,) = unlisted(changes, claims | {"igfl": [*claims["igfl"], new]}, rule_fingerprint())
    assert said.startswith("igfl: IG-99 is ")


@pytest.mark.parametrize("name", ["judged", "margin"])
def test_a_changed_rule_is_refused(
    name: str, changes: Changes, claims: dict[str, list[Claim]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wider tolerance or a narrower margin is refused."""
    before = rule_fingerprint()
    assert before == rule_fingerprint()
    true = getattr(verdict, name)
    other = (lambda d, m, *rest: true(d / 2, m, *rest)) if name == "judged" else (lambda v, s, n: (true(v, s, n) or 1.0) / 2)
    monkeypatch.setattr(f"fingerprint.{name}", other)
    (said,) = unlisted(changes, claims, rule_fingerprint())
    assert said.startswith("the rule of verdicts is ")


def test_what_a_change_is_said_to_have_moved_is_where_the_pages_have_it(changes: Changes) -> None:
    """For each cell or claim, the last verdict in papers/changes.yaml equals the verdict on the committed page."""
    for paper in PAPERS:
        path = ROOT / "reports/full" / paper / "index.json"
        if not path.exists():
            continue
        page = json.loads(path.read_text())
        now = {f"claim {claim['claim']}": claim["verdict"] for claim in page["claims"]}
        for cell in page["cells"]:
            source = json.loads(path.with_name(f"{cell['table']}.json").read_text())["header"]["source"]
            now[f"{source}, {cell['method']}, {cell['setting']}"] = cell["status"]
        last = {}
        for one in changes.changes:
            for move, places in one.moved.get(paper, {}).items():
                last |= dict.fromkeys(places, move.partition(" → ")[2])
        assert {place: now.get(place, "dropped") for place in last} == last, paper
