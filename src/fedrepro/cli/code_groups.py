"""Which code made the seeds of a run: seeds of different code never make one mean."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro.engine import fingerprints
from fedrepro.engine.fingerprints import listed
from fedrepro.engine.receipts import changed

Receipts = dict[int, dict[str, Any]]  # by seed
KEYS = ("run_id", "seed", "config", "code")  # of a receipt or of evidence, which `code_summary` reads


def by_code(root: Path, receipts: Receipts) -> list[tuple[str, Receipts]]:
    """The receipts of one run, apart by the code of the parts and of the partition scheme; what is to say of each group: "" of
    today's code, otherwise `stale: part gh changed`, or `made with other code of engine`. Unknown code counts as today's."""
    groups: dict[tuple[tuple[str, str], ...], Receipts] = {}
    for seed, receipt in receipts.items():
        other = fingerprints.changed(receipt.get("code"), receipt["config"]).retrain
        groups.setdefault(tuple((name, receipt["code"][name]) for name in other), {})[seed] = receipt
    return [(_note(root, [*same.values()]), same) for same in groups.values()]


def _note(root: Path, made: list[dict[str, Any]]) -> str:
    """Results of this machine are stale, where published ones are marked."""
    stale = _names([changed(root, one["run_id"], one["seed"], one["config"]).retrain for one in made])
    each = [fingerprints.changed(one.get("code"), one["config"]).names for one in made]
    some = f"{sum(map(bool, each))} of {len(each)} " if not all(each) else ""
    return f"stale: {stale} changed" if stale else f"{some}made with other code of {_names(each)}" if any(each) else ""


def code_summary(root: Path, local: list[dict[str, Any]], published: list[dict[str, Any]]) -> str:
    """How many seeds other code made than today's, and what of it changed: for `fedrepro doctor`. A record without `code` was
    written by an older version."""
    here = [changed(root, one["run_id"], one["seed"], one["config"]).retrain for one in local]
    there = [fingerprints.changed(one["code"], one["config"]).names for one in published]
    stale, other = sum(map(bool, here)), sum(map(bool, there))
    said = [f"{stale} of {len(here)} local seeds stale: {_names(here)} changed"] if stale else []
    said += [f"{other} of {len(there)} published seeds made with other code of {_names(there)}"] if other else []
    unknown = sum(not one["code"] for one in (*local, *published))
    said = said or ["no seed was made with other code of a part"]
    return "; ".join([*said, *([f"{unknown} have no fingerprints yet"] if unknown else [])])


def _names(found: Iterable[Iterable[str]]) -> str:
    names = sorted({name for one in found for name in one})
    return listed(names) if names else ""
