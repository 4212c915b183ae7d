"""Evidence for the trials of a tuned cell, without any training, and the report on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from small_table import make_receipt

from fedrepro.engine.records import seal
from fedrepro.exhibits.render import render
from fedrepro.files import read_json, write_json
from fedrepro.store import Store

FOLDER = "reports/full/some"
PLACE = ("fedprox", "mnist")


def tried(made: dict[str, Any], place: tuple[str, str] = PLACE) -> list[dict[str, Any]]:
    """The candidates of one cell in a plan."""
    return [one for one in made["candidates"] if (one["row"], one["column"]) == place]


def write_trials(
    made: dict[str, Any],
    root: Path,
    values: Sequence[float | None],
    place: tuple[str, str] = PLACE,
    **others: Sequence[float | None],
) -> None:
    """Writes a trial of a cell for each of `values`, its last accuracy in percent; None: diverged. `others`: further
    metrics."""
    for number, (one, value) in enumerate(zip(tried(made, place), values, strict=False)):
        run = made["runs"][one["trial"]["run_id"]]
        for seed in one["trial"]["seeds"]:
            receipt = make_receipt(run, seed)
            ends = {"test_accuracy": value} | {metric: each[number] for metric, each in others.items()}
            receipt["curves"] |= {metric: [end] * 2 for metric, end in ends.items()}
            receipt["status"] = "finished" if value is not None else "diverged"
            write_json(root / FOLDER / "evidence" / run["run_id"] / f"seed{seed}.json", seal(receipt))


def report(
    made: dict[str, Any], root: Path, values: Sequence[float | None], **others: Sequence[float | None]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(the cell, its candidates) of a report on the trials that `write_trials` writes."""
    write_trials(made, root, values, **others)
    folder = root / FOLDER
    write_json(root / "plan.json", made)
    render(root / "plan.json", Store((folder / "evidence",)), folder / "table1")
    document = read_json(folder / "table1.json")
    at = lambda kind: [one for one in document[kind] if (one["row"], one["column"]) == PLACE]  # noqa: E731
    return at("cells")[0], at("candidates")
