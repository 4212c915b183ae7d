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
from typing import ClassVar

from fedrepro import tree
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Task, Value, spaced
from fedrepro.lazy import Tensor, torch
from fedrepro.registry import require

BIASES = ("train_bias", "train_error", "heterogeneous_bias", "heterogeneous_error")
# Means over samples, summed over classes. The first three and the remainder sum to the squared error.
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
        """Returns one round less than there are draws."""
        return spaced(round, of, self.apart, self.draws - 1)

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Every client's model of the round on all training samples; those of all draws, and their averages, for the terms."""
        return (Passes(clients, "train"), Passes(self.draws * (clients + 1), self.on, self.samples))

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the biases, the locality, then the terms. Nothing where no client trained."""
        if not kept.clients:
            return
        yield from _biases(kept, task())
        distances = tree.norm(kept.params.like(kept.params.flat.double() - kept.after.params.flat.double()))
        yield Value(kept.round, "locality", float(distances.max()))
        rounds = [*kept.others.values(), kept]
        common = sorted(set.intersection(*(set(round_models.clients) for round_models in rounds)))
        if len(rounds) == self.draws and common:
            for metric, value in zip(TERMS, self._terms(rounds, common, task()), strict=True):
                yield Value(kept.round, metric, value)

    def _terms(self, rounds: list[RoundModels], clients: list[int], setting: Task) -> list[float]:
        """Returns the terms over all samples; p_i as in the last of the rounds."""
        from fedrepro.engine import evaluate_many

        draws = [round_models.models.at([round_models.clients.index(client) for client in clients]) for round_models in rounds]
        last = rounds[-1]
        weights_K = last.weights.double()[[last.clients.index(client) for client in clients]]
        weights_K = weights_K / weights_K.sum()
        averages = evaluate_many.stack([evaluate_many.combine(weights_K[None], draw).at(0) for draw in draws])
        data, probabilities = evaluate_many.samples_of(setting, self.on, self.samples), self.outputs == "probabilities"
        drawn_outputs = [evaluate_many.outputs_of(setting.model, draw, data, probabilities) for draw in draws]
        sums, count = torch.zeros(len(TERMS), dtype=torch.float64), 0
        averaged = evaluate_many.outputs_of(setting.model, averages, data, probabilities)
        for (average_RNC, y), *outputs in zip(averaged, *drawn_outputs, strict=True):
            means = terms(torch.stack([output for output, _ in outputs]), average_RNC, y, weights_K)
            sums += len(y) * torch.tensor(means, dtype=torch.float64)
            count += len(y)
        return (sums / count).tolist()


def terms(outputs_RKNC: "Tensor", average_RNC: "Tensor", y_N: "Tensor", weights_K: "Tensor") -> list[float]:
    """Returns the terms of R draws of K models' outputs, and of the outputs of their averaged weights."""
    label_NC = torch.nn.functional.one_hot(y_N, outputs_RKNC.shape[-1]).to(outputs_RKNC.dtype)
    mean_KNC = outputs_RKNC.mean(0)
    bias_NC = label_NC - torch.einsum("k,knc->nc", weights_K, mean_KNC)
    weighted_RKNC = weights_K[:, None, None] * (outputs_RKNC - mean_KNC)
    samples, draws = len(y_N), len(outputs_RKNC)
    squared_bias = float(bias_NC.square().sum()) / samples
    variance = float(weighted_RKNC.square().sum()) / samples / draws
    double_sum = float(weighted_RKNC.sum(1).square().sum()) / samples / draws  # sum_i sum_j, i = j too
    error = float((label_NC - average_RNC).square().sum()) / samples / draws
    return [squared_bias, variance, double_sum - variance, error, error - squared_bias - double_sum]


def _biases(kept: RoundModels, task: Task) -> Iterator[Value]:
    """Yields loss and error on own and on others' training samples; a client that has all of the data has no others'."""
    from fedrepro.engine import evaluate_many

    everything = torch.cat(task.client_index)
    weights = (kept.weights.double() / kept.weights.double().sum()).tolist()
    values: dict[str, list[tuple[int, float, float]]] = {metric: [] for metric in BIASES}
    for row, client in enumerate(kept.clients):
        model, client_samples = kept.models.at(slice(row, row + 1)), task.client_index[client]
        other_samples = everything[torch.isin(everything, client_samples, invert=True)]
        for name, index in (("train", client_samples), ("heterogeneous", other_samples)):
            if len(index):
                (evaluation,) = evaluate_many.evaluate(task.model, model, task.train.take(index.sort().values))
                values[f"{name}_bias"].append((client, weights[row], evaluation.loss))
                values[f"{name}_error"].append((client, weights[row], evaluation.error))
    for metric, client_values in values.items():
        total = sum(weight for _, weight, _ in client_values)
        if total > 0:
            yield Value(kept.round, metric, sum(weight * value for _, weight, value in client_values) / total)
        yield from (Value(kept.round, metric, value, client=client) for client, _, value in client_values)
