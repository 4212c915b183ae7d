"""Linear CKA between the outputs of clients' models on the same samples. Kornblith et al., "Similarity of Neural Network
Representations Revisited", ICML 2019, https://arxiv.org/abs/1905.00414. FedIMA's measure of the covariance in its bound
(section 5.3.4, Figure 4), which does not say which kernel it takes: linear is our choice.

With X [n, d] and Y [n, d'], columns less their means: ||Y^T X||_F^2 / (||X^T X||_F ||Y^T Y||_F). Between 0 and 1; orthogonal
transformations and isotropic scaling of either leave it as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Task, Value
from fedrepro.errors import UserError
from fedrepro.lazy import Tensor, torch
from fedrepro.registry import require

if TYPE_CHECKING:
    from fedrepro.types import Batch


@DIAGNOSTICS.register("cka")
@dataclass(frozen=True)
class Cka(Diagnostic):
    """`of`: outputs, the logits, or features, what the last layer reads. `on`: the test set or all clients' training samples;
    `samples` of them, or all.

    The round's `cka` is the mean over pairs of clients; those between clients x and y are a matrix. Nothing where fewer than
    two trained. It is not a number for a pair in which one model has the same outputs for all samples, and then neither is the
    mean.
    """

    of: str = "outputs"
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = ("cka",)

    def __post_init__(self) -> None:
        require(self.of in ("outputs", "features"), "of", self.of, "must be outputs or features")
        super().__post_init__()

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts every client's model."""
        return (Passes(clients, self.on, self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the mean, then the matrix."""
        from fedrepro.engine import evaluate_many

        count = len(kept.clients)
        if count < 2:
            return
        setting = task()
        outputs = self._centred_outputs(kept, setting, evaluate_many.samples_of(setting, self.on, self.samples))
        scales = [float((matrix.T @ matrix).norm()) for matrix in outputs]
        ratios = {(i, j): _ratio(outputs[i], outputs[j], scales[i] * scales[j]) for i, j in combinations(range(count), 2)}
        yield Value(kept.round, "cka", sum(ratios.values()) / len(ratios))
        for x in range(count):
            for y in range(count):
                value = ratios[min(x, y), max(x, y)] if x != y else 1.0
                yield Value(kept.round, "cka", value, x=float(x), y=float(y))

    def _centred_outputs(self, kept: RoundModels, task: Task, data: "Batch") -> "list[Tensor]":
        """Returns each model's outputs on `data`, [n, d] in float64, columns less their means. UserError for a model without
        features."""
        from fedrepro.engine.evaluate import pieces

        forward = task.model.forward if self.of == "outputs" else task.model.features
        if forward is None:
            raise UserError(f"{self.name}: {task.model.name} has no features; take of=outputs")
        parts = [piece.data.x for piece in pieces(data)]
        centred_outputs = []
        for params, buffers in zip(kept.params.flat, kept.buffers.flat, strict=True):
            model = kept.params.like(params), kept.buffers.like(buffers)
            with torch.no_grad():
                rows = torch.cat([forward(*model, part, False)[0].double() for part in parts])
            rows = rows.flatten(0, -2) if task.model.reads_text else rows.flatten(1)
            centred_outputs.append(rows - rows.mean(0))
        return centred_outputs


def _ratio(x: "Tensor", y: "Tensor", scale: float) -> float:
    """Returns the CKA of matrices with centred columns; not a number where all rows of one are the same."""
    return float((y.T @ x).square().sum()) / scale if scale else float("nan")
