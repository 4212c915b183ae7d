"""What is said of a paper beside its numbers: claims, what a person reads first, changes after results."""

from dataclasses import dataclass, field
from pathlib import Path

from fedrepro.config.changes import Change, changes_path, load_changes
from fedrepro.config.claims import Claim, claims_path, load_claims
from fedrepro.config.printed import printed_total
from fedrepro.config.summary import Summary, load_summary, summary_path


@dataclass(frozen=True)
class Words:
    """`printed`: how many results its tables print."""

    claims: list[Claim] = field(default_factory=list)
    summary: Summary | None = None
    changes: list[Change] = field(default_factory=list)
    printed: int = 0


def load_words(root: Path, paper: str) -> Words:
    """UserError for a mistake in one of `words_files`."""
    claims = load_claims(root, paper)
    changes = load_changes(root).of(paper, {claim.id for claim in claims})
    return Words(claims, load_summary(root, paper), changes, printed_total(Path(root) / "papers" / paper / "published"))


def words_files(root: Path, paper: str) -> list[Path]:
    """Those of them that there are."""
    return [path for path in (claims_path(root, paper), summary_path(root, paper), changes_path(root)) if path.exists()]
