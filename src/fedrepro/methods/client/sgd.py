"""Plain local training, the client side of FedAvg. McMahan et al., AISTATS 2017, https://arxiv.org/abs/1602.05629."""

from dataclasses import dataclass

from fedrepro.methods.parts import LocalRule, register


@register("client", "local_sgd")
@dataclass(frozen=True)
class LocalSgd(LocalRule):
    """Descends along the gradient of the mean cross-entropy; the local solver (momentum, decay) belongs to the setting."""
