"""FedNova: normalised averaging by hand, its limiting case, and the worth of a step."""

import pytest
import torch

from fedrepro.engine.loop import train
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import LocalRule
from fedrepro.types import Cohort, Solver
from tests import toy


def cohort_of(effective_steps: list[float]) -> Cohort:
    """Clients 0 and 1 with updates (4, 0) and (0, 1) and shares 3/4 and 1/4."""
    steps = torch.tensor(effective_steps, dtype=torch.float64)
    return toy.cohort([[4.0, 0.0], [0.0, 1.0]], [0.75, 0.25], effective_steps=steps)


@pytest.mark.parametrize(("weighting", "expected"), [("size", [2.4375, 0.8125]), ("uniform", [1.25, 1.25])])
def test_by_hand(weighting: str, expected: list[float]) -> None:
    """a = (4, 1), so d = ((1, 0), (0, 1)). By size: mean path 3/4 * 4 + 1/4 * 1 = 3.25, update 3.25 * (3/4, 1/4); uniform:
    2.5 * (1/2, 1/2)."""
    method = compose(f"fednova(weighting={weighting})")
    update, _ = method.aggregate(cohort_of([4.0, 1.0]), None, toy.server_context(toy.make_task()))
    assert update.flat.tolist() == pytest.approx(expected, abs=1e-12)


def worth(rule: LocalRule, momentum: float, steps: list[int], client_lr: float = 0.1) -> list[float]:
    """a_k of clients with these numbers of steps."""
    return rule.effective_steps(Solver(momentum, 0.0), client_lr, steps)


def test_plain_steps_count_themselves() -> None:
    """Without momentum and proximal term a_k = T_k, in the order of the clients."""
    assert worth(compose("fedavg").client, 0.0, [3, 1, 40]) == [3.0, 1.0, 40.0]


@pytest.mark.parametrize("momentum", [0.5, 0.9])
def test_momentum_as_in_the_paper(momentum: float) -> None:
    """a = (T - rho (1 - rho^T) / (1 - rho)) / (1 - rho). One step is worth one."""
    closed = lambda T: (T - momentum * (1 - momentum**T) / (1 - momentum)) / (1 - momentum)  # noqa: E731
    assert worth(compose("fedavg").client, momentum, [1, 2, 17]) == pytest.approx([1.0, closed(2), closed(17)], abs=1e-12)


def test_a_proximal_term_as_in_the_paper() -> None:
    """a <- (1 - client_lr mu) a + 1. With client_lr mu = 0.1 that is 1, 1.9, 2.71; with mu = 0 it counts steps."""
    assert worth(compose("fedprox(mu=1.0)").client, 0.0, [1, 2, 3]) == pytest.approx([1.0, 1.9, 2.71], abs=1e-12)
    assert worth(compose("fedprox(mu=0.0)").client, 0.0, [5]) == [5.0]


def test_the_rules_own_solver_counts() -> None:
    """FedProx with plain steps does not use the setting's momentum."""
    assert worth(compose("fedprox(mu=0.0, steps=plain)").client, 0.9, [4]) == [4.0]


def test_feddyns_quadratic_term_shortens_steps() -> None:
    """alpha/2 ||w - w_t||^2 counts as FedProx's term does: with client_lr alpha = 0.05 two steps are worth 1 + 0.95 = 1.95. The
    plain norm does not count."""
    assert worth(compose("feddyn(alpha=0.5)").client, 0.0, [1, 2, 3]) == pytest.approx([1.0, 1.95, 2.8525], abs=1e-12)
    assert worth(compose("feddyn(alpha=0.5, norm=plain)").client, 0.0, [2]) == [2.0]


def test_feddyn_with_fednova_by_hand() -> None:
    """Gradients 2 (two steps) and -1 (one step), client_lr 0.1, alpha 0.5, weights 2/3 and 1/3, w = 1.

    Client 0: -0.2, then -0.1 (2 - 0.5 * 0.2) = -0.19: -0.39 = -0.1 * 2 * 1.95. Client 1: 0.1. So d = (-0.2, 0.1), the mean path
    is 2/3 * 1.95 + 1/3 = 4.9/3, the update 4.9/3 * (-0.4 + 0.1)/3 = -0.49/3. h changes by the real moves of the clients, as
    their states do: h = -0.5 * (-0.39 + 0.1)/2 = 0.0725, and w = 1 - 0.49/3 - 0.0725/0.5.
    """
    task = toy.linear_task(1, client_momentum=0.0, weight_decay=0.0)
    end = train(task, toy.linear("feddyn(alpha=0.5)+fednova")).params.flat.item()
    assert end == pytest.approx(1 - 0.49 / 3 - 0.145, abs=1e-14)


@pytest.mark.parametrize(("momentum", "mu"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.8), (0.5, 0.8)])
def test_what_a_run_moves_under_a_constant_gradient(momentum: float, mu: float) -> None:
    """By definition, on a loss with gradient m everywhere a client moves by client_lr * m * a_k."""
    task = toy.linear_task(1, client_momentum=momentum, weight_decay=0.0, local_epochs=5)
    rule = toy.linear(f"fedprox(mu={mu})")
    end = train(task, rule).params.flat
    a = worth(rule.client, momentum, [10, 5])
    assert float(end) == pytest.approx(1.0 - 0.1 * (2 / 3 * 2.0 * a[0] + 1 / 3 * -1.0 * a[1]), abs=1e-12)
