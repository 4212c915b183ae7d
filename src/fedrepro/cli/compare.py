"""fedrepro compare: two runs side by side, seed by seed."""

import difflib
import statistics
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.cli.coded import by_code
from fedrepro.engine.differences import REASONS
from fedrepro.engine.fingerprints import listed
from fedrepro.engine.receipts import RUNS
from fedrepro.errors import UserError
from fedrepro.exhibits.paired import first_reaching, interval, mean
from fedrepro.exhibits.receipt import Cost
from fedrepro.exhibits.sections.cost import COST, cost
from fedrepro.typed import adapter

ROOT = Path()
DRAWN = {"partition": "partition", "participation": "cohorts", "proxy": "proxy set", "init": "initial model"}
LISTED = 10  # runs that an ambiguous part is answered with


@dataclass(frozen=True)
class Run:
    """A run as it is found: results of this folder, published evidence, or the results of another folder."""

    run_id: str
    receipts: dict[int, dict[str, Any]]  # by seed

    @property
    def config(self) -> dict[str, Any]:
        """The same for all seeds."""
        return next(iter(self.receipts.values()))["config"]


def compare(options: Namespace) -> None:
    """Settings that differ; the tables' value on each seed, with the rounds needed; cost."""
    from fedrepro.config.catalogue import Catalogue
    from fedrepro.config.project import load_project

    a, b = (find(ROOT, text) for text in (options.a, options.b))
    if a == b:
        raise UserError(f"{options.a} and {options.b} are the same run; name another one")
    print(f"A  {a.run_id}", f"B  {b.run_id}", sep="\n")
    print("", *_settings(a, b), sep="\n")
    readings, _ = Catalogue(load_project(ROOT)).find(a.run_id, a.config)
    for shown in readings:
        print("", *_values(a, b, shown), sep="\n")
    for line in _unlike(a, b):
        print(line)
    costs = [cost([adapter(Cost).validate_python(receipt["cost"]) for receipt in one.receipts.values()]) for one in (a, b)]
    print("", *aligned([("cost", "A", "B"), *zip(COST, *costs, strict=True)]), sep="\n")


def find(root: Path, text: str) -> Run:
    """The run that `text` means: a folder with results, a run_id, or a part that only one run_id has.

    UserError where there is none, or more than one.
    """
    from fedrepro.cli.outcome import read_receipts

    folder = Path(text)
    if folder.is_dir():
        receipts = read_receipts(folder)
        if not receipts:
            raise UserError(f"{folder}: no finished seed in it; name a folder such as results/runs/<run_id>")
        return Run(next(iter(receipts.values()))["run_id"], receipts)
    places: dict[str, list[Path]] = {}
    for pattern in ("reports/*/*/evidence/*/", f"{RUNS}/*/"):  # results come last: they win
        for path in sorted(Path(root).glob(pattern)):
            if any(path.glob("seed*.json")):
                places.setdefault(path.name, []).append(path)
    matches = [text] if text in places else [run_id for run_id in places if text in run_id]
    if not matches:
        raise UserError(f"no run {text!r} in {RUNS} or below reports; {_near(text, list(places))}`fedrepro runs` lists them")
    if len(matches) > 1:
        more = f" and {len(matches) - LISTED} more" if len(matches) > LISTED else ""
        some = ", ".join(sorted(matches)[:LISTED])
        raise UserError(f"{text!r} is in {len(matches)} run_ids; the last eight characters tell them apart: {some}{more}")
    receipts = {seed: receipt for path in places[matches[0]] for seed, receipt in read_receipts(path).items()}
    return Run(matches[0], dict(sorted(receipts.items())))


def _near(text: str, run_ids: list[str]) -> str:
    words = dict.fromkeys(word for run_id in run_ids for word in (run_id, *run_id.split("-")))
    found = difflib.get_close_matches(text, words, n=1)
    return f"did you mean {found[0]!r}? " if found else ""


def _settings(a: Run, b: Run) -> Iterator[str]:
    """What differs: settings, arguments of the method, parts that only one has, and how the two were computed."""
    from fedrepro.config.catalogue import changes

    different = [(change.key, change.before, change.value) for change in changes(b.config, a.config)]
    parts = [row[1:] for row in different if row[0] == "method"]
    rows = [row for row in different if row[0] != "method"]
    for key in REASONS:
        found = [{str(r["environment"][key]) for r in one.receipts.values() if key in r["environment"]} for one in (a, b)]
        if found[0] != found[1] and key not in (row[0] for row in rows):
            of_a, of_b = (", ".join(sorted(values)) or "not recorded" for values in found)
            rows.append((key, of_a, of_b))
    yield from aligned([("settings that differ", "A", "B"), *rows]) if rows else ["no setting differs"]
    for only_a, only_b in parts:  # too long for columns
        yield from ("parts of the method that differ", f"  A  {only_a}", f"  B  {only_b}")


def _values(a: Run, b: Run, shown: Any) -> Iterator[str]:
    """Each seed's value, the differences on seeds that both have, and the rounds until the curve reaches the worse value."""
    from fedrepro.cli.outcome import reading_of

    metric = shown.reading.metric
    if any(metric not in receipt["curves"] for receipt in b.receipts.values()):
        yield f"{reading_of(shown, a.config)}: B has no {metric.replace('_', ' ')}"
        return
    headings = [reading_of(shown, one.config) for one in (a, b)]
    yield headings[0] + ("" if headings[1] == headings[0] else f"; B: {shown.reading.over(b.config)}")
    values = [{seed: shown.reading.of(receipt) for seed, receipt in one.receipts.items()} for one in (a, b)]
    rows: list[tuple[str, ...]] = [("seed", "A", "B", "B − A", "rounds of A", "rounds of B")]
    pairs: list[tuple[float, float, float, float, float]] = []
    for seed in sorted(values[0].keys() | values[1].keys()):
        texts = tuple(shown.number(one[seed]) if seed in one else "–" for one in values)
        first, second = (one.get(seed) for one in values)
        if first is None or second is None:
            rows.append((str(seed), *texts, "–", "–", "–"))
            continue
        worse = min(first, second) if shown.better == "higher" else max(first, second)
        needed = [_rounds(one.receipts[seed], shown, worse) for one in (a, b)]
        pairs.append((first, second, second - first, needed[0], needed[1]))
        rows.append((str(seed), *texts, shown.number(second - first, "+"), *(f"{rounds:g}" for rounds in needed)))
    columns = [*zip(*pairs, strict=True)]
    same_code = all(len(by_code(ROOT, one.receipts)) == 1 for one in (a, b))
    if len(pairs) > 1 and same_code:
        middle = [mean(column) for column in columns]
        rows.append(
            ("mean", *map(shown.number, middle[:2]), shown.number(middle[2], "+"), *(f"{one:.3g}" for one in middle[3:]))
        )
        rows.append(("deviation", *(shown.number(statistics.stdev(column)) for column in columns[:3]), "", ""))
    yield from aligned(rows)
    bounds = interval(columns[2]) if columns and same_code else None
    if bounds:
        low, high = (shown.number(bound, "+") for bound in bounds)
        yield f"B − A on {len(pairs)} paired seeds: 95 % interval {low} to {high}"
    if pairs:
        yield "rounds: until the curve first reaches the worse of the seed's two values"
    else:
        yield "no seed has a value in both"


def _unlike(a: Run, b: Run) -> Iterator[str]:
    """What the two runs of a seed do not share, where it is drawn anew for each seed: their pairs then say less."""
    for name, one in (("A", a), ("B", b)):
        for note, same in by_code(ROOT, one.receipts):
            if note:
                yield f"{name}, seed{'s' * (len(same) > 1)} {listed(same)}: {note}"
    seeds = a.receipts.keys() & b.receipts.keys()
    drawn = dict(DRAWN)
    if all(a.config.get(key) == b.config.get(key) for key in ("clients", "participation", "cohorts")):
        del drawn["participation"]  # the cohort of a round does not depend on how many rounds there are
    kinds = [
        kind for kind in drawn if any(len({one.receipts[seed]["inputs"].get(kind) for one in (a, b)}) > 1 for seed in seeds)
    ]
    if kinds:
        yield f"not the same at a seed: {', '.join(drawn[kind] for kind in kinds)}; the pairs share less than they could"


def _rounds(receipt: dict[str, Any], shown: Any, target: float) -> float:
    curve = receipt["curves"][shown.reading.metric]
    curve = curve[: shown.reading.window(len(curve)).stop]
    return first_reaching(dict(enumerate(curve, start=1)), target, shown.better == "higher")


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines with the first column on the left and the others on the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
