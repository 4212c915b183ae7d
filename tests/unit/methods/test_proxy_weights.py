"""Learning aggregation weights on the proxy set: Adam, the closed-form gradients, and a server step by hand."""

import dataclasses
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fedrepro import rng, tree
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.methods.adam import Adam
from fedrepro.methods.aggregate.fedlaw_quad import root_gradient
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS, proxy_batches
from fedrepro.methods.proxy_weights import ProxyLearning, logit_gradient
from fedrepro.models import ops
from fedrepro.tree import Tree
from fedrepro.types import Batch
from tests import toy
from tests.toy import normal


def test_adam_against_torch() -> None:
    """Twenty steps with a changing rate on a changing gradient. Bias correction and eps are those of torch.optim.Adam."""
    x, adam = normal(7), Adam(0.5, 0.999)
    reference = x.clone().requires_grad_()
    optimiser = torch.optim.Adam([reference], lr=1.0, betas=(0.5, 0.999))
    state = adam.init(x)
    for step in range(20):
        gradient, rate = normal(7, seed=step) * 10.0 ** (step % 5 - 2), 0.1 * 0.9**step
        optimiser.param_groups[0]["lr"] = rate
        reference.grad = gradient.clone()
        optimiser.step()
        x, state = adam.step(x, gradient, state, rate)
        torch.testing.assert_close(x, reference.detach(), rtol=0, atol=1e-13)
    assert state[2] == 20


def models_and_loss(clients: int) -> tuple[Tree, Callable[[Tree], Tensor]]:
    """K random weight vectors of the tiny network, and the loss of the whole proxy set as one batch."""
    task = toy.make_task()
    models = Tree(task.model.layout, task.params.flat + 0.3 * normal(clients, task.model.parameters, seed=clients))
    network = TrainingNetwork(task.model, task.buffers)
    assert task.proxy is not None
    proxy = task.proxy
    return models, lambda params: ops.cross_entropy(network(params, proxy.x), proxy.y)


def logits(clients: int, away: float) -> Tensor:
    """x = log p for unequal sizes and x_gamma = 0, moved from the start by `away`."""
    sizes = torch.arange(1.0, clients + 1, dtype=torch.float64)
    return torch.cat([(sizes / sizes.sum()).log(), torch.zeros(1, dtype=torch.float64)]) + away * normal(clients + 1, seed=9)


@pytest.mark.parametrize("clients", [1, 2, 5, 20])
@pytest.mark.parametrize("away", [0.0, 0.7])
def test_closed_form_gradients_against_autograd_through_the_sum(clients: int, away: float) -> None:
    """Autograd goes from the loss through exp, softmax and sum_i lambda_i w_i to the logits. Both agree to 1e-12."""
    models, loss = models_and_loss(clients)
    x = logits(clients, away).requires_grad_()
    v = (x[-1].exp() * x[:-1].softmax(0)).unsqueeze(-1).mul(models.flat).sum(0)
    (expected,) = torch.autograd.grad(loss(models.like(v)), x)
    torch.testing.assert_close(
        logit_gradient(models, x.detach(), lambda v: tree.gradient(loss, v)), expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("clients", [1, 2, 5, 20])
@pytest.mark.parametrize("away", [0.0, 0.7])
def test_gradients_of_squares_against_autograd(clients: int, away: float) -> None:
    """The base function "quad": autograd goes through x_gamma^2 and x_i^2 / sum_j x_j^2, at the start and away from it."""
    models, loss = models_and_loss(clients)
    start = torch.tensor([*[1 / math.sqrt(clients)] * clients, 1.0], dtype=torch.float64)
    x = (start + away * normal(clients + 1, seed=9)).requires_grad_()
    weights = x[-1] ** 2 * x[:-1] ** 2 / sum(x[:-1] ** 2)
    v = models.like(sum(weight * model for weight, model in zip(weights, models.flat, strict=True)))
    (expected,) = torch.autograd.grad(loss(v), x)
    g = tree.gradient(loss, v.like(v.flat.detach()))
    torch.testing.assert_close(root_gradient(models, x.detach(), g), expected, rtol=0, atol=1e-12)


def test_learning_ends_at_the_minimum_of_a_grid() -> None:
    """Two clients have models trained on different labels. gamma and lambda end within one mesh of the point of a grid of both
    that has the lowest proxy loss, and not above that loss."""
    task = toy.make_task()
    network, train, proxy = TrainingNetwork(task.model, task.buffers), task.train, task.proxy
    assert proxy is not None

    def trained(index: Tensor) -> Tensor:
        """The model after thirty steps of gradient descent from the initial one."""
        v = task.params
        for _ in range(30):
            gradient = tree.gradient(lambda w: ops.cross_entropy(network(w, train.x[index]), train.y[index]), v)
            v = v.like(v.flat - 0.1 * gradient.flat)
        return v.flat

    first, second = (trained((train.y == 0).nonzero().ravel()), trained((train.y != 0).nonzero().ravel()))
    grid = {
        (gamma / 20, share / 50): float(
            ops.cross_entropy(
                network(task.params.like(gamma / 20 * (share / 50 * first + (1 - share / 50) * second)), proxy.x), proxy.y
            )
        )
        for gamma in range(10, 50)
        for share in range(51)
    }
    least = min(grid, key=grid.__getitem__)
    sizes, models = torch.tensor([0.3, 0.7], dtype=torch.float64), task.params.like(torch.stack([first, second]))
    learning = ProxyLearning(server_lr=0.05, server_epochs=300, halve_every=60)
    gamma, lambda_K = learning.learn(models, sizes, toy.server_context(task, network=network), gamma=True, weights_too=True)
    v = task.params.like(gamma * (lambda_K @ models.flat))
    assert float(ops.cross_entropy(network(v, proxy.x), proxy.y)) <= grid[least] + 1e-4 < grid[1.0, 0.3] - 0.1
    assert gamma == pytest.approx(least[0], abs=0.05)
    assert float(lambda_K[0]) == pytest.approx(least[1], abs=0.02)


# Client models 1 and 3 with data-size weights 1/4 and 3/4, starting from the global weight 0.5.
COHORT = toy.cohort(
    Tree(toy.ONE_WEIGHT.layout, torch.tensor([[0.5], [2.5]], dtype=torch.float64)), [0.25, 0.75], anchor=toy.one_weight(0.5)
)
STEP = 0.1


def one_weight_context():
    """A proxy set of one sample x = 1 of class 0: the loss is ln(1 + exp(-v))."""
    task = dataclasses.replace(toy.make_task(), model=toy.ONE_WEIGHT)
    proxy = Batch(torch.ones(1, 1, 1, 1, dtype=torch.float64), torch.tensor([0]))
    return toy.server_context(task, network=TrainingNetwork(toy.ONE_WEIGHT, COHORT.buffers), cohort=COHORT, proxy=proxy)


GAMMA, LAMBDA_2 = math.exp(STEP), 3 * math.exp(2 * STEP) / (1 + 3 * math.exp(2 * STEP))
BOTH = {"gamma": GAMMA, "lambda_max": LAMBDA_2}
QUAD = (0.5**0.5 + STEP) ** 2 / ((0.5**0.5 - STEP) ** 2 + (0.5**0.5 + STEP) ** 2)
# x - w = 2 and w = 0.5: the two gradients of equation 4.
SHRUNK = {"gamma": GAMMA, "global_gradient_norm": 2 * GAMMA, "shrink_gradient_norm": 0.5 * (GAMMA - 1)}
SHRUNK |= {"r": 4 * GAMMA / (GAMMA - 1)}


@pytest.mark.parametrize(
    ("part", "expected", "notes"),
    [
        ("fedlaw(", GAMMA * (1 + 2 * LAMBDA_2), BOTH),
        ("fedlaw_quad(", 1.1**2 * (1 + 2 * QUAD), {"gamma": 1.21, "lambda_max": QUAD}),
        ("fedlaw_only(use=gamma, ", GAMMA * 2.5, BOTH),
        ("fedlaw_only(use=lambda, ", 1 + 2 * LAMBDA_2, BOTH),
        ("attentive_law(", 1 + 2 * LAMBDA_2, {"lambda_max": LAMBDA_2}),
        ("law_swa(", 1 + 2 * LAMBDA_2, {"lambda_max": LAMBDA_2}),
        ("early_stopped_law(stop=1, ", 1 + 2 * LAMBDA_2, {"lambda_max": LAMBDA_2, "stopped": 0}),
        ("adaptive_gws(", GAMMA * 2.5, SHRUNK),
    ],
)
def test_one_server_step_by_hand(part: str, expected: float, notes: dict[str, float]) -> None:
    """One epoch over one batch, so one step; Adam's first step is the rate times the sign of the gradient.

    v = 1/4 + 9/4 = 2.5; G = dL/dv = -1 / (1 + e^2.5) < 0; u = (G, 3 G), ubar = 2.5 G.
      dL/dx_gamma = 2.5 G < 0: x_gamma = +0.1.
      dL/dx_1 = 1/4 (G - 2.5 G) > 0: x_1 = ln 1/4 - 0.1;  dL/dx_2 = 3/4 (3 G - 2.5 G) < 0: x_2 = ln 3/4 + 0.1.
      lambda_2 / lambda_1 = 3 e^0.2, so the blended model is lambda_1 * 1 + lambda_2 * 3 = 1 + 2 lambda_2, times gamma = e^0.1.
    Squares begin at x_1 = x_2 = sqrt(1/2), x_gamma = 1, so v = 2 and ubar = 2 G; the signs of u_i - ubar and ubar are the same:
      x_1 = sqrt(1/2) - 0.1, x_2 = sqrt(1/2) + 0.1, x_gamma = 1.1.
    Adam's eps of 1e-8 beside gradients of at least 0.02 moves a step by a relative 5e-7.
    """
    method, ctx = compose(f"{part}server_lr={STEP}, server_epochs=1)"), one_weight_context()
    state = method.apply(method.init(COHORT.anchor, COHORT.buffers), ctx)
    assert state.params.flat.item() == pytest.approx(expected, rel=1e-6)
    assert ctx.notes == pytest.approx(notes, rel=1e-6)


@pytest.mark.parametrize(
    ("part", "gamma", "r"),
    [
        ("fixed_gamma(gamma=0.9)", 0.9, 18),
        ("fixed_gamma(gamma=1)", 1, None),
        (f"adaptive_gws(server_lr={STEP}, server_epochs=1)", GAMMA, 2 * GAMMA / (GAMMA - 1)),
    ],
)
def test_shrinking_behind_a_server_learning_rate_by_hand(part: str, gamma: float, r: float | None) -> None:
    """Table 10: w <- gamma (w - eta_g g). With w = 0.5, g = -2 and eta_g = 0.5, w - eta_g g = 1.5. In equation 4 the norms are
    gamma * 1 and |1 - gamma| * 0.5. At gamma = 1 there is no r."""
    method, ctx = compose(f"fedavg+server_sgd(server_lr=0.5)+{part}"), one_weight_context()
    state = method.apply(method.init(COHORT.anchor, COHORT.buffers), ctx)
    assert state.params.flat.item() == pytest.approx(gamma * 1.5, rel=1e-6)
    expected = {"gamma": gamma, "global_gradient_norm": gamma, "shrink_gradient_norm": abs(1 - gamma) / 2, "r": r}
    assert ctx.notes == pytest.approx({key: value for key, value in expected.items() if value is not None}, rel=2e-6)


def test_the_rate_is_halved_after_every_so_many_epochs() -> None:
    """The gradient of x_gamma keeps its sign and nearly its size, so each step is nearly the rate. 4 epochs at 0.01, 0.01,
    0.005, 0.005 make x_gamma = 0.03 (within 3 %); without halving it is 0.04."""
    models = tree.stack([COHORT.anchor])
    for halve_every, total in ((2, 0.03), (100, 0.04)):
        learning = ProxyLearning(server_lr=0.01, server_epochs=4, halve_every=halve_every)
        gamma, _ = learning.learn(models, models.flat.new_ones(1), one_weight_context(), gamma=True, weights_too=False)
        assert math.log(gamma) == pytest.approx(total, rel=0.03)


def toy_cohort():
    task, method = toy.make_task(), compose("fedavg")
    cohort, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    return task, cohort


def test_what_is_not_learned_stays_where_it_began() -> None:
    """lambda stays at the data sizes if only gamma is learned (adaptive GWS), and gamma at exactly 1 if only lambda is
    (attentive LAW). The learned one has moved."""
    task, cohort = toy_cohort()
    models = tree.map(lambda u, w: u + w, cohort.updates, cohort.anchor)
    learning = ProxyLearning(server_lr=0.05, server_epochs=3)
    gamma, lambda_K = learning.learn(models, cohort.weights, toy.server_context(task), gamma=True, weights_too=False)
    assert torch.equal(lambda_K, cohort.weights)
    assert abs(gamma - 1) > 1e-3
    gamma, lambda_K = learning.learn(models, cohort.weights, toy.server_context(task), gamma=False, weights_too=True)
    assert gamma == 1.0
    assert (lambda_K - cohort.weights).abs().max() > 1e-3
    assert lambda_K.sum().item() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("part", [name for name in PARTS.names() if issubclass(PARTS.get(name), ProxyLearning)])
def test_one_forward_and_one_backward_pass_a_server_step(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 proxy samples in batches of 5 are 3 steps per epoch. 4 epochs make 12 forward passes with one backward pass each."""
    task, cohort = toy_cohort()
    network, backward, sizes = TrainingNetwork(task.model, task.buffers), [], []

    class Counting:
        buffers, loss = task.buffers, network.loss

        def __call__(self, params: Tree, x: Tensor) -> Tensor:
            sizes.append(len(x))
            return network(params, x)

    grad = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *a, **k: backward.append(1) or grad(*a, **k))
    method = compose(f"{part}(server_epochs=4)")
    ctx = toy.server_context(task, cohort, network=Counting(), proxy_batch_size=5)
    method.apply(method.init(task.params, task.buffers), ctx)
    assert sizes == [5, 5, 2] * 4
    assert len(backward) == 12


def test_proxy_batches_cover_the_set_each_epoch_in_an_order_fixed_by_seed_and_round() -> None:
    """Every sample occurs once per epoch, and the next epoch has another order. The same (seed, round) gives the same order,
    another one another order."""
    task = toy.make_task()

    def order(round: int, seed: int = 8) -> list[int]:
        ctx = toy.server_context(task, rng=lambda purpose: rng.stream(seed, f"server/{purpose}", round), proxy_batch_size=5)
        return [position for _, index_B in proxy_batches(ctx, "server-weights", 2) for position in index_B.tolist()]

    first = order(0)
    assert sorted(first[:12]) == sorted(first[12:]) == list(range(12))
    assert first[:12] != first[12:]
    assert order(0) == first
    assert order(1) != first
    assert order(0, seed=9) != first
    norm = toy.server_context(task, smallest_batch=2, proxy_batch_size=11)
    assert [(epoch, len(index_B)) for epoch, index_B in proxy_batches(norm, "server-weights", 2)] == [(0, 11), (1, 11)]
