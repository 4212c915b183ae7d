"""Groups the seeds of a run by the code that trained them. A mean never mixes seeds of different code."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro.engine import fingerprints
from fedrepro.engine.fingerprints import listed
from fedrepro.engine.receipts import changed

Receipts = dict[int, dict[str, Any]]  # by seed
KEYS = ("run_id", "seed", "config", "code")  # of a receipt or of evidence, which `code_summary` reads


def by_code(root: Path, receipts: Receipts) -> list[tuple[str, Receipts]]:
    """Groups the receipts of one run by the code of the parts and of the partition scheme. Returns (note, receipts);
    the note is "" for today's code, else `stale: part gh changed`, or `made with other code of engine`. Unknown code counts as
    today's."""
    groups: dict[tuple[tuple[str, str], ...], Receipts] = {}
    for seed, receipt in receipts.items():
        changed_names = fingerprints.changed(receipt.get("code"), receipt["config"]).retrain
        groups.setdefault(tuple((name, receipt["code"][name]) for name in changed_names), {})[seed] = receipt
    return [(_note(root, [*group.values()]), group) for group in groups.values()]


def _note(root: Path, receipts: list[dict[str, Any]]) -> str:
    """Returns the note of a group: a result of this machine is stale, a published one only names the changed parts."""
    stale = _names([changed(root, receipt["run_id"], receipt["seed"], receipt["config"]).retrain for receipt in receipts])
    changes = [fingerprints.changed(receipt.get("code"), receipt["config"]).names for receipt in receipts]
    share = f"{sum(map(bool, changes))} of {len(changes)} " if not all(changes) else ""
    return f"stale: {stale} changed" if stale else f"{share}made with other code of {_names(changes)}" if any(changes) else ""


def code_summary(root: Path, local: list[dict[str, Any]], published: list[dict[str, Any]]) -> str:
    """Returns how many seeds were trained with other code than today's, and which parts changed, for `fedrepro doctor`. A
    record without `code` was written by an older version."""
    local_changes = [changed(root, record["run_id"], record["seed"], record["config"]).retrain for record in local]
    published_changes = [fingerprints.changed(record["code"], record["config"]).names for record in published]
    stale, other_code = sum(map(bool, local_changes)), sum(map(bool, published_changes))
    unknown = sum(not fingerprints.comparable(record["code"]) for record in (*local, *published))
    notes = [] if stale or other_code else ["no seed was made with other code of a part"]
    if stale:
        notes.append(f"{stale} of {len(local_changes)} local seeds stale: {_names(local_changes)} changed")
    if other_code:
        of = _names(published_changes)
        notes.append(f"{other_code} of {len(published_changes)} published seeds made with other code of {of}")
    if unknown:
        notes.append(f"{unknown} have no fingerprints yet")
    return "; ".join(notes)


def _names(groups: Iterable[Iterable[str]]) -> str:
    names = sorted({name for group in groups for name in group})
    return listed(names) if names else ""
