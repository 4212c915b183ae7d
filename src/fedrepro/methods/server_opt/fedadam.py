"""FedAdam. Reddi et al., ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 2: v <- beta2 v + (1 - beta2) update^2.

The rest is in `fedrepro.methods.adaptive`. Limiting case: beta1 = 0 and tau far above every |update| is FedAvg with a server_lr
of server_lr / tau.
"""

from dataclasses import dataclass

from fedrepro.lazy import Tensor
from fedrepro.methods.adaptive import AdaptiveServer
from fedrepro.methods.parts import register


@register("server_opt", "fedadam")
@dataclass(frozen=True)
class FedAdam(AdaptiveServer):
    """`server_lr` > 0, `beta1` and `beta2` in [0, 1), `tau` > 0, `first_v` zero or tau_squared.

    FedIMA takes a server_lr of 0.01; the code of FedLAW's authors, whose paper has no FedAdam, takes 1.0 with tau = 1e-5.
    """

    server_lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    first_v: str = "zero"

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        return self.beta2 * v + (1 - self.beta2) * squared
