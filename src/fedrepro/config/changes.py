"""papers/changes.yaml: every change of a rule, of a claim or of a claim's rule after results had been read, with what it moved.

Pages show it. A rule and a claim have a fingerprint each, of what they decide and not of how they are written; a test compares
those in the file with today's, so that no change goes unlisted.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from fedrepro.config.claims import Claim
from fedrepro.config.schema import Strict, check
from fedrepro.files import canonical_hash, read_yaml

DROPPED = "dropped"  # the fingerprint of a claim that is gone
WORDS = {"id", "text", "says", "where"}  # of a claim: how it is said, not what decides it

Moves = dict[str, list[str]]  # `reproduced → inconclusive` -> the cells or claims


class Change(Strict):
    """One change. `date`: YYYY-MM-DD. `claims`: of those that it concerns, the new fingerprints; `rule`: likewise.

    `moved`: by paper the verdicts before and after; `counts` where only their numbers are known.
    """

    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    what: str
    why: str
    rule: str | None = None
    claims: dict[str, str] = Field({})
    moved: dict[str, Moves] = Field({})
    counts: dict[str, str] = Field({})


class Changes(Strict):
    """`claims`: by paper the fingerprints of claims as they were first committed, before any change listed."""

    claims: dict[str, dict[str, str]] = Field({})
    changes: list[Change]

    def of(self, paper: str, claims: set[str]) -> list[Change]:
        """Those that moved something of a paper, or concern one of its claims."""
        return [one for one in self.changes if paper in {*one.moved, *one.counts} or claims & one.claims.keys()]

    @property
    def rule(self) -> str | None:
        """The fingerprint of the rule of verdicts after the last change of it."""
        return next((one.rule for one in reversed(self.changes) if one.rule), None)

    def claim(self, paper: str, id: str) -> str | None:
        """The fingerprint of a claim after the last change of it; None for a claim that is not in the file."""
        changed = (one.claims[id] for one in reversed(self.changes) if id in one.claims)
        return next(changed, self.claims.get(paper, {}).get(id))


def load_changes(root: Path) -> Changes:
    """Without the file there are none. UserError for a mistake in it."""
    path = Path(root) / "papers" / "changes.yaml"
    return check(Changes, read_yaml(path), str(path)) if path.exists() else Changes(claims={}, changes=[])


def claim_fingerprint(claim: Claim) -> str:
    """Of all that decides a claim: eight characters."""
    return canonical_hash({key: value for key, value in claim.model_dump(exclude_defaults=True).items() if key not in WORDS})[
        :8
    ]


def unlisted(changes: Changes, claims: dict[str, list[Claim]], rule: str) -> list[str]:
    """A sentence for each claim, and for the rule, that is not what papers/changes.yaml ends with. `claims` by paper."""
    said = []
    if rule != changes.rule:
        said.append(f"the rule of verdicts is {rule} and was {changes.rule}: list the change with `rule: {rule}`")
    for paper, own in claims.items():
        for claim in own:
            found, known = claim_fingerprint(claim), changes.claim(paper, claim.id)
            if found != known:
                said.append(f"{paper}: {claim.id} is {found} and was {known}: list the change with `{claim.id}: {found}`")
        gone = {*changes.claims.get(paper, {})} - {claim.id for claim in own}
        said += [
            f"{paper}: {id} is gone: list it as `{id}: {DROPPED}`" for id in sorted(gone) if changes.claim(paper, id) != DROPPED
        ]
    return said
