"""fedrepro runs: what has been trained here or is published, read as the tables read it."""

import itertools
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedrepro.cli.code_groups import by_code
from fedrepro.cli.outcome import mean_text, reading_of
from fedrepro.cli.run_selection import NO_TABLE, RunSelector, SelectedRun
from fedrepro.config.run_differences import columns, shared
from fedrepro.console import aligned
from fedrepro.errors import UserError
from fedrepro.grouping import grouped

FILTERS = ("what", "scale", "rows", "columns", "method", "dataset", "model", "partition", "rounds", "set", "trials")


def runs(options: Namespace) -> None:
    """Prints a line for each table with runs; for what the options name, a line for each run with the settings that differ."""
    if options.prune or options.dry_run:
        filters = [key for key in FILTERS if getattr(options, key)]
        if filters:
            filter_text = "a table or a run" if filters[0] == "what" else f"--{filters[0]}"
            raise UserError(f"runs --prune: takes all that no plan asks for; {filter_text} limits nothing, leave it out")
        _prune(options.dry_run)
        return
    filtered = any(getattr(options, key) for key in FILTERS)
    options.trials = options.trials or not filtered
    selection, left_out = RunSelector(options, Path()).select()
    trials_note = f"{left_out} trials of tuned cells; --trials lists them"
    if not selection:
        if filtered:
            trials = f" ({trials_note})" if left_out else ""
            raise UserError(f"no run is like that{trials}; `fedrepro runs` says which tables have runs")
        print("nothing has been trained or published here; `fedrepro run fedlaw/table3 --rows fedavg` starts with a few runs")
        return
    by_table = [list(group) for _, group in itertools.groupby(selection, key=lambda selected: selected.at)]
    lines = itertools.chain.from_iterable(map(_table, by_table)) if filtered else _overview(by_table)
    print(*lines, *([f"\nleft out: {trials_note}"] if left_out else []), sep="\n")


def _prune(dry_run: bool) -> None:
    """Plans again, then prunes: after an edit, or if a sweep's folder was deleted, the plans on disk are outdated."""
    from fedrepro.cli.track import plan_again
    from fedrepro.config.grid import every_run
    from fedrepro.config.project import load_project
    from fedrepro.tracking import prune

    plan_again(published=False)
    line = ""
    for line in prune(asked_runs=every_run(load_project()), dry_run=dry_run):
        print(line, flush=True)
    if not line:
        print("nothing to remove: plans ask for all that is there")


def _overview(by_table: list[list[SelectedRun]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("table", "scale", "runs", "changed", "trials", "seeds", "")]
    for selection in by_table:
        trials = sum(selected.trial for selected in selection)
        changed = sum(bool(selected.cells) and not selected.in_a_table for selected in selection)  # cells with other settings
        seeds = seed_list({seed for selected in selection for seed in selected.run.receipts})
        counts = (str(number or "–") for number in (len(selection) - trials - changed, changed, trials))
        rows.append((*selection[0].at, *counts, seeds, _origin(selection)))
    yield from aligned(rows, left=(0, 1, 5, 6))
    yield ""
    yield "fedrepro runs TABLE lists the runs of a table; --method, --dataset and --set KEY=VALUE those of all tables"
    yield "A run of several tables counts for the first of them."


def _table(selection: list[SelectedRun]) -> Iterator[str]:
    """Yields the lines of a table, by reading. Runs with changed settings come last and name the changes."""
    table, scale = selection[0].at
    seeds = {seed_list(selected.run.receipts) for selected in selection}
    plural = "s" * (len(selection[0].run.receipts) > 1)
    seed_text = f", seed{plural} {min(seeds)}" if len(seeds) == 1 else ""
    heading = table if (table, scale) == NO_TABLE else f"{table}, scale {scale}"
    yield f"{heading}: {len(selection)} run{'s' * (len(selection) > 1)}, {_origin(selection)}{seed_text}"
    for in_table in (True, False):
        part = [selected for selected in selection if selected.in_a_table == in_table]
        if part:
            yield from _readings(part, seeds=len(seeds) > 1)


def _readings(selection: list[SelectedRun], seeds: bool) -> Iterator[str]:
    """Yields a heading for each reading with the settings that all its runs share, then a line for each run."""
    changed = {change.key for selected in selection for change in selected.changed} - {"method"}  # which names the run
    tried = {key for selected in selection for key in selected.tries}
    configs = [selected.run.config for selected in selection]
    settings = {key: values for key, values in columns(configs, tried).items() if key not in changed}
    yield f"all have {shared(configs)}"
    code_groups = [by_code(Path(), selected.run.receipts) for selected in selection]
    seeds = seeds or any(len(groups) > 1 for groups in code_groups)
    by_reading = grouped(
        (reading_of(reading, selected.run.config), (place, reading))
        for place, selected in enumerate(selection)
        for reading in selected.readings
    )
    for heading, group in by_reading.items():
        group_settings = {key: [values[place] for place, _ in group] for key, values in settings.items()}
        differ = {key: values for key, values in group_settings.items() if key in tried or len(set(values)) > 1}
        rows = [(*differ, "value", *(["seeds"] * seeds), "run", "")]
        for number, (place, reading) in enumerate(group):
            selected = selection[place]
            for note, receipts in code_groups[place]:
                more = selected.run.more
                more_seeds = f"also seed{'s' * (len(more) > 1)} {seed_list(more)}" if more else ""
                notes = ["trial" * selected.trial, ", ".join(map(str, selected.changed)), note, more_seeds]
                about = selected.run.run_id[-8:], "; ".join(filter(None, notes))
                value = mean_text(reading, {seed: reading.of(receipt) for seed, receipt in receipts.items()})
                setting_texts = (values[number] for values in differ.values())
                rows.append((*setting_texts, value, *([seed_list(receipts)] * seeds), *about))
        shared_text = ", ".join(f"{key} {values[0]}" for key, values in group_settings.items() if key not in differ)
        yield from ("", heading + (f"; {shared_text}" if shared_text else ""))
        yield from (f"  {line}" for line in aligned(rows, {*range(len(rows[0]))} - {len(differ)}))
    yield ""


def _origin(selection: list[SelectedRun]) -> str:
    published = sum(bool(selected.run.places) for selected in selection)
    return "published" if published == len(selection) else f"{published} published" if published else "trained here"


def seed_list(seeds: Iterable[int]) -> str:
    """Returns `8, 9, 10`; `8–17` for more than three consecutive seeds."""
    numbers = sorted(seeds)
    if len(numbers) > 3 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    return ", ".join(map(str, numbers))
