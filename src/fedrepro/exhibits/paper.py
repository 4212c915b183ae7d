"""A paper at one scale as measured: all its tables and figures, what they show together, and what is missing."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from fedrepro.config.changes import Change
from fedrepro.config.plan import Plan
from fedrepro.config.words import Words
from fedrepro.exhibits import provenance
from fedrepro.exhibits.cells import COMPARED, Cell, count_statuses, well_within
from fedrepro.exhibits.comparisons import Gap
from fedrepro.exhibits.exhibit import Exhibit, Totals, totals
from fedrepro.exhibits.judge import VERDICTS, ClaimVerdict, Verdict, judge
from fedrepro.exhibits.prose.answers import FilledAnswers, answers, facts
from fedrepro.exhibits.reading_fit import Fit, fits
from fedrepro.exhibits.receipt import Evidence
from fedrepro.exhibits.verdict import Status

_WITHOUT_VERDICT = {"new", "dropped", "not run"}  # either side of a move in papers/changes.yaml


@dataclass(frozen=True, eq=False)
class PaperPage:
    """`exhibits`: every table and figure, in order; at least one. `folder`: where its reports lie, seen from the working
    directory. `rendered`: names of those whose own files in the folder show the same numbers."""

    exhibits: tuple[Exhibit, ...]
    words: Words
    folder: Path
    rendered: frozenset[str] = field(default_factory=frozenset)

    @property
    def plan(self) -> Plan:
        """The plan of the first table. What it says of the paper is the same in all plans."""
        return next((exhibit.plan for exhibit in self.exhibits if not exhibit.plan.kind), self.exhibits[0].plan)

    @cached_property
    def all_tables(self) -> list[Exhibit]:
        """All tables, with or without evidence."""
        return [exhibit for exhibit in self.exhibits if not exhibit.plan.kind]

    @cached_property
    def tables(self) -> list[Exhibit]:
        """The tables with evidence."""
        return [table for table in self.all_tables if table.evidence]

    @cached_property
    def own_tables(self) -> list[Exhibit]:
        """The tables with evidence, without variants of other tables; first those that are compared with print."""
        tables = [table for table in self.tables if not table.plan.variant_of]
        return sorted(tables, key=lambda table: not (table.plan.comparable and table.plan.prints))

    @cached_property
    def figures(self) -> list[Exhibit]:
        """The figures with something to draw."""
        return [exhibit for exhibit in self.exhibits if exhibit.plan.kind and exhibit.figure.series]

    @cached_property
    def not_run(self) -> list[Plan]:
        """The plans without evidence: tables, then figures."""
        missing = [table.plan for table in self.all_tables if not table.evidence]
        return missing + [exhibit.plan for exhibit in self.exhibits if exhibit.plan.kind and not exhibit.figure.series]

    @cached_property
    def claims(self) -> list[ClaimVerdict]:
        """The claims with their verdicts."""
        return judge(self.words.claims, {table.plan.table: table for table in self.exhibits if not table.plan.kind})

    @cached_property
    def verdicts(self) -> dict[Verdict, int]:
        """The number of claims of each verdict."""
        counts = Counter(outcome.verdict for outcome in self.claims)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    @cached_property
    def fits(self) -> list[Fit]:
        """The readings of the paper, the nearest to its numbers first."""
        return fits(self.tables)

    @cached_property
    def answers(self) -> FilledAnswers | None:
        """The sentences that a page begins with; None if the paper has none at this scale."""
        tables = {table.plan.table: table for table in self.all_tables}
        return answers(self.words.summary, facts(tables, self.claims, self.fits), self.plan)

    @cached_property
    def gaps(self) -> list[Gap]:
        """The gaps between methods, of all tables but variants."""
        return [gap for table in self.own_tables for gap in table.gaps]

    @cached_property
    def changes(self) -> list[Change]:
        """The changes of rules and claims after results had been read, as far as they concern this paper; oldest first."""
        return self.words.changes if any(table.plan.comparable for table in self.tables) else []

    @property
    def verdicts_moved(self) -> int:
        """How many verdicts of this paper the changes moved, each counted once. New and dropped claims do not count."""
        moves = [move for change in self.changes for move in change.moved.get(self.plan.paper, {}).items()]
        return len({place for move, places in moves if not _WITHOUT_VERDICT & {*move.split(" → ")} for place in places})

    @cached_property
    def judged(self) -> list[Cell]:
        """The cells of all tables but variants. A number that several tables print counts once."""
        by_number: dict[tuple, Cell] = {}
        for table in self.own_tables:
            for cell in table.cells:
                shared = cell.run_id and cell.printed is not None
                place = () if shared else (table.plan.table, cell.column.key)
                by_number.setdefault((cell.row.name, *cell.number, *place), cell)
        return list(by_number.values())

    @cached_property
    def counts(self) -> dict[Status, int]:
        """The number of judged cells of each status."""
        return count_statuses(self.judged)

    @cached_property
    def printed_run(self) -> list[Cell]:
        """The cells with a printed number that have run, in tables of the paper itself; of some a seed has no value."""
        as_printed = (table for table in self.tables if not (table.plan.variant_of or table.plan.stand_in))
        return [cell for table in as_printed for cell in table.cells if cell.per_seed and cell.printed is not None]

    @property
    def printed_measured(self) -> int:
        """The number of printed numbers with a measured one beside them."""
        return sum(cell.distance is not None for cell in self.printed_run)

    @property
    def printed_lost(self) -> int:
        """The number of printed numbers without a mean, since a seed diverged or did not reach its target."""
        return sum(cell.distance is None and not cell.mixed for cell in self.printed_run)

    @cached_property
    def totals(self) -> Totals:
        """How many runs there are and what they cost."""
        return totals(*self.exhibits)

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence of all tables and figures."""
        merged: Evidence = {}
        for exhibit in (*self.tables, *self.figures):
            for run_id, seeds in exhibit.evidence.items():
                merged[run_id] = merged.get(run_id, {}) | seeds
        return merged

    @cached_property
    def cost(self) -> list[tuple[provenance.RunCost, list[str]]]:
        """Every run once, with the sources of the tables and figures that show it."""
        costs: dict[str, tuple[provenance.RunCost, list[str]]] = {}
        for exhibit in [*self.tables, *(figure for figure in self.exhibits if figure.plan.kind)]:
            for run in exhibit.cost:
                costs.setdefault(run.run_id, (run, []))[1].append(exhibit.plan.source)
        return list(costs.values())

    @property
    def scale_note(self) -> str:
        """The note on the scale, of tables without a budget; empty if every table has one."""
        return next((table.plan.scale_note for table in self.tables if not table.plan.on_budget), "")

    @property
    def details(self) -> str:
        """The link to the page with its details."""
        return (self.folder / "details.page").as_posix()

    @property
    def command(self) -> str:
        """The command that makes the page."""
        return f"snakemake --cores 8 {self.plan.page}"

    @cached_property
    def header(self) -> "PageHeader":
        """The part of the page that lists of papers read."""
        return PageHeader(
            **{key: getattr(self.plan, key) for key in ("paper", "paper_name", "paper_title", "scale", "own")},
            **{key: getattr(self, key) for key in ("answers", "printed_measured", "counts", "verdicts", "command")},
            printed_diverged=self.printed_lost,
            printed_total=self.words.printed,
            well_within=well_within(self.judged),
            at_one_seed=sum(cell.status in COMPARED and len(cell.per_seed) == 1 for cell in self.judged),
            claims=tuple((outcome.claim.id, outcome.verdict) for outcome in self.claims),
            claim_texts={outcome.claim.id: outcome.claim.text for outcome in self.claims},
            claims_changed=tuple(sorted({id for change in self.changes for id in change.claims})),
            tables_run=len(self.tables),
            tables=len(self.all_tables),
            finished=self.totals.finished,
        )


@dataclass(frozen=True, kw_only=True)
class PageHeader:
    """A paper's page in short. `own`: with params.yaml's settings. `printed_measured` of `printed_total` numbers that the paper
    prints have a measured one beside them."""

    schema: Literal[3] = 3  # as `records.SCHEMA`
    paper: str
    paper_name: str
    paper_title: str
    scale: str
    own: bool
    answers: FilledAnswers | None
    printed_measured: int
    printed_total: int
    counts: dict[Status, int]
    verdicts: dict[Verdict, int]
    claims: tuple[tuple[str, Verdict], ...]  # in the paper's order
    tables_run: int
    tables: int
    finished: tuple[str, str] | None
    command: str
    printed_diverged: int = 0  # printed numbers without a mean: a seed diverged, or did not reach its target
    well_within: int = 0  # reproduced numbers with |difference| + margin within one point
    at_one_seed: int = 0  # judged numbers
    claim_texts: dict[str, str] = field(default_factory=dict)  # claim -> what it says; pages of an older release have none
    claims_changed: tuple[str, ...] = ()  # added or changed after results had been read
