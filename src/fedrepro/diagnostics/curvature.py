"""Largest eigenvalues of the Hessian of the training loss, and their eigenvectors, by Lanczos' method: ARPACK, through SciPy.

Products of the Hessian with a vector come from two backward passes, exactly and without the matrix. They are made in float64,
where models take torch's own operations: those of portable arithmetic are for float32, and have no second derivative.
"""

from typing import TYPE_CHECKING

import numpy as np

from fedrepro import rng, tree
from fedrepro.errors import UserError
from fedrepro.lazy import Tensor, torch
from fedrepro.types import Batch

if TYPE_CHECKING:
    from fedrepro.engine.kept import Global
    from fedrepro.models import Model
    from fedrepro.tree import Tree

AT_ONCE = 100  # samples in a backward pass, whose graph is kept for the second: 0.8 GB of ResNet-20 (our choice)
TOLERANCE = 1e-6  # of an eigenvalue, relative (our choice)
# Models that the forecast counts for one eigenvalue and for five: 21 and 34 products, each as long as some 35 evaluations in
# float32 (measured: LeNet and SimpleCNN on a CPU). ResNet-20 takes four times as long.
EVALUATIONS_ONE, EVALUATIONS_FIVE = 750, 1200


class Hessian:
    """The Hessian of the mean loss of `model` on `data` at `at`, in evaluation mode."""

    def __init__(self, model: "Model", at: "Global", data: Batch) -> None:
        self.model, self.count = model, len(data)
        self.params, self.buffers = (vector.like(vector.flat.double()) for vector in (at.params, at.buffers))
        x_double = data.x.double() if data.x.is_floating_point() else data.x
        self.parts = [Batch(x, y) for x, y in zip(x_double.split(AT_ONCE), data.y.split(AT_ONCE), strict=True)]

    def times(self, v_D: np.ndarray) -> np.ndarray:
        """H v in float64. UserError for a model with a layer that has no second derivative."""
        v = self.params.like(torch.from_numpy(np.ascontiguousarray(v_D, dtype=np.float64).ravel()).to(self.params.flat.device))
        return sum((self._times(part, v) for part in self.parts), torch.zeros_like(v.flat)).cpu().numpy()

    def _times(self, part: Batch, v: "Tree") -> "Tensor":
        """Returns what some of the samples add to H v, [D]."""
        leaves = {name: view.detach().requires_grad_() for name, view in self.params.items()}
        outputs, _ = self.model.forward(tree.Parts(self.params, leaves), self.buffers, part.x, False)
        loss = self.model.loss(outputs, part.y) * (len(part) / self.count)
        gradients = torch.autograd.grad(loss, list(leaves.values()), create_graph=True)
        derivative_along_v = torch.stack([(g * v[name]).sum() for name, g in zip(leaves, gradients, strict=True)]).sum()
        if part is self.parts[0]:
            self._require_second(derivative_along_v)
        products = torch.autograd.grad(derivative_along_v, list(leaves.values()), materialize_grads=True)
        return tree.Parts(self.params, dict(zip(leaves, products, strict=True))).flat

    def _require_second(self, along: "Tensor") -> None:
        """UserError where the graph of a gradient ends early: torch would silently leave such terms out of H v."""
        nodes, visited = [along.grad_fn], set()
        while nodes:
            node = nodes.pop()
            if node is None or node in visited:
                continue
            if node.name() == "torch::autograd::Error":
                raise UserError(f"{self.model.name}: has a layer without a second derivative; choose another model")
            visited.add(node)
            nodes += [next_node for next_node, _ in node.next_functions]

    def top(self, count: int, seed: int, round: int) -> tuple[np.ndarray, np.ndarray]:
        """(the `count` largest eigenvalues, descending; unit eigenvectors [D, count], whose largest element is positive).

        The start vector is drawn from the stream `hessian` of (seed, round). UserError for too small a model.
        """
        from scipy.sparse.linalg import LinearOperator, eigsh

        size = len(self.params.flat)
        if size <= count:
            raise UserError(f"{self.model.name}: has {size} weights, too few for {count} eigenvalues")
        start_D = rng.stream(seed, "hessian", round).standard_normal(size)
        # A run that diverged in this round, or is about to: its loss or its second derivatives are not finite.
        if not self.params.flat.isfinite().all() or not np.isfinite(self.times(start_D)).all():
            return np.full(count, np.nan), np.full((size, count), np.nan)
        operator = LinearOperator((size, size), matvec=self.times, dtype=np.float64)  # type: ignore[call-arg]
        values, vectors = eigsh(operator, count, which="LA", v0=start_D, tol=TOLERANCE)  # type: ignore[arg-type]
        order = np.argsort(-values, kind="stable")
        vectors = vectors[:, order]
        largest_elements = np.take_along_axis(vectors, np.abs(vectors).argmax(0)[None], 0)
        return values[order], vectors * np.sign(largest_elements)
