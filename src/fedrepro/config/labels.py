"""Labels of columns that say what a smaller scale really has: `FashionMNIST (here digits, mlp)`, `round 200 (here 30)`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedrepro.config.plan import Column, Place, Run
from fedrepro.config.reading import At, Mean
from fedrepro.data.registry import Entry

_ROUNDS = re.compile(r"\brounds ([1-9]\d*) to ([1-9]\d*)\b|\bround ([1-9]\d*)\b|\b([1-9]\d*) rounds\b")


def at_this_scale(column: Column, places: Sequence[Place], runs: Mapping[str, Run], registry: Mapping[str, Entry]) -> Column:
    """The column with the data sets, networks and rounds of its runs, where a scale changes them. `places`: the column's cells,
    and candidates of those that are tuned.

    The group of columns names data sets and networks; without a group the label does. A data set with the same samples as the
    protocol's (`same_as` in the registry) is not named. Rounds are named only if all runs have the same share of the protocol's
    rounds.
    """
    planned = [(place, runs[place.run_id]) for place in places if place.run_id]
    label, group = _rounds(column.label, planned), _rounds(column.group, planned) if column.group else column.group
    sets = [(run.config["dataset"], place.instead_of["dataset"]) for place, run in planned if "dataset" in place.instead_of]
    datasets = dict.fromkeys(dataset for dataset, protocol in sets if registry[dataset].same_as != protocol)
    models = dict.fromkeys(run.config["model"] for place, run in planned if "model" in place.instead_of)
    substitutes = ", ".join([*datasets, *models])
    if substitutes and group:
        group = f"{group} (here {substitutes})" if group == column.group else f"{group}, on {substitutes}"
    elif substitutes:
        label = f"{label}, on {substitutes}"
    return replace(column, label=label, group=group)


def _rounds(label: str, planned: Sequence[tuple[Place, Run]]) -> str:
    fewer = [(run.config["rounds"], place.instead_of["rounds"]) for place, run in planned if place.instead_of.get("rounds")]
    shares = {rounds / protocol for rounds, protocol in fewer}
    if len(shares) != 1:
        return label
    (share,) = shares

    def with_scaled_rounds(match: re.Match[str]) -> str:
        if match[1]:
            mean = Mean(int(match[1]), int(match[2])).scaled(share)
            return f"{match[0]} (here {mean.first} to {mean.last})"
        return f"{match[0]} (here {At(int(match[3] or match[4])).scaled(share).round})"

    return _ROUNDS.sub(with_scaled_rounds, label)
