"""What a paper claims, compared with what was measured. Each claim gets a verdict by a rule; papers/changes.yaml
lists what was changed of rules and claims after results had been read.

Pure functions of claims, plans and evidence: no clock, no host. How a number comes from a table stands in
`fedrepro.exhibits.claims`; here it is judged. Every sentence that a page prints as a claim's rule is one of the
constants below or the docstring of the function that computes the claim's numbers.
"""

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fedrepro import units
from fedrepro.config.claims import OVER_COLUMNS, Claim, Small
from fedrepro.exhibits.claims import KINDS, Number, mean_of
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.statistics import LEVEL, MOST, POWER, holm, interval, mean, seeds_needed, t_test
from fedrepro.exhibits.verdict import RULE

Verdict = Literal["reproduced", "direction only", "inconclusive", "contradicted", "not run", "not comparable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
DECIDED: tuple[Verdict, ...] = VERDICTS[:4]  # those that the measured numbers decide

PAIRED = (
    "Seed by seed (the same seed is the same partition, cohorts and initial model), then as the mean over seeds with its 95 % "
    "t-interval. Reproduced: the whole interval lies on the claimed side, and the printed number, where there is one, lies "
    f"within {RULE.tolerance:g} point of our mean, or in the interval where that reaches {RULE.widest:g} points to either side "
    "or less (a point is 1 of percent, rounds and epochs, 0.01 of ratios, shares and cosines, 0.005 of factors, 0.1 of "
    "correlations, and 2 % of a printed loss, norm or eigenvalue). If the printed number lies on the other side, the claim "
    "is not reproduced. Direction only: every seed, or the whole interval, lies on the claimed side, and no more "
    "than that holds. Contradicted: the whole interval lies on the other side. Otherwise, and where a seed diverged or did "
    "not reach its target: inconclusive. Three seeds decide little: their interval is the mean ± 2.48 standard deviations, "
    "and if the truth lies on the border all three still lie on the claimed side one time in eight. A claim that "
    f"stays inconclusive says how many seeds would decide it with a probability of {100 * POWER:.0f} %, if mean and deviation "
    "are truly those measured."
)
MANY = 4  # missing cells that a page still names one by one
OWN_RULE = ("equal", "small", "steady")  # kinds whose docstring is the whole rule
COMBINED = {
    "each": "Of several numbers each is judged: contradicted if one is, reproduced if all are, direction only if all are at "
    "least that. Before one of them contradicts, its p-value is adjusted for their number (Holm, 1979): with many numbers one "
    "interval lies on the other side by chance.",
    "mean": "Of several numbers the mean, seed by seed, is judged.",
}


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim with its verdict. `why`: the numbers behind the verdict, or what is missing. `numbers`: each number with its own
    verdict; None where the number is only shown."""

    claim: Claim
    verdict: Verdict
    why: str
    numbers: tuple[tuple[Number, Verdict | None], ...] = ()


def judge(claims: Sequence[Claim], tables: Mapping[str, Exhibit]) -> list[ClaimVerdict]:
    """Returns one verdict for each claim, in the same order. `tables`: name -> table, all of one paper and scale.

    A claim whose table, rows, columns or seeds are not all there is `not run`, and `why` names what is missing. Where a table
    may not be compared with the printed one (below full scale, a stand-in, an edited protocol), a claim is `not comparable` as
    soon as one of its numbers has run.
    """
    return [_judge(claim, tables.get(claim.table)) for claim in claims]


def rule(claim: Claim) -> str:
    """Returns the sentences that decide a claim."""
    sentences = [" ".join((inspect.getdoc(KINDS[claim.kind]) or "").split())]
    if claim.kind not in OWN_RULE:
        sentences.append(PAIRED)
    return " ".join([*sentences, *([COMBINED[claim.combine]] if _several(claim) else [])])


def _several(claim: Claim) -> bool:
    row_count = len(getattr(claim, "compared", None) or claim.rows)
    return row_count * (1 if claim.kind in OVER_COLUMNS else len(claim.columns)) > 1


def _judge(claim: Claim, table: Exhibit | None) -> ClaimVerdict:
    if table is None:
        return ClaimVerdict(claim, "not run", f"there is no {claim.table} here")
    judged, shown = KINDS[claim.kind](claim, table)
    if claim.combine == "mean" and len(judged) > 1:
        judged, shown = [mean_of(judged)], [*judged, *shown]
    outcomes: list[tuple[Number, Verdict, str]] = _outcomes(claim, judged)
    verdict, why = _overall([(verdict, why) for _, verdict, why in outcomes])
    if verdict == "inconclusive":
        why += _would_take([_seeds(claim, number, len(judged)) for number, verdict, _ in outcomes if verdict == "inconclusive"])
    if verdict == "reproduced" and all(number.printed is None for number in judged):
        why += ". The paper prints no number to compare the size with"
    if not table.plan.comparable:
        if any(number.per_seed for number in judged):
            verdict, why = "not comparable", table.why_not_comparable
        outcomes = [(number, "not comparable" if number.per_seed else "not run", "") for number in judged]
    if not table.evidence:
        verdict, why = "not run", f"nothing of {claim.table} has been run"
    numbers: list[tuple[Number, Verdict | None]] = [(number, verdict) for number, verdict, _ in outcomes]
    return ClaimVerdict(claim, verdict, why, (*numbers, *((number, None) for number in shown)))


def _outcomes(claim: Claim, numbers: Sequence[Number]) -> list[tuple[Number, Verdict, str]]:
    """Returns each number with its verdict, and why; p-values against the claim are adjusted (Holm) for the count of
    numbers."""
    p_values = holm([_p_against(claim, number) for number in numbers])
    return [(number, *_outcome(claim, number, p < 1 - LEVEL)) for number, p in zip(numbers, p_values, strict=True)]


def _outcome(claim: Claim, number: Number, against: bool) -> tuple[Verdict, str]:
    """Returns the verdict on one number, and why. `against`: it lies significantly on the other side."""
    if number.missing:
        return "not run", number.missing
    lost_seeds = [str(seed) for seed, value in number.per_seed.items() if value is None]
    if lost_seeds:
        others = f"; the others: {', '.join(map(number.show, number.values))}" if number.values else ""
        return "inconclusive", f"{number.label}: {number.none} at seed {', '.join(lost_seeds)}{others}"
    if isinstance(claim, Small):
        return _small(number, claim.value, against), _describe(number)
    return (_same(number, against) if claim.kind == "equal" else _directed(number, against)), _describe(number)


def _beyond(claim: Claim, number: Number) -> float | None:
    """Returns how far the mean lies on the side that contradicts the claim; None where the number claims no side, or has
    none."""
    if number.missing or len(number.values) < 2 or None in number.per_seed.values():
        return None
    off = mean(number.values) - number.reference
    if isinstance(claim, Small):
        return abs(off) - claim.value
    if claim.kind == "equal":
        return abs(off)
    return -number.side * off if number.side else None


def _p_against(claim: Claim, number: Number) -> float:
    """The two-sided p-value of a t-test that the number contradicts the claim; 1 if its mean does not contradict it."""
    beyond = _beyond(claim, number)
    return 1.0 if beyond is None or round(beyond, 6) <= 0 else t_test(beyond, number.values)


def _seeds(claim: Claim, number: Number, numbers: int) -> int | None:
    """How many seeds would decide on which side of the border a number lies, at the mean and deviation of its seeds; 0 if the
    mean lies on the border, None without an estimate, and where rows that are claimed equal differ by a point or less: no seed
    decides that. A number that contradicts is tested as one of `numbers` (Bonferroni; Holm needs no more)."""
    beyond = _beyond(claim, number)
    if beyond is None or not round(beyond, 6):
        return None if beyond is None else 0
    if claim.kind == "equal" and round(beyond, 6) <= RULE.tolerance * number.point:
        return None
    if isinstance(claim, Small) and beyond < 0:
        return seeds_needed(beyond, number.values, other=2 * claim.value + beyond)
    return seeds_needed(beyond, number.values, numbers if beyond > 0 else 1)


def _would_take(seeds: Sequence[int | None]) -> str:
    sentences, counts = [""], sorted({count for count in seeds if count})
    if counts:
        least, most = (f"about {count}" if count < MOST else f"{MOST} or more" for count in (counts[0], counts[-1]))
        if 0 in seeds or None in seeds:
            what = "one of these numbers"
        else:
            what = f"one of these numbers, and {most} all of them" if least != most else "it"
        sentences.append(f"With a probability of {100 * POWER:.0f} % {least} seeds would decide {what}")
    if 0 in seeds:
        sentences.append("A mean lies on the border itself, where no number of seeds decides")
    return ". ".join(sentences)


def _directed(number: Number, against: bool) -> Verdict:
    """The verdict by `PAIRED` on a number without gaps. Where the paper prints no difference, side 0, it is inconclusive."""
    values, ends = number.values, interval(number.values)
    away = [number.side * round(value - number.reference, 6) for value in values]
    low = min(number.side * round(end - number.reference, 6) for end in ends) if ends else None
    if against:
        return "contradicted"
    if low is not None and low > 0 and _sized(number, ends):
        return "reproduced"
    return "direction only" if min(away) > 0 or (low is not None and low > 0) else "inconclusive"


def _sized(number: Number, ends: tuple[float, float] | None) -> bool:
    if number.printed is None or ends is None:
        return ends is not None
    if number.side * round(number.printed - number.reference, 6) < 0:
        return False
    near = round(abs(mean(number.values) - number.printed), 6) <= RULE.tolerance * number.point
    narrow = round((ends[1] - ends[0]) / 2, 6) <= round(RULE.widest * number.point, 6)
    return near or (narrow and ends[0] <= number.printed <= ends[1])


def _same(number: Number, against: bool) -> Verdict:
    """The verdict on a difference that is claimed to be exactly nothing."""
    values, tolerance = number.values, RULE.tolerance * number.point
    if not any(values):
        return "reproduced"
    if _largest(values) <= tolerance:
        return "direction only"
    return "contradicted" if against and _largest([mean(values)]) > tolerance else "inconclusive"


def _small(number: Number, bound: float, against: bool) -> Verdict:
    """The verdict on a difference that is claimed to be at most `bound`, either way."""
    ends = interval(number.values)
    if ends is not None and _largest(ends) <= bound:
        return "reproduced"
    if against:
        return "contradicted"
    return "direction only" if _largest(number.values) <= bound else "inconclusive"


def _largest(values: Sequence[float]) -> float:
    """The largest absolute value, rounded: two accuracies exactly one point apart differ by 1.000000000000007."""
    return round(max(map(abs, values)), 6)


def _overall(outcomes: Sequence[tuple[Verdict, str]]) -> tuple[Verdict, str]:
    """Makes one verdict of several, and says why."""
    counts = Counter(verdict for verdict, _ in outcomes)
    if counts["not run"]:
        return "not run", _missing([why for verdict, why in outcomes if verdict == "not run"], len(outcomes))
    if len(outcomes) == 1:
        return outcomes[0]
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    summary = f"of {len(outcomes)} numbers: {summary}"
    if counts["contradicted"]:
        return "contradicted", summary
    if counts["reproduced"] == len(outcomes):
        return "reproduced", summary
    return ("direction only" if counts["reproduced"] + counts["direction only"] == len(outcomes) else "inconclusive"), summary


def _missing(reasons: list[str], judged: int) -> str:
    """Says what is missing: every cell of a small claim; of a large one the first cell and how many numbers lack theirs."""
    cells = list(dict.fromkeys(cell for reason in reasons for cell in reason.split("; ")))
    if len(cells) <= MANY:
        return "; ".join(cells)
    waits = "it waits" if judged == 1 else f"{len(reasons)} of {judged} numbers wait"
    return f"{waits} for runs, for example {cells[0]}"


def _describe(number: Number) -> str:
    """Describes a number, `+3.21 points, 95 % interval −1.04 to +7.46, printed +8.42`."""
    show, ends = number.show, interval(number.values)
    word = units.unit(number.unit).difference if number.signed else ""
    text = f"{show(mean(number.values))} {word}".rstrip()
    text += f", 95 % interval {show(ends[0])} to {show(ends[1])}" if ends else ", one seed, no interval"
    return text + (f", printed {show(number.printed)}" if number.printed is not None else "")
