"""fedrepro diagnose: what a diagnostic measures on the kept models of a run."""

import glob
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from fedrepro import console
from fedrepro.cli.runs import configuration, train_file
from fedrepro.diagnostics.diagnostic import Diagnostic, canonical, checked, make
from fedrepro.engine import cards, environment, kept, measurements
from fedrepro.engine.artifacts import require_run
from fedrepro.engine.kept import RoundModels
from fedrepro.engine.measurements import KEPT, Value
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Inputs, Task, load_task
from fedrepro.errors import UserError
from fedrepro.files import content_of, write_text
from fedrepro.store import seeds_in

ROOT = Path()
LOADED = 4  # rounds whose models stay in memory, since neighbours are measured together


def diagnose(options: Namespace) -> None:
    """Writes results/diagnostics/<run_id>/<call>/seed<k>.parquet for every seed, and says a line of each.

    With `--train` it first brings the run to its models, in the same process: importing torch takes longer than a measurement.
    oneDNN keeps to AVX2 for both, which changes no bit of a training; of a diagnostic nothing is promised with AVX-512.
    """
    console.log_to(options.log)
    diagnostic, call = make(options.call), canonical(options.call)
    path = _configuration(options.run)
    run = configuration(path)
    if options.train:
        _train(path, run, options)
    require_run(run, path, "delete it and run the same command again")
    spec, inputs = RunSpec(**run["config"]), Inputs(**run["inputs"], root=ROOT)
    device = cards.choose(options.device)
    environment.prepare(device)
    environment.choose_products(device, spec.products)
    for seed in options.seeds or _seeds(run["run_id"]):
        index = kept.load_index(ROOT, run["run_id"], seed)
        shas = {int(number): sha256 for number, sha256 in index["rounds"].items()}
        lost = [number for number in options.rounds or () if number not in shas]
        if lost:
            known = ", ".join(map(str, sorted(shas)))
            raise UserError(
                f"--rounds {lost[0]}: its models are not kept; of {run['run_id']}, seed {seed}, those of {known} are"
            )
        wanted = list(options.rounds or shas)
        target = measurements.measurements_path(ROOT, run["run_id"], call, seed)
        before = _before(target, index["rounds"])
        load = partial(_load, run["run_id"], seed, shas, device)
        task = cache(partial(load_task, spec, inputs, seed, device))
        left = [number for number in wanted if number not in before]
        measured = {number: [*found] for number, found in _measured(diagnostic, left, [*shas], spec.rounds, load, task)}
        if left and not measured and index["reached"] == spec.rounds:
            others = " ".join(str(one) for one in diagnostic.earlier(max(shas), spec.rounds) if one not in shas and one >= 1)
            what = f"round {max(shas)} of {run['run_id']} is measured with others, and {others} not kept"
            raise UserError(f"{call}: {what}; `fedrepro run --keep` with those rounds keeps them")
        done = {number: index["rounds"][str(number)] for number in sorted({*wanted, *before})}
        about = {"run_id": run["run_id"], "seed": seed, "diagnostic": call, "models": {str(n): sha for n, sha in done.items()}}
        values = [value for _, found in sorted((before | measured).items()) for value in found]
        measurements.write(target, about | {"reached": index["reached"]}, values)
        (console.note if options.train else console.say)(f"{target}: {call} of {len(measured)} rounds")
        if not options.train:
            for line in _told(values):
                console.show(f"seed {seed}, {line}")
    if options.done:
        write_text(
            options.done, content_of(measurements.measurements_path(ROOT, run["run_id"], call, seed) for seed in options.seeds)
        )


def _told(values: list[Value]) -> Iterator[str]:
    """Yields a line for each round: what is measured of the whole of it, without clients and curves."""
    by_round: dict[int, list[str]] = {}
    for one in values:
        if one.client is None and one.x is None and one.y is None:
            number = "none" if one.value is None else f"{one.value:.6g}"
            by_round.setdefault(one.round, []).append(f"{one.metric} {number}")
    for number, told in by_round.items():
        yield f"round {number}: {', '.join(told)}"


def _train(path: Path, run: dict[str, Any], options: Namespace) -> None:
    if not options.seeds:
        raise UserError("--train: names no seeds; add --seeds 8 9 10")
    train_file(path, run, options)


def _before(target: Path, models: dict[str, str]) -> dict[int, list[Value]]:
    """Round -> what was measured of it before, on the very models that are kept now."""
    if not target.exists():
        return {}
    known = measurements.read(target)
    same = {int(number) for number, sha256 in known.about["models"].items() if models.get(number) == sha256}
    return {number: [value for value in known.values if value.round == number] for number in same}


def _measured(
    diagnostic: Diagnostic,
    rounds: list[int],
    kept: list[int],
    of: int,
    load: Callable[[int], RoundModels],
    task: Callable[[], Task],
) -> Iterator[tuple[int, Iterator[Value]]]:
    """The values of each of the `rounds`; without those whose earlier rounds exist, and are not kept."""
    load = lru_cache(LOADED)(load)
    for number in rounds:
        others = [one for one in diagnostic.earlier(number, of) if one >= 1]
        if {*others} <= {*kept}:
            models = replace(load(number), others={one: load(one) for one in others})
            yield number, checked(diagnostic, models, diagnostic.measure(models, task))


def _load(run_id: str, seed: int, shas: dict[int, str], device: str, number: int) -> RoundModels:
    return kept.load_round(ROOT, run_id, seed, number, shas[number], device)


def _configuration(text: str) -> Path:
    """The configuration of a run, from a path or a run_id."""
    if text.endswith(".json"):
        return Path(text)
    found = [*ROOT.glob(f"results/runs/*{glob.escape(text)}/config.json")]
    if len(found) != 1:
        many = f"{len(found)} runs" if found else "no run"
        where = "in results/runs with a run_id that ends so; published runs have no models, `fedrepro runs` lists all"
        raise UserError(f"{text}: {many} {where}")
    return found[0]


def _seeds(run_id: str) -> list[int]:
    found = [*seeds_in(ROOT / KEPT / run_id)]
    if not found:
        how = "train it with --keep and the rounds, for example `fedrepro run PAPER/TABLE --rows METHOD --keep 1 10`"
        raise UserError(f"{KEPT}/{run_id}: no models are kept; {how}")
    return found
