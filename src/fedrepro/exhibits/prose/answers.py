"""What a person reads first of a paper at one scale, and what the remarks on a table say, filled from the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedrepro.config.plan import Plan
from fedrepro.config.words import Answers, Summary
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import ClaimVerdict
from fedrepro.exhibits.prose.fill import filled
from fedrepro.exhibits.prose.forms import Facts
from fedrepro.exhibits.reading_fit import Fit
from fedrepro.exhibits.statistics import mean_of_all
from fedrepro.grouping import grouped

OWN = "the tables' own"  # the reading without a name, as sentences call it


@dataclass(frozen=True)
class FilledAnswers:
    """A summary in sentences. `in_brief`: (question, answer), which stand in the place of the rest where there is little room.
    `waiting`: the cells that further sentences need."""

    proposes: str
    fails: tuple[str, ...]
    open: tuple[str, ...]
    holds: tuple[str, ...]
    missing: str
    controls: tuple[str, ...] = ()
    in_brief: tuple[tuple[str, str], ...] = ()
    waiting: tuple[str, ...] = ()

    def first(self, scale: str) -> list[tuple[str, tuple[str, ...]]]:
        """Returns (heading, sentences) where there is little room: questions with their answers if there are any, else all."""
        return [(question, (line,)) for question, line in self.in_brief] or self.headed(scale)

    def headed(self, scale: str) -> list[tuple[str, tuple[str, ...]]]:
        """Returns (heading, sentences) in the order of pages. Below full scale all are observations: nothing holds or fails."""
        by_heading = {"Does not hold": self.fails, "Undecided": self.open, "Holds": self.holds}
        by_heading |= {"Our controls": self.controls}
        if scale != "full":
            by_heading = {"Seen here": sum(by_heading.values(), ())}
        return [(heading, lines) for heading, lines in by_heading.items() if lines]


def remarks(table: Exhibit) -> tuple[list[str], list[str]]:
    """Returns (remarks on a table's numbers, cells that further remarks need).

    They are of the published evidence: with params.yaml's values there are none. UserError where one says what does not hold.
    """
    plan = table.plan
    if not plan.remarks or plan.own:
        return [], []
    table_facts = Facts({plan.table: table}, own=plan.table, distances=_distances(table))
    sentences, waiting = filled(
        plan.remarks, table_facts, f"papers/{plan.paper}/tables/{plan.table}.yaml: remarks at scale {plan.scale}"
    )
    return sentences, list(dict.fromkeys(waiting))


def _distances(table: Exhibit) -> dict[str, float | None]:
    """Returns reading -> mean distance from print, in a table with several readings."""
    by_reading = grouped((cell.row.variant or OWN, cell.distance) for cell in table.cells if cell.printed is not None)
    return {name: mean_of_all(distances) for name, distances in by_reading.items()}


def facts(tables: Mapping[str, Exhibit], claims: Sequence[ClaimVerdict], fits: Sequence[Fit]) -> Facts:
    """Collects what sentences on a paper are filled from: tables, verdicts of claims, distances of readings."""
    distances: dict[str, float | None] = {}
    for fit in fits:
        name = fit.variant or OWN
        distances |= {name: fit.distance} | {f"{name} in {table}": distance for table, distance in fit.tables.items()}
    verdicts = {outcome.claim.id: outcome.verdict for outcome in claims}
    return Facts(tables, claims=verdicts, distances=distances, readings=sum(fit.distance is not None for fit in fits))


def answers(summary: Summary | None, facts: Facts, plan: Plan) -> FilledAnswers | None:
    """Fills the summary of a paper. None if it has none at the scale of `plan`, or if params.yaml decides the settings."""
    if summary is None or plan.own or plan.scale not in summary.answers:
        return None
    texts, where = summary.answers[plan.scale], f"papers/{plan.paper}/summary.yaml: {plan.scale}"
    keys = [key for key in Answers.model_fields if key != "in_brief"]
    results = {key: filled(getattr(texts, key), facts, f"{where}: {key}") for key in keys}
    results |= {key: filled([getattr(summary, key)], facts, f"{where}: {key}") for key in ("proposes", "missing")}
    brief = {question: filled([text], facts, f"{where}: in_brief: {question}") for question, text in texts.in_brief.items()}
    waiting = dict.fromkeys(cell for _, waits in (*results.values(), *brief.values()) for cell in waits)
    sentences: dict[str, Any] = {key: tuple(lines) for key, (lines, _) in results.items()}
    sentences |= {key: "".join(sentences[key]) for key in ("proposes", "missing")}  # nothing where it waits
    sentences["in_brief"] = tuple((question, line) for question, (lines, _) in brief.items() for line in lines)
    return FilledAnswers(**sentences, waiting=tuple(waiting))
