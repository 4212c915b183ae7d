"""The candidates of a tuned cell, as a plan has them, and which run needs which seeds. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from fedrepro.choices import require_known
from fedrepro.config.layers import TUNED, Layers
from fedrepro.config.plan import Candidate, Place, Run, Trial
from fedrepro.errors import UserError
from fedrepro.registry import named_arguments

# A run, and what the cell reports of it.
Made = tuple[Run, dict[str, Any]]


def candidates(
    layers: Layers, make: Callable[[Layers], Made], blank: Place, seeds: Sequence[int], file: str
) -> list[tuple[Candidate, Run, Run]]:
    """Every candidate of a cell, `blank` with its run, that run, and the run of its trial.

    `make` gives the run of the cell under some layers. Values that params.yaml or the scale overrides leave one candidate, with
    the value of its run. UserError for a key that decides nothing in this cell.
    """
    tune, candidates_by_run = layers.tune, {}
    if tune is None:
        return []
    where = f"{file}: {layers.row.key}, {layers.column.key}"
    if layers.metric.diagnostic:
        raise UserError(
            f"{where}: tune: candidates are compared by what runs record, and {layers.metric.name} is measured by "
            f"{layers.metric.diagnostic}; give the cell no `tune`"
        )
    for values in tune.candidates:
        candidate_layers = replace(layers, candidate=values)
        run, reported = make(candidate_layers)
        sources, has = run.sources | run.argument_sources, run.config | named_arguments(run.method)
        for key in values:
            require_known(f"{where}: tune", "setting or argument of the cell", key, sorted(sources))
            if sources[key] == layers.table.source:
                raise UserError(f"{where}: tune: the method writes {key} itself; leave it out there")
        try:
            trial_run, trial_reported = make(candidate_layers.trial(run.config["rounds"]))
            also = tune.also and tune.also.beside(layers.metric)
        except UserError as error:
            raise UserError(f"{where}: {error}" if str(error).startswith("tune:") else str(error)) from error
        if also and also.name.startswith("proxy_") and not trial_run.config.get("evaluate_proxy"):
            raise UserError(f"{where}: tune: also = {also.name!r}: evaluate_proxy is false; set it to true for these runs")
        wanted = tune.seeds or seeds  # if the table has none of them, the same number of its first seeds
        trial_seeds = [seed for seed in wanted if seed in seeds] or seeds[: len(wanted)]
        trial = Trial(trial_run.run_id, trial_reported["read"], tuple(trial_seeds))
        shown = {key: value if sources[key].startswith(TUNED) else has[key] for key, value in values.items()}
        cell_values = vars(blank) | {"run_id": run.run_id, **reported, "tuned": True, "values": shown}
        candidates_by_run.setdefault(run.run_id, (Candidate(**cell_values, trial=trial, also=also), run, trial_run))
    return list(candidates_by_run.values())


def first_candidates(tried_candidates: Iterable[Candidate]) -> dict[tuple[str, str], Candidate]:
    """(row, column) -> the first candidate of each tuned cell, which stands for the chosen one: they cost alike."""
    first_by_cell: dict[tuple[str, str], Candidate] = {}
    for candidate in tried_candidates:
        first_by_cell.setdefault((candidate.row, candidate.column), candidate)
    return first_by_cell


def merged_seeds(run_seeds: Iterable[tuple[str, Sequence[int]]]) -> dict[str, tuple[int, ...]]:
    """run_id -> all of its seeds in `run_seeds`, each once."""
    merged: dict[str, tuple[int, ...]] = {}
    for run_id, seeds in run_seeds:
        merged[run_id] = tuple(dict.fromkeys([*merged.get(run_id, ()), *seeds]))
    return merged
