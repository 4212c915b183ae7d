"""What the pages of a table and of a paper share: sentences, verdicts with their signs, cost, differences, versions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from fedrepro.console import duration
from fedrepro.reports.analysis.cells import COMPARED
from fedrepro.reports.analysis.settings import show
from fedrepro.reports.analysis.verdict import RULE
from fedrepro.reports.model import About, Cell, Deviation, Disagreement, PageAbout, Shown, Status, Table, Value, Verdict
from fedrepro.reports.names import decimal, metric_label, volume
from fedrepro.reports.pages.sections import Block, Bullets, Facts, Grid, Line, Look, Paragraph, Section, Text, heads
from fedrepro.units import unit

CURVES = (
    "Mean over seeds; the band reaches from the lowest to the highest seed. A line ends at the round at which a seed diverges. "
    "The first fifth of the rounds may start below the picture."
)
COST = (
    "wall time a seed",
    "peak memory",
    "samples a second",
    "a client sends / receives a round",
    "all send / receive in a run",
)
TRAFFIC = (
    "The last two columns are what a real deployment would send: float32 weights, running statistics where the method uses the "
    "clients', and what the client rule adds; nothing is compressed. Here nothing is sent."
)
Counts = Mapping[Status, int] | Mapping[Verdict, int] | Mapping[str, int]
# Status or verdict -> its sign, so that colour is never all there is, and its colour.
SIGNS: dict[str, tuple[str, Look]] = {
    "reproduced": ("✓", "good"),
    "consistent": ("≈", "good"),
    "not reproduced": ("✗", "bad"),
    "direction only": ("↗", "fair"),
    "inconclusive": ("?", "fair"),
    "contradicted": ("✗", "bad"),
    "not run": ("–", ""),
    "not comparable": ("–", ""),
    "not printed": ("–", ""),
    "not judged": ("", ""),
}


class Counted(Protocol):
    """What a seed cost, of a document or of a receipt."""

    @property
    def wall_s(self) -> float: ...
    @property
    def peak_rss_mib(self) -> float | None: ...
    @property
    def samples(self) -> int: ...
    @property
    def client_rounds(self) -> int | None: ...
    @property
    def bytes_up(self) -> int | None: ...
    @property
    def bytes_down(self) -> int | None: ...


def verdict(name: str, more: str = "") -> Text:
    """A status or verdict with its sign; `more` after it."""
    sign, look = SIGNS[name]
    return Text(f"{sign} {name}{more}", look)


def counts(numbers: Counts) -> str:
    """`9 reproduced, 2 not reproduced`; what does not occur is left out."""
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number) or "none"


def counted(numbers: Counts) -> Line:
    """As `counts`, in colour."""
    pieces = [Text(f"{number} {name}", SIGNS[name][1] or "soft") for name, number in numbers.items() if number]
    return tuple(part for piece in pieces for part in (", ", piece))[1:] or ("none",)


def headline(table: Shown) -> str:
    """The first sentence: whether these numbers may be compared with the printed ones."""
    if table.comparable:
        if not in_print(table):
            return "Full scale: settings of the paper, in a table of ours without printed numbers."
        said = f"a variation of {table.varied.source}, which is not judged" if table.varied else "the paper's protocol"
        return f"Full scale: {said}. Measured numbers may be compared with the printed ones."
    scale = table.scale.capitalize() + (" scale, on a budget" if table.on_budget else " scale")
    if not in_print(table):
        return f"{scale}: a table of ours. Nothing in it is printed, and nothing is judged."
    return f"{scale}: these numbers are not comparable with the printed ones, and nothing is judged."


def in_print(table: Shown) -> bool:
    """Whether the paper prints any number of it."""
    return any(cell.printed is not None for cell in table.cells)


def departures(deviations: Sequence[Deviation]) -> str:
    """In one line, what was run otherwise than the paper states; empty without any."""
    named = [f"{one.short} ({one.id})" for one in deviations if one.short]
    return f"What was run departs from the paper's words: {'; '.join(named)}." if named else ""


def protocol(table: Shown) -> tuple[str, ...]:
    """What was run where it is not the paper's protocol; how a variation differs from its table. From the plan alone."""
    said = []
    if not table.comparable:
        parts = [", ".join(place(value) for value in entry.values) for entry in table.ran]
        planned = sum(cell.run_id is not None for cell in table.cells)
        share = [f"{planned} of {len(table.cells)} cells"] if planned < len(table.cells) else []
        seeds = f"seed{'' if len(table.seeds) == 1 else 's'} {', '.join(map(str, table.seeds))}"
        said.append(f"Run here: {'; '.join([*parts, seeds, *share])}.")
    if table.varied:
        values = [f"in {key}: {', '.join(map(show, new))}" for key, new in table.varied.values.items()]
        source = table.varied.source
        said.append(f"It differs from {source} {'; '.join(values)}." if values else f"Here it is the same as {source}.")
    return tuple(said)


def place(entry: Value) -> str:
    """`the last of 5 rounds (CNN, α = 0.1)`; without the place where it is the same everywhere."""
    return entry.value + (f" ({'; '.join(entry.where)})" if entry.where else "")


def rule(table: Shown) -> str:
    """The rule behind the statuses, in words."""
    if table.stand_in:
        return "This is not the printed table: a measured cell is not comparable with its printed number, whatever the two are."
    if not table.comparable:
        return f"At {table.scale} scale a measured cell is not comparable with its printed number, whatever the two are."
    points = f"{table.rule.tolerance:g} point{'' if table.rule.tolerance == 1 else 's'}"
    return (
        f"The margin is half the width of the {table.rule.level:.0%} prediction interval of the difference between our mean "
        "and the printed number. Its deviation over seeds is a moderated one (Smyth, 2004): that of the cell's own seeds, "
        "together with what all measurements of the metric say that the paper has at this scale. So it depends on no table. "
        f"{repetitions(table)} Not reproduced: the difference is larger than the margin and than {points}, or a seed diverged. "
        f"Otherwise inconclusive: the margin is wider than {table.rule.widest:g} points, so that these runs cannot tell. "
        f"Otherwise reproduced: the difference is at most {points}. Otherwise consistent."
    )


def remarks(table: Shown) -> list[Block]:
    """What its numbers show, and what cannot be said yet."""
    said: list[Block] = [Bullets(table.remarks)] if table.remarks else []
    if table.waiting:
        said.append(Paragraph(f"{len(table.waiting)} more remarks wait for runs: {'; '.join(table.waiting)}."))
    return said


def repetitions(table: Shown) -> str:
    """How many seeds a printed number is the mean of, and what the margin takes where the paper does not say."""
    seeds = table.printed_seeds
    if seeds.value is None:
        return f"How many seeds a printed number is the mean of is unknown ({seeds.source}); the margin takes {seeds.assumed}."
    return f"A printed number is the mean of {seeds.value} seed{'' if seeds.value == 1 else 's'} ({seeds.source})."


def outside(cells: Iterable[Cell]) -> str:
    """How many compared cells lie outside their margin, and how many would by chance; empty where nothing is judged."""
    compared = [cell for cell in cells if cell.margin is not None and cell.difference is not None and cell.status in COMPARED]
    judged = {(cell.run_id, cell.metric, cell.read, cell.printed): cell for cell in compared}
    if not judged:
        return ""
    out = sum(abs(cell.difference or 0.0) > (cell.margin or 0.0) for cell in judged.values())
    chance = (1 - RULE.level) * len(judged)
    return (
        f"Of {len(judged)} judged numbers {out} {'lies outside its' if out == 1 else 'lie outside their'} margin. If every "
        f"printed number came from the same distribution as ours, about {chance:.1f} would, by chance."
    )


def spreads(table: Shown) -> str:
    """What the margins take for usual, of each metric; empty where nothing is compared."""
    said = []
    for metric, one in table.spreads.items():
        worth = "infinitely many" if one.freedom is None else f"{one.freedom:.2f}"
        said.append(
            f"{metric_label(metric)}: deviation {one.deviation:.3f}, worth {worth} degrees of freedom, from "
            f"{one.measurements} measurements"
        )
    return f"What all measurements say of the deviation over seeds. {'; '.join(said)}." if said else ""


def measured(cell: Cell) -> str:
    """The mean, or why there is none."""
    if cell.mean is not None:
        return decimal(cell.mean, cell.digits)
    return unit(cell.unit).none if cell.per_seed else "not run"


def spread(cell: Cell) -> str:
    """`± 0.21 (3)`; with one seed there is no spread to show."""
    std = "" if cell.std is None else f"± {decimal(cell.std, cell.digits)} "
    return f"{std}({len(cell.per_seed)})"


def remark(cell: Cell) -> str:
    """Why seeds are missing, and what is odd about the printed number."""
    return "; ".join(text for text in (cell.reason, cell.note) if text)


def not_run(cells: Iterable[Cell]) -> str:
    """`Not run: 80 of 96 cells (76 not run yet, 4 this pair does not exist).`; empty when all have values."""
    cells = list(cells)
    reasons: dict[str, int] = {}
    for cell in cells:
        if not cell.per_seed:
            reasons[cell.reason or "not run yet"] = reasons.get(cell.reason or "not run yet", 0) + 1
    if not reasons:
        return ""
    said = ", ".join(f"{number} {reason}" for reason, number in reasons.items())
    return f"Not run: {sum(reasons.values())} of {len(cells)} cells ({said})."


def cost(seeds: Sequence[Counted]) -> tuple[str, ...]:
    """Mean wall time of a seed, highest peak memory, samples a second over all seeds; bytes of a client's round and a seed."""
    if not seeds:
        return ("–",) * len(COST)
    wall = sum(one.wall_s for one in seeds)
    rate = sum(one.samples for one in seeds) / wall if wall else 0.0
    peak = max(one.peak_rss_mib or 0.0 for one in seeds)
    first = (duration(wall / len(seeds)), f"{peak:,.0f} MiB", f"{rate:,.0f}")
    known = [one for one in seeds if one.client_rounds]
    if not known:  # evidence from before traffic was counted
        return (*first, "–", "–")
    up, down = sum(one.bytes_up or 0 for one in known), sum(one.bytes_down or 0 for one in known)
    rounds = sum(one.client_rounds or 0 for one in known)
    both = lambda parts: f"{volume(up / parts)} / {volume(down / parts)}"  # noqa: E731
    return (*first, both(rounds), both(len(known)))


def origin(about: About | PageAbout) -> str:
    """Which of the trainings are published, and which were made in this folder."""
    here = about.runs_done - about.published
    said = [f"{about.published} published"] * bool(about.published) + [f"{here} trained here"] * bool(here)
    return ", ".join(said) or "none yet"


def total_cost(about: About | PageAbout) -> str:
    """One sentence on the whole table, or all of them."""
    if not about.runs_done:
        return "Nothing has run yet."
    peak = f"{about.peak_rss_mib:,.0f} MiB"
    said = f"{about.runs_done} runs, {duration(about.wall_s)} of computing in all, at most {peak} each."
    if about.sharing:
        said += f" {about.sharing} of them went on from rounds that another run had trained; those are counted once."
    return said


def differences(
    disagreements: Sequence[Disagreement], deviations: Sequence[Deviation], known_gaps: Sequence[str], folded: bool
) -> list[Block]:
    """Paper text against authors' code, our deviations, known gaps."""
    found: list[Block] = []
    if disagreements:
        rows = tuple((d.what, d.paper, d.authors_code, d.followed, _other(d)) for d in disagreements)
        names = heads("what", "paper", "authors' code", "followed", "the other one, in params.yaml")
        grid = Grid("Paper text against authors' code", names, rows)
        note = f"{len(rows)} places"
        found.append(Section("Where the paper contradicts itself or its authors' code", (grid,), folded, note))
    if deviations:
        pairs = tuple((one.id, (one.text,)) for one in deviations)
        found.append(Section("Where we deviate from the paper", (Facts(pairs),), folded, f"{len(pairs)} places"))
    if known_gaps:
        found.append(Section("Known gaps", (Bullets(tuple(known_gaps)),), folded, f"{len(known_gaps)}"))
    return found


def _other(disagreement: Disagreement) -> Line:
    """What to write into params.yaml to run the other variant, `methods.fedlaw.feddyn.norm: plain`; empty where nothing can."""
    paths = _paths("", disagreement.other) if disagreement.other else []
    return tuple(part for path in paths for part in (" ", Text(path, "code")))[1:] or ""


def _paths(above: str, value: object) -> list[str]:
    if isinstance(value, dict):
        return [path for key, below in value.items() for path in _paths(f"{above}.{key}" if above else str(key), below)]
    return [f"{above}: {str(value).lower() if isinstance(value, bool) else value}"]


def versions(found: dict[str, tuple[str, ...]], commits: tuple[str, ...]) -> Facts:
    """Versions of what computed the numbers, then the commits; names as people write them."""
    named = {name.replace("_", " "): values for name, values in found.items()} | {"commit": commits}
    return Facts(tuple((name, (tuple(values) or ("no run yet",))) for name, values in named.items()))


def arithmetic(table: Table) -> str:
    """In how many cells anybody can have the same bits again, and how."""
    found = [cell.arithmetic for cell in table.cells if cell.arithmetic]
    if not found:
        return "no run yet"
    portable = found.count("portable")
    if not portable:
        return "not portable: another type of processor gives other last digits"
    share = "every cell" if portable == len(found) else f"{portable} of {len(found)} cells with runs"
    text = f"portable in {share}: the same bits on every x86-64 processor with AVX2"
    if table.scale not in ("full", "short"):  # published
        return text
    return f"{text}; to see for yourself: fedrepro verify {table.paper}/{table.table} --scale {table.scale}"
