"""Edits of params.yaml that have no effect. A method's argument is refused; for seeds the command prints a line.

A row that writes an argument keeps it: `fixed_gamma(gamma=0.9)` is a point of a sweep. So an edit of `fixed_gamma.gamma` moves
the rows that leave it open. The edit is an error if no row of the requested tables leaves the argument open and a row writes
another value. It is no error if its value already holds without it, from the paper, the scale or the method's default.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

from fedrepro.config.places import table_path
from fedrepro.config.plan import Plan
from fedrepro.config.project import Project
from fedrepro.config.reading import EDITED
from fedrepro.config.schema import Params, Scalar
from fedrepro.errors import UserError
from fedrepro.methods.parts import PARTS


def require_effect(project: Project, plans: Iterable[Plan]) -> None:
    """UserError for a value of params.yaml that none of these `plans` takes, and that a row of theirs contradicts. It names the
    key, the file and the rows."""
    edited_plans = [plan for plan in plans if project.params.methods.get(plan.paper)]
    for paper in dict.fromkeys(plan.paper for plan in edited_plans):
        paper_plans = [plan for plan in edited_plans if plan.paper == paper]
        for part, argument, value in _edits(project, paper):
            name = f"{part}.{argument}"
            if any(run.argument_sources.get(name) == EDITED for plan in paper_plans for run in plan.runs.values()):
                continue
            for plan in paper_plans:
                rows = list(dict.fromkeys(_contradicting(plan, part, argument, value)))
                if rows:
                    where = f"{table_path(Path(), paper, plan.table)}, {'rows' if len(rows) > 1 else 'row'} {', '.join(rows)}"
                    raise UserError(
                        f"params.yaml: methods.{paper}.{name} = {value!r}: changes nothing, since the method is written with "
                        f"{argument}=... in {where}; change it there, or set this to null"
                    )


def unused_seeds(project: Project, plan: Plan) -> str | None:
    """Says that this table does not use the edited seeds of params.yaml; None if it does, or if they are not edited."""
    seeds = project.params.seeds
    if project.published or tuple(seeds) == plan.seeds or seeds == Params.model_validate({}).seeds:
        return None
    table_seeds, edited_seeds = (", ".join(map(str, numbers)) for numbers in (plan.seeds, seeds))
    where = table_path(Path(), plan.paper, plan.table)
    return (
        f"params.yaml: seeds = {edited_seeds} changes nothing, since {where} names its own for scale {plan.scale} "
        f"({table_seeds})"
    )


def _edits(project: Project, paper: str) -> Iterator[tuple[str, str, Scalar]]:
    """Yields (part, argument, value) of params.yaml, without values that a paper, a scale or a default has already."""
    paper_content, scales = project.paper(paper), project.scales.values()
    for part, arguments in (project.params.methods[paper] or {}).items():
        layers = [paper_content.methods, *paper_content.methods_by_dataset.values(), *paper_content.methods_by_model.values()]
        holds = [(key, item.value) for layer in layers for key, item in layer.get(part, {}).items()]
        holds += [item for scale in scales for item in scale.methods.get(part, {}).items()]
        holds += [(field.name, field.default) for field in fields(PARTS.get(part))]
        for argument, value in (arguments or {}).items():
            if value is not None and (argument, value) not in holds:
                yield part, argument, value


def _contradicting(plan: Plan, part: str, argument: str, value: Scalar) -> Iterator[str]:
    """The rows that have the part, with another value of the argument."""
    for cell in plan.planned:
        if any(call.name == part and call.arguments.get(argument, value) != value for call in plan.run(cell).calls):
            yield cell.row
