"""fedrepro runs: what has been trained here or is published, read as the tables read it."""

import itertools
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedrepro.cli.code_groups import by_code
from fedrepro.cli.outcome import mean_text, reading_of
from fedrepro.cli.run_selection import RunSelector, SelectedRun
from fedrepro.config.catalogue import ShownReading
from fedrepro.config.run_differences import columns, shared
from fedrepro.errors import UserError

ROOT = Path()
FILTERS = ("what", "scale", "rows", "columns", "method", "dataset", "model", "partition", "rounds", "set", "trials")


def runs(options: Namespace) -> None:
    """Prints a line for each table with runs; for what the options name, a line for each run with the settings that differ."""
    if options.prune or options.dry_run:
        filters = [key for key in FILTERS if getattr(options, key)]
        if filters:
            named = "a table or a run" if filters[0] == "what" else f"--{filters[0]}"
            raise UserError(f"runs --prune: takes all that no plan asks for; {named} limits nothing, leave it out")
        _prune(options.dry_run)
        return
    listed = any(getattr(options, key) for key in FILTERS)
    options.trials = options.trials or not listed
    found, left_out = RunSelector(options, ROOT).select()
    if not found:
        if listed:
            raise UserError(f"no run is like that{_trials(left_out)}; `fedrepro runs` says which tables have runs")
        print("nothing has been trained or published here; `fedrepro run fedlaw/table3 --rows fedavg` starts with a few runs")
        return
    by_table = [list(own) for _, own in itertools.groupby(found, key=lambda one: one.at)]
    lines = itertools.chain.from_iterable(map(_table, by_table)) if listed else _overview(by_table)
    print(*lines, *([f"\nleft out: {_trials(left_out).strip(' ()')}"] if left_out else []), sep="\n")


def _prune(dry_run: bool) -> None:
    """Plans again before: after an edit, or where a sweep's folder was deleted, the plans that are there are old."""
    from fedrepro.cli.track import plan_again
    from fedrepro.config.grid import every_run
    from fedrepro.config.project import load_project
    from fedrepro.tracking import prune

    plan_again(published=False)
    said = ""
    for said in prune(ROOT, asked_runs=every_run(load_project(ROOT)), dry_run=dry_run):
        print(said, flush=True)
    if not said:
        print("nothing to remove: plans ask for all that is there")


def _trials(left_out: int) -> str:
    return f" ({left_out} trials of tuned cells; --trials lists them)" if left_out else ""


def _overview(by_table: list[list[SelectedRun]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("table", "scale", "runs", "changed", "trials", "seeds", "")]
    for found in by_table:
        trials, changed = sum(one.trial for one in found), sum(not one.in_a_table for one in found)
        seeds = seed_list({seed for one in found for seed in one.run.receipts})
        counts = (str(number or "–") for number in (len(found) - trials - changed, changed, trials))
        rows.append((*found[0].at, *counts, seeds, _origin(found)))
    yield from aligned(rows, left=(0, 1, 5, 6))
    yield ""
    yield "fedrepro runs TABLE lists the runs of a table; --method, --dataset and --set KEY=VALUE those of all tables"
    yield "A run of several tables counts for the first of them."


def _table(found: list[SelectedRun]) -> Iterator[str]:
    """Yields the lines of a table, by reading. Runs with changed settings come last and name the changes."""
    table, scale = found[0].at
    seeds = {seed_list(one.run.receipts) for one in found}
    same = f", seed{'s' * (len(min(seeds)) > 2)} {min(seeds)}" if len(seeds) == 1 else ""
    yield f"{table}, scale {scale}: {len(found)} run{'s' * (len(found) > 1)}, {_origin(found)}{same}"
    for asked in (True, False):
        some = [one for one in found if one.in_a_table == asked]
        if some:
            yield from _readings(some, seeds=len(seeds) > 1)


def _readings(found: list[SelectedRun], seeds: bool) -> Iterator[str]:
    """Yields a heading for each reading with the settings that all its runs share, then a line for each run."""
    changed = {change.key for one in found for change in one.changed} - {"method"}  # which names the run
    tried = {key for one in found for key in one.tries}
    whole = {key: values for key, values in columns([one.run.config for one in found], tried).items() if key not in changed}
    yield f"all have {shared([one.run.config for one in found])}"
    coded = [by_code(ROOT, one.run.receipts) for one in found]
    seeds = seeds or any(len(groups) > 1 for groups in coded)
    by_reading: dict[str, list[tuple[int, ShownReading]]] = {}
    for place, one in enumerate(found):
        for shown in one.readings:
            by_reading.setdefault(reading_of(shown, one.run.config), []).append((place, shown))
    for reading, group in by_reading.items():
        own = {key: [values[place] for place, _ in group] for key, values in whole.items()}
        differ = {key: values for key, values in own.items() if key in tried or len(set(values)) > 1}
        rows = [(*differ, "value", *(["seeds"] * seeds), "run", "")]
        for number, (place, shown) in enumerate(group):
            one = found[place]
            for note, same in coded[place]:
                more = f"also seed{'s' * (len(one.run.more) > 1)} {seed_list(one.run.more)}" if one.run.more else ""
                notes = "; ".join(filter(None, ["trial" * one.trial, ", ".join(map(str, one.changed)), note, more]))
                value = mean_text(shown, {seed: shown.reading.of(receipt) for seed, receipt in same.items()})
                told = (values[number] for values in differ.values())
                rows.append((*told, value, *([seed_list(same)] * seeds), one.run.short, notes))
        alike = ", ".join(f"{key} {values[0]}" for key, values in own.items() if key not in differ)
        yield from ("", reading + (f"; {alike}" if alike else ""))
        yield from (f"  {line}" for line in aligned(rows, {*range(len(rows[0]))} - {len(differ)}))
    yield ""


def _origin(found: list[SelectedRun]) -> str:
    published = sum(bool(one.run.places) for one in found)
    return "published" if published == len(found) else f"{published} published" if published else "trained here"


def seed_list(seeds: Iterable[int]) -> str:
    """Returns `8, 9, 10`; `8–17` for more than three consecutive seeds."""
    found = sorted(seeds)
    if len(found) > 3 and found[-1] - found[0] == len(found) - 1:
        return f"{found[0]}–{found[-1]}"
    return ", ".join(map(str, found))


def aligned(rows: list[tuple[str, ...]], left: Iterable[int] = (0,)) -> list[str]:
    """Aligns the columns in `left` to the left and all others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    sides = [str.ljust if i in left else str.rjust for i in range(len(widths))]
    return ["  ".join(side(text, width) for side, text, width in zip(sides, row, widths, strict=True)).rstrip() for row in rows]
