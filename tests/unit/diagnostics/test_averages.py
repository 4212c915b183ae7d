"""Averages, ensembles, similarities and the decomposition of a round's models, compared with formulas written out here."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.diagnostics.averaged_models import _shares
from fedrepro.diagnostics.decomposition import BIASES, TERMS, terms
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Passes, make
from fedrepro.engine import evaluate as evaluate_module
from fedrepro.engine.evaluate import evaluate, predict
from fedrepro.engine.kept import Global, RoundModels
from fedrepro.engine.measurements import Value
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.models import Model, build, initial
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch
from tests import toy

CALLS = ("averaged_models(orders=2)", "cka", "ensemble", "ensemble(outputs=probabilities)", "decomposition(draws=2)")


def rounds_of(task: Task, count: int = 2) -> RoundModels:
    """The last kept round of a FedAvg run of some rounds, with the round before it."""
    method = compose("fedavg")
    state, before = method.init(task.params, task.buffers), None
    for round in range(count):
        cohort, _ = SequentialEngine(task, method).run_cohort(state, round)
        assert cohort is not None
        after = method.apply(state, toy.server_context(task, cohort, round))
        ends = (Global(one.params, one.buffers) for one in (state, after))
        now = RoundModels(round + 1, *ends, cohort.clients, cohort.models, cohort.buffers, cohort.weights)
        state, before = after, dataclasses.replace(now, others={before.round: before} if before else {})
    assert before is not None
    return before


def measured(text: str, of: RoundModels, task: Task) -> list[Value]:
    return list(make(text).measure(of, lambda: task))


def numbers(values: list[Value]) -> dict[str, float]:
    return {v.metric: v.value for v in values if v.x is None and v.client is None and v.value is not None}


def model(kept: RoundModels, weights: Tensor) -> tuple[Tree, Tree]:
    return tuple(of.like(weights.to(of.flat.dtype) @ of.flat) for of in (kept.params, kept.buffers))  # type: ignore[return-value]


@pytest.mark.parametrize("build", [toy.tiny_model, toy.norm_model])
def test_averaged_models(build: Callable[[], Model]) -> None:
    """With all orders of three models the curve is the mean over all subsets of one, two (weighted) and three models."""
    task = toy.make_task(rounds=1, model=build())
    of = rounds_of(task, 1)
    of = dataclasses.replace(
        of, clients=of.clients[:3], params=of.params.like(of.params.flat[:3]), buffers=of.buffers.like(of.buffers.flat[:3])
    )
    of = dataclasses.replace(of, weights=torch.tensor([0.5, 0.3, 0.2]).double())
    values = measured("averaged_models(orders=600)", of, task)
    expected = {}
    for k in (1, 2, 3):
        found = []
        for some in itertools.combinations(range(3), k):
            weights = torch.tensor([float(of.weights[i]) * (i in some) for i in range(3)]).double()
            found.append(evaluate(task.model, *model(of, weights / weights.sum()), task.evaluation)["test_loss"])
        expected[float(k)] = found
    curve = {v.x: v.value for v in values if v.metric == "averaged_loss" and v.x is not None}
    assert curve[3.0] == pytest.approx(expected[3.0][0], rel=1e-12)
    for k in (1.0, 2.0):  # random orders: within four standard errors
        each = torch.tensor(expected[k])
        assert curve[k] == pytest.approx(float(each.mean()), abs=4 * float(each.std()) / math.sqrt(600))
        assert min(expected[k]) < (curve[k] or 0) < max(expected[k])
    assert numbers(values)["averaged_loss"] == curve[3.0]


def test_shares_of_models_without_data() -> None:
    """Models count by their data, and alike if none of them has any."""
    sizes = torch.tensor([0.0, 0.0, 2.0, 1.0])
    assert [_shares(sizes, places).tolist() for places in ([0], [1, 0], [0, 2])] == [
        [1, 0, 0, 0],
        [0.5, 0.5, 0, 0],
        [0, 0, 1, 0],
    ]


def test_averaged_models_of_one_order_and_of_one_client() -> None:
    """With a single order, point k is the average of its first k clients. A cohort of one client gives a curve of one point, an
    empty cohort no values."""
    task = toy.make_task(rounds=1)
    of = rounds_of(task, 1)
    of = dataclasses.replace(of, weights=torch.tensor([0.4, 0.3, 0.2, 0.1]).double())

    def first(order: tuple[int, ...], k: int) -> float:
        weights = torch.tensor([float(of.weights[i]) * (i in order[:k]) for i in range(4)]).double()
        return evaluate(task.model, *model(of, weights / weights.sum()), task.evaluation)["test_loss"]

    grown = [[first(order, k) for k in (1, 2, 3)] for order in itertools.permutations(range(4))]
    for number in range(8):  # each round draws another order
        values = measured("averaged_models(orders=1)", dataclasses.replace(of, round=number), task)
        curve = {v.x: v.value for v in values if v.metric == "averaged_loss"}
        assert set(curve) == {1.0, 2.0, 3.0, 4.0, None}
        assert any([curve[1.0], curve[2.0], curve[3.0]] == pytest.approx(one, rel=1e-12) for one in grown)
    alone = dataclasses.replace(of, clients=of.clients[:1], params=of.params.like(of.params.flat[:1]), weights=of.weights[:1])
    alone = dataclasses.replace(alone, buffers=of.buffers.like(of.buffers.flat[:1]))
    (point, number, *_) = measured("averaged_models", alone, task)
    assert (point.x, number.x) == (1.0, None)
    expected = evaluate(task.model, *model(alone, torch.ones(1)), task.evaluation)["test_accuracy"]
    assert point.value == number.value == 100 - expected
    none = dataclasses.replace(alone, clients=[], params=of.params.like(of.params.flat[:0]), weights=of.weights[:0])
    for text in CALLS:
        assert measured(text, none, task) == []


# --- CKA ------------------------------------------------------------------------------------------------------------------


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cka(x: Tensor, y: Tensor) -> float:
    """The CKA that the diagnostic measures between two clients, whose models have the outputs x and y."""
    count, layout, none = len(x), Layout.of({"said": (*x.shape,)}), Layout.of({})

    def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        return params["said"][x.flatten().long()], buffers

    samples = Batch(torch.arange(count).double().reshape(count, 1, 1, 1), torch.zeros(count, dtype=torch.int64))
    task = replace(toy.make_task(), model=Model("said", (1, 1, 1), x.shape[1], layout, none, forward), evaluation=samples)
    one = Global(Tree(layout, x.flatten()), Tree(none, torch.zeros(0)))
    both = Tree(layout, torch.stack([x.flatten(), y.flatten()]))
    of = RoundModels(1, one, one, [0, 1], both, Tree(none, torch.zeros(2, 0)), torch.full((2,), 0.5))
    return numbers(measured("cka", of, task))["cka"]


def by_definition(x: Tensor, y: Tensor) -> float:
    """HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)) with K = X X^T, L = Y Y^T: Kornblith et al., equations 1 to 3."""
    h = torch.eye(len(x)).double() - 1 / len(x)

    def hsic(k: Tensor, m: Tensor) -> float:
        return float(torch.trace(k @ h @ m @ h))

    k, m = x @ x.T, y @ y.T
    return hsic(k, m) / math.sqrt(hsic(k, k) * hsic(m, m))


def test_cka_by_its_definition() -> None:
    """CKA agrees with its definition for more samples than outputs, and for fewer."""
    for shape in ((30, 4), (5, 9)):
        x, y = drawn(*shape), drawn(*shape, seed=1)
        assert cka(x, y) == pytest.approx(by_definition(x, y), rel=1e-12)


def test_invariances_of_cka() -> None:
    """CKA does not change under orthogonal transformations, isotropic scaling and shifts, but it changes if one of five outputs
    is scaled by 10. It is symmetric, 1 for equal outputs, and small for unrelated ones."""
    x, y = drawn(200, 5), drawn(200, 5, seed=1) + drawn(200, 5)
    rotation, _ = torch.linalg.qr(drawn(5, 5, seed=2))
    base = cka(x, y)
    assert 0.1 < base < 0.9
    for changed in (x @ rotation, -3 * x, x + 7.0, 0.2 * x @ rotation - 1):
        assert cka(changed, y) == pytest.approx(base, rel=1e-10)
        assert cka(x, changed) == pytest.approx(1.0, rel=1e-10)
    assert cka(x * torch.tensor([10.0, 1, 1, 1, 1]), y) != pytest.approx(base, rel=1e-2)
    assert cka(y, x) == pytest.approx(base, rel=1e-12)
    assert cka(drawn(5000, 2), drawn(5000, 2, seed=9)) < 0.01
    assert math.isnan(cka(torch.ones(5, 2).double(), drawn(5, 2)))


@pytest.mark.parametrize("of", ["outputs", "features"])
def test_cka_between_clients(of: str) -> None:
    """The diagnostic gives the mean over pairs and a symmetric matrix of pairs, for LeNet's outputs and for the inputs of its
    last layer."""
    task = toy.make_task(rounds=1, model=toy.lenet_model())
    kept = rounds_of(task, 1)
    forward = task.model.forward if of == "outputs" else task.model.features
    assert forward is not None
    each = [
        forward(kept.params.like(w), kept.buffers.like(w[:0]), task.evaluation.x, False)[0].detach() for w in kept.params.flat
    ]
    values = measured(f"cka(of={of})", kept, task)
    matrix = {(v.x, v.y): v.value for v in values if v.x is not None}
    count = len(kept.clients)
    assert len(matrix) == count**2
    pairs = [by_definition(each[i].flatten(1), each[j].flatten(1)) for i, j in itertools.combinations(range(count), 2)]
    assert matrix[0.0, 1.0] == matrix[1.0, 0.0] == pytest.approx(pairs[0], rel=1e-9)
    assert matrix[2.0, 2.0] == 1.0
    assert numbers(values)["cka"] == pytest.approx(sum(pairs) / len(pairs), rel=1e-9)


def test_features_that_a_model_does_not_have() -> None:
    """One line names the alternative, of=outputs."""
    task = toy.make_task(rounds=1, model=replace(toy.tiny_model(), features=None, head=None))
    with pytest.raises(UserError, match=r"tiny has no features; take of=outputs"):
        measured("cka(of=features)", rounds_of(task, 1), task)


# --- ensemble ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_ensemble(outputs: str) -> None:
    """The ensemble is sum_i p_i f(w_i; x). Beside it are loss and error of the weighted mean of the weights."""
    task = toy.make_task(rounds=1)
    of = rounds_of(task, 1)
    logits = predict(task.model, of.params, of.buffers, task.evaluation.x)
    weights = of.weights / of.weights.sum()
    each = logits.softmax(-1) if outputs == "probabilities" else logits
    mean = torch.einsum("k,knc->nc", weights, each)
    if outputs == "probabilities":
        loss = -mean[torch.arange(len(mean)), task.evaluation.y].log().mean()
    else:
        loss = torch.nn.functional.cross_entropy(mean, task.evaluation.y)
    found = numbers(measured(f"ensemble(outputs={outputs})", of, task))
    assert found["ensemble_loss"] == pytest.approx(float(loss), rel=1e-10)
    assert found["ensemble_error"] == pytest.approx(100 * float((mean.argmax(-1) != task.evaluation.y).double().mean()))
    expected = evaluate(task.model, *model(of, weights), task.evaluation)
    assert found["average_loss"] == pytest.approx(expected["test_loss"], rel=1e-10)
    assert found["average_error"] == pytest.approx(100 - expected["test_accuracy"])
    assert found["average_loss"] != pytest.approx(found["ensemble_loss"], rel=1e-6)


@pytest.mark.parametrize("call", CALLS)
def test_models_of_text(call: str) -> None:
    """Every character counts as a sample: two clients, seven windows of six characters."""
    model = build("char_lstm", (6,), 5)
    nets, buffers = [initial.draw(model, seed) for seed in (1, 2)], model.first_buffers()
    now = Global(nets[0], buffers)
    of = RoundModels(1, now, now, [0, 1], tree.stack(nets), tree.stack([buffers, buffers]), torch.tensor([0.5, 0.5]))
    data = model.random(7, torch.Generator().manual_seed(0))
    task = dataclasses.replace(toy.make_task(), model=model, evaluation=data, train=data, client_index=[torch.arange(3)] * 2)
    found = numbers(measured(call, of, task))
    if call == "ensemble":
        logits = sum(model.forward(net, buffers, data.x, False)[0] for net in nets) / 2
        assert found["ensemble_loss"] == pytest.approx(float(model.loss(logits, data.y)), rel=1e-6)
    assert all(value is not None and math.isfinite(value) for value in found.values())


def linear_task(rounds: int = 2) -> Task:
    """A task for 16-3 without a hidden layer, which is linear in its weights."""
    layout = Layout.of({"fc.weight": (3, 16)})

    def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        return x.flatten(-3) @ params["fc.weight"].mT, buffers

    return toy.make_task(rounds=rounds, model=Model("flat", (1, 4, 4), 3, layout, Layout.of({}), forward))


def test_a_linear_network_is_its_own_ensemble() -> None:
    """Lemma 1 holds without a remainder."""
    task = linear_task()
    found = numbers(measured("ensemble", rounds_of(task), task))
    assert found["ensemble_loss"] == pytest.approx(found["average_loss"], rel=1e-10)
    assert found["ensemble_error"] == pytest.approx(found["average_error"])


# --- decomposition ----------------------------------------------------------------------------------------------------------


def test_terms_by_hand() -> None:
    """One sample of class 0 of two, two models of weights 1/4 and 3/4, two draws. In class 0 the first model's logits are 0 and
    2, the second's 1 and 3. The means are 1 and 2, so the bias is 1 - (1/4 + 6/4) = -3/4. The weighted deviations are -+1/4 and
    -+3/4 and correlate fully: the variance is 1/16 + 9/16, the covariance 2 * 3/16. In class 1 all logits are 0. The logits of
    the averaged models are 1/2 and 3."""
    outputs = torch.zeros((2, 2, 1, 2)).double()
    outputs[:, 0, 0, 0], outputs[:, 1, 0, 0] = torch.tensor([0.0, 2.0]).double(), torch.tensor([1.0, 3.0]).double()
    average = torch.tensor([[[0.5, 0.0]], [[3.0, 0.0]]]).double()
    found = terms(outputs, average, torch.tensor([0]), torch.tensor([0.25, 0.75]).double())
    squared = (0.5**2 + 2**2) / 2
    assert found == pytest.approx((9 / 16, 10 / 16, 6 / 16, squared, squared - 25 / 16))


@pytest.mark.parametrize("on", ["test", "train"])
def test_terms_of_a_linear_network_sum_to_its_squared_error(on: str) -> None:
    """Theorem 1 holds without a remainder: three rounds' models have a bias, variance and covariance other than 0. The squared
    error of each round's average is computed separately."""
    task = linear_task(3)
    last = rounds_of(task, 3)
    second = last.others[2]
    last = dataclasses.replace(last, others={1: second.others[1], 2: second})
    found = numbers(measured(f"decomposition(draws=3, outputs=logits, on={on})", last, task))
    data = task.evaluation if on == "test" else task.train.take(torch.cat(task.client_index))
    label = torch.nn.functional.one_hot(data.y, 3).double()
    weights = last.weights / last.weights.sum()
    errors = []
    for one in (second.others[1], second, last):
        outputs = predict(task.model, *model(one, weights), data.x)
        errors.append(float((label - outputs).square().sum(-1).mean()))
    assert found["squared_error"] == pytest.approx(sum(errors) / 3, rel=1e-10)
    assert found["squared_bias"] + found["variance"] + found["covariance"] == pytest.approx(found["squared_error"], rel=1e-10)
    assert found["remainder"] == pytest.approx(0, abs=1e-10)
    assert min(abs(found[key]) for key in TERMS[:3]) > 1e-6


def test_terms_of_another_network_have_a_remainder() -> None:
    """With the remainder the terms still sum up. Two classes of equal models have no remainder, and one draw has no
    variance."""
    task = toy.make_task(rounds=2)
    of = rounds_of(task)
    found = numbers(measured("decomposition(draws=2)", of, task))
    whole = sum(found[key] for key in ("squared_bias", "variance", "covariance", "remainder"))
    assert whole == pytest.approx(found["squared_error"], rel=1e-12)
    assert abs(found["remainder"]) > 1e-6
    one = numbers(measured("decomposition(draws=1)", dataclasses.replace(of, others={}), task))
    assert (one["variance"], one["covariance"]) == (0, 0)
    same = of.params.like(of.params.flat[:1].expand(len(of.clients), -1).contiguous())
    alike = numbers(measured("decomposition(draws=1)", dataclasses.replace(of, others={}, params=same), task))
    assert alike["remainder"] == pytest.approx(0, abs=1e-12)


def test_biases_are_losses_on_own_and_on_others_data() -> None:
    """Each client's biases equal the loss on its own samples and on those of the others. The round's biases are their means,
    weighted by aggregation weight. Locality is the largest distance to the global model."""
    task = toy.make_task(rounds=2)
    of = rounds_of(task)
    values = measured("decomposition(draws=2)", of, task)
    expected: dict[str, list[float]] = {metric: [] for metric in BIASES}
    for row, client in enumerate(of.clients):
        own = torch.eye(len(of.clients)).double()[row]
        other = torch.cat([index for number, index in enumerate(task.client_index) if number != client])
        for name, index in (("train", task.client_index[client]), ("heterogeneous", other)):
            data = Batch(task.train.x[index], task.train.y[index])
            found = evaluate(task.model, *model(of, own), data)
            expected[f"{name}_bias"].append(found["test_loss"])
            expected[f"{name}_error"].append(100 - found["test_accuracy"])
    for metric, each in expected.items():
        own = [v.value for v in values if v.metric == metric and v.client is not None]
        assert own == pytest.approx(each, rel=1e-10)
        assert numbers(values)[metric] == pytest.approx(float(torch.tensor(each, dtype=torch.float64) @ of.weights), rel=1e-10)
    distances = [float((w - of.after.params.flat).norm()) for w in of.params.flat]
    assert numbers(values)["locality"] == pytest.approx(max(distances))
    assert numbers(measured("client_distance", of, task))["client_distance_max"] == pytest.approx(max(distances))


def test_terms_take_clients_that_trained_in_all_rounds() -> None:
    """If two of four clients train in each round and none in both, only biases and locality exist. If a requested round is
    missing, the result is the same."""
    task = toy.make_task(rounds=2, cohorts=((0, 1), (3, 4)))
    of = rounds_of(task)
    assert numbers(measured("decomposition(draws=2)", of, task)).keys() == {*BIASES, "locality"}
    assert numbers(measured("decomposition(draws=3)", of, task)).keys() == {*BIASES, "locality"}
    shared = toy.make_task(rounds=2, cohorts=((0, 1), (1, 4)))
    found = numbers(measured("decomposition(draws=2)", rounds_of(shared), shared))
    assert found["covariance"] == pytest.approx(0, abs=1e-15), "of one client alone"
    assert found["variance"] > 0
    last = rounds_of(shared)
    found = numbers(measured("decomposition(draws=2, outputs=logits)", last, shared))
    label = torch.nn.functional.one_hot(shared.evaluation.y, shared.model.classes).double()
    errors = []
    for one in (last.others[1], last):  # the average of one client is its own model
        weights = torch.tensor([float(client == 1) for client in one.clients])
        errors.append(float((label - predict(shared.model, *model(one, weights), shared.evaluation.x)).square().sum(-1).mean()))
    assert found["squared_error"] == pytest.approx(sum(errors) / 2, rel=1e-6)


def test_a_client_that_has_all_data_has_no_heterogeneous_bias() -> None:
    """Client 1 holds all samples, so there are no samples of other clients to measure this bias on."""
    task = toy.make_task(rounds=2, cohorts=((1,),))
    empty = torch.zeros(0, dtype=torch.int64)
    task = dataclasses.replace(task, client_index=[one if k == 1 else empty for k, one in enumerate(task.client_index)])
    found = numbers(measured("decomposition(draws=1)", dataclasses.replace(rounds_of(task), others={}), task))
    assert "heterogeneous_bias" not in found
    assert found["train_bias"] > 0


# --- all of them ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*CALLS, "plane(points=3)", "line(points=3)"])
def test_the_same_models_give_the_same_values(text: str) -> None:
    """Two measurements give the same values, with a value for each metric that the diagnostic names."""
    task = toy.make_task(rounds=2)
    of = rounds_of(task)
    values = measured(text, of, task)
    assert measured(text, of, task) == values
    assert {v.metric for v in values} == set(make(text).metrics)
    assert {v.round for v in values} == {2}


@pytest.mark.parametrize("text", [*CALLS, "decomposition(draws=2, on=train)", "plane(points=3)"])
def test_pieces_of_the_data_change_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples go through the models in pieces of at most seven, or all at once. The means are the same."""
    task = toy.make_task(rounds=2)
    of = rounds_of(task)
    whole = measured(text, of, task)
    monkeypatch.setattr(evaluate_module, "BATCH", 7)
    pieces = measured(text, of, task)
    assert [one._replace(value=None) for one in pieces] == [one._replace(value=None) for one in whole]
    assert [one.value for one in pieces] == pytest.approx([one.value for one in whole], rel=1e-10, abs=1e-12)


COSTS = {
    "plane(points=5)": (Passes(30),),
    "line(points=9, on=train, samples=7)": (Passes(11, "train", 7),),
    "averaged_models(orders=3)": (Passes(10),),
    "cka": (Passes(4),),
    "ensemble": (Passes(5),),
    "decomposition(draws=2)": (Passes(4, "train"), Passes(10)),
    "client_distance": (),
    "label_sharing": (),
    "class_counts": (),
    "coherence": (),
    "heterogeneity": (),
    "client_weights": (),
    "corrupted_weights": (),
    "weight_correlation": (),
    "weights": (),
    "rescaled(points=5, on=train)": (Passes(5, "train"),),
    "simplex(points=4)": (Passes(14),),
}
ESTIMATED = {"hessian", "eigenvector_line", "server_learning"}  # those whose work is more than evaluations


@pytest.mark.parametrize("text", COSTS)
def test_passes_are_the_models_that_are_evaluated(text: str) -> None:
    """Counts the images that go through a model while each diagnostic measures four clients."""
    assert make(text).passes(4) == COSTS[text]
    if not COSTS[text]:
        return
    task, seen = toy.make_task(rounds=2), []

    def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        seen.append(len(x))
        return toy.tiny_model().forward(params, buffers, x, train)

    of = rounds_of(task)
    counted = dataclasses.replace(task, model=dataclasses.replace(task.model, forward=forward))
    measured(text, of, counted)
    sizes = {"test": len(task.evaluation.x), "train": sum(toy.TRAIN_SIZES)}
    assert sum(seen) == sum(one.models * (one.samples or sizes[one.on]) for one in COSTS[text])


def test_every_diagnostic_has_a_cost_here() -> None:
    """A new diagnostic needs a case in this file."""
    assert {text.partition("(")[0] for text in COSTS} == set(DIAGNOSTICS.names()) - ESTIMATED - {"client_accuracy"}
