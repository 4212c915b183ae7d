"""fedrepro diagnose: what a diagnostic measures on the kept models of a run."""

from argparse import Namespace
from functools import cache, partial
from pathlib import Path
from typing import Any

from fedrepro import console
from fedrepro.errors import UserError
from fedrepro.files import read_json

ROOT = Path()


def diagnose(options: Namespace) -> None:
    """Writes results/diagnostics/<run_id>/<call>/seed<k>.parquet for every seed, and says a line of each."""
    import fedrepro.diagnostics  # noqa: F401  (registers them)
    from fedrepro.diagnostics.diagnostic import canonical, make
    from fedrepro.engine import cards, diagnosed, environment, kept
    from fedrepro.engine.artifacts import require_run
    from fedrepro.engine.spec import RunSpec
    from fedrepro.engine.task import Inputs, load_task

    diagnostic, call = make(options.call), canonical(options.call)
    path = _configuration(options.run)
    run = read_json(path)
    require_run(run, path, "delete it and run the same command again")
    spec, inputs = RunSpec(**run["config"]), Inputs(**run["inputs"], root=ROOT)
    device = cards.choose(options.device)
    environment.prepare(device)
    environment.choose_products(device, spec.products)
    for seed in options.seeds or _seeds(run["run_id"]):
        index = kept.load_index(ROOT, run["run_id"], seed)
        task = cache(partial(load_task, spec, inputs, seed, device))
        values: list[diagnosed.Value] = []
        for number, sha256 in index["rounds"].items():
            models = kept.load_round(ROOT, run["run_id"], seed, int(number), sha256, device)
            values += diagnostic.measure(models, task)
        about = {"run_id": run["run_id"], "seed": seed, "diagnostic": call, "models": index["rounds"]}
        target = diagnosed.measured_path(ROOT, run["run_id"], call, seed)
        diagnosed.write(target, about | {"reached": index["reached"]}, values)
        console.say(f"{target}: {call} of {len(index['rounds'])} rounds")


def _configuration(text: str) -> Path:
    """The configuration of a run, from a path or a run_id."""
    if text.endswith(".json"):
        return Path(text)
    path = ROOT / "results" / "runs" / text / "config.json"
    if not path.exists():
        raise UserError(f"{text}: no run in results/runs has this run_id; `fedrepro runs` lists them")
    return path


def _seeds(run_id: str) -> list[int]:
    from fedrepro.engine.diagnosed import KEPT

    found: list[Any] = [path.stem.removeprefix("seed") for path in (ROOT / KEPT / run_id).glob("seed*.json")]
    if not found:
        raise UserError(f"{KEPT}/{run_id}: no models are kept; `fedrepro run` with --keep and the rounds keeps them")
    return sorted(map(int, found))
