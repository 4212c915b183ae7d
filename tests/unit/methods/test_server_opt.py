"""The server's steps by hand, on one weight that starts at 1."""

import math

import pytest
import torch

from fedrepro import tree
from fedrepro.methods.compose import compose
from tests import toy


def steps(text: str, updates: list[float]) -> list[float]:
    """The weight after each of these aggregated updates."""
    part, params, found = compose(text).server_opt, toy.one_weight(1.0), []
    state, ctx = part.init(params), toy.server_context(toy.make_task())
    for update in updates:
        step, state = part(toy.one_weight(update), state, ctx)
        params = tree.map(torch.add, params, step)
        found.append(params.flat.item())
    return found


def test_fedavgm_by_hand() -> None:
    """v <- 0.5 v + update, w <- w + 2 v: v = 0.4, w = 1.8; v = 0.2 - 0.1 = 0.1, w = 2; v = 0.05, w = 2.1."""
    assert steps("fedavgm(beta=0.5, server_lr=2)", [0.4, -0.1, 0.0]) == pytest.approx([1.8, 2.0, 2.1], abs=1e-15)


def test_fedavgm_with_nesterov_by_hand() -> None:
    """w <- w + 2 (update + 0.5 v) with the new v: 0.4 + 0.2 = 0.6, w = 2.2; -0.1 + 0.05 = -0.05, w = 2.1."""
    assert steps("fedavgm(beta=0.5, server_lr=2, nesterov=true)", [0.4, -0.1]) == pytest.approx([2.2, 2.1], abs=1e-15)


@pytest.mark.parametrize(("first_v", "v"), [("zero", (1e-4, 4.99e-4)), ("tau_squared", (0.01, 0.0103))])
def test_fedadam_by_hand(first_v: str, v: tuple[float, float]) -> None:
    """Updates 0.1 and -0.2; beta1 0.9, beta2 0.99, tau 0.1, server_lr 0.01, no bias correction.

    m = 0.1 * 0.1 = 0.01; then 0.009 - 0.02 = -0.011.
    v from 0: 0.01 * 0.01 = 1e-4; then 0.99e-4 + 0.01 * 0.04 = 4.99e-4. From tau^2 = 0.01: 0.0099 + 1e-4; then 0.0099 + 4e-4.
    w = 1 + 0.01 * 0.01 / (sqrt(v) + 0.1), then minus 0.01 * 0.011 / (sqrt(v) + 0.1); from 0 the first step is 1e-4 / 0.11.
    """
    first = 1 + 1e-4 / (math.sqrt(v[0]) + 0.1)
    second = first - 1.1e-4 / (math.sqrt(v[1]) + 0.1)
    found = steps(f"fedadam(tau=0.1, server_lr=0.01, first_v={first_v})", [0.1, -0.2])
    assert found == pytest.approx([first, second], abs=1e-15)


def test_fedyogi_by_hand() -> None:
    """Updates 0.1, -0.2 and 0.001; m = 0.01, -0.011, -0.0098. v = 1e-4, as FedAdam's; plus 0.01 * 0.04, since 0.04 is more than
    1e-4; minus 0.01 * 1e-6, since that is less."""
    found, w = [], 1.0
    for m, v in ((0.01, 1e-4), (-0.011, 5e-4), (-0.0098, 5e-4 - 1e-8)):
        w += 0.01 * m / (math.sqrt(v) + 0.1)
        found.append(w)
    assert steps("fedyogi(tau=0.1)", [0.1, -0.2, 0.001]) == pytest.approx(found, abs=1e-15)
    assert steps("fedyogi(tau=0.1)", [0.1])[0] == steps("fedadam(tau=0.1)", [0.1])[0]


@pytest.mark.parametrize(("first_v", "v"), [("zero", (0.01, 0.05)), ("tau_squared", (0.02, 0.06))])
def test_fedadagrad_by_hand(first_v: str, v: tuple[float, float]) -> None:
    """v adds up 0.01 and 0.04, from 0 or from tau^2 = 0.01. m is the update, or with beta1 = 0.5 half of it and half of m."""
    first = 1 + 0.01 * 0.1 / (math.sqrt(v[0]) + 0.1)
    second = first - 0.01 * 0.2 / (math.sqrt(v[1]) + 0.1)
    text = f"fedadagrad(tau=0.1, first_v={first_v})"
    assert steps(text, [0.1, -0.2]) == pytest.approx([first, second], abs=1e-15)
    first, m = 1 + 0.01 * 0.05 / (math.sqrt(v[0]) + 0.1), 0.025 - 0.1
    second = first + 0.01 * m / (math.sqrt(v[1]) + 0.1)
    assert steps(text.replace(")", ", beta1=0.5)"), [0.1, -0.2]) == pytest.approx([first, second], abs=1e-15)


@pytest.mark.parametrize("name", ["fedadam", "fedyogi", "fedadagrad"])
def test_adaptive_servers_stand_still_without_updates(name: str) -> None:
    """0 / (0 + tau): an update of exactly zero gives no NaN."""
    assert steps(name, [0.0, 0.0]) == [1.0, 1.0]
