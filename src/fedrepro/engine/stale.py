"""Finds finished results to train again: other code made them, or the command requests it."""

import os
from typing import TYPE_CHECKING, Any

from fedrepro import arithmetic
from fedrepro.console import say
from fedrepro.engine import fingerprints, receipts
from fedrepro.files import read_json

if TYPE_CHECKING:
    from fedrepro.engine.run import Options


def to_replace(run: dict[str, Any], seeds: list[int], options: "Options") -> set[int]:
    """The finished seeds to train again. If their code changed, a line says so. The old result stays until the new one is
    complete.

    With `fresh` all seeds; with `again` none, since it only compares results. If Snakemake was told to train all again
    ($FEDREPRO_AGAIN), results of other code are replaced and the others compared.
    """
    if options.fresh:
        return {*seeds}
    seeds_by_names: dict[tuple[str, ...], list[int]] = {}
    for seed in [] if options.again and not os.environ.get("FEDREPRO_AGAIN") else seeds:
        changed = receipts.changed(options.root, run["run_id"], seed, run["config"])
        if changed.retrain:
            seeds_by_names.setdefault(changed.retrain, []).append(seed)
    for names, group in seeds_by_names.items():
        noun, phrase = ("seed", "was trained; training it") if len(group) == 1 else ("seeds", "were trained; training them")
        listed = fingerprints.listed
        say(f"{run['run_id']}: {listed(names)} changed since {noun} {listed(group)} {phrase} again")
    return {seed for group in seeds_by_names.values() for seed in group}


def kept_line(run: dict[str, Any], seed: int, options: "Options", device: str, engine: str) -> str:
    """Says that a result is kept, and how its code, arithmetic or device differs from a training today."""
    changed = receipts.changed(options.root, run["run_id"], seed, run["config"])
    message = f"kept, made with other code of {fingerprints.listed(changed.names)}" if changed else "kept"
    environment = read_json(receipts.receipt_path(options.root, run["run_id"], seed))["environment"]
    current = arithmetic.current() if engine == "sequential" else "native"
    before, now = _way(environment.get("device"), environment.get("arithmetic")), _way(device, current)
    return message if before in (None, now) else f"{message}, trained {before} (--fresh trains it again {now})"


def _way(device: str | None, kind: str | None) -> str | None:
    """Returns `on a GPU` or `in native arithmetic`; None if the record does not say."""
    return "on a GPU" if str(device).startswith("cuda") else kind and f"in {kind} arithmetic"
