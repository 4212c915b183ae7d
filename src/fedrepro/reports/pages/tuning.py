"""What pages say of tuned cells: every candidate and how its trial went, which is shown, and what the choice is worth."""

from fedrepro import units
from fedrepro.reports.model import Choice, Shown, Tried
from fedrepro.reports.names import decimal, metric_label
from fedrepro.reports.pages import sections as s

TUNED = (
    "These cells show the best of several candidates. A candidate is compared by the mean over its seeds of what the cell "
    "reads; the first of equal ones is chosen. The choice is made on the data that the number is measured on, which is "
    "optimistic."
)
PROXY = (
    "The proxy set is held out from the clients and from the test metrics. For a method that trains on it, its number is no "
    "held-out one."
)
CAPTION = "What each candidate reached in its trial. A ring marks the one that is shown, a cross one that diverged."
LIGHTER = " The lighter line is the second reading, with a smaller ring where it would choose."


def section(table: Shown) -> list[s.Block]:
    """Every candidate, on the page of the table."""
    if not table.choices:
        return []
    again = list(dict.fromkeys(metric_label(one.second.metric) for one in table.choices if one.second))
    rows = tuple(_row(choice, one, bool(again)) for choice in table.choices for one in choice.tried)
    second = [again[0] if len(again) == 1 else "second reading", "its choice"] if again else []
    names = s.heads("method", "setting", "candidate", "each seed", "mean", "choice", *second, numbers=range(4, 5))
    if again:
        names = (tuple(s.Head(head.text, head.number or place == 6) for place, head in enumerate(names[0])),)
    blocks = (s.Paragraph(TUNED), *_said(table), *_picture(table), s.Grid("Candidates", names, rows))
    done = sum(choice.reason is None for choice in table.choices)
    note = f"{done} of {len(table.choices)} cells chosen, {len(rows)} candidates"
    return [s.Section("Tuned cells", blocks, folded=True, note=note)]


def summary(table: Shown) -> list[s.Block]:
    """What the page of the paper says of them."""
    return [*_said(table), *_picture(table)]


def worth(choices: tuple[Choice, ...]) -> list[str]:
    """A sentence for each pair of readings: how much better the shown choices are, by the reading that chose them."""
    found: dict[tuple[str, str, str], list[Choice]] = {}
    for one in choices:
        if one.second and one.second.worth is not None:
            found.setdefault((one.metric, one.second.metric, one.unit), []).append(one)
    return [_sentence(*readings, cells) for readings, cells in found.items()]


def _sentence(first: str, second: str, unit: str, cells: list[Choice]) -> str:
    values = [one.second.worth for one in cells if one.second and one.second.worth is not None]
    word = f" {units.unit(unit).difference}".rstrip()
    mean, most = (decimal(value, cells[0].digits) for value in (sum(values) / len(values), max(values)))
    first, second = metric_label(first), metric_label(second)
    counted = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
    return (
        f"Choosing by {first} instead of {second} is worth {mean}{word} of {first} in the trials: the mean over {counted}, "
        f"{most} at most. Both choose the same candidate in {sum(one.agreed for one in cells)} of them."
    )


def _said(table: Shown) -> list[s.Block]:
    said = worth(table.choices)
    proxy = any(one.second and one.second.metric.startswith("proxy_") for one in table.choices)
    return [s.Paragraph(" ".join([*said, *([PROXY] if proxy else [])]))] if said else []


def _picture(table: Shown) -> list[s.Block]:
    if table.tuning is None:
        return []
    text = CAPTION + (LIGHTER if any(one.second and one.second.unit == one.unit for one in table.choices) else "")
    return [s.Pictures((s.Picture(table.tuning, f"Candidates of the tuned cells of {table.source}. {text}"),))]


def _row(choice: Choice, one: Tried, again: bool) -> s.Row:
    values = [f"{seed}: {_value(value, choice)}" for seed, value in one.per_seed.items()]
    mark = f"chosen{_ahead(choice)}" if one.chosen else choice.reason or ""
    number = s.Text(decimal(one.mean, choice.digits), "strong" if one.chosen else "")
    cells = (choice.method_label, choice.setting_label, one.shown, ", ".join(values) or "not run", number, mark)
    if not again:
        return cells
    if one.also is None or choice.second is None:
        return (*cells, "–", "")
    number = s.Text(decimal(one.also.mean, choice.second.digits), "strong" if one.also.chosen else "")
    return (*cells, number, _its_choice(choice) if one.also.chosen else "")


def _value(value: float | None, choice: Choice) -> str:
    return units.unit(choice.unit).none if value is None else decimal(value, choice.digits)


def _ahead(choice: Choice) -> str:
    return "" if choice.ahead is None else f", {decimal(choice.ahead, choice.digits)} ahead of the second"


def _its_choice(choice: Choice) -> str:
    """`the same`; or that it would choose this one, and how far that lies behind the one that is shown."""
    worth = choice.second and choice.second.worth
    if choice.agreed:
        return "the same"
    return "this one" + ("" if worth is None else f", {decimal(worth, choice.digits)} behind the one shown")
