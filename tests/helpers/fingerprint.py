"""The rule of verdicts and each claim as a hash of eight characters, of what they decide and not of how they are written.

papers/changes.yaml has the hashes after each change, and a test compares them. The hash of the rule is that of its decisions
on a fixed set of numbers, so its words and structure may change, but not what it decides.
"""

import itertools
from collections.abc import Sequence

from fedrepro.config.changes import Changes
from fedrepro.config.claims import Claim, Difference, Equal, Small
from fedrepro.config.spreads import Spread
from fedrepro.exhibits.claims import Number
from fedrepro.exhibits.judge import Verdict, _outcomes, _overall
from fedrepro.exhibits.verdict import estimate, judged, margin
from fedrepro.files import canonical_hash

DROPPED = "dropped"  # the fingerprint of a claim that was removed
WORDS = {"id", "text", "says", "where"}  # keys of a claim that only affect how it is worded

_VALUES = ([1.0, 2.0, 4.0], [10.0, 10.1], [5.0, 5.0, 5.0, 9.0], [3.0])
_SEEDS = (
    [0.2, 0.3, 0.4],
    [0.9, 1.1, 1.0],
    [-0.5, 0.6, 0.1],
    [2.0, 2.1, 2.2],
    [-3.0, -3.1, -3.2],
    [0.0, 0.0, 0.0],
    [1.5],
    [6.2, 9.0, 11.8],
)


def judged_alone(claim: Claim, numbers: Sequence[Number]) -> Verdict:
    """The verdict on these numbers, outside of any table."""
    return _overall([(verdict, why) for _, verdict, why in _outcomes(claim, numbers)])[0]


def rule_fingerprint() -> str:
    """The fingerprint of the rule: of the statuses of cells and the verdicts on claims."""
    spreads = (None, Spread(0.5, 0.8, 16), Spread(2.0, 100.0, 50))
    margins = [margin(values, spread, n) for values, spread, n in itertools.product(_VALUES, spreads, (1, 3))]
    differences = [place / 4 for place in range(-24, 25)]
    statuses = [judged(one, reach) for one, reach in itertools.product(differences, (None, 0.3, 1.2, 4.9, 5.1))]
    priors = [estimate([*_VALUES, [7.0, 7.5, 7.1], [20.0, 26.0, 21.0]]), estimate([[7.0, 7.5, 7.1], [2.0, 2.5, 2.1]])]
    about = {"id": "x", "text": "", "where": "", "table": "t", "columns": ["c"], "pairs": {"a": "b"}}
    claims: list[Claim] = [Difference(kind="difference", **about), Equal(kind="equal", **about)]
    claims.append(Small(kind="small", value=1.0, **about))
    numbers = [
        Number("n", "c", dict(enumerate(seeds)), (), printed=printed, side=side)
        for seeds, printed, side in itertools.product(_SEEDS, (None, 0.35, 5.0, -0.24), (1, -1))
    ]
    verdicts = [
        judged_alone(claim, group)
        for claim in claims
        for group in (*([one] for one in numbers), *(list(pair) for pair in itertools.combinations(numbers[::5], 3)))
    ]
    rounded = [None if one is None else round(one, 6) for one in margins]
    about_priors = [one and [round(one.deviation, 6), round(one.freedom, 6), one.measurements] for one in priors]
    return canonical_hash([rounded, statuses, about_priors, verdicts])[:8]


def claim_fingerprint(claim: Claim) -> str:
    """The fingerprint of everything that decides a claim."""
    return canonical_hash({key: value for key, value in claim.model_dump(exclude_defaults=True).items() if key not in WORDS})[
        :8
    ]


def unlisted(changes: Changes, claims: dict[str, list[Claim]], rule: str) -> list[str]:
    """A sentence for the rule and for each claim whose fingerprint is not the last one in papers/changes.yaml. `claims` by
    paper."""
    said = []
    known_rule = next((one.rule for one in reversed(changes.changes) if one.rule), None)
    if rule != known_rule:
        said.append(f"the rule of verdicts is {rule} and was {known_rule}: list the change with `rule: {rule}`")
    for paper, own in claims.items():
        for claim in own:
            found, known = claim_fingerprint(claim), _listed(changes, paper, claim.id)
            if found != known:
                said.append(f"{paper}: {claim.id} is {found} and was {known}: list the change with `{claim.id}: {found}`")
        gone = {*changes.claims.get(paper, {})} - {claim.id for claim in own}
        said += [
            f"{paper}: {id} is gone: list it as `{id}: {DROPPED}`"
            for id in sorted(gone)
            if _listed(changes, paper, id) != DROPPED
        ]
    return said


def _listed(changes: Changes, paper: str, id: str) -> str | None:
    """The fingerprint of a claim after its last change; None if the file does not have the claim."""
    changed = (one.claims[id] for one in reversed(changes.changes) if id in one.claims)
    return next(changed, changes.claims.get(paper, {}).get(id))
