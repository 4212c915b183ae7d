"""Trees: layout, views, leading axes, the algebra, and gradients against autograd on plain tensors."""

import pytest
import torch

from fedrepro import tree
from fedrepro.tree import Layout, Parts, Tree

LAYOUT = Layout.of({"w": (2, 3), "b": (2,), "s": ()})


def counting(*leading: int) -> Tree:
    """A tree of 0, 1, 2, ... in float64 with these leading axes."""
    return Tree(LAYOUT, torch.arange(9.0 * torch.Size(leading).numel(), dtype=torch.float64).reshape(*leading, 9))


def test_layout_lays_tensors_end_to_end() -> None:
    """6 + 2 + 1 numbers in the order of the names. A scalar takes one place."""
    assert LAYOUT.sizes == [6, 2, 1]
    assert LAYOUT.size == 9
    assert LAYOUT.spans() == {"w": (0, 6, (2, 3), (3, 1)), "b": (6, 8, (2,), (1,)), "s": (8, 9, (), ())}
    assert Layout.of({}).size == 0


def test_from_tensors_copies_and_keeps_names() -> None:
    """The flat vector has the tensors one after another. Later changes of a source do not change the tree."""
    source = {"w": torch.tensor([[0.0, 1, 2], [3, 4, 5]]), "b": torch.tensor([6.0, 7]), "s": torch.tensor(8.0)}
    made = Tree.from_tensors(source)
    source["w"][0, 0] = 99
    assert made.layout == LAYOUT
    assert made.flat.tolist() == list(range(9))
    assert [name for name, _ in made.items()] == ["w", "b", "s"]


@pytest.mark.parametrize("leading", [(), (4,), (2, 4)])
def test_items_are_views_that_carry_leading_axes(leading: tuple[int, ...]) -> None:
    """Each tensor has its shape after the leading axes. Writing into it writes into the flat vector."""
    made = counting(*leading)
    assert {name: tuple(value.shape) for name, value in made.items()} == {
        "w": (*leading, 2, 3),
        "b": (*leading, 2),
        "s": leading,
    }
    made["b"].zero_()
    assert made.flat[..., 6:8].abs().max() == 0
    assert made.flat[..., 5].min() == 5, "a neighbour was overwritten"


def test_an_unknown_name_is_an_error() -> None:
    """A misspelt parameter name must not give a silent default."""
    with pytest.raises(KeyError):
        counting()["fc1"]


@pytest.mark.parametrize("leading", [(), (3,)])
def test_algebra_by_elements(leading: tuple[int, ...]) -> None:
    """sub, scale by a number, axpy, map and zeros_like are compared with the flat vectors."""
    a, b = counting(*leading), counting(*leading)
    b = b.like(b.flat.flip(-1) + 1)
    assert torch.equal(tree.sub(a, b).flat, a.flat - b.flat)
    assert torch.equal(tree.scale(a, 0.5).flat, a.flat * 0.5)
    assert torch.equal(tree.scale(a, torch.tensor(2.0)).flat, a.flat * 2)
    assert torch.equal(tree.axpy(-0.5, a, b).flat, b.flat - 0.5 * a.flat)
    assert torch.equal(tree.map(lambda x, y: x * y + 1, a, b).flat, a.flat * b.flat + 1)
    assert torch.equal(tree.zeros_like(a).flat, torch.zeros_like(a.flat))


def test_factors_and_reductions_go_by_client() -> None:
    """With a leading axis a tensor factor has one number per client, and so have the results of dot and norm."""
    a = counting(3)
    factor = torch.tensor([1.0, 10.0, -2.0], dtype=torch.float64)
    scaled, moved = tree.scale(a, factor), tree.axpy(factor, a, tree.zeros_like(a))
    for k in range(3):
        assert torch.equal(scaled.flat[k], a.flat[k] * factor[k])
        assert torch.equal(moved.flat[k], a.flat[k] * factor[k])
        assert tree.dot(a, scaled)[k] == (a.flat[k] * scaled.flat[k]).sum()
        torch.testing.assert_close(tree.norm(a)[k], (a.flat[k] ** 2).sum().sqrt())
    assert tree.norm(a).shape == (3,)


def test_stack_and_weighted_sum() -> None:
    """A tree of 0..8 and its double: 0.25 a + 0.75 * 2a = 1.75 a."""
    a = counting()
    both = tree.stack([a, tree.scale(a, 2.0)])
    assert both.flat.shape == (2, 9)
    torch.testing.assert_close(tree.weighted_sum(torch.tensor([0.25, 0.75]), both).flat, 1.75 * a.flat, rtol=0, atol=0)


def quadratic(params: Tree) -> torch.Tensor:
    """A scalar that mixes all tensors: |w|^2 / 2 + s * sum(b) + sum over w's rows times b."""
    w, b, s = params["w"], params["b"], params["s"]
    return (w**2).sum() / 2 + (s * b.sum(-1)).sum() + (w.sum(-1) * b).sum()


@pytest.mark.parametrize("leading", [(), (3,)])
def test_gradient_against_autograd(leading: tuple[int, ...]) -> None:
    """The gradient equals autograd's through views of one flat leaf. With a leading axis every client has its own gradient."""
    params = counting(*leading)
    flat = params.flat.clone().requires_grad_()
    (expected,) = torch.autograd.grad(quadratic(params.like(flat)), flat)
    found = tree.gradient(quadratic, params)
    torch.testing.assert_close(found.flat, expected, rtol=0, atol=1e-12)
    assert not found.flat.requires_grad
    assert not params.flat.requires_grad
    if leading:
        alone = tree.gradient(quadratic, Tree(LAYOUT, params.flat[1]))
        torch.testing.assert_close(found.flat[1], alone.flat, rtol=0, atol=1e-12)


def test_gradient_through_the_whole_vector() -> None:
    """The loss uses `flat`, like a proximal term: d/dx |x - 1|^2 / 2 = x - 1."""
    params = counting()
    found = tree.gradient(lambda p: ((p.flat - 1) ** 2).sum() / 2, params)
    torch.testing.assert_close(found.flat, params.flat - 1, rtol=0, atol=0)


def test_parts_join_to_the_same_vector() -> None:
    """Separate tensors in another order join to the same numbers in the same places, also with leading axes."""
    for made in (counting(), counting(2)):
        apart = Parts(made, dict(reversed(list(made.items()))))
        assert torch.equal(apart.flat, made.flat)
        assert torch.equal(made.like(apart.flat)["b"], apart["b"])


@pytest.mark.parametrize("leading", [(), (2,)])
def test_adding_in_place(leading: tuple[int, ...]) -> None:
    """add_ writes into the target's memory. The source may be one vector or separate tensors, which it does not join."""
    target, source = counting(*leading), counting(*leading)
    expected = target.flat - 0.5 * source.flat
    apart = Parts(source, dict(source.items()))
    for one in (source, apart):
        found = target.like(target.flat.clone())
        memory = found.flat.data_ptr()
        tree.add_(found, one, -0.5)
        assert torch.equal(found.flat, expected)
        assert found.flat.data_ptr() == memory
    assert apart._joined is None


def test_norms_by_tensor_and_back() -> None:
    """Two clients with (3, 4) and 12, the second doubled: norms 5 and 12, and twice that. spread repeats each norm over its
    tensor's elements."""
    one = Tree(Layout.of({"a": (2, 1), "b": ()}), torch.tensor([[3.0, 4.0, 12.0], [6.0, 8.0, 24.0]]))
    norms = tree.tensor_norms(one)
    assert norms.tolist() == [[5.0, 12.0], [10.0, 24.0]]
    assert tree.spread(norms, one).tolist() == [[5.0, 5.0, 12.0], [10.0, 10.0, 24.0]]
    assert tree.spread(norms[0], one).tolist() == [5.0, 5.0, 12.0]


def test_norms_by_tensor_of_many_elements() -> None:
    """A million times 0.1: sqrt(1e4) = 100 up to the last bits of float32. The sum is not accumulated in float32."""
    one = Tree(Layout.of({"a": (1_000_000,)}), torch.full((1_000_000,), 0.1))
    assert tree.tensor_norms(one).item() == pytest.approx(100, rel=1e-6)
