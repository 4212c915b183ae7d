"""P-LT: later classes have fewer samples, and another scheme deals out what is left.

FedLAW's clients with long-tailed data (ICML 2023, https://arxiv.org/abs/2302.10911, Table 7, ratio 5): class c of C keeps
floor(N_c * ratio^(-c / (C - 1))) of its N_c samples, drawn at random, and the others are left out. The form is that of the
authors' code. What is left goes to the clients by `within`; the paper's IID is alpha = 100, its NonIID alpha = 1.

Limiting case: ratio = 1 is `within`, up to the random stream.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedrepro.data.long_tail import tail_size
from fedrepro.data.partition.scheme import SCHEMES, Draw, GroupedScheme
from fedrepro.errors import UserError
from fedrepro.registry import parse, require


@SCHEMES.register("long_tailed")
@dataclass(frozen=True)
class LongTailed:
    """`ratio`: samples of the first class divided by samples of the last class, at least 1 and finite. `within`: the scheme
    that deals them out."""

    ratio: float = 5.0
    within: str = "dirichlet_per_class(alpha=100)"

    def __post_init__(self) -> None:
        rule = "must be finite and at least 1"
        require(math.isfinite(self.ratio) and self.ratio >= 1, "long_tailed(ratio=...)", self.ratio, rule)
        calls = parse(self.within)
        is_ungrouped_scheme = len(calls) == 1 and not issubclass(SCHEMES.get(calls[0].name), GroupedScheme)
        require(is_ungrouped_scheme, "long_tailed(within=...)", self.within, "must be one scheme that knows no groups")
        object.__setattr__(self, "within", str(SCHEMES.canonical(SCHEMES.make(calls[0]))))

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """UserError for more clients than samples that are kept."""
        class_index = [rng.permutation(np.flatnonzero(labels == c)) for c in range(classes)]
        tail_index = np.sort(
            np.concatenate([index[: tail_size(len(index), c, classes, self.ratio)] for c, index in enumerate(class_index)])
        )
        if clients > len(tail_index):
            raise UserError(
                f"clients = {clients}: long_tailed leaves {len(tail_index)} training samples; use {len(tail_index)} at most"
            )
        inner_draw = SCHEMES.make(parse(self.within)[0])(labels[tail_index], classes, clients, rng)
        return Draw([tail_index[part] for part in inner_draw.parts], inner_draw.redraws)
