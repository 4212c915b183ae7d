"""Limiting cases: what a method reduces to if its idea is switched off, and what FedAvg reduces to."""

import dataclasses
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import nn

from fedrepro.engine.loop import Outcome, train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS
from fedrepro.models import Model
from fedrepro.tree import Tree
from fedrepro.types import Cohort
from tests import toy

# (method, what it must equal, tolerance). Tolerance 0 means bit for bit, where no rounding separates the two.
IDENTITIES = [
    ("fedprox(mu=0)", "fedavg", 0),
    ("fixed_gamma(gamma=1)", "fedavg", 0),
    ("server_sgd(server_lr=1)", "fedavg", 0),
    ("adaptive_gws(server_epochs=0)", "fedavg", 0),
    ("fedlaw(server_epochs=0)", "fedavg", 1e-12),
    ("attentive_law(server_epochs=0)", "fedavg", 1e-12),
    ("fedlaw(server_epochs=0)+adaptive_gws(server_epochs=0)+fixed_gamma(gamma=1)+fedprox(mu=0)", "fedavg", 1e-12),
    ("fixed_gamma(gamma=0.9)+fixed_gamma(gamma=0.9)", "fixed_gamma(gamma=0.81)", 1e-12),
    ("adaptive_gws(server_epochs=0)+fedprox(mu=0.3)", "fedprox(mu=0.3)", 0),
    ("fedlaw_swa(server_epochs=0)", "fedavg", 0),
    ("fedlaw_swa(server_epochs=1)", "fedavg", 0),  # half an epoch for each stage rounds to none
    ("fedlaw_quad(server_epochs=0)", "mean(weighting=uniform)", 1e-12),
    ("fedlaw_only(server_epochs=0)", "fedavg", 0),
    ("fedlaw_only(use=lambda, server_epochs=0)", "fedavg", 1e-12),
    ("law_swa(server_epochs=0)", "fedavg", 0),
    ("early_stopped_law(stop=0)", "fedavg", 0),
    ("early_stopped_law(stop=3, server_epochs=4)", "attentive_law(server_epochs=4)", 0),  # the run has three rounds
    ("feddf(server_epochs=0)", "fedavg", 0),
    ("fedbe(server_epochs=0)", "fedavg", 0),
    ("server_ft(server_epochs=0)", "fedavg", 0),
    ("server_ft(server_epochs=0, solver=sgd, keep_momentum=true)", "fedavg", 0),
    ("fedavgm(beta=0)", "fedavg", 0),
    ("fedavgm(beta=0, nesterov=true)", "fedavg", 0),
    ("fedavgm(beta=0, server_lr=0.5)", "server_sgd(server_lr=0.5)", 0),
    ("fedadam(beta1=0, tau=1e9, server_lr=1e9)", "fedavg", 1e-8),
    ("fedadam(beta1=0, tau=1e9, server_lr=5e8)", "server_sgd(server_lr=0.5)", 1e-8),
    ("fedyogi(beta1=0, tau=1e9, server_lr=1e9)", "fedavg", 1e-8),
    ("fedadagrad(tau=1e9, server_lr=1e9)", "fedavg", 1e-8),
    ("igfl_c+attention", "igfl", 0),
    ("per_fedavg(inner_lr=0)", "fedavg", 0),
    ("per_fedavg(inner_lr=0, variant=hessian_free)", "fedavg", 0),
    ("pfedme(lam=0)", "server_sgd(server_lr=1e-15)", 1e-14),  # which does not move the weights either
    ("pfnm(sigma0=1e9)", "mean(weighting=uniform)", 1e-12),  # units keep their order if all clients start from the same weights
    ("fedasam(rho=0)", "fedavg", 0),
    ("fedasam(rho=1e-9)", "fedavg", 1e-7),
    ("fedfa(coefficient=0, calibrate_from=1)", "fedavg", 0),
    ("fedgma(threshold=0)", "fedavg", 0),
    ("fedgma(threshold=0, variant=and)", "fedavg", 0),
    ("elastic(tau=1e9)+server_sgd(server_lr=1e-9)", "fedavg", 1e-8),
    ("ima(window=1, start=0)", "fedavg", 0),
    ("ima(window=1, start=0)+fedadam+scaffold", "fedadam+scaffold", 0),
    ("ima(start=3)", "fedavg", 0),  # three rounds leave none to average
    ("ima_averages(start=3)+fedyogi", "fedyogi", 0),
    ("ima_averages(window=1, start=0)", "fedavg", 0),
    ("ima_averages(window=2, start=1)", "ima(window=2, start=1)", 1e-12),
    ("ima_averages(start=0)+fedprox(mu=0.3)", "ima(start=0)+fedprox(mu=0.3)", 1e-12),
]
# Limits that also need a certain setting: method and setting, twice.
ONE_STEP = {"cohorts": toy.ALONE, "proxy_batch_size": 12}
NO_SOLVER = {"client_momentum": 0.0, "weight_decay": 0.0}
ALONE_NORM = {"cohorts": toy.ALONE, "model": toy.norm_model(), "proxy_batch_size": 12}
LIMITS_OF_SETTINGS = [
    ("fedprox(mu=0, steps=plain)", {}, "fedavg", NO_SOLVER, 0),
    ("fedprox(mu=0.3, steps=plain)", {}, "fedprox(mu=0.3)", NO_SOLVER, 0),
    ("fedavg", {"client_momentum": 0.0, "keep_client_momentum": True}, "fedavg", {"client_momentum": 0.0}, 0),
    ("fedavg", {"rounds": 1, "keep_client_momentum": True}, "fedavg", {"rounds": 1}, 0),
    # The gradient of a single client conflicts with no other. With batch_size 50 every client takes one local step per epoch.
    ("gh", {"cohorts": toy.ALONE, "by_class": True}, "fedavg", {"cohorts": toy.ALONE, "by_class": True}, 0),
    ("fednova", {"batch_size": 50}, "fedavg", {"batch_size": 50}, 1e-12),
    ("fedyogi", {"rounds": 1}, "fedadam", {"rounds": 1}, 0),
    ("scaffold", {"rounds": 1}, "mean(weighting=uniform)", {"rounds": 1}, 0),
    ("scaffold(option=1)", {"rounds": 1}, "mean(weighting=uniform)", {"rounds": 1}, 1e-15),
    ("attention", {"rounds": 1}, "mean(weighting=uniform)", {"rounds": 1}, 1e-15),
    ("attention(kind=self)", {"cohorts": toy.ALONE}, "fedavg", {"cohorts": toy.ALONE}, 0),
    ("attention(kind=global)", {"cohorts": toy.ALONE}, "fedavg", {"cohorts": toy.ALONE}, 0),
    # With four clients the first round of IGFL's client side is FedAvg at 1 + 1/4 of the rate.
    ("igfl_c", {"rounds": 1} | NO_SOLVER, "mean(weighting=uniform)", {"rounds": 1, "client_lr": 0.125} | NO_SOLVER, 1e-15),
    # FedDyn with alpha 0 is FedAvg on the clients. Its first server step adds |S|/n of the mean move to the mean move.
    ("feddyn(alpha=1e-9)", {"rounds": 1}, "mean(weighting=uniform)+server_sgd(server_lr=2)", {"rounds": 1}, 1e-8),
    (
        "feddyn(alpha=1e-9)",
        {"rounds": 1, "cohorts": ((0, 3),)},
        "mean(weighting=uniform)+server_sgd(server_lr=1.5)",
        {"rounds": 1, "cohorts": ((0, 3),)},
        1e-8,
    ),
    # The model of the only client is the student's start, so the student already agrees with its teacher. There is only one
    # step of Adam: with an eps of 1e-8 a gradient of rounding errors is multiplied by server_lr / eps = 1e5, and grows with
    # each further step.
    ("feddf(server_epochs=1)", {"rounds": 1, **ONE_STEP}, "fedavg", {"rounds": 1, **ONE_STEP}, 1e-9),
    ("feddf(server_epochs=4, solver=sgd)", {"cohorts": toy.ALONE}, "fedavg", {"cohorts": toy.ALONE}, 1e-15),
    ("fedbe(server_epochs=4, solver=sgd, samples=0)", {"cohorts": toy.ALONE}, "fedavg", {"cohorts": toy.ALONE}, 1e-15),
    # Running statistics: the mean of one client's are its own, and fine-tuning at a rate of almost 0 only makes passes.
    ("mean_buffers(weighting=uniform)", ALONE_NORM, "first_client_buffers", ALONE_NORM, 0),
    ("proxy_buffers(passes=3)", ALONE_NORM, "server_ft(server_epochs=3, server_lr=1e-15)+server_buffers", ALONE_NORM, 1e-12),
]
# Cohorts of all clients, of two, and of one. Client 2, which has no data, fills the rows.
MIXED = (toy.EVERYBODY[0], (0, 3, 2, 2, 2), (1, 2, 2, 2, 2))


def final(text: str, **changes) -> Tree:
    """Global weights after all rounds of a toy run."""
    return train(toy.make_task(**changes), compose(text)).params


@cache
def mixed(text: str) -> Tree:
    """The weights of a mixed run, with full and partial participation. It is cached, since many methods reduce to one."""
    return final(text, cohorts=MIXED)


@cache
def two_rounds(text: str, model: Callable[[], Model], by_class: bool = False) -> Outcome:
    """Two rounds of a method, cached because every method is compared with FedAvg."""
    return train(toy.make_task(model=model(), by_class=by_class, rounds=2), compose(text))


@pytest.mark.parametrize(("text", "same_as", "atol"), IDENTITIES)
def test_reduces_to(text: str, same_as: str, atol: float) -> None:
    """Limiting cases that docstrings promise hold over 3 rounds, with full and partial participation, in float64."""
    torch.testing.assert_close(mixed(text).flat, mixed(same_as).flat, rtol=0, atol=atol)


@pytest.mark.parametrize(("text", "changes", "same_as", "same_changes", "atol"), LIMITS_OF_SETTINGS)
def test_reduces_to_in_a_setting(text: str, changes: dict, same_as: str, same_changes: dict, atol: float) -> None:
    """Limiting cases that need a certain setting hold in float64, for weights and running statistics."""
    found, expected = (
        train(toy.make_task(**setting), compose(method)) for method, setting in ((text, changes), (same_as, same_changes))
    )
    torch.testing.assert_close(found.params.flat, expected.params.flat, rtol=0, atol=atol)
    torch.testing.assert_close(found.buffers.flat, expected.buffers.flat, rtol=0, atol=atol)


@pytest.mark.parametrize("model", [toy.tiny_model, toy.norm_model])
def test_at_equal_sizes_uniform_is_by_size(model) -> None:
    """For five clients of equal size, uniform weights equal weights by size: in the mean, the statistics and FedDyn's state."""
    task = toy.make_task(model=model(), cohorts=toy.PARTIAL)
    task = dataclasses.replace(task, client_sizes=torch.full_like(task.client_sizes, 7))
    for text in ("mean(weighting={0})+mean_buffers(weighting={0})", "feddyn+mean(weighting={0})+mean_buffers(weighting={0})"):
        size, uniform = (train(task, compose(text.format(weighting))) for weighting in ("size", "uniform"))
        torch.testing.assert_close(size.params.flat, uniform.params.flat, rtol=0, atol=1e-12)
        torch.testing.assert_close(size.buffers.flat, uniform.buffers.flat, rtol=0, atol=1e-12)
    whole = dataclasses.replace(task, cohorts=toy.make_task().cohorts)
    by_size, uniform = (train(whole, compose(f"feddyn(weighting={weighting})")) for weighting in ("size", "uniform"))
    torch.testing.assert_close(by_size.params.flat, uniform.params.flat, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "text", ["server_ft", "feddf", "fedbe", "fedlaw_swa", "law_swa", "adaptive_gws", "fedlaw", "attentive_law"]
)
def test_without_server_epochs_a_model_with_batch_norm_has_fedavgs_weights(text: str) -> None:
    """Only the weights are compared: FedLAW and its relatives keep the server's statistics, and these do not change without
    server epochs."""
    found, fedavg = (two_rounds(method, toy.norm_model) for method in (f"{text}(server_epochs=0)", "fedavg"))
    exact = text not in ("fedlaw", "attentive_law")  # their weights went through log and softmax
    torch.testing.assert_close(found.params.flat, fedavg.params.flat, rtol=0, atol=0 if exact else 1e-12)
    own = "law" in text or "gws" in text
    first = toy.make_task(model=toy.norm_model()).buffers
    assert torch.equal(found.buffers.flat, first.flat if own else fedavg.buffers.flat)


AWAY = [
    "fedprox(mu=0.3)",
    "fixed_gamma(gamma=0.81)",
    "server_sgd(server_lr=0.5)",
    "fedprox(mu=0, steps=plain)",
    "mean(weighting=uniform)",
]
AWAY += ["fedavgm(nesterov=true)", "fedadam(first_v=tau_squared)", "mean_buffers(weighting=uniform)"]
AWAY += toy.PART_METHODS


@pytest.mark.parametrize("text", AWAY)
def test_away_from_its_limit_a_method_differs(text: str) -> None:
    """Without this test the identities above would also hold for parts that do nothing. A buffers part does not change the
    weights, but on a model with BatchNorm it changes the statistics."""
    model = toy.norm_model if compose(text).buffers != compose("fedavg").buffers else toy.tiny_model
    by_class = bool(compose(text).transforms)  # without conflicts there is nothing to harmonise
    found, fedavg = (two_rounds(method, model, by_class) for method in (text, "fedavg"))
    alone = PARTS.get(text.partition("(")[0]).slot == "buffers"
    assert torch.equal(found.params.flat, fedavg.params.flat) == alone
    for mine, usual in ((found.buffers, fedavg.buffers), (found.params, fedavg.params))[: 1 if alone else 2]:
        if mine.layout.names:
            assert (mine.flat - usual.flat).abs().max() > 1e-6


def test_momentum_that_is_kept_matters_from_the_second_round_on() -> None:
    """Without this test the identities of the setting would also hold for a switch that does nothing."""
    kept, fresh = final("fedavg", rounds=2, keep_client_momentum=True), final("fedavg", rounds=2)
    assert (kept.flat - fresh.flat).abs().max() > 1e-4


def test_every_part_with_arguments_has_an_identity() -> None:
    """A new part with arguments needs its limiting case in IDENTITIES or LIMITS_OF_SETTINGS."""
    texts = [text for text, *_ in [*IDENTITIES, *LIMITS_OF_SETTINGS]]
    listed = {part.name for text in texts for part in compose(text).parts}
    missing = [name for name in PARTS.names() if dataclasses.fields(PARTS.get(name)) and name not in listed]
    assert not missing, f"add a line to IDENTITIES for {missing}"


@pytest.mark.parametrize("text", [f"{part}(server_epochs=0)" for part in ("fedlaw", "fedlaw_swa", "adaptive_gws")])
def test_without_server_epochs_gamma_is_exactly_one(text: str) -> None:
    """In FedLAW's protocol, zero server epochs are FedAvg with gamma = 1, without rounding."""
    assert toy.values_of(train(toy.make_task(), compose(text)).progress.rows, "gamma") == [1.0, 1.0, 1.0]


def one_cohort(task: Task) -> Cohort:
    """What the clients send in round 0 of FedAvg."""
    method = compose("fedavg")
    cohort, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    return cohort


def test_identical_clients_make_any_weights_the_same_mean() -> None:
    """If all updates are equal, attentive LAW returns that update whatever it learned, and FedLAW returns it times its gamma:
    gamma (w + u) - w."""
    task = toy.make_task()
    cohort = one_cohort(task)
    same = dataclasses.replace(cohort, updates=cohort.updates.like(cohort.updates.flat[:1].expand_as(cohort.updates.flat)))
    update, anchor = same.updates.flat[0], cohort.anchor.flat
    attentive, _ = compose(toy.part_text("attentive_law")).aggregate(same, None, toy.server_context(task))
    torch.testing.assert_close(attentive.flat, update, rtol=0, atol=1e-12)
    ctx = toy.server_context(task)
    joint, _ = compose(toy.part_text("fedlaw")).aggregate(same, None, ctx)
    assert ctx.notes["gamma"] != 1
    torch.testing.assert_close(joint.flat, ctx.notes["gamma"] * (anchor + update) - anchor, rtol=0, atol=1e-12)


def test_full_batch_fedavg_with_one_local_step_is_gradient_descent() -> None:
    """All clients take one step on all their data, weighted by number of samples. This is gradient descent on the pooled mean
    loss.

    Reference: torch.nn and autograd on the pooled samples, 4 steps of w <- w - 0.1 * 0.9^t * grad.
    """
    task = toy.make_task(rounds=4, local_epochs=1, batch_size=1000, client_momentum=0.0, weight_decay=0.0)
    task = dataclasses.replace(task, client_sizes=torch.tensor(toy.TRAIN_SIZES, dtype=torch.float64))
    found = train(task, compose("fedavg")).params

    seen = task.train.take(torch.cat(task.client_index))
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    for parameter, (_, value) in zip(net.parameters(), task.params.items(), strict=True):
        parameter.data.copy_(value)
    for step in range(4):
        loss = nn.functional.cross_entropy(net(seen.x), seen.y)
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        for parameter, gradient in zip(net.parameters(), gradients, strict=True):
            parameter.data -= 0.1 * 0.9**step * gradient
    expected = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
    torch.testing.assert_close(found.flat, expected, rtol=0, atol=1e-12)


def test_partial_participation_renormalises_the_weights() -> None:
    """Clients 0 and 3 hold 10 and 28 samples. Together they give (10 w_0 + 28 w_3) / 38, where w_k is client k alone."""
    alone = {client: final("fedavg", rounds=1, cohorts=((client,),)).flat for client in (0, 3)}
    both = final("fedavg", rounds=1, cohorts=((0, 3),)).flat
    torch.testing.assert_close(both, (10 * alone[0] + 28 * alone[3]) / 38, rtol=0, atol=1e-12)


def test_an_empty_client_changes_nothing() -> None:
    """Client 2 has no data. The round is the same with or without it in the cohort."""
    assert torch.equal(final("fedavg", cohorts=((0, 2, 3),)).flat, final("fedavg", cohorts=((0, 3),)).flat)
