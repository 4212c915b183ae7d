"""Labels that name rounds of the paper, where a scale has fewer: `round 200 (here 30)`."""

import re
from collections.abc import Mapping, Sequence

from fedrepro.config.plan import Place, Run
from fedrepro.config.reading import At

_ROUNDS = re.compile(r"\bround ([1-9]\d*)\b|\b([1-9]\d*) rounds\b")


def told(label: str, places: Sequence[Place], runs: Mapping[str, Run]) -> str:
    """The label of a column with its `places`. Only where all of their runs have the same share of the protocol's rounds."""
    fewer = [(one.run_id, one.instead_of["rounds"]) for one in places if one.instead_of.get("rounds")]
    shares = {runs[run_id].config["rounds"] / rounds for run_id, rounds in fewer if run_id}
    if len(shares) != 1:
        return label
    (share,) = shares

    def here(found: re.Match[str]) -> str:
        return f"{found[0]} (here {At(int(found[1] or found[2])).scaled(share).round})"

    return _ROUNDS.sub(here, label)
