"""Selects the part of a table that --rows and --columns name, in the same way for every command."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fedrepro.choices import require_known

if TYPE_CHECKING:
    from fedrepro.config.plan import Candidate, Place, Plan, Run
    from fedrepro.store import Store

Job = tuple["Run", list[int]]  # a run of a plan, and its seeds


def cells(plan: "Plan", options: Namespace) -> list["Place"]:
    """Returns the cells of `plan` in those rows and columns, also cells without a run; a tuned cell comes with its candidates.

    UserError for an unknown name.
    """
    names_by_axis = {"row": [row.key for row in plan.rows], "column": [column.key for column in plan.columns]}
    places: list[Place] = [*plan.cells, *plan.candidates]
    for axis, names in names_by_axis.items():
        selected_names = getattr(options, f"{axis}s", None)
        for name in selected_names or []:
            require_known(options.target, axis, name, names)
        places = [cell for cell in places if not selected_names or getattr(cell, axis) in selected_names]
    return places


def candidates(cells: Iterable["Place"]) -> list["Candidate"]:
    """Returns the candidates of tuned cells among `cells`."""
    from fedrepro.config.plan import Candidate

    return [cell for cell in cells if isinstance(cell, Candidate)]


def jobs(plan: "Plan", cells: Sequence["Place"], seeds: Sequence[int], chosen: bool = False) -> list[Job]:
    """Returns (run, its seeds) for these cells: first the trials of candidates, then each cell at `seeds`. With `chosen`, the
    runs of all candidates are included, as if each were chosen."""
    from fedrepro.config.candidates import merged_seeds

    tuned = candidates(cells)
    requests: list[tuple[str, Sequence[int]]] = [(candidate.trial.run_id, candidate.trial.seeds) for candidate in tuned]
    requests += [(cell.run_id, seeds) for cell in cells if cell.run_id and (chosen or cell not in tuned)]
    return [(plan.runs[run_id], list(run_seeds)) for run_id, run_seeds in merged_seeds(requests).items()]


def cells_after_trials(plan: "Plan", cells: Sequence["Place"], store: "Store") -> tuple[list["Place"], str]:
    """Returns (the cells that follow the trials of the candidates among `cells`, a sentence with their number).

    After its trials a tuned cell trains the candidate that the receipts choose. Before that, its first candidate counts, since
    all cost alike. If every candidate diverged, nothing follows.
    """
    from fedrepro.config.candidates import first_candidates

    tuned = candidates(cells)
    follow = {place: first.cell for place, first in first_candidates(tuned).items()}
    if not follow:
        return [], ""
    result_cells = [cell for cell in with_choices(plan, store).cells if (cell.row, cell.column) in follow]
    chosen_cells = {(cell.row, cell.column): cell for cell in result_cells if cell.chosen}
    lost_places = {(cell.row, cell.column) for cell in result_cells if cell.lost}
    note = f"{len(tuned)} candidates of {len(follow)} tuned cells, {len(chosen_cells)} of which are chosen"
    if lost_places:
        note += f"; in {len(lost_places)} of them no candidate has a value"
    if len(chosen_cells) + len(lost_places) < len(follow):
        note += "; of the others the first candidate is counted as the chosen one"
    return [cell for place, cell in (follow | chosen_cells).items() if place not in lost_places], note


def with_choices(plan: "Plan", store: "Store") -> "Plan":
    """Returns the plan with the chosen candidates in its tuned cells, and no candidates."""
    from dataclasses import replace

    from fedrepro.exhibits.exhibit import Exhibit

    return replace(Exhibit.of(plan, store).plan, candidates=())
