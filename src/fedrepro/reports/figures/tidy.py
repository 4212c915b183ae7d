"""The data of a figure as CSV: a line for each point, bar, field or bin."""

import csv
import io

from fedrepro.reports.model import Figure, Series


def write(figure: Figure) -> str:
    """Columns `row`, `column`, `metric` and `seeds`, and the numbers that this kind of figure has.

    `x` is called as in the figure: `round`, a setting, a metric; `y` `value`, `difference`, `count` or `share`. Seeds are apart
    by spaces. Numbers have eight digits; the JSON has all of them, and the run_ids.
    """
    numbers = {"x": figure.x or "x", "to": "to", "y": figure.y, "low": "low", "high": "high"}
    kept = [key for key in numbers if any(getattr(one, key) for one in figure.series)]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["row", "column", "metric", *(numbers[key] for key in kept), "seeds"])
    for one in figure.series:
        for place in range(len(one.y)):
            lines.writerow([*(one.row, one.column, one.metric), *_numbers(one, kept, place), " ".join(map(str, one.seeds))])
    return text.getvalue()


def _numbers(one: Series, kept: list[str], place: int) -> list[str]:
    return [f"{values[place]:.8g}" if (values := getattr(one, key)) else "" for key in kept]
