"""fedrepro compare: runs side by side, seed by seed, the others with the first of them."""

import itertools
import statistics
import string
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedrepro.cli.code_groups import by_code
from fedrepro.cli.curves import draw
from fedrepro.cli.listing import FILTERS, seed_list
from fedrepro.cli.outcome import reading_of
from fedrepro.cli.run_selection import RunSelector, SelectedRun
from fedrepro.cli.stored_runs import StoredRun
from fedrepro.config.reading import Reading
from fedrepro.config.run_differences import columns, shared
from fedrepro.console import aligned
from fedrepro.engine.differences import REASONS
from fedrepro.engine.fingerprints import listed
from fedrepro.errors import UserError
from fedrepro.exhibits.receipt import Cost
from fedrepro.exhibits.sections.cost import COST, cost
from fedrepro.exhibits.statistics import first_reaching, interval, mean, paired_differences
from fedrepro.grouping import grouped
from fedrepro.typed import adapter

DRAWN = {"partition": "partition", "participation": "cohorts", "proxy": "proxy set", "init": "initial model"}
MOST_SEEDS = 10  # beyond which a seed has no column
Lettered = dict[str, StoredRun]


def compare(options: Namespace) -> None:
    """Prints the settings that differ, the tables' value on each seed, the rounds needed and the cost; draws the curves."""
    selection = _select_runs(options)
    words = (itertools.product(string.ascii_uppercase, repeat=length) for length in itertools.count(1))
    letters = map("".join, itertools.chain.from_iterable(words))  # A to Z, then AA, AB
    runs: Lettered = dict(zip(letters, (selected.run for selected in selection), strict=False))
    configs = [run.config for run in runs.values()]
    differ = columns(configs, {key for selected in selection for key in selected.tries})
    setting_texts = [values if key == "method" else [f"{key} {value}" for value in values] for key, values in differ.items()]
    names = {letter: f"{letter}  {', '.join(texts)}".rstrip() for letter, *texts in zip(runs, *setting_texts, strict=True)}
    ids = [run.run_id for run in runs.values()]
    if len(differ) <= max(2, len(runs)):
        rows = [("", *differ, "run"), *zip(runs, *differ.values(), ids, strict=True)]
        print(*aligned(rows, range(len(rows[0]))), sep="\n")
    else:  # too many settings for one line per run
        names = {letter: letter for letter in runs}
        print(*map("  ".join, zip(runs, ids, strict=True)), "", sep="\n")
        print(*aligned([("settings that differ", *runs), *((key, *values) for key, values in differ.items())]), sep="\n")
    print(f"all have {shared(configs)}", *_foreign_lines(runs, selection), *_environments(runs), sep="\n")
    readings = list(dict.fromkeys(reading for selected in selection for reading in selected.readings))
    for reading in readings:
        print("", *_values(runs, names, reading), sep="\n")
    print(*[f"{line}\n" for line in _unshared_lines(runs)], sep="", end="")
    read_cost = adapter(Cost).validate_python
    cost_rows: list[tuple[str, ...]] = [("", *COST)]
    for letter, run in runs.items():
        seed_costs = [(r["environment"].get("device"), read_cost(r["cost"])) for r in run.receipts.values()]
        cost_rows.append((letter, *cost(seed_costs)))
    print("", *aligned(cost_rows), sep="\n")
    if options.plot:
        draw(options.plot, {names[letter]: run for letter, run in runs.items()}, readings)
        print("", f"curves: {options.plot}", sep="\n")


def _select_runs(options: Namespace) -> list[SelectedRun]:
    if not any(getattr(options, key) for key in FILTERS):
        raise UserError("compare: names no run; give two or more, or a table as paper/table; `fedrepro runs` lists them")
    selection, left_out = RunSelector(options, Path()).select()
    if len(selection) < 2:
        what = " and ".join(options.what) or "what is asked for"
        message = f"{what}: {'one run' if selection else 'no run'}"
        if len(options.what) > 1 and selection:
            message = f"{what} are the same run"
        more = f" and {left_out} trials of tuned cells, which --trials adds" if left_out else ""
        raise UserError(f"{message}{more}; compare takes two or more, `fedrepro runs` lists them")
    return sorted(selection, key=_foreign)  # the reference A is a run that the table or the user names


def _foreign(selected: SelectedRun) -> bool:
    """Tells whether neither the table nor the user names the run. It comes from a sweep or a run by hand."""
    return not (selected.in_a_table or selected.named)


def _foreign_lines(runs: Lettered, selection: list[SelectedRun]) -> Iterator[str]:
    """Yields a line for each run with changed settings of a table, with these settings."""
    for letter, selected in zip(runs, selection, strict=True):
        if _foreign(selected) and selected.cells:
            table, scale = selected.at
            changed = f": {', '.join(map(str, selected.changed))}" if selected.changed else ""
            yield f"{letter} is not asked for by {table}, scale {scale}{changed}"


def _environments(runs: Lettered) -> Iterator[str]:
    """Yields a line for each difference in how the runs were computed."""
    for key in REASONS:
        values_by_run = [
            {str(receipt["environment"][key]) for receipt in run.receipts.values() if key in receipt["environment"]}
            for run in runs.values()
        ]
        if any(values != values_by_run[0] for values in values_by_run):
            texts = [", ".join(sorted(values)) or "not recorded" for values in values_by_run]
            yield f"{key}: {'; '.join(_by_text(runs, dict(zip(runs, texts, strict=True))))}"


def _values(runs: Lettered, names: dict[str, str], reading: Reading) -> Iterator[str]:
    """Yields a table: the value of each seed, mean, deviation, paired difference to A, rounds to the worst value."""
    metric, first = reading.metric, runs["A"]
    without = [
        letter for letter, run in runs.items() if any(metric not in receipt["curves"] for receipt in run.receipts.values())
    ]
    if "A" in without or len(without) > len(runs) - 2:
        verb = "has" if len(without) == 1 else "have"
        yield f"{reading_of(reading, first.config)}: {listed(without)} {verb} no such metric"
        return
    having = {letter: run for letter, run in runs.items() if letter not in without}
    spans = {letter: reading.over(run.config) for letter, run in having.items()}
    yield reading_of(reading, first.config) + "".join(f"; {k}: {v}" for k, v in spans.items() if v != spans["A"])
    values = {letter: {seed: reading.of(receipt) for seed, receipt in run.receipts.items()} for letter, run in having.items()}
    seeds = sorted({seed for run_values in values.values() for seed in run_values})
    common = [seed for seed in seeds if all(run_values.get(seed) is not None for run_values in values.values())]
    choose = min if reading.better == "higher" else max
    target_seeds = [] if reading.derived else common  # by a curve of the metric
    targets = {seed: choose(run_values[seed] or 0.0 for run_values in values.values()) for seed in target_seeds}
    seed_columns = seeds if len(seeds) <= MOST_SEEDS else []
    rows = [("", *map(str, seed_columns), "mean", "deviation", "− A", "95 % interval", "rounds")]
    for letter, run_values in values.items():
        cells = (reading.number(run_values[seed]) if seed in run_values else "–" for seed in seed_columns)
        rounds = [_rounds(having[letter].receipts[seed], reading, target) for seed, target in targets.items()]
        rounds_text = f"{mean(rounds):.3g}" if rounds else "–"
        rows.append((names[letter], *cells, *_mean_and_difference(having, letter, values, reading), rounds_text))
    yield from aligned(rows)
    if any(run_values.keys() != values["A"].keys() for run_values in values.values()):
        seed_notes = {
            letter: seed_list([*_gaps(values["A"], run_values)]) or "none"
            for letter, run_values in values.items()
            if letter != "A"
        }
        yield f"− A: over the seeds that both have: {'; '.join(_by_text(runs, seed_notes))}"
    if targets:
        yield f"rounds: until the curve first reaches the worst of a seed's values, mean over seeds {seed_list(common)}"
    elif not common:
        yield "no seed has a value in all of them"


def _mean_and_difference(
    runs: Lettered, letter: str, values: dict[str, dict[int, float | None]], reading: Reading
) -> tuple[str, str, str, str]:
    """Returns mean, deviation, paired difference to A and its interval; "–" if a seed has no value or seeds have other code.
    Runs on other data have no difference, and runs on another partition no interval, since nothing pairs their seeds."""
    alike = {side: len(by_code(Path(), runs[side].receipts)) == 1 for side in ("A", letter)}
    run_values = [*values[letter].values()]
    measured = [value for value in run_values if value is not None]
    complete = alike[letter] and len(measured) == len(run_values)
    middle = reading.number(mean(measured)) if complete else "–"
    deviation = reading.number(statistics.stdev(measured)) if complete and len(measured) > 1 else "–"
    gaps = [*_gaps(values["A"], values[letter]).values()] if letter != "A" else []
    if not gaps or not all(alike.values()) or runs["A"].config["dataset"] != runs[letter].config["dataset"]:
        return middle, deviation, "" if letter == "A" else "–", "" if letter == "A" else "–"
    common_seeds = runs["A"].receipts.keys() & runs[letter].receipts.keys()
    inputs = [{seed: runs[side].receipts[seed]["inputs"].get("partition") for seed in common_seeds} for side in alike]
    bounds = interval(gaps) if inputs[0] == inputs[1] else None
    bounds_text = " to ".join(reading.number(bound, "+") for bound in bounds) if bounds else "–"
    return middle, deviation, reading.number(mean(gaps), "+"), bounds_text


def _gaps(first: dict[int, float | None], second: dict[int, float | None]) -> dict[int, float]:
    """Returns a difference for each seed that both have run. {} if one of these seeds has no value, as in a table."""
    differences = paired_differences(second, first)
    return {} if None in differences.values() else {seed: gap for seed, gap in differences.items() if gap is not None}


def _unshared_lines(runs: Lettered) -> Iterator[str]:
    """Yields a line for runs of other code, and for what runs and A do not share at a seed."""
    code_notes = (
        (f", seeds {seed_list(receipts)}: {note}", letter)
        for letter, run in runs.items()
        for note, receipts in by_code(Path(), run.receipts)
        if note
    )
    yield from (f"{_span(letters, runs)}{note}" for note, letters in grouped(code_notes).items())
    first, unshared = runs["A"], dict[str, str]()
    for letter, run in runs.items():
        drawn = dict(DRAWN)
        if all(first.config.get(key) == run.config.get(key) for key in ("clients", "participation", "cohorts")):
            del drawn["participation"]  # the cohort of a round does not depend on the number of rounds
        common_seeds = first.receipts.keys() & run.receipts.keys()
        inputs = [(first.receipts[seed]["inputs"], run.receipts[seed]["inputs"]) for seed in common_seeds]
        kinds = [name for kind, name in drawn.items() if any(base.get(kind) != other.get(kind) for base, other in inputs)]
        if kinds:
            unshared[letter] = f"and A do not share at a seed: {', '.join(kinds)}; the pairs share less than they could"
    yield from _by_text(runs, unshared)


def _by_text(runs: Lettered, texts: dict[str, str]) -> Iterator[str]:
    """Yields each of the texts, given by letter, behind the letters that have it."""
    for text, letters in grouped((text, letter) for letter, text in texts.items()).items():
        yield f"{_span(letters, runs)} {text}"


def _span(letters: Sequence[str], runs: Lettered) -> str:
    """Returns `A, C to F`: three letters or more in a row are shortened."""
    places = {letter: place for place, letter in enumerate(runs)}
    rows = grouped((places[letter] - number, letter) for number, letter in enumerate(letters)).values()
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 2 else ", ".join(row) for row in rows)


def _rounds(receipt: dict, reading: Reading, target: float) -> float:
    curve = receipt["curves"][reading.metric]
    curve = curve[: reading.window(len(curve)).stop]
    measured = {number: value for number, value in enumerate(curve, start=1) if value is not None}
    return first_reaching(measured, target, reading.better == "higher")
