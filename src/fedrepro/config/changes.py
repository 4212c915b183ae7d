"""papers/changes.yaml: every change of a rule, of a claim or of a claim's rule after results had been read, and evidence that
was withdrawn, with what it moved.

Pages show it. Each rule and each claim has a fingerprint of what it decides, not of its wording. A test compares the
fingerprints in the file with today's, so that every change is listed.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from fedrepro.files import read_yaml
from fedrepro.typed import Strict, check

Moves = dict[str, list[str]]  # `reproduced → inconclusive` -> the cells or claims


class Change(Strict):
    """One change. `date`: YYYY-MM-DD. `claims`: the new fingerprints of those that it concerns; `rule`: that of the rule.

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
        """The changes that moved something of a paper or concern one of its claims, each with the paper's own claims alone."""
        changes = [
            change.model_copy(update={"claims": {id: fingerprint for id, fingerprint in change.claims.items() if id in claims}})
            for change in self.changes
        ]
        return [change for change in changes if change.claims or change.moved.get(paper) or change.counts.get(paper)]


def load_changes(root: Path) -> Changes:
    """The changes in the file; none without it. UserError for a mistake in it."""
    path = Path(root) / "papers" / "changes.yaml"
    return check(Changes, read_yaml(path), str(path)) if path.exists() else Changes(claims={}, changes=[])
