"""FedYogi. Reddi et al., ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 2.

v <- v - (1 - beta2) update^2 sign(v - update^2): v moves towards the squared update by a step that depends on the update alone,
so that it forgets large ones more slowly than FedAdam's. The rest is in `fedrepro.methods.adaptive`. Limiting case: from v = 0
the first step is FedAdam's.
"""

from dataclasses import dataclass

from fedrepro.lazy import Tensor
from fedrepro.methods.adaptive import AdaptiveServer
from fedrepro.methods.parts import register


@register("server_opt", "fedyogi")
@dataclass(frozen=True)
class FedYogi(AdaptiveServer):
    """`server_lr` > 0, `beta1` and `beta2` in [0, 1), `tau` > 0, `first_v` zero or tau_squared."""

    server_lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    first_v: str = "zero"

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        return v - (1 - self.beta2) * squared * (v - squared).sign()
