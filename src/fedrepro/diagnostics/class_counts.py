"""The number of training samples per class and client: the data distribution that papers draw beside a partition. It uses no
model. It is a diagnostic so that a figure of a paper can show it (FedLAW's Figure 13). Samples that a client holds out
(`local_validation`) are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fedrepro.diagnostics.classes import class_counts
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value


@DIAGNOSTICS.register("class_counts")
@dataclass(frozen=True)
class ClassCounts(Diagnostic):
    """`class_counts` at (client, class), of every client that has samples, in each kept round the same."""

    metrics: ClassVar[tuple[str, ...]] = ("class_counts",)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields a count for each client and class, zeros too. UserError for a model that detects boxes."""
        for client, counts in enumerate(class_counts(task()).tolist()):
            for label, count in enumerate(counts if sum(counts) else ()):
                yield Value(kept.round, "class_counts", count, x=float(client), y=float(label))
