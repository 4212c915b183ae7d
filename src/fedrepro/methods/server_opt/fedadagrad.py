"""FedAdagrad. Reddi et al., ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 2: v <- v + update^2, which never falls.

The rest is in `fedrepro.methods.adaptive`. beta1 is 0 by default, as in that paper's experiments; FedAdam and FedYogi have 0.9.
Limiting case: beta1 = 0 and tau far above every |update| is FedAvg with a server_lr of server_lr / tau.
"""

from dataclasses import dataclass

from fedrepro.lazy import Tensor
from fedrepro.methods.adaptive import AdaptiveServer
from fedrepro.methods.parts import register


@register("server_opt", "fedadagrad")
@dataclass(frozen=True)
class FedAdagrad(AdaptiveServer):
    """`server_lr` > 0, `beta1` in [0, 1), `tau` > 0, `first_v` zero or tau_squared. There is no beta2: nothing is forgotten."""

    server_lr: float = 0.01
    beta1: float = 0.0
    tau: float = 1e-3
    first_v: str = "zero"

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        return v + squared
