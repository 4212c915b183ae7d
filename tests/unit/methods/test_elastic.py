"""Elastic aggregation: the measurements of clients, the server's scaling, and combinations with other methods."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.engine.client_side import probes
from fedrepro.engine.cohort import Clients
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.methods import sensitivity
from fedrepro.methods.compose import Method, compose
from fedrepro.methods.rescale.elastic import Elastic
from fedrepro.methods.sensitivity import GRANULARITIES, TAUS, relative_to_largest
from fedrepro.models import build, initial
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, ClientContext
from tests import toy

LAYOUT = Layout.of({"a.weight": (2, 2), "a.bias": (2,), "b.weight": (2,)})


def named(*values: float) -> Tree:
    return Tree(LAYOUT, torch.tensor(values, dtype=torch.float64))


def measured(part: str, task: Task, client: int) -> Tensor:
    """Omega_k [D]."""
    method = compose(f"fedavg+{part}")
    state = method.init(task.params, task.buffers)
    clients = Clients(task, method)
    ctx = clients.context(client, state, 0, None, 1, 1)  # type: ignore[arg-type]
    return probes(clients, client, ctx, state)["elastic"].flat


def logistic(**changes: Any) -> Task:
    """The toy task with logistic regression: F = W x + b."""
    return toy.make_task(model=build("logistic", (1, 4, 4), toy.CLASSES), **changes)


def by_hand(task: Task, client: int, mu: float, batch_size: int) -> Tensor:
    """d/dW of mean ||W x + b||^2 is 2 mean F x^T, d/db is 2 mean F. The moving average of their absolute values goes over the
    batches."""
    w, b = task.params["fc1.weight"], task.params["fc1.bias"]
    omega = torch.zeros_like(task.params.flat)
    for index in task.held_out[client].split(batch_size):
        x = task.train.x[index].flatten(1)
        outputs = x @ w.T + b
        g = torch.cat([(2 * outputs.T @ x / len(x)).flatten(), 2 * outputs.mean(0)])
        omega = mu * omega + (1 - mu) * g.abs()
    return omega


@pytest.mark.parametrize("client", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [2, 100])
def test_sensitivity_is_the_mean_gradient_of_the_squared_outputs(client: int, batch_size: int) -> None:
    """Logistic regression agrees with the hand computation in float64, also with a smaller last batch. The order of the batches
    counts."""
    task = logistic(batch_size=batch_size)
    assert len(task.held_out[client])
    expected = by_hand(task, client, 0.95, batch_size)
    torch.testing.assert_close(measured("elastic", task, client), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("client", [0, 1, 3])
def test_the_closed_form_of_perceptrons_is_that_of_autograd(client: int) -> None:
    """Both agree with hidden layers, in float64. A model without its closed form uses autograd."""
    task = toy.make_task(model=build("mlp", (1, 4, 4), toy.CLASSES), batch_size=4)
    slow = replace(task, model=replace(task.model, squared_gradient=None))
    assert task.model.squared_gradient is not None
    torch.testing.assert_close(measured("elastic", task, client), measured("elastic", slow, client), rtol=1e-10, atol=1e-15)


def test_bias_correction_and_other_outputs_by_autograd() -> None:
    """Omega is divided by 1 - mu^b. Other outputs are the softmax, and the features, to which the last layer does not
    contribute."""
    task = logistic(batch_size=2)
    batches = -(-len(task.held_out[0]) // 2)
    plain, corrected = measured("elastic", task, 0), measured("elastic(bias_correction=true)", task, 0)
    torch.testing.assert_close(corrected, plain / (1 - 0.95**batches), rtol=1e-12, atol=0)
    task = toy.make_task(model=build("mlp", (1, 4, 4), toy.CLASSES), batch_size=100)
    data = task.train.take(task.held_out[0])
    for of, last in (("probabilities", lambda p, h: task.model.head(p, h).softmax(-1)), ("features", lambda p, h: h)):

        def length(p: Tree, last: Any = last) -> Tensor:
            assert task.model.features is not None
            unread = 0 * sum(p[name].sum() for name in ("fc3.weight", "fc3.bias"))
            return last(p, task.model.features(p, task.buffers, data.x, False)[0]).square().sum(1).mean() + unread

        expected = 0.05 * tree.gradient(length, task.params).flat.abs()
        torch.testing.assert_close(measured(f"elastic(of={of})", task, 0), expected, rtol=1e-10, atol=1e-14)


def test_labels_and_training_samples_do_not_count() -> None:
    """Other labels and other training samples change no sensitivity; other held-out samples do."""
    task = logistic(batch_size=4)
    data = task.train
    other = replace(task, train=replace(data, y=(data.y + 1) % toy.CLASSES), client_index=task.client_index[::-1])
    assert torch.equal(measured("elastic", task, 0), measured("elastic", other, 0))
    moved = replace(task, held_out=[*task.held_out[1:], task.held_out[0]])
    assert not torch.equal(measured("elastic", task, 0), measured("elastic", moved, 0))


def test_who_holds_nothing_out_has_no_say() -> None:
    """The client's Omega is 0. zeta uses only relative sizes, so it is that of the other clients."""
    task = logistic(batch_size=4)
    without = replace(task, held_out=[task.held_out[0][:0], *task.held_out[1:]])
    assert not measured("elastic", without, 0).any()
    weights = task.client_sizes / task.client_sizes.sum()
    all_K = torch.stack([measured("elastic", without, k) for k in range(len(weights))])
    some = tree.weighted_sum(weights[1:] / weights[1:].sum(), Tree(task.params.layout, all_K[1:]))
    everybody = tree.weighted_sum(weights, Tree(task.params.layout, all_K))
    torch.testing.assert_close(Elastic().factors(everybody).flat, Elastic().factors(some).flat, rtol=1e-12, atol=0)


def test_factors_by_hand() -> None:
    """zeta = 1 + tau - Omega / its group's largest. Channel 0 of `a` is its first row and first bias."""
    omega = named(4.0, 1.0, 2.0, 3.0, 0.5, 6.0, 8.0, 0.0)
    expected = {
        "tensor": [1.0, 0.25, 0.5, 0.75, 0.5 / 6, 1.0, 1.0, 0.0],
        "module": [4 / 6, 1 / 6, 2 / 6, 3 / 6, 0.5 / 6, 1.0, 1.0, 0.0],
        "channel": [1.0, 0.25, 2 / 6, 3 / 6, 0.125, 1.0, 1.0, -1.0],
        "global": [0.5, 0.125, 0.25, 0.375, 0.0625, 0.75, 1.0, 0.0],
    }
    for granularity, relative in expected.items():
        torch.testing.assert_close(relative_to_largest(omega, granularity), torch.tensor(relative, dtype=torch.float64))
        zeta = [1.0 if r < 0 else 1.5 - r for r in relative]  # the last row of `b` is dead, so it is a dead channel
        assert Elastic(granularity=granularity).factors(omega).flat.tolist() == pytest.approx(zeta, abs=1e-15)


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_a_constant_sensitivity_scales_by_tau(granularity: str) -> None:
    """This is the limiting case. A multiple of Omega changes no factor, and a dead model is not scaled."""
    part = Elastic(tau=0.3, granularity=granularity)
    assert part.factors(named(*[7.0] * 8)).flat.tolist() == pytest.approx([0.3] * 8, abs=1e-15)
    omega = named(4.0, 1.0, 2.0, 3.0, 0.5, 6.0, 8.0, 0.1)
    torch.testing.assert_close(part.factors(tree.scale(omega, 1e-7)).flat, part.factors(omega).flat, rtol=1e-14, atol=0)
    assert part.factors(named(*[0.0] * 8)).flat.tolist() == [1.0] * 8


def test_what_is_noted() -> None:
    """The boosted share counts the sensitivities below tau, at each granularity: none at 0, all but the largest at 1."""
    found = sensitivity.sensitivity_notes(named(4.0, 1.0, 2.0, 3.0, 0.5, 6.0, 8.0, 0.0), 0.45, "channel")
    assert [found[f"boosted/tensor/{tau}"] for tau in (0.0, 0.1, 0.3, 0.5, 1.0)] == pytest.approx([0.0, 25.0, 37.5, 37.5, 62.5])
    assert found["boosted/channel/1.0"] == pytest.approx(50.0)  # the dead channel is never boosted
    assert found["boosted/global/1.0"] == pytest.approx(87.5)
    assert all(found[f"boosted/{granularity}/0.0"] == 0 for granularity in GRANULARITIES)
    # The seven live ones in order: 0.125, 0.25, 0.333, 0.5, 1, 1, 1.
    assert [found[f"sensitivity/q{q}"] for q in (10, 25, 50, 75, 90)] == pytest.approx([0.125, 0.25, 0.5, 1.0, 1.0])
    # Of eight values the quantiles are the first, second, fourth, sixth and seventh.
    eight = sensitivity.sensitivity_notes(named(4.0, 1.0, 2.0, 3.0, 0.5, 6.0, 8.0, 0.1), 0.45, "global")
    assert [8 * eight[f"sensitivity/q{q}"] for q in (10, 25, 50, 75, 90)] == pytest.approx([0.1, 0.5, 2.0, 4.0, 6.0])
    assert found["boosted/tensor"] == pytest.approx(37.5)  # at 0.45
    assert len(found) == 4 * (1 + len(TAUS)) + 5


def moved(method: Method, task: Task) -> tuple[Tree, Any]:
    """The step of the global model in round 0, and the server's state after it."""
    state = method.init(task.params, task.buffers)
    cohort, _ = SequentialEngine(task, method).run_cohort(state, 0)
    assert cohort is not None
    after = method.apply(state, toy.server_context(task, cohort))
    return tree.sub(after.params, task.params), after


PLAIN = ("fedavg", "feddyn", "scaffold", "fedavgm", "pfedme")


@pytest.mark.parametrize("text", PLAIN)
def test_with_a_linear_server_the_first_step_is_scaled(text: str) -> None:
    """The step is zeta times the step without elastic aggregation, if the server's first step is linear in the update."""
    task = toy.make_task()
    step, state = moved(compose(text), task)
    if text == "feddyn":  # its correction of the mean is not scaled
        state_h = compose(text).client.correct(tree.zeros_like(task.params), state.shared)
        step = tree.sub(step, state_h)
    scaled, _ = moved(compose(f"{text}+elastic"), task)
    if text == "feddyn":
        scaled = tree.sub(scaled, state_h)
    cohort, _ = SequentialEngine(task, (both := compose(f"{text}+elastic"))).run_cohort(both.init(task.params, task.buffers), 0)
    assert cohort is not None
    zeta = Elastic().factors(tree.weighted_sum(cohort.weights, cohort.probes["elastic"]))
    torch.testing.assert_close(scaled.flat, (zeta.flat * step.flat), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("name", "first_m", "first_v"), [("fedadam", 0.1, 0.01), ("fedyogi", 0.1, 0.01), ("fedadagrad", 1, 1)])
def test_the_adaptive_servers_are_fed_the_scaled_update(name: str, first_m: float, first_v: float) -> None:
    """The first m is (1 - beta1) zeta * update. v is the square of that update times the optimizer's factor."""
    task = toy.make_task()
    step, _ = moved(compose("fedavg+elastic"), task)
    _, state = moved(compose(f"{name}+elastic"), task)
    m, v = state.parts["server_opt"][0]
    torch.testing.assert_close(m.flat, first_m * step.flat, rtol=1e-9, atol=1e-14)
    torch.testing.assert_close(v.flat, first_v * step.flat.square(), rtol=1e-9, atol=1e-16)


def test_clients_may_count_alike() -> None:
    """With weighting=uniform the sensitivity is the plain mean of the clients' Omega."""
    task, method = toy.make_task(), compose("fedavg+elastic(weighting=uniform)")
    cohort, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    omega = task.params.like(cohort.probes["elastic"].flat.mean(0))
    plain, _ = moved(compose("fedavg"), task)
    scaled, _ = moved(method, task)
    torch.testing.assert_close(scaled.flat, Elastic().factors(omega).flat * plain.flat, rtol=1e-9, atol=1e-13)
    by_size = Elastic().factors(tree.weighted_sum(cohort.weights, cohort.probes["elastic"]))
    assert not torch.allclose(by_size.flat, Elastic().factors(omega).flat)


def test_a_dead_tensor_among_live_ones_is_not_scaled() -> None:
    """By tensor its zeta is 1. By module it is the least sensitive part of a live module and gets 1 + tau."""
    omega = named(4.0, 1.0, 2.0, 3.0, 0.0, 0.0, 8.0, 2.0)  # the bias of `a` is dead
    assert Elastic().factors(omega).flat.tolist()[4:6] == [1.0, 1.0]
    assert Elastic(granularity="module").factors(omega).flat.tolist()[4:6] == [1.5, 1.5]


@pytest.mark.parametrize(("name", "shape"), [("resnet20_gn", (3, 8, 8)), ("char_lstm", (5,))])
def test_other_networks_by_autograd(name: str, shape: tuple[int, ...]) -> None:
    """Convolutions with GroupNorm, and text, whose logits have a time axis: the mean is over samples and times."""
    model = build(name, shape, 7)
    params = initial.draw(model, 8)
    params, data = params.like(params.flat.double()), model.random(5, torch.Generator().manual_seed(0))
    x = data.x if model.reads_text else data.x.double()
    buffers = Tree(model.buffer_layout, torch.zeros(0, dtype=torch.float64))
    network = TrainingNetwork(model, buffers, closed_form=True, train=False)
    ctx = ClientContext(network=network, anchor=params, client_lr=0.1, num_steps=1)
    flat = params.flat.clone().requires_grad_()
    logits = model.forward(params.like(flat), buffers, x, False)[0]
    (g,) = torch.autograd.grad((logits**2).sum() / logits[..., 0].numel(), flat)
    found = Elastic().probe([Batch(x, data.y)], ctx).flat
    torch.testing.assert_close(found, 0.05 * g.abs(), rtol=1e-9, atol=1e-14)
