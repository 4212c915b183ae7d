"""Units of perceptrons are matched before they are averaged."""

from itertools import permutations

import numpy as np
import pytest
import torch
from torch import Tensor

from fedrepro.engine.loop import train
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.methods.matching import match_units
from fedrepro.models import build, initial
from fedrepro.tree import Tree
from fedrepro.types import Cohort
from tests import toy

FLAT = "pfnm(sigma0=1e9)"  # an uninformative prior
KNOWS_NOTHING = "pfnm(sigma0=1e150)"  # and one that does not change the last bit either


def net(hidden: int = 2, seed: int = 8) -> Tree:
    """A perceptron with one or two hidden layers, in float64."""
    params = initial.draw(build("mlp" if hidden == 2 else "logistic", (1, 4, 4), 3), seed)
    return params.like(params.flat.double())


def test_clients_that_diverge_end_the_run_and_nothing_is_raised() -> None:
    task = toy.make_task(rounds=6, client_lr=1e200, model=build("mlp", (1, 4, 4), 3))
    assert train(task, compose("pfnm")).status == "diverged"


def permuted(params: Tree, seed: int) -> Tree:
    """The same function with the units of both hidden layers in another order."""
    rng, found = np.random.default_rng(seed), params.like(params.flat.clone())
    for below, above in (("fc1", "fc2"), ("fc2", "fc3")):
        order = torch.from_numpy(rng.permutation(len(found[f"{below}.bias"])))
        for name in (f"{below}.weight", f"{below}.bias"):
            found[name].copy_(found[name][order].clone())
        found[f"{above}.weight"].copy_(found[f"{above}.weight"][:, order].clone())
    return found


def outputs(params: Tree, x: Tensor) -> Tensor:
    return build("mlp", (1, 4, 4), 3).forward(params, params.like(params.flat[:0]), x, False)[0]


def cohort(anchor: Tree, *nets: Tree) -> Cohort:
    updates = anchor.like(torch.stack([one.flat - anchor.flat for one in nets]))
    ones = torch.ones(len(nets), dtype=torch.float64)
    empty = Tree(toy.tiny_model().buffer_layout, torch.zeros(len(nets), 0))
    return Cohort([*range(len(nets))], updates, ones / len(nets), ones, ones, 1.0, len(nets), anchor, empty)


def aggregated(text: str, anchor: Tree, *nets: Tree) -> tuple[Tree, float]:
    """The new global weights, and the number of a client's units that moved."""
    part, ctx = compose(text).aggregate, toy.server_context(toy.make_task(), together := cohort(anchor, *nets))
    update, _ = part(together, part.init(anchor), ctx)
    return anchor.like(anchor.flat + update.flat), ctx.notes["pfnm_moved"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_permuted_copies_give_the_net_back(seed: int) -> None:
    """A net and a copy with its units in another order give the same function, while their mean gives another one."""
    first, x = net(), torch.randn(20, 1, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    other = permuted(first, seed)
    torch.testing.assert_close(outputs(other, x), outputs(first, x), rtol=0, atol=1e-12)
    found, moved = aggregated(FLAT, first, first, other)
    torch.testing.assert_close(outputs(found, x), outputs(first, x), rtol=0, atol=1e-9)
    assert moved > 100
    mean = first.like((first.flat + other.flat) / 2)
    assert (outputs(mean, x) - outputs(first, x)).abs().max() > 1e-3


def test_the_posterior_mean_by_hand() -> None:
    """Two copies of one net, sigma 1, sigma0 0.5: precision 2 of the data and 4 of the prior. Weights are 2 / 6 of theirs,
    hidden biases (2 b + 4 * 0.1) / 6, and the last bias is averaged."""
    first = net()
    found, _ = aggregated("pfnm(sigma0=0.5)", first, first, first)
    for name, value in first.items():
        hidden, last = name in ("fc1.bias", "fc2.bias"), name == "fc3.bias"
        expected = value if last else (2 * value + (0.4 if hidden else 0.0)) / 6
        torch.testing.assert_close(found[name], expected, rtol=0, atol=1e-12)


def test_one_client_and_no_hidden_layer() -> None:
    """A single net stays the same in any order, and logistic regression is averaged."""
    first = net()
    torch.testing.assert_close(aggregated(FLAT, net(seed=9), first)[0].flat, first.flat, rtol=0, atol=1e-9)
    plain, other = net(1), net(1, 9)
    found, moved = aggregated(FLAT, plain, plain, other)
    assert moved == 0
    torch.testing.assert_close(found.flat, (plain.flat + other.flat) / 2, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_a_client_alone_keeps_its_units(seed: int) -> None:
    """All assignments are equally good for a single client. No unit moves, whatever the rounding, and the result is its own
    update to the bit."""
    anchor, one = net(seed=seed), net(seed=seed + 100)
    found, moved = aggregated(KNOWS_NOTHING, anchor, one)
    assert moved == 0
    assert torch.equal(found.flat, anchor.flat + (one.flat - anchor.flat))
    assert aggregated("pfnm", anchor, one)[1] == 0


AFTER = ("", "+fedadam", "+elastic", "+scaffold", "+gh")


@pytest.mark.parametrize("more", [*AFTER, "+feddf(server_epochs=2)"])
def test_rounds_of_one_client_are_those_of_the_plain_mean(more: str) -> None:
    """Over three rounds with one client each they are the same to the bit, with every slot before and after."""
    task = toy.make_task(rounds=3, cohorts=((1,), (3,), (1,)))
    plain, found = (train(task, compose(f"{text}{more}")) for text in ("mean(weighting=uniform)", KNOWS_NOTHING))
    assert torch.equal(found.params.flat, plain.params.flat)
    assert not torch.equal(found.params.flat, task.params.flat)
    assert toy.values_of(found.progress.rows, "pfnm_moved") == [0.0] * 3


@pytest.mark.parametrize("seed", range(2))
def test_two_clients_keep_places_of_units_that_did_not_move_far(seed: int) -> None:
    """Equal units and dead units tie, and they keep their places too. The result is the uniform mean."""
    first = net(seed=seed)
    for name in ("fc1.weight", "fc1.bias", "fc2.bias"):
        first[name][3:6] = first[name][2].clone()  # four equal units
        first[name][10:20] = 0  # ten dead units
    first["fc2.weight"][:, 3:6], first["fc2.weight"][:, 10:20] = first["fc2.weight"][:, 2:3].clone(), 0
    rng = np.random.default_rng(seed)
    noise = torch.from_numpy(rng.normal(0, 1e-3, (2, len(first.flat))))
    for row in noise:
        for name, view in first.like(row).items():
            if name == "fc2.weight":
                view[:, 2:6] = view[:, 10:20] = 0
            elif name.startswith("fc1"):
                view[2:6] = view[10:20] = 0
    nets = [first.like(first.flat + row) for row in noise]
    found, moved = aggregated(FLAT, first, *nets)
    assert moved == 0
    torch.testing.assert_close(found.flat, (nets[0].flat + nets[1].flat) / 2, rtol=0, atol=1e-9)


def posterior(units_KLD: Tensor, order_KL: Tensor, prior: Tensor) -> float:
    """sum_i ||prior + sum_j v||^2 / (1 + J) over the places: the term that an assignment maximises, for data and a prior of
    deviation 1."""
    total = prior + torch.stack([one[order] for one, order in zip(units_KLD, order_KL, strict=True)]).sum(0)
    return float(total.square().sum() / (1 + len(units_KLD)))


def test_no_other_assignment_of_one_client_is_better() -> None:
    """For three clients of four units, all 24 orders of each client are compared while the others keep their assignment."""
    units = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    prior = torch.zeros(5, dtype=torch.float64)
    prior[0] = 0.1
    order = match_units(units, 0.1, 20, np.random.default_rng(0))
    best = posterior(units, order, prior)
    assert best > posterior(units, torch.arange(4).repeat(3, 1), prior)
    for k in range(3):
        for one in permutations(range(4)):
            changed = order.clone()
            changed[k] = torch.tensor(one)
            assert posterior(units, changed, prior) <= best + 1e-12


def test_other_models_are_refused_before_the_first_round() -> None:
    """One line says which models are allowed."""
    with pytest.raises(UserError, match=r"^pfnm: matches the units of perceptrons, and this model has other layers; take mlp"):
        train(toy.make_task(model=toy.norm_model()), compose("pfnm"), report=lambda *_: pytest.fail("a round was trained"))
