"""Adam for server-side learning. Kingma and Ba, ICLR 2015, https://arxiv.org/abs/1412.6980, Algorithm 1, with bias correction.

Written out because constructing any optimiser of torch.optim imports some 900 modules, seconds in each training process.
"""

from dataclasses import dataclass

from fedrepro import elementwise
from fedrepro.lazy import Tensor, torch

AdamState = tuple[Tensor, Tensor, int]  # first moment, second moment, steps taken


@dataclass(frozen=True)
class Adam:
    """beta1, beta2 in [0, 1); eps is added to the root of the second moment, as torch does."""

    beta1: float
    beta2: float
    eps: float = 1e-8

    def init(self, x: Tensor) -> AdamState:
        """Zero moments, no steps."""
        return torch.zeros_like(x), torch.zeros_like(x), 0

    def step(self, x: Tensor, gradient: Tensor, state: AdamState, server_lr: float) -> tuple[Tensor, AdamState]:
        """x after one step along `gradient`, and the new state."""
        m, v, t = state[0], state[1], state[2] + 1
        m = self.beta1 * m + (1 - self.beta1) * gradient
        v = self.beta2 * v + (1 - self.beta2) * gradient.square()
        m_hat, v_hat = m / (1 - self.beta1**t), v / (1 - self.beta2**t)
        return x - server_lr * m_hat / (elementwise.sqrt(v_hat) + self.eps), (m, v, t)
