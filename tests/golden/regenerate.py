"""Golden curves: what every preset and part computes on the toy task, in float64, committed as JSON.

    python -m tests.golden.regenerate          # prints which curves would change, and by how much; exit code 1 if any does
    python -m tests.golden.regenerate --write  # and writes them

A change that is meant to alter results commits the new curves together with the reason. Other changes keep the curves.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from fedrepro import tree
from fedrepro.engine import loop, sequential
from fedrepro.engine.evaluate import evaluate_all
from fedrepro.files import write_json
from fedrepro.methods.compose import compose
from tests import toy

FOLDER = Path(__file__).parent / "curves"
METRICS = ("test_accuracy", "test_loss", "param_norm")
ROUNDS = 5


def concerns_statistics(text: str) -> bool:
    """Whether a method trains on the server, or does not average running statistics as FedAvg does."""
    method = compose(text)
    return "proxy" in method.needs or method.buffers != compose("fedavg").buffers


# file name -> (method, model). Methods that concern running statistics also run with BatchNorm.
CASES = {text.partition("(")[0]: (text, "tiny") for text in toy.ALONE_METHODS}
CASES |= {"fedavg-lenet": ("fedavg", "lenet"), "fedavg-norm": ("fedavg", "norm"), "fedavg-resnet8": ("fedavg", "resnet8")}
CASES |= {f"{text.partition('(')[0]}-norm": (text, "norm") for text in toy.PART_METHODS if concerns_statistics(text)}
# With batches of two and one place per image, a ResNet's gradients are so steep that rounding errors show within three rounds
# of the toy task. Larger batches, a smaller rate and fewer rounds keep them below a billionth.
SETTINGS = {"resnet8": {"batch_size": 10, "client_lr": 0.01, "rounds": 2}}
# If clients agree, GH has nothing to harmonise.
SETTINGS |= {"gh": {"by_class": True}}


def compute(name: str) -> dict:
    """{"method", "model", "seed", metric: one value per round}."""
    text, model = CASES[name]
    settings: dict[str, Any] = {"rounds": ROUNDS} | SETTINGS.get(model, {}) | SETTINGS.get(name, {})
    task = toy.make_task(model=toy.MODELS[model](), cohorts=((0, 1, 3), (0, 2, 3), (1, 3, 4)), **settings)

    def with_norm(model, params, buffers, sets) -> dict[str, float]:
        return evaluate_all(model, params, buffers, sets) | {"param_norm": float(tree.norm(params))}

    with mock.patch.object(sequential, "evaluate_all", with_norm):
        rows = loop.train(task, compose(text)).progress.rows
    return {"method": str(compose(text)), "model": model, "seed": task.seed} | {m: toy.values_of(rows, m) for m in METRICS}


def stored(name: str) -> dict | None:
    """The committed curves, or None."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def differences(new: dict, old: dict | None, tolerance: float = 1e-9) -> list[str]:
    """A line for each metric that has changed by more than `tolerance`, and for a changed method, model or seed."""
    if old is None:
        return ["is new"]
    lines = [f"{key}: {old.get(key)!r} -> {new[key]!r}" for key in ("method", "model", "seed") if old.get(key) != new[key]]
    for metric in METRICS:
        gaps = [abs(a - b) for a, b in zip(new[metric], old[metric], strict=True)]
        changed = [t for t, gap in enumerate(gaps) if not gap <= tolerance]  # NaN counts as a change
        if changed:
            values = f"{old[metric][changed[0]]!r} -> {new[metric][changed[0]]!r}"
            lines.append(f"{metric}: {len(changed)} of {len(gaps)} rounds changed, first round {changed[0]}: {values}")
    return lines


def main(arguments: list[str]) -> int:
    """Prints the changes; with --write also writes them."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.regenerate", description=str(__doc__).splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the new curves; otherwise exit code 1 where one differs")
    write = parser.parse_args(arguments).write
    changed = 0
    for name in CASES:
        new = compute(name)
        lines = differences(new, stored(name))
        changed += bool(lines)
        print(f"{name}: {'; '.join(lines) or 'unchanged'}")
        if write and lines:
            write_json(FOLDER / f"{name}.json", new)
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem not in CASES:
            changed += 1
            print(f"{path.stem}: no such part any more")
            if write:
                path.unlink()
    print(f"{changed} of {len(CASES)} curves {'written' if write else 'differ'}")
    return int(changed > 0 and not write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
