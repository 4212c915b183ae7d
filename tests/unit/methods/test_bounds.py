"""Bounds of parts' arguments: one line names part, argument, value and bound."""

import pytest

from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS
from fedrepro.methods.proxy_weights import ProxyLearning
from fedrepro.methods.student import StudentTraining
from tests.helpers.one_line import one_line

POSITIVE, NOT_NEGATIVE, SHARE = "must be greater than 0", "must be at least 0", "must be at least 0 and below 1"
REFUSED = [
    ("proxy_buffers(passes=0)", "passes = 0: must be at least 1"),
    ("mean_buffers(weighting=all)", "weighting = 'all': must be size or uniform"),
    ("mean(weighting=equal)", "weighting = 'equal': must be size, uniform or all"),
    ("fednova(weighting=all)", "weighting = 'all': must be size or uniform"),
    ("elastic(tau=-0.1)", f"tau = -0.1: {NOT_NEGATIVE}"),
    ("elastic(mu=1.0)", f"mu = 1.0: {SHARE}"),
    ("elastic(granularity=layer)", "granularity = 'layer': must be one of tensor, module, channel, global"),
    ("elastic(of=loss)", "of = 'loss': must be one of logits, probabilities, features"),
    ("fedasam(rho=-1)", f"rho = -1.0: {NOT_NEGATIVE}"),
    ("fedasam(eta=-0.1)", f"eta = -0.1: {NOT_NEGATIVE}"),
    ("feddyn(alpha=0)", f"alpha = 0.0: {POSITIVE}"),
    ("feddyn(clip=-1)", f"clip = -1.0: {NOT_NEGATIVE}"),
    ("feddyn(norm=cubed)", "norm = 'cubed': must be squared or plain"),
    ("feddyn(weighting=all)", "weighting = 'all': must be size or uniform"),
    ("fedgma(threshold=1.5)", "threshold = 1.5"),
    ("fedgma(variant=hard)", "variant = 'hard'"),
    ("fedlaw_swa(swa_start=-1)", f"swa_start = -1: {NOT_NEGATIVE}"),
    ("fedlaw_swa(swa_lr=0)", f"swa_lr = 0.0: {POSITIVE}"),
    ("fedlaw_swa(swa_anneal=0)", "swa_anneal = 0: must be at least 1"),
    ("fedlaw_swa(cosine_epochs=0)", "cosine_epochs = 0: must be at least 1"),
    ("law_swa(swa_start=-1)", f"law_swa: swa_start = -1: {NOT_NEGATIVE}"),
    ("law_swa(swa_lr=0)", f"law_swa: swa_lr = 0.0: {POSITIVE}"),
    ("law_swa(swa_anneal=0)", "law_swa: swa_anneal = 0: must be at least 1"),
    ("fedlaw_only(use=both)", "use = 'both': must be gamma or lambda"),
    ("early_stopped_law(stop=never)", "stop = 'never': must be coherence, a round or a share of the rounds"),
    ("early_stopped_law(stop=-1)", "stop = -1: must be a round"),
    ("early_stopped_law(stop=1.0)", "stop = 1.0: must be a round"),
    ("early_stopped_law(stop=true)", "True: must be a whole number or a number or a word"),
    ("fedprox(mu=-1)", f"mu = -1.0: {NOT_NEGATIVE}"),
    ("fedprox(steps=none)", "steps = 'none': must be as_set or plain"),
    ("fixed_gamma(gamma=1.1)", "gamma = 1.1: must be greater than 0 and at most 1"),
    ("fixed_gamma(gamma=0)", "gamma = 0.0"),
    *((f"gh({argument}=x)", f"{argument} = 'x': must be") for argument in ("against", "denominator", "order")),
    ("ima(window=0)", "window = 0: must be at least 1"),
    ("ima(start=1.5)", "start = 1.5: must be a round"),
    ("ima(start=0.0)", "start = 0.0: must be a round"),
    ("ima_averages(start=-1)", "start = -1: must be a round"),
    ("ima(start=late)", "'late': must be a whole number or a number"),
    ("ima(start=true)", "True: must be a whole number or a number"),
    ("per_fedavg(inner_lr=-1)", "inner_lr = -1.0: must be at least 0 (0 is FedAvg)"),
    ("per_fedavg(variant=second)", "variant = 'second': must be first_order or hessian_free"),
    ("per_fedavg(adapt=0)", "adapt = 0: must be at least 1 step"),
    ("per_fedavg(delta=0)", f"delta = 0.0: {POSITIVE}"),
    ("pfedme(lam=-1)", f"lam = -1.0: {NOT_NEGATIVE}"),
    ("pfedme(steps=0)", "steps = 0: must be at least 1"),
    ("pfedme(inner_lr=0)", f"inner_lr = 0.0: {POSITIVE}"),
    ("pfedme(start=late)", "start = 'late': must be own or received"),
    ("pfnm(sigma=0)", f"sigma = 0.0: {POSITIVE}"),
    ("pfnm(sweeps=0)", "sweeps = 0: must be at least 1"),
    ("server_sgd(server_lr=0)", "server_lr = 0.0"),
    ("fedavgm(beta=1)", f"beta = 1.0: {SHARE}"),
    ("fedavgm(server_lr=0)", f"server_lr = 0.0: {POSITIVE}"),
    ("fedadam(beta1=1)", f"beta1 = 1.0: {SHARE}"),
    ("fedyogi(beta2=1)", f"beta2 = 1.0: {SHARE}"),
    ("fedadagrad(tau=-1)", f"tau = -1.0: {POSITIVE}"),
    ("fedadagrad(beta2=0.9)", "unknown argument 'beta2'"),
    ("fedadam(server_lr=0)", f"server_lr = 0.0: {POSITIVE}"),
    ("fedadam(first_v=one)", "first_v = 'one': must be zero or tau_squared"),
    ("fedbe(samples=-1)", f"samples = -1: {NOT_NEGATIVE}"),
    ("fedbe(noise=-0.1)", f"noise = -0.1: {NOT_NEGATIVE}"),
    ("fedbe(ensemble=votes)", "ensemble = 'votes': must be logits or probabilities"),
    ("fedbe(temperature=0)", "temperature = 0.0: must be greater than 0 and at most 1"),
]
# Parts whose checks of the same arguments are shared code.
SHARED = {
    ProxyLearning: ("server_lr=0", "server_epochs=-1", "halve_every=0", "beta1=1", "beta2=-0.1"),
    StudentTraining: ("solver=lbfgs", "server_lr=0", "server_epochs=-1", "momentum=1", "beta2=1", "weight_decay=-1"),
}
for base, refused in SHARED.items():
    for name in [name for name in PARTS.names() if issubclass(PARTS.get(name), base)]:
        REFUSED += [(f"{name}({one})", one.partition("=")[0] + " = ") for one in refused]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_refused(text: str, says: str) -> None:
    with one_line() as caught:
        compose(text)
    assert str(caught.value).startswith(text.partition("(")[0])
    assert says in str(caught.value)
