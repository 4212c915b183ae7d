"""What is said of a paper beside its numbers: claims, what a person reads first, changes after results."""

from dataclasses import dataclass, field
from pathlib import Path

from fedrepro.config.changes import Change, load_changes
from fedrepro.config.claims import Claim, load_claims
from fedrepro.config.printed import printed_total
from fedrepro.config.summary import Summary, load_summary


@dataclass(frozen=True)
class Words:
    """`printed`: how many results its tables print."""

    claims: list[Claim] = field(default_factory=list)
    summary: Summary | None = None
    changes: list[Change] = field(default_factory=list)
    printed: int = 0


def load_words(root: Path, paper: str) -> Words:
    """UserError for a mistake in one of their files."""
    claims = load_claims(root, paper)
    changes = load_changes(root).of(paper, {claim.id for claim in claims})
    return Words(claims, load_summary(root, paper), changes, printed_total(Path(root) / "papers" / paper / "published"))
