"""fedrepro diagnose: what a diagnostic measures on the kept models of a run."""

import glob
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from fedrepro import console
from fedrepro.cli.runs import configuration, train_file
from fedrepro.diagnostics.diagnostic import Diagnostic, canonical, checked, make
from fedrepro.engine import cards, environment, kept, measurements, receipts, records
from fedrepro.engine.artifacts import require_run
from fedrepro.engine.kept import RoundModels
from fedrepro.engine.measurements import KEPT, Value
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Inputs, Task, load_task
from fedrepro.errors import UserError
from fedrepro.files import content_of, write_text
from fedrepro.store import seeds_in

LOADED = 4  # rounds whose models stay in memory: a diagnostic may compare a round with earlier ones


def diagnose(options: Namespace) -> None:
    """Writes results/diagnostics/<run_id>/<call>/seed<k>.parquet for every seed, and prints a line for each.

    With `--train` it first trains the run in the same process: importing torch takes longer than a measurement. oneDNN uses
    AVX2 for both: a training has the same bits with AVX-512, a diagnostic need not.
    """
    console.log_to(options.log)
    diagnostic, call = make(options.call), canonical(options.call)
    path = _configuration(options.run)
    run = configuration(path)
    if options.train and not options.seeds:
        raise UserError("--train: names no seeds; add --seeds 8 9 10")
    if options.train:
        train_file(path, run, options)
    require_run(run, path, "delete it and run the same command again")
    spec, inputs = RunSpec(**run["config"]), Inputs(**run["inputs"], root=Path())
    device = cards.choose(options.device)
    environment.prepare(device)
    environment.choose_products(device, spec.products)
    for seed in options.seeds or _seeds(run["run_id"]):
        index = _index(run["run_id"], seed, options.rounds or ())
        shas = {int(number): sha256 for number, sha256 in index["rounds"].items()}
        lost = [number for number in options.rounds or () if number not in shas]
        if lost:
            kept_rounds = ", ".join(map(str, sorted(shas)))
            raise UserError(
                f"--rounds {lost[0]}: its models are not kept; of {run['run_id']}, seed {seed}, those of {kept_rounds} are"
            )
        rounds = list(options.rounds or shas)
        target = measurements.measurements_path(Path(), run["run_id"], call, seed)
        previous = _previous_values(target, index["rounds"])
        load = partial(kept.load_round, Path(), run["run_id"], seed, device=device)
        task = cache(partial(load_task, spec, inputs, seed, device))
        remaining = [number for number in rounds if number not in previous]
        measurings = _measure(diagnostic, remaining, shas, spec.rounds, load, task)
        measured = {number: [*round_values] for number, round_values in measurings}
        if remaining and not measured and index["reached"] == spec.rounds:
            last = max(remaining)
            missing = [
                str(earlier) for earlier in diagnostic.earlier(last, spec.rounds) if earlier not in shas and earlier >= 1
            ]
            what = f"round {last} of {run['run_id']} is measured with others, and {' '.join(missing)} not kept"
            raise UserError(f"{call}: {what}; `fedrepro run --keep` with those rounds keeps them")
        values_by_round = dict(sorted((previous | measured).items()))
        # Not the rounds that were skipped: they are measured once the rounds before them are kept.
        models = {str(number): shas[number] for number in values_by_round}
        about = {"run_id": run["run_id"], "seed": seed, "diagnostic": call, "models": models, "reached": index["reached"]}
        values = [value for round_values in values_by_round.values() for value in round_values]
        measurements.write(target, about, values)
        (console.note if options.train else console.say)(f"{target}: {call} of {console.some(len(measured), 'round')}")
        if not options.train:
            for line in _round_lines(values):
                console.show(f"seed {seed}, {line}")
    if options.done:
        targets = (measurements.measurements_path(Path(), run["run_id"], call, seed) for seed in options.seeds)
        write_text(options.done, content_of(targets))


def _index(run_id: str, seed: int, asked: Collection[int]) -> dict[str, Any]:
    """The list of a seed's kept rounds, without those of another training than the receipt's, which a line names.

    UserError if no round is left, or if one of `asked` is of another training.
    """
    index, receipt = kept.load_index(Path(), run_id, seed), receipts.receipt_path(Path(), run_id, seed)
    if not receipt.exists():
        return index
    record = records.read(receipt)
    others = sorted(number for number, fits in kept.kept_rounds(Path(), record).items() if not fits)
    rounds = {number: sha256 for number, sha256 in index["rounds"].items() if int(number) not in others}
    if refused := [number for number in others if not asked or number in asked]:
        names = " ".join(map(str, refused))
        line = (
            f"{measurements.model_index_path(Path(), run_id, seed)}: the models of round {names} are damaged, or of another "
            f"training than {receipt}, and count as not kept; `fedrepro run` with --keep {names} keeps them again"
        )
        if asked or not rounds:
            raise UserError(line)
        console.say(line)
    return index | {"rounds": rounds, "reached": len(record["curves"]["round"])}


def _round_lines(values: list[Value]) -> Iterator[str]:
    """Yields a line for each round with its metrics, without those of single clients and without curves."""
    by_round: dict[int, list[str]] = {}
    for value in values:
        if value.client is None and value.x is None and value.y is None:
            number = "none" if value.value is None else f"{value.value:.6g}"
            by_round.setdefault(value.round, []).append(f"{value.metric} {number}")
    for number, metrics in by_round.items():
        yield f"round {number}: {', '.join(metrics)}"


def _previous_values(target: Path, models: dict[str, str]) -> dict[int, list[Value]]:
    """Returns round -> the values of an earlier call, for rounds whose kept model still has the same sha256."""
    if not target.exists():
        return {}
    measurement = measurements.read(target)
    unchanged = {int(number) for number, sha256 in measurement.about["models"].items() if models.get(number) == sha256}
    return {number: [value for value in measurement.values if value.round == number] for number in unchanged}


def _measure(
    diagnostic: Diagnostic,
    rounds: list[int],
    shas: Mapping[int, str],
    total: int,
    load: Callable[[int, str], RoundModels],
    task: Callable[[], Task],
) -> Iterator[tuple[int, Iterator[Value]]]:
    """Yields the values of each of the `rounds`; a round whose earlier rounds exist but are not kept is skipped. `shas`: kept
    round -> the sha256 of its models."""
    load = lru_cache(LOADED)(load)
    for number in rounds:
        earlier_rounds = [earlier for earlier in diagnostic.earlier(number, total) if earlier >= 1]
        if {*earlier_rounds} <= shas.keys():
            others = {earlier: load(earlier, shas[earlier]) for earlier in earlier_rounds}
            models = replace(load(number, shas[number]), others=others)
            yield number, checked(diagnostic, models, diagnostic.measure(models, task))


def _configuration(text: str) -> Path:
    """Returns the file with a run's configuration, from a path or a run_id."""
    if text.endswith(".json"):
        return Path(text)
    paths = [*Path().glob(f"results/runs/*{glob.escape(text)}/config.json")]
    if len(paths) != 1:
        count = f"{len(paths)} runs" if paths else "no run"
        where = "in results/runs with a run_id that ends so; published runs have no models, `fedrepro runs` lists all"
        raise UserError(f"{text}: {count} {where}")
    return paths[0]


def _seeds(run_id: str) -> list[int]:
    seeds = [*seeds_in(KEPT / run_id)]
    if not seeds:
        how = "train it with --keep and the rounds, for example `fedrepro run PAPER/TABLE --rows METHOD --keep 1 10`"
        raise UserError(f"{KEPT}/{run_id}: no models are kept; {how}")
    return seeds
