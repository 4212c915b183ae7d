"""A small table in the real format: plan, receipts and result folders as the workflow writes them, without any training."""

import copy
import json
import math
from pathlib import Path

from fedrepro.config.plan import Plan
from fedrepro.engine.identity import settings_hash
from fedrepro.engine.receipts import identity
from fedrepro.engine.records import seal
from fedrepro.exhibits.cells import Cell, tabulate
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.receipt import Evidence, Receipt
from fedrepro.exhibits.verdict import RULE, Rule
from fedrepro.files import canonical_hash, sha256_file, write_json
from fedrepro.typed import typed as as_type

METHODS = {"fedavg": "sgd()+mean()", "fedlaw": "sgd()+fedlaw(server_epochs=100, server_lr=0.01)", "ours": "sgd()+gh()"}
COLUMNS = {"mlp-a100": ("mlp", 100.0), "mlp-a01": ("mlp", 0.1)}
PRINTED = {
    ("fedavg", "mlp-a100"): 89.29,
    ("fedavg", "mlp-a01"): 85.11,
    ("fedlaw", "mlp-a100"): 88.51,
    ("fedlaw", "mlp-a01"): 86.30,
}
SEEDS = [8, 9, 10]
SOME = {  # accuracies; one seed diverged and one is missing
    ("fedavg", "mlp-a100"): [89.0, 89.5, 90.0],
    ("fedlaw", "mlp-a100"): [88.0, 88.2, 88.4],
    ("ours", "mlp-a100"): [87.0, 87.1, 87.2],
    ("fedavg", "mlp-a01"): [85.0, None, 86.0],
    ("fedlaw", "mlp-a01"): [86.0, 86.5],
}
METRIC = {"name": "test_accuracy", "unit": "percent", "description": "top-1 test accuracy", "better": "higher"}
AVERAGE_LAST = 2  # number of last rounds that a cell averages over


def make_run(method: str, column: str, rounds: int = 5) -> dict:
    """One entry of `plan["runs"]`, with its run_id."""
    model, alpha = COLUMNS[column]
    config = {
        "dataset": "digits",
        "input_shape": [1, 28, 28],
        "classes": 10,
        "model": model,
        "partition": f"dirichlet_per_class(alpha={alpha})",
        "clients": 4,
        "participation": 1.0,
        "rounds": rounds,
        "client_lr": 0.08,
        "method": METHODS[method],
    }
    return {
        "run_id": f"digits-{model}-{alpha:g}-{method}-{settings_hash(config)}",
        "method": METHODS[method],
        "method_label": method,
        "config": config,
        "sources": {"client_lr": "paper, appendix D", "rounds": "scale"},
        "inputs": {
            "arrays": "data/arrays/digits/1x28x28",
            "partition": f"digits-dirichlet-{alpha:g}-4c1b2a",
            "proxy": "digits-10-77aa01",
        },
    }


def make_plan(scale: str = "demo", table: str = "table3", **changes) -> dict:
    """A plan of two printed methods, one companion and two columns. No run is planned for the companion's second column."""
    runs, cells = {}, []
    for method in METHODS:
        for column in COLUMNS:
            run = None if (method, column) == ("ours", "mlp-a01") else make_run(method, column)
            if run:
                runs[run["run_id"]] = run
            cell = {"row": method, "column": column, "printed": PRINTED.get((method, column)), "note": ""}
            cell |= {"average_last": AVERAGE_LAST if run else None, "average_last_source": "paper" if run else None}
            cell |= {"read": f"last({AVERAGE_LAST})" if run else None, "metric": dict(METRIC)}
            cell |= {"instead_of": {"rounds": 200} if run and scale != "full" else {}}
            cells.append(cell | {"run_id": run and run["run_id"], "reason": None if run else "this pair does not exist"})
    plan = {
        "schema": 11,
        "own": False,
        "candidates": [],
        "printed_seeds": {"value": 1, "source": "not stated: taken as one"},
        "paper": "fedlaw",
        "paper_name": "FedLAW",
        "paper_title": "Li et al.: Revisiting Weighted Aggregation (ICML 2023)",
        "table": table,
        "title": "Main comparison",
        "source": "Table 3, p. 8",
        "scale": scale,
        "scale_note": "Handwritten digits stand in for the paper's data." if scale == "demo" else "The paper's protocol.",
        "stand_in": None,
        "variant_of": None,
        "varied": None,
        "on_budget": False,
        "seeds": list(SEEDS),
        "comparable": scale == "full",
        "rows": [
            {
                "key": m,
                "label": {"fedavg": "FedAvg", "fedlaw": "FedLAW", "ours": "FedAvg + GH"}[m],
                "printed": m != "ours",
                "variant": None,
                "name": m,
            }
            for m in METHODS
        ],
        "columns": [
            {"key": k, "label": f"MLP, α = {a:g}", "group": "FashionMNIST", "metric": dict(METRIC)}
            for k, (_, a) in COLUMNS.items()
        ],
        "cells": cells,
        "runs": runs,
        "deviations": [{"id": "D1", "text": "Sampling before training."}],
        "disagreements": [{"what": "server epochs", "paper": "100", "authors_code": "20", "followed": "paper"}],
        "known_gaps": ["Batch size is not stated | in the paper."],
        **changes,
    }
    return {"seeds_by_run": dict.fromkeys(plan["runs"], plan["seeds"])} | plan


def with_settings(run: dict, **settings) -> dict:
    """The run with changed settings, and its new run_id."""
    config = run["config"] | settings
    return run | {"config": config, "run_id": f"{run['run_id'].rpartition('-')[0]}-{settings_hash(config)}"}


def make_receipt(run: dict, seed: int, accuracy: float | None = 88.0, **changes) -> dict:
    """The evidence of one seed. With `accuracy` None the run diverges in its fourth round.

    `accuracy` is what a table reports: the mean of the last AVERAGE_LAST rounds, which differ from it by half a point.
    """
    rounds = list(range(run["config"]["rounds"]))
    final = 50.0 if accuracy is None else accuracy
    curve = [round(10 + (final - 10) * (1 - math.exp(-r)), 4) for r in rounds]
    curve[-AVERAGE_LAST:] = [final - 0.5, final + 0.5][: len(rounds)] if len(rounds) > 1 else [final]
    if accuracy is None:
        rounds = rounds[:4]
        curve = [*curve[:3], None][: len(rounds)]
    summary = {"last_test_accuracy": None if accuracy is None else curve[-1], "best_test_accuracy": final + 0.5}
    receipt = {
        "schema": 2,
        "run_id": run["run_id"],
        "seed": seed,
        "status": "diverged" if accuracy is None else "finished",
        "method": run["method"],
        "method_label": run["method_label"],
        "config": run["config"],
        "summary": summary | {"test_loss": None if accuracy is None else 0.4},
        "curves": {"round": rounds, "test_accuracy": curve, "test_loss": [v and v / 100 for v in curve]},
        "inputs": {
            kind: canonical_hash([name, seed if kind != "arrays" else None], 64) for kind, name in run["inputs"].items()
        },
        "environment": {
            "python": "3.11.9",
            "torch": "2.13.0",
            "numpy": "2.4.6",
            "platform": "Linux-x86_64",
            "processor": "Some CPU",
            "device": "cpu",
            "threads": 1,
            "engine": "sequential",
            "linear_kernel": "mkl",
            "commit": "0a1b2c3d",
            "dirty": False,
        },
        "cost": {
            "wall_s": 2.5,
            "peak_rss_mib": 410.0,
            "samples": 50_000,
            "samples_per_second": 20_000.0,
            "client_rounds": 20,
            "bytes_up": 80_000,
            "bytes_down": 160_000,
            "started_at": "2026-11-20T10:00:00+00:00",
            "finished_at": f"2026-11-20T10:00:{seed:02d}+00:00",
        },
        "files": {},
    }
    return seal(copy.deepcopy(receipt | changes))


def make_evidence(
    plan: dict,
    accuracies: dict[tuple[str, str], list[float | None]],
    curves: dict[tuple[str, str], dict[str, list[list[float]]]] | None = None,
) -> dict[str, dict[int, dict]]:
    """run_id -> seed -> receipt for each (method, column), with one accuracy for each seed of the plan. `curves` replaces or
    adds metrics: {metric: one curve per seed}."""
    found: dict[str, dict[int, dict]] = {}
    for cell in plan["cells"]:
        place = (cell["row"], cell["column"])
        for i, (seed, accuracy) in enumerate(zip(plan["seeds"], accuracies.get(place, []), strict=False)):
            receipt = make_receipt(plan["runs"][cell["run_id"]], seed, accuracy)
            receipt["curves"] |= {metric: each[i] for metric, each in (curves or {}).get(place, {}).items()}
            found.setdefault(cell["run_id"], {})[seed] = receipt
    return found


def typed(plan: dict, found: dict[str, dict[int, dict]] | None = None) -> tuple[Plan, Evidence]:
    """The plan and its evidence, with the types that reports use."""
    evidence = {
        run_id: {seed: as_type(Receipt, one, "receipt") for seed, one in of.items()} for run_id, of in (found or {}).items()
    }
    return as_type(Plan, plan, "plan"), evidence


def exhibit(plan: dict, found: dict[str, dict[int, dict]] | None = None) -> Exhibit:
    """The table or figure."""
    return Exhibit(*typed(plan, found))


def tabulated(plan: dict, found: dict[str, dict[int, dict]], rule: Rule = RULE) -> list[Cell]:
    """The cells of the table."""
    return tabulate(*typed(plan, found), rule)


def write_evidence(root: Path, plan: dict, accuracies: dict[tuple[str, str], list[float | None]]) -> None:
    """Writes `<root>/<run_id>/seed<k>.json` for each (method, column), one accuracy per seed of the plan."""
    for cell in plan["cells"]:
        values = accuracies.get((cell["row"], cell["column"]), [])
        for seed, accuracy in zip(plan["seeds"], values, strict=False):
            run = plan["runs"][cell["run_id"]]
            write_json(root / run["run_id"] / f"seed{seed}.json", make_receipt(run, seed, accuracy))


def write_results(root: Path, plan: dict, accuracy: float | None = 88.0, rounds: int | None = None) -> Path:
    """A plan file and whole result folders below a project `root`; returns the plan's path."""
    for run in plan["runs"].values():
        if rounds is not None:
            run["config"]["rounds"] = rounds
        for seed in plan["seeds"]:
            write_result(root, run, seed, accuracy)
    return write_json(root / "results" / "plans" / plan["scale"] / plan["paper"] / f"{plan['table']}.json", plan)


def write_result(root: Path, run: dict, seed: int, accuracy: float | None = 88.0, **changes) -> Path:
    """One finished result folder, with its receipt; returns the receipt's path."""
    folder = root / "results" / "runs" / run["run_id"]
    (folder / f"seed{seed}").mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", identity(run))
    receipt = make_receipt(run, seed, accuracy, **changes)
    (folder / f"seed{seed}" / "model.safetensors").write_bytes(b"weights" + json.dumps([accuracy, seed]).encode())
    write_json(folder / f"seed{seed}" / "env.json", receipt["environment"])
    receipt["files"] = {"model.safetensors": sha256_file(folder / f"seed{seed}" / "model.safetensors")}
    return write_json(folder / f"seed{seed}.json", seal(receipt))
