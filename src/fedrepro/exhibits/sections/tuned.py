"""What pages say of tuned cells: every candidate and how its trial went, which is shown, and what the choice is worth."""

from functools import partial

from fedrepro import units
from fedrepro.console import some
from fedrepro.exhibits.choices import Choice, TriedCandidate
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.pictures import candidates
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b
from fedrepro.grouping import grouped
from fedrepro.units import decimal

TUNED = (
    "These cells show the best of several candidates. A candidate is compared by the mean over its seeds of what the cell "
    "reads; the first of equal ones is chosen. The choice is made on the data that the number is measured on, which is "
    "optimistic."
)
PROXY = (
    "The proxy set is held out from the clients and from the test metrics. A method that trains on it is not measured on "
    "held-out data."
)
CAPTION = "What each candidate reached in its trial. A ring marks the one that is shown, a cross one that {lost}."
LIGHTER = " The lighter line is the second reading, with a smaller ring where it would choose."


@section("table", at=60)
def tuned(table: Exhibit) -> list[b.Block]:
    """Every candidate with its trial."""
    if not table.choices:
        return []
    again = list(dict.fromkeys(metric_label(choice.second.name) for choice in table.choices if choice.second))
    rows = tuple(_row(choice, candidate, bool(again)) for choice in table.choices for candidate in choice.tried)
    second = [again[0] if len(again) == 1 else "second reading", "its choice"] if again else []
    names = b.heads("method", "setting", "candidate", "each seed", "mean", "choice", *second, numbers=(4, 6))
    blocks = (b.Paragraph(TUNED + _shorter(table)), *summary(table, "figures"), b.Grid("Candidates", names, rows))
    done = sum(choice.reason is None for choice in table.choices)
    note = f"{done} of {some(len(table.choices), 'cell')} chosen, {some(len(rows), 'candidate')}"
    return [b.Section("Tuned cells", blocks, folded=True, note=note)]


def summary(table: Exhibit, folder: str) -> list[b.Block]:
    """Makes what the page of the paper says of tuned cells. `folder`: of the pictures, seen from the page."""
    return [*_worth_paragraph(table), *_picture(table, folder)]


def worth(choices: tuple[Choice, ...]) -> list[str]:
    """Makes a sentence for each pair of readings: how much better the shown choices are, by the reading that chose them."""
    pairs = grouped(
        ((choice.quantity, choice.second.name, choice.metric.unit, choice.metric.higher), choice)
        for choice in choices
        if choice.second and choice.worth is not None
    )
    return [_sentence(*readings, cells) for readings, cells in pairs.items()]


def _sentence(first: str, second: str, unit: str, higher: bool, cells: list[Choice]) -> str:
    values = [choice.worth for choice in cells if choice.worth is not None]
    word = f" {units.unit(unit).difference}".rstrip()
    mean, most = (decimal(value, cells[0].metric.digits) for value in (sum(values) / len(values), max(values)))
    first, second = metric_label(first), metric_label(second)
    verb = "raises" if higher else "lowers"
    return (
        f"In the trials, choosing by {first} instead of {second} {verb} {first} by {mean}{word} in the mean over "
        f"{some(len(cells), 'cell')}, by {most} at most. "
        f"Both choose the same candidate in {sum(choice.agreed for choice in cells)} of them."
    )


def _shorter(table: Exhibit) -> str:
    """Says after how many rounds the trials end, if the runs that are shown have more."""
    runs = table.plan.runs
    round_pairs = {
        (runs[candidate.trial.run_id].config["rounds"], runs[candidate.run_id].config["rounds"])
        for candidate in table.plan.candidates
        if candidate.run_id
    }
    short = [f"{trial} of {rounds}" for trial, rounds in sorted(round_pairs) if trial < rounds]
    return f" A trial ends early: after {', '.join(short)} rounds." if short else ""


def _worth_paragraph(table: Exhibit) -> list[b.Block]:
    sentences = worth(table.choices)
    proxy = any(choice.second and choice.second.name.startswith("proxy_") for choice in table.choices)
    return [b.Paragraph(" ".join([*sentences, *([PROXY] if proxy else [])]))] if sentences else []


def _picture(table: Exhibit, folder: str) -> list[b.Block]:
    """Makes the picture of the candidates; none while no trial has a value."""
    if not any(candidate.mean is not None for choice in table.choices for candidate in choice.tried):
        return []
    plan = table.plan
    derived = any(choice.quantity != choice.metric.name for choice in table.choices)
    text = CAPTION.format(lost="has no value: it diverged, or never reached the target" if derived else "diverged")
    text += LIGHTER if any(choice.second and choice.second.unit == choice.metric.unit for choice in table.choices) else ""
    path, draw = f"{folder}/candidates/{style.file_name(plan.table)}", partial(candidates.draw, plan, table.choices)
    return [b.Pictures((b.Picture(path, f"Candidates of the tuned cells of {plan.source}. {text}", draw=draw),))]


def _row(choice: Choice, candidate: TriedCandidate, again: bool) -> b.Row:
    values = [f"{seed}: {choice.place.reading.number(value)}" for seed, value in candidate.per_seed.items()]
    ahead = "" if choice.ahead is None else f", {decimal(choice.ahead, choice.metric.digits)} ahead of the second"
    mark = f"chosen{ahead}" if candidate.chosen else choice.reason or ""
    number = b.Text(decimal(candidate.mean, choice.metric.digits), "strong" if candidate.chosen else "")
    cells = (choice.row, choice.column, candidate.text, ", ".join(values) or "not run", number, mark)
    if not again:
        return cells
    if candidate.again is None or choice.second is None:
        return (*cells, "–", "")
    number = b.Text(decimal(candidate.again.mean, choice.second.digits), "strong" if candidate.again.chosen else "")
    return (*cells, number, _its_choice(choice) if candidate.again.chosen else "")


def _its_choice(choice: Choice) -> str:
    """Says `the same`; or that it would choose this one, and how far that lies behind the one that is shown."""
    if choice.agreed:
        return "the same"
    behind = "" if choice.worth is None else f", {decimal(choice.worth, choice.metric.digits)} behind the one shown"
    return f"this one{behind}"
