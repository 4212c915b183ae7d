"""fedrepro compare: runs side by side, seed by seed, the others with the first of them."""

import itertools
import statistics
import string
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrepro.cli.code_groups import by_code
from fedrepro.cli.curves import draw
from fedrepro.cli.listing import FILTERS, aligned, seed_list
from fedrepro.cli.outcome import reading_of
from fedrepro.cli.run_selection import RunSelector, SelectedRun
from fedrepro.cli.stored_runs import StoredRun
from fedrepro.config.catalogue import ShownReading
from fedrepro.config.run_differences import columns, shared
from fedrepro.engine.differences import REASONS
from fedrepro.engine.fingerprints import listed
from fedrepro.errors import UserError
from fedrepro.exhibits.receipt import Cost
from fedrepro.exhibits.sections.cost import COST, cost
from fedrepro.exhibits.statistics import first_reaching, interval, mean, paired_differences
from fedrepro.typed import adapter

ROOT = Path()
DRAWN = {"partition": "partition", "participation": "cohorts", "proxy": "proxy set", "init": "initial model"}
MOST_SEEDS = 10  # beyond which a seed has no column
Lettered = dict[str, StoredRun]


def compare(options: Namespace) -> None:
    """Settings that differ; the tables' value on each seed, with the rounds needed; cost; curves as a file."""
    found = _found(options)
    runs: Lettered = dict(zip(_letters(), (one.run for one in found), strict=False))
    configs = [run.config for run in runs.values()]
    differ = columns(configs, {key for one in found for key in one.tries})
    told = [values if key == "method" else [f"{key} {value}" for value in values] for key, values in differ.items()]
    names = {letter: f"{letter}  {', '.join(own)}".rstrip() for letter, *own in zip(runs, *told, strict=True)}
    ids = [run.run_id for run in runs.values()]
    if len(differ) <= max(2, len(runs)):
        rows = [("", *differ, "run"), *zip(runs, *differ.values(), ids, strict=True)]
        print(*aligned(rows, range(len(rows[0]))), sep="\n")
    else:  # too many for a line of each run
        names = {letter: letter for letter in runs}
        print(*map("  ".join, zip(runs, ids, strict=True)), "", sep="\n")
        print(*aligned([("settings that differ", *runs), *((key, *values) for key, values in differ.items())]), sep="\n")
    print(f"all have {shared(configs)}", *_not_asked(runs, found), *_environments(runs), sep="\n")
    every = list(dict.fromkeys(shown for one in found for shown in one.readings))
    for shown in every:
        print("", *_values(runs, names, shown), sep="\n")
    print(*[f"{line}\n" for line in _unlike(runs)], sep="", end="")
    costs = [cost([*map(_took, run.receipts.values())]) for run in runs.values()]
    print("", *aligned([("", *COST), *((letter, *row) for letter, row in zip(runs, costs, strict=True))]), sep="\n")
    if options.plot:
        draw(options.plot, {names[letter]: run for letter, run in runs.items()}, every)
        print("", f"curves: {options.plot}", sep="\n")


def _found(options: Namespace) -> list[SelectedRun]:
    if not any(getattr(options, key) for key in FILTERS):
        raise UserError("compare: names no run; give two or more, or a table as paper/table; `fedrepro runs` lists them")
    found, left_out = RunSelector(options, ROOT).select()
    if len(found) < 2:
        what = " and ".join(options.what) or "what is asked for"
        said = f"{what} are the same run" if len(options.what) > 1 and found else f"{what}: {'one run' if found else 'no run'}"
        more = f" and {left_out} trials of tuned cells, which --trials adds" if left_out else ""
        raise UserError(f"{said}{more}; compare takes two or more, `fedrepro runs` lists them")
    return sorted(found, key=_foreign)  # A, which the others are compared with, is one that is asked for


def _foreign(one: SelectedRun) -> bool:
    """Whether neither the table nor the user asks for just this run: a sweep had its value, or it is by hand."""
    return not (one.in_a_table or one.named)


def _took(receipt: dict[str, Any]) -> tuple[str | None, Cost]:
    """Returns the device of a seed and its cost."""
    return receipt["environment"].get("device"), adapter(Cost).validate_python(receipt["cost"])


def _letters() -> Iterator[str]:
    """Yields A to Z, then AA, AB."""
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_uppercase, repeat=length))


def _not_asked(runs: Lettered, found: list[SelectedRun]) -> Iterator[str]:
    """Yields a line for each run that its table does not ask for, with what was changed."""
    for letter, one in zip(runs, found, strict=True):
        if _foreign(one):
            table, scale = one.at
            changed = f": {', '.join(map(str, one.changed))}" if one.changed else ""
            yield f"{letter} is not asked for by {table}, scale {scale}{changed}"


def _environments(runs: Lettered) -> Iterator[str]:
    """Yields a line for each difference in how the runs were computed."""
    for key in REASONS:
        found = [
            {str(one["environment"][key]) for one in run.receipts.values() if key in one["environment"]}
            for run in runs.values()
        ]
        if any(one != found[0] for one in found):
            told = (f"{letter} {', '.join(sorted(one)) or 'not recorded'}" for letter, one in zip(runs, found, strict=True))
            yield f"{key}: {'; '.join(told)}"


def _values(runs: Lettered, names: dict[str, str], shown: ShownReading) -> Iterator[str]:
    """Yields a table: the value of each seed, mean, deviation, paired difference to A, rounds to the worst value."""
    metric, first = shown.reading.metric, runs["A"]
    without = [letter for letter, run in runs.items() if any(metric not in one["curves"] for one in run.receipts.values())]
    if "A" in without or len(without) > len(runs) - 2:
        yield f"{reading_of(shown, first.config)}: {listed(without)} {'has' if len(without) == 1 else 'have'} no such metric"
        return
    having = {letter: run for letter, run in runs.items() if letter not in without}
    others = {letter: shown.reading.over(run.config) for letter, run in having.items()}
    yield reading_of(shown, first.config) + "".join(f"; {k}: {v}" for k, v in others.items() if v != others["A"])
    values = {letter: {seed: shown.reading.of(one) for seed, one in run.receipts.items()} for letter, run in having.items()}
    seeds = sorted({seed for own in values.values() for seed in own})
    common = [seed for seed in seeds if all(own.get(seed) is not None for own in values.values())]
    choose = min if shown.better == "higher" else max
    reached = [] if shown.reading.derived else common  # by a curve of the metric
    targets = {seed: choose(own[seed] or 0.0 for own in values.values()) for seed in reached}
    by_seed = seeds if len(seeds) <= MOST_SEEDS else []
    rows = [("", *map(str, by_seed), "mean", "deviation", "− A", "95 % interval", "rounds")]
    for letter, own in values.items():
        each = (shown.number(own[seed]) if seed in own else "–" for seed in by_seed)
        rounds = [_rounds(having[letter].receipts[seed], shown, target) for seed, target in targets.items()]
        rows.append((names[letter], *each, *_middle(having, letter, values, shown), f"{mean(rounds):.3g}" if rounds else "–"))
    yield from aligned(rows)
    if any(own.keys() != values["A"].keys() for own in values.values()):
        told = (
            f"{letter} {seed_list([*_gaps(values['A'], own)]) or 'none'}" for letter, own in values.items() if letter != "A"
        )
        yield f"− A: over the seeds that both have: {'; '.join(told)}"
    if targets:
        yield f"rounds: until the curve first reaches the worst of a seed's values, mean over seeds {seed_list(common)}"
    elif not common:
        yield "no seed has a value in all of them"


def _middle(
    runs: Lettered, letter: str, values: dict[str, dict[int, float | None]], shown: ShownReading
) -> tuple[str, str, str, str]:
    """Returns mean, deviation, paired difference to A and its interval; "–" if a seed has no value or seeds have other code.
    Runs on other data have no difference, and runs on another partition no interval, since nothing pairs their seeds."""
    alike = {one: len(by_code(ROOT, runs[one].receipts)) == 1 for one in ("A", letter)}
    own = [*values[letter].values()]
    known = [value for value in own if value is not None]
    complete = alike[letter] and len(known) == len(own)
    middle = shown.number(mean(known)) if complete else "–"
    deviation = shown.number(statistics.stdev(known)) if complete and len(known) > 1 else "–"
    gaps = [*_gaps(values["A"], values[letter]).values()] if letter != "A" else []
    if not gaps or not all(alike.values()) or runs["A"].config["dataset"] != runs[letter].config["dataset"]:
        return middle, deviation, "" if letter == "A" else "–", "" if letter == "A" else "–"
    bounds = interval(gaps) if _on_one_partition(runs["A"], runs[letter]) else None
    said = " to ".join(shown.number(bound, "+") for bound in bounds) if bounds else "–"
    return middle, deviation, shown.number(mean(gaps), "+"), said


def _gaps(first: dict[int, float | None], own: dict[int, float | None]) -> dict[int, float]:
    """Returns a difference for each seed that both have run. If one of these has no value there is none, as in a table."""
    found = paired_differences(own, first)
    return {} if None in found.values() else {seed: gap for seed, gap in found.items() if gap is not None}


def _on_one_partition(one: StoredRun, other: StoredRun) -> bool:
    both = one.receipts.keys() & other.receipts.keys()
    return all(
        one.receipts[seed]["inputs"].get("partition") == other.receipts[seed]["inputs"].get("partition") for seed in both
    )


def _unlike(runs: Lettered) -> Iterator[str]:
    """Yields a line for each run of other code, and for what a run and A do not share at a seed."""
    for letter, run in runs.items():
        for note, same in by_code(ROOT, run.receipts):
            if note:
                yield f"{letter}, seeds {seed_list(same)}: {note}"
    first = runs["A"]
    for letter, run in runs.items():
        drawn = dict(DRAWN)
        if all(first.config.get(key) == run.config.get(key) for key in ("clients", "participation", "cohorts")):
            del drawn["participation"]  # the cohort of a round does not depend on how many rounds there are
        both = first.receipts.keys() & run.receipts.keys()
        inputs = [(first.receipts[seed]["inputs"], run.receipts[seed]["inputs"]) for seed in both]
        kinds = [name for kind, name in drawn.items() if any(one.get(kind) != other.get(kind) for one, other in inputs)]
        if kinds:
            yield f"{letter} and A do not share at a seed: {', '.join(kinds)}; the pairs share less than they could"


def _rounds(receipt: dict, shown: ShownReading, target: float) -> float:
    curve = receipt["curves"][shown.reading.metric]
    curve = curve[: shown.reading.window(len(curve)).stop]
    measured = {number: value for number, value in enumerate(curve, start=1) if value is not None}
    return first_reaching(measured, target, shown.better == "higher")
