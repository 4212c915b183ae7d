"""The part of a table that --rows and --columns leave: the same for every command that takes them."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fedrepro.choices import require_known

if TYPE_CHECKING:
    from fedrepro.config.plan import Candidate, Place, Plan, Run
    from fedrepro.store import Store

Job = tuple["Run", list[int]]  # a run of a plan, and its seeds


def cells(plan: "Plan", options: Namespace) -> list["Place"]:
    """The cells of `plan` in those rows and columns, also the ones without a run; of a tuned one also its candidates.

    UserError for an unknown name.
    """
    known = {"row": [row.key for row in plan.rows], "column": [column.key for column in plan.columns]}
    found: list[Place] = [*plan.cells, *plan.candidates]
    for key, names in known.items():
        wanted = getattr(options, f"{key}s", None)
        for name in wanted or []:
            require_known(options.target, key, name, names)
        found = [cell for cell in found if not wanted or getattr(cell, key) in wanted]
    return found


def candidates(cells: Iterable["Place"]) -> list["Candidate"]:
    """Those of tuned cells among `cells`."""
    from fedrepro.config.plan import Candidate

    return [cell for cell in cells if isinstance(cell, Candidate)]


def runs(plan: "Plan", cells: Sequence["Place"]) -> list["Run"]:
    """The runs of these cells, each once; of candidates the trials too."""
    trials = [one.trial.run_id for one in candidates(cells)]
    return [plan.runs[run_id] for run_id in dict.fromkeys([*(cell.run_id for cell in cells), *trials]) if run_id]


def jobs(plan: "Plan", cells: Sequence["Place"], seeds: Sequence[int], chosen: bool = False) -> list[Job]:
    """(run, its seeds) of what these cells need: `seeds` of each, and of candidates their trials, which come first; as if each
    of the candidates were `chosen`, their own runs too."""
    from fedrepro.config.candidates import merged_seeds

    tuned = candidates(cells)
    wanted: list[tuple[str, Sequence[int]]] = [(one.trial.run_id, one.trial.seeds) for one in tuned]
    wanted += [(cell.run_id, seeds) for cell in cells if cell.run_id and (chosen or cell not in tuned)]
    return [(plan.runs[run_id], list(found)) for run_id, found in merged_seeds(wanted).items()]


def cells_after_trials(plan: "Plan", cells: Sequence["Place"], store: "Store") -> tuple[list["Place"], str]:
    """(what follows the trials of the candidates among `cells`, their number in words).

    Of each cell it is the candidate that the receipts choose; until then the first, since they cost alike; nothing if all of
    them diverged.
    """
    from fedrepro.config.candidates import first_candidates

    tuned = candidates(cells)
    follow = {place: one.cell for place, one in first_candidates(tuned).items()}
    if not follow:
        return [], ""
    settled = [cell for cell in with_choices(plan, store).cells if (cell.row, cell.column) in follow]
    chosen = {(cell.row, cell.column): cell for cell in settled if cell.chosen}
    lost = {(cell.row, cell.column) for cell in settled if cell.lost}
    said = f"{len(tuned)} candidates of {len(follow)} tuned cells, {len(chosen)} of which are chosen"
    if lost:
        said += f"; in {len(lost)} of them no candidate has a value"
    if len(chosen) + len(lost) < len(follow):
        said += "; of the others the first candidate is counted as the chosen one"
    return [cell for place, cell in (follow | chosen).items() if place not in lost], said


def with_choices(plan: "Plan", store: "Store") -> "Plan":
    """The plan with the chosen candidates in its tuned cells, and no candidates."""
    from dataclasses import replace

    from fedrepro.exhibits.exhibit import Exhibit

    return replace(Exhibit.of(plan, store).plan, candidates=())
