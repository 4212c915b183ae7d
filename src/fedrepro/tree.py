"""Named tensors that live in one flat vector, and the algebra on them.

A Tree holds all parameters of a model (or of K clients) as one tensor `flat` [..., D]; `tree["fc1.weight"]` is a view of it in
its own shape. Elementwise formulas therefore run as one operation on the whole vector, and the update matrix of a cohort is
simply `updates.flat`, update_KD. Every function that does not name leading axes (clients, seeds) keeps them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from fedrepro import elementwise
from fedrepro.lazy import Tensor, torch


@dataclass(frozen=True)
class Layout:
    """Names and shapes of a Tree's tensors, in the order of the flat vector."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, shapes: Mapping[str, Sequence[int]]) -> "Layout":
        """The layout of {name: shape}."""
        return cls(tuple(shapes), tuple(tuple(shape) for shape in shapes.values()))

    @property
    def sizes(self) -> list[int]:
        """Number of elements of each tensor."""
        return [math.prod(shape) for shape in self.shapes]

    @property
    def size(self) -> int:
        """D, the length of the flat vector."""
        return sum(self.sizes)

    def spans(self) -> dict[str, tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
        """name -> (start, end, shape, strides) within the flat vector."""
        ends = list(accumulate(self.sizes))
        strides = [tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape))) for shape in self.shapes]
        entries = zip(self.names, ends, self.sizes, self.shapes, strides, strict=True)
        return {name: (end - size, end, shape, stride) for name, end, size, shape, stride in entries}


_PIECE = 16_384


class Tree:
    """One flat tensor [..., D] seen as named tensors."""

    __slots__ = ("_spans", "flat", "layout")

    def __init__(self, layout: Layout, flat: Tensor, spans: dict | None = None) -> None:
        self.layout, self.flat = layout, flat
        self._spans = spans if spans is not None else layout.spans()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Tree":
        """Copies {name: tensor} into one flat vector."""
        layout = Layout.of({name: tuple(tensor.shape) for name, tensor in tensors.items()})
        parts = [tensor.reshape(-1) for tensor in tensors.values()]
        return cls(layout, torch.cat(parts) if parts else torch.zeros(0))

    def like(self, flat: Tensor) -> "Tree":
        """A tree of the same layout around `flat` [..., D]."""
        return Tree(self.layout, flat, self._spans)

    def __getitem__(self, name: str) -> Tensor:
        start, end, shape, strides = self._spans[name]
        flat = self.flat
        if flat.dim() == 1 and flat.is_contiguous():  # one operation instead of two: small models have many small steps
            return flat.as_strided(shape, strides, flat.storage_offset() + start)
        return flat.narrow(-1, start, end - start).view((*flat.shape[:-1], *shape))

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """(name, view) pairs in layout order."""
        return ((name, self[name]) for name in self.layout.names)

    def __reduce__(self) -> tuple:
        """Pickled as a NumPy array, ten times as fast as torch pickles a tensor. Unpickling puts it on the CPU."""
        return _from_numpy, (self.layout, self.flat.detach().cpu().numpy())

    def __repr__(self) -> str:
        return f"Tree({tuple(self.flat.shape)}, {len(self.layout.names)} tensors)"


def _from_numpy(layout: Layout, flat: np.ndarray) -> Tree:
    return Tree(layout, torch.from_numpy(flat))


class Parts(Tree):
    """A tree of separate tensors, such as the gradients that autograd returns. `flat` is joined from them on first use.

    As autograd leaves they save a backward pass the padding of slices to length D, and a loss may still use the whole vector (a
    proximal term, for example). A gradient that is only added to weights (`add_`) is never joined.
    """

    __slots__ = ("_joined", "tensors")

    def __init__(self, source: Tree, tensors: dict[str, Tensor]) -> None:
        """Has the layout of `source`; `tensors` by name, in any order."""
        self.layout, self._spans, self.tensors = source.layout, source._spans, tensors
        self._joined: Tensor | None = None

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    @property
    def flat(self) -> Tensor:  # type: ignore[override]
        if self._joined is None:
            pairs = [
                (self.tensors[name], len(shape)) for name, shape in zip(self.layout.names, self.layout.shapes, strict=True)
            ]
            self._joined = torch.cat([t.flatten(t.dim() - rank) if rank else t.unsqueeze(-1) for t, rank in pairs], dim=-1)
        return self._joined


def gradient(loss: Callable[[Tree], Tensor], params: Tree) -> Tree:
    """The gradient of a scalar `loss` at `params`, as a tree. With leading axes, that of the sum, which separates by client."""
    leaves = Parts(params, {name: view.detach().requires_grad_() for name, view in params.items()})
    grads = torch.autograd.grad(loss(leaves), list(leaves.tensors.values()))
    return Parts(params, dict(zip(params.layout.names, grads, strict=True)))


def add_(target: Tree, source: Tree, factor: float = 1.0) -> None:
    """target += factor * source, in place. A source whose tensors lie apart is not joined."""
    if not isinstance(source, Parts):
        target.flat.add_(source.flat, alpha=factor)
        return
    for name, tensor in source.tensors.items():
        target[name].add_(tensor, alpha=factor)


def map(function: Callable[..., Tensor], *trees: Tree) -> Tree:
    """Applies an elementwise `function` to the flat vectors; reductions over a leading axis work too."""
    return trees[0].like(function(*(tree.flat for tree in trees)))


def zeros_like(tree: Tree) -> Tree:
    """All zeros, same layout, same leading axes."""
    return tree.like(torch.zeros_like(tree.flat))


def sub(a: Tree, b: Tree) -> Tree:
    """a - b."""
    return a.like(a.flat - b.flat)


def scale(tree: Tree, factor: Tensor | float) -> Tree:
    """factor * tree. A tensor factor has one number per entry of the leading axis (per client, for example)."""
    return tree.like(_per_entry(factor) * tree.flat)


def axpy(factor: Tensor | float, a: Tree, b: Tree) -> Tree:
    """factor * a + b."""
    return b.like(_per_entry(factor) * a.flat + b.flat)


def dot(a: Tree, b: Tree) -> Tensor:
    """<a, b> over the parameters; leading axes stay."""
    return (a.flat * b.flat).sum(-1)


def norm(tree: Tree) -> Tensor:
    """Euclidean norm over the parameters; leading axes stay."""
    return torch.linalg.vector_norm(tree.flat, dim=-1)


def tensor_norms(tree: Tree) -> Tensor:
    """Euclidean norm of each of the L tensors, [..., L]. Added up in float64, since some have many elements."""
    lengths = torch.tensor(tree.layout.sizes, device=tree.flat.device)
    owner_D = torch.repeat_interleave(lengths)
    squares = torch.zeros((*tree.flat.shape[:-1], len(lengths)), dtype=torch.float64, device=tree.flat.device)
    return elementwise.sqrt(squares.index_add_(-1, owner_D, tree.flat.double().square())).to(tree.flat.dtype)


def spread(values_L: Tensor, tree: Tree) -> Tensor:
    """Repeats one value per tensor, [..., L], for each of its elements, [..., D]."""
    lengths = torch.tensor(tree.layout.sizes, device=tree.flat.device)
    return values_L.repeat_interleave(lengths, dim=-1)


def stack(trees: Sequence[Tree]) -> Tree:
    """Trees [D] as one tree with a leading axis [K, D]."""
    return trees[0].like(torch.stack([tree.flat for tree in trees]))


def weighted_sum(weights_K: Tensor, tree_KD: Tree) -> Tree:
    """sum_k weights_k * tree_k for one cohort: weights [K], tree [K, D]."""
    return tree_KD.like(weights_K.to(tree_KD.flat.dtype) @ tree_KD.flat)


def gram(tree_KD: Tree) -> Tensor:
    """Inner products of K vectors, [K, K], in float64."""
    return inner(tree_KD, tree_KD)


def inner(a_KD: Tree, b_LD: Tree) -> Tensor:
    """<a_k, b_l>, [K, L], in float64, added up in pieces that stay in a processor's cache."""
    products = a_KD.flat.new_zeros((), dtype=torch.float64)
    for a, b in zip(a_KD.flat.split(_PIECE, dim=-1), b_LD.flat.split(_PIECE, dim=-1), strict=True):
        a_double = a.double()
        products = products + a_double @ (a_double if a_KD is b_LD else b.double()).mT
    return products


def _per_entry(factor: Tensor | float) -> Tensor | float:
    return factor.unsqueeze(-1) if isinstance(factor, torch.Tensor) and factor.dim() else factor
