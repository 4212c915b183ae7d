"""The terms of FedIMA's decomposition of the global model's loss. FedIMA, Theorem 1, and section 5.3 with Figures 2 to 4.

The paper's text has lost its formulas; rebuilt from its definitions, with K clients' models of weights p_i, f_i(x) = f(w_i; x):

    E ||y - f(w; x)||^2 = E_x { ||sum_i p_i b_i||^2 + sum_i p_i^2 Var_i + sum_i sum_{j != i} p_i p_j Cov_ij } + O(D^2)

b_i(x) = y - E f_i(x) is TrainBias_i on samples of client i's data and HeterBias_i on the others'; Var_i and Cov_ij are those
of the outputs over the randomness of training; D = max_i ||w_i - w|| is the locality. The remainder O(D^2) is the difference
between the averaged weights and the averaged outputs: 0 for a network that is linear in its weights.

The paper measures proxies: the loss of clients' models on their own data and on the others' data for the biases (Figure 2), the
locality (Figure 3), the number of averaged models for the variance and CKA for the covariance (Figure 4: diagnostics
`averaged_models` and `cka`). A single training does not show its randomness. So for the terms themselves the expectation is the
mean over the models of a client in some neighbouring rounds (our choice). With that the terms and the remainder sum to the
squared error exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from fedrepro import tree
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Task, Value, spaced
from fedrepro.lazy import Tensor, torch
from fedrepro.registry import require

BIASES = ("train_bias", "train_error", "heterogeneous_bias", "heterogeneous_error")
TERMS = ("squared_bias", "variance", "covariance", "squared_error", "remainder")


@DIAGNOSTICS.register("decomposition")
@dataclass(frozen=True)
class Decomposition(Diagnostic):
    """`train_bias` is the loss of the clients' models on the data that they trained on, `heterogeneous_bias` that on all other
    clients' training data, `train_error` and `heterogeneous_error` the errors there: means by the clients' shares of the data,
    and of each client. `locality` is max_i ||w_i - w|| to the global model after the round.

    `squared_bias`, `variance`, `covariance`, `squared_error` of the averaged weights and `remainder` are means over samples, of
    `outputs` (probabilities or logits) against the label as a vector of 0 and 1. Expectations go over `draws` rounds, this one
    and those before it, `apart` from each other, with the clients that trained in all of them. None where a round is missing or
    no client did. `draws` = 1: no variance, no covariance. `on`: the test set or all clients' training samples; `samples` of
    them, or all.
    """

    draws: int = 3
    apart: float = 1.0
    outputs: str = "probabilities"
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = (*BIASES, "locality", *TERMS)

    def __post_init__(self) -> None:
        require(self.draws >= 1, "draws", self.draws, "must be at least 1")
        super().__post_init__()

    def earlier(self, round: int, of: int) -> tuple[int, ...]:
        """One less than there are draws."""
        return spaced(round, of, self.apart, self.draws - 1)

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Every client's model of the round on all training samples; those of all draws, and their averages, for the terms."""
        return (Passes(clients, "train"), Passes(self.draws * (clients + 1), self.on, self.samples))

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """The biases, the locality, then the terms. Nothing where no client trained."""
        if not kept.clients:
            return
        yield from _biases(kept, task())
        distances = tree.norm(kept.params.like(kept.params.flat.double() - kept.after.params.flat.double()))
        yield Value(kept.round, "locality", float(distances.max()))
        rounds = [*kept.others.values(), kept]
        common = sorted(set.intersection(*(set(one.clients) for one in rounds)))
        if len(rounds) == self.draws and common:
            for metric, value in zip(TERMS, self._terms(rounds, common, task()), strict=True):
                yield Value(kept.round, metric, value)

    def _terms(self, rounds: list[RoundModels], clients: list[int], setting: Task) -> "Terms":
        """Over all samples; p_i as in the last of the rounds."""
        from fedrepro.engine import evaluate_many

        draws = [one.models.at([one.clients.index(client) for client in clients]) for one in rounds]
        last = rounds[-1]
        weights_K = last.weights.double()[[last.clients.index(client) for client in clients]]
        weights_K = weights_K / weights_K.sum()
        averages = evaluate_many.stack([evaluate_many.combine(weights_K[None], one).at(0) for one in draws])
        data, probabilities = evaluate_many.samples_of(setting, self.on, self.samples), self.outputs == "probabilities"
        each = [evaluate_many.outputs_of(setting.model, one, data, probabilities) for one in draws]
        sums, count = torch.zeros(len(TERMS), dtype=torch.float64), 0
        averaged = evaluate_many.outputs_of(setting.model, averages, data, probabilities)
        for (average_RNC, y), *outputs in zip(averaged, *each, strict=True):
            found = terms(torch.stack([one for one, _ in outputs]), average_RNC, y, weights_K)
            sums += len(y) * torch.tensor(found, dtype=torch.float64)
            count += len(y)
        return Terms(*(sums / count).tolist())


class Terms(NamedTuple):
    """Means over samples, summed over classes. The first three and the remainder sum to the squared error."""

    squared_bias: float
    variance: float
    covariance: float
    squared_error: float
    remainder: float


def terms(outputs_RKNC: "Tensor", average_RNC: "Tensor", y_N: "Tensor", weights_K: "Tensor") -> Terms:
    """Of R draws of K models' outputs, and of the outputs of their averaged weights."""
    label_NC = torch.nn.functional.one_hot(y_N, outputs_RKNC.shape[-1]).to(outputs_RKNC.dtype)
    mean_KNC = outputs_RKNC.mean(0)
    bias_NC = label_NC - torch.einsum("k,knc->nc", weights_K, mean_KNC)
    weighted_RKNC = weights_K[:, None, None] * (outputs_RKNC - mean_KNC)
    samples, draws = len(y_N), len(outputs_RKNC)
    squared_bias = float(bias_NC.square().sum()) / samples
    variance = float(weighted_RKNC.square().sum()) / samples / draws
    both = float(weighted_RKNC.sum(1).square().sum()) / samples / draws  # sum_i sum_j, i = j too
    error = float((label_NC - average_RNC).square().sum()) / samples / draws
    return Terms(squared_bias, variance, both - variance, error, error - squared_bias - both)


def _biases(kept: RoundModels, task: Task) -> Iterator[Value]:
    """Loss and error on own and on others' training samples; a client that has all of the data has no others'."""
    from fedrepro.engine import evaluate_many

    everything = torch.cat(task.client_index)
    weights = (kept.weights.double() / kept.weights.double().sum()).tolist()
    found: dict[str, list[tuple[int, float, float]]] = {metric: [] for metric in BIASES}
    for row, client in enumerate(kept.clients):
        model, own = kept.models.at(slice(row, row + 1)), task.client_index[client]
        others = everything[torch.isin(everything, own, invert=True)]
        for name, index in (("train", own), ("heterogeneous", others)):
            if len(index):
                (one,) = evaluate_many.evaluate(task.model, model, task.train.take(index.sort().values))
                found[f"{name}_bias"].append((client, weights[row], one.loss))
                found[f"{name}_error"].append((client, weights[row], one.error))
    for metric, each in found.items():
        total = sum(weight for _, weight, _ in each)
        if total > 0:
            yield Value(kept.round, metric, sum(weight * value for _, weight, value in each) / total)
        yield from (Value(kept.round, metric, value, client=client) for client, _, value in each)
