"""Tiny federated tasks in float64, built directly as `Task`s: no files, a few milliseconds per round.

Five clients of unequal size, client 2 empty; three classes of 4x4 images; a proxy set of 4 images per class. `METHODS` lists
every registered part and chains of them, so a registered part takes part in the suites that use this list.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedrepro import rng, tree
from fedrepro.engine.evaluate import predict
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.loop import start_of
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method, ServerState, compose
from fedrepro.methods.parts import PARTS, REPEATABLE, LocalRule
from fedrepro.methods.presets import DEFAULTS, PRESETS
from fedrepro.models import Model, build, initial, ops
from fedrepro.models.batch_norm import BatchNorms
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, ClientContext, Cohort, ServerContext

CLASSES, CLIENTS = 3, 5
TRAIN_SIZES = (7, 12, 0, 20, 5)  # samples that client i trains on
FULL_SIZES = (10, 17, 0, 28, 7)  # with its local validation part; aggregation weights come from these sizes
PROXY_PER_CLASS = 4

# Cohorts of each round: all clients, two of five (one of them the empty client), one alone, and one without data.
EVERYBODY = ((0, 1, 2, 3, 4),)
PARTIAL = ((0, 3), (1, 2), (2, 4))
ALONE = ((1,), (3,), (4,))
EMPTY = ((2,),)

# One weight, two classes: logits (w * x, 0). It is small enough to work out a round by hand.
ONE_WEIGHT = Model(
    "one_weight",
    (1, 1, 1),
    2,
    Layout.of({"w": (1,)}),
    Layout.of({}),
    lambda params, buffers, x, train: (torch.cat([params["w"] * x.flatten(1), 0 * x.flatten(1)], 1), buffers),
)


def _one_norm(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    norms = BatchNorms(params, buffers, train)
    h = params["w"] * norms("bn", x).flatten(1)
    return torch.cat([h, 0 * h], 1), norms.after()


# The same after a BatchNorm of one channel.
ONE_NORM = Model(
    "one_norm",
    (1, 1, 1),
    2,
    Layout.of({"bn.weight": (1,), "bn.bias": (1,), "w": (1,)}),
    Layout.of({"bn.running_mean": (1,), "bn.running_var": (1,)}),
    _one_norm,
)


@dataclass(frozen=True)
class Linear(LocalRule):
    """Loss w * mean(x), linear in the only weight: its gradient is the batch's mean for every w."""

    name = "linear"
    slot = "client"

    def loss(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tensor:
        return (params["w"] * batch.x.mean()).sum()


def linear(text: str) -> Method:
    """The method `text`, whose client rule has the loss of `Linear`."""
    method = compose(text)
    rule = type("On" + type(method.client).__name__, (type(method.client),), {"loss": Linear.loss})
    return dataclasses.replace(method, client=rule(**PARTS.canonical(method.client).arguments))


# Values for toy runs where a default would take long or is missing: argument -> value, for every part that has it.
FAST_ARGUMENTS: dict[str, Any] = {"server_epochs": 4, "halve_every": 2, "server_lr": 0.05, "swa_start": 1, "passes": 3}


def part_text(name: str) -> str:
    """The text of a part, with FAST_ARGUMENTS if it learns on the proxy set or an argument has no default."""
    fields = {field.name: field for field in dataclasses.fields(PARTS.get(name))}
    needed = [key for key, field in fields.items() if field.default is dataclasses.MISSING]
    wanted = [key for key in FAST_ARGUMENTS if key in fields and {"server_epochs", "passes"} & fields.keys()] + needed
    return f"{name}({', '.join(f'{key}={FAST_ARGUMENTS[key]}' for key in dict.fromkeys(wanted))})" if wanted else name


def _chains() -> Iterator[str]:
    """Chains of a part from each slot: as many chains as the fullest slot has parts, so every part is in one. A slot that
    repeats contributes all its parts. Defaults add nothing and are left out.

    Parts for running statistics change nothing on a model without BatchNorm, so only a few chains contain them.
    """
    by_slot: dict[str, list[str]] = {}
    for name in PARTS.names():
        if name not in DEFAULTS.values():
            by_slot.setdefault(PARTS.get(name).slot, []).append(part_text(name))
    statistics = by_slot.pop("buffers")
    for number in range(max(map(len, by_slot.values()))):
        yield "+".join(texts[number % len(texts)] for texts in by_slot.values())
    for slot in sorted(REPEATABLE & set(by_slot)):
        yield "+".join(by_slot[slot])
    yield from (f"{first}+{text}" for first in ("feddyn", part_text("fedlaw")) for text in statistics)
    yield "+".join(texts[0] for texts in (*by_slot.values(), statistics))


def _different(texts: Iterable[str]) -> list[str]:
    """Drops methods that equal an earlier one: the default of an open slot is FedAvg, for example."""
    found: dict[Method, str] = {}
    for text in texts:
        found.setdefault(compose(text), text)
    return [*found.values()]


PART_METHODS = _different(["fedavg", *map(part_text, PARTS.names())])[1:]
METHODS = _different(["fedavg", *PART_METHODS, *_chains()])


def _of_statistics(text: str) -> bool:
    """Whether running statistics can matter to the method: clients train by another rule, the server runs the model or has
    another part for statistics, or a part reads them. What others do to weights is the same with BatchNorm, as FedAvg's."""
    method, fedavg = compose(text), compose("fedavg")
    return method == fedavg or bool(
        method.client != fedavg.client
        or method.buffers != fedavg.buffers
        or "proxy" in method.needs
        or any(part.reads_buffers for part in method.parts if part != method.buffers)
    )


# (method, model). Parts can affect each other by modifying their inputs, or by a combination that gives other results on
# another engine. All METHODS are tested for this on a plain model. Parts that statistics concern are tested with BatchNorm too,
# and so is the last chain. The other tests take each part alone.
CASES = [(text, "tiny") for text in METHODS]
CASES += [(text, "norm") for text in [*filter(_of_statistics, PART_METHODS), list(_chains())[-1]]]
ALONE_METHODS = _different([*PART_METHODS, *PRESETS])
ALONE_CASES = [(text, "tiny") for text in ALONE_METHODS] + [(text, "norm") for text in filter(_of_statistics, ALONE_METHODS)]


def tiny_model() -> Model:
    """16-6-3 with ReLU: 123 parameters."""
    layout = Layout.of({"fc1.weight": (6, 16), "fc1.bias": (6,), "fc2.weight": (CLASSES, 6), "fc2.bias": (CLASSES,)})

    def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        return ops.relu(ops.linear(ops.flatten(x), params["fc1.weight"], params["fc1.bias"])), buffers

    def head(params: Tree, h: Tensor) -> Tensor:
        return ops.linear(h, params["fc2.weight"], params["fc2.bias"])

    return Model("tiny", (1, 4, 4), CLASSES, layout, Layout.of({}), _whole(features, head), features, head)


def _whole(features: Callable[..., tuple[Tensor, Tree]], head: Callable[[Tree, Tensor], Tensor]) -> Callable:
    """The `forward` of a model of two parts."""

    def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        h, buffers = features(params, buffers, x, train)
        return head(params, h), buffers

    return forward


def lenet_model() -> Model:
    """A-LeNet on 4x4 images, the smallest size at which two poolings leave something."""
    return build("lenet", (1, 4, 4), CLASSES)


def resnet_model() -> Model:
    """ResNet-8 on 4x4 images: the last stage has one place per image."""
    return build("resnet8", (1, 4, 4), CLASSES)


def norm_model() -> Model:
    """Two strided convolutions 1-4-4 without bias, each with BatchNorm and ReLU, then the mean over places and 4-3: 211
    parameters, 16 running statistics."""
    norms = ("bn1", "bn2")
    shapes = {"conv1.weight": (4, 1, 3, 3), "conv2.weight": (4, 4, 3, 3), "fc.weight": (CLASSES, 4), "fc.bias": (CLASSES,)}
    layout = Layout.of(shapes | {f"{norm}.{kind}": (4,) for norm in norms for kind in ("weight", "bias")})
    running = Layout.of({f"{norm}.running_{kind}": (4,) for norm in norms for kind in ("mean", "var")})

    def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        norm = BatchNorms(params, buffers, train)
        for number in (1, 2):
            x = ops.relu(norm(f"bn{number}", ops.conv2d(x, params[f"conv{number}.weight"], stride=2, padding=1)))
        return x.mean((-2, -1)), norm.after()

    def head(params: Tree, h: Tensor) -> Tensor:
        return ops.linear(h, params["fc.weight"], params["fc.bias"])

    return Model("tiny_norm", (1, 4, 4), CLASSES, layout, running, _whole(features, head), features, head)


# The toy models by name. Each learns something in three rounds.
MODELS = {"tiny": tiny_model, "lenet": lenet_model, "norm": norm_model, "resnet8": resnet_model}


def make_spec(**changes: Any) -> RunSpec:
    """Settings that all have an effect: several steps per round with a partial batch, momentum, weight decay and lr decay."""
    values: dict[str, Any] = {
        "dataset": "toy",
        "dataset_sha": "0",
        "input_shape": (1, 4, 4),
        "normalise": "unit",
        "classes": CLASSES,
        "model": "tiny",
        "partition": "iid",
        "clients": CLIENTS,
        "participation": 1.0,
        "local_validation": 0.3,
        "proxy_per_class": PROXY_PER_CLASS,
        "proxy_batch_size": 8,
        "rounds": 3,
        "local_epochs": 2,
        "batch_size": 6,
        "client_lr": 0.1,
        "client_lr_decay": 0.9,
        "client_momentum": 0.5,
        "keep_client_momentum": False,
        "weight_decay": 1e-3,
        "method": "fedavg",
    }
    return RunSpec(**(values | changes))


def images(count: int, purpose: str) -> Batch:
    """`count` images, float64: noisy class means in a fixed order."""
    generator = rng.stream(0, f"toy/{purpose}")
    means = rng.stream(0, "toy/means").normal(0, 1, (CLASSES, 1, 4, 4))
    labels = np.arange(count) % CLASSES
    return Batch(torch.from_numpy(means[labels] + generator.normal(0, 1, (count, 1, 4, 4))), torch.from_numpy(labels))


def make_task(
    *,
    seed: int = 8,
    model: Model | None = None,
    cohorts: tuple[tuple[int, ...], ...] = EVERYBODY,
    proxy: bool = True,
    dtype: torch.dtype = torch.float64,
    by_class: bool = False,
    **changes: Any,
) -> Task:
    """A toy task. `cohorts` repeat over the rounds, and `changes` go into the spec.

    `by_class` deals the samples in the order of their classes, so that each client has one or two classes and its gradient
    conflicts with those of others.
    """
    model, spec = model or tiny_model(), make_spec(**changes)
    bounds = np.cumsum([0, *TRAIN_SIZES])
    order = torch.from_numpy(rng.stream(seed, "toy/partition").permutation(int(bounds[-1])))
    if by_class:
        order = order[torch.argsort(order % CLASSES, stable=True)]  # labels are positions modulo CLASSES
    rest = np.cumsum([bounds[-1], *(full - size for full, size in zip(FULL_SIZES, TRAIN_SIZES, strict=True))])
    train, test, held = images(int(rest[-1]), "train"), images(30, "test"), images(PROXY_PER_CLASS * CLASSES, "proxy")
    params = initial.draw(model, seed)
    return Task(
        spec=spec,
        seed=seed,
        model=model,
        train=Batch(train.x.to(dtype), train.y),
        client_index=[order[a:b] for a, b in pairwise(bounds)],
        held_out=[torch.arange(a, b) for a, b in pairwise(rest)],
        client_sizes=torch.tensor(FULL_SIZES, dtype=dtype),
        cohorts=torch.tensor([cohorts[t % len(cohorts)] for t in range(spec.rounds)]),
        evaluation=Batch(test.x.to(dtype), test.y),
        proxy=Batch(held.x.to(dtype), held.y) if proxy else None,
        params=params.like(params.flat.to(dtype)),
        buffers=tree.map(lambda flat: flat.to(dtype), model.first_buffers()),
        inputs={"arrays": "0" * 64},
    )


def linear_task(rounds: int, cohorts: tuple[tuple[int, ...], ...] = ((0, 1),), **changes: Any) -> Task:
    """A task for `Linear`. Client 0 has two samples of 2 in batches of one, client 1 one sample of -1. w starts at 1. client_lr
    is 0.1 and halves every round; momentum is 0.5, weight decay 0.1."""
    settings = {"local_epochs": 1, "batch_size": 1, "client_lr": 0.1, "client_lr_decay": 0.5, "client_momentum": 0.5}
    spec = make_spec(**{"rounds": rounds, "clients": 2, "weight_decay": 0.1, **settings, **changes})
    x = torch.tensor([2.0, 2.0, -1.0], dtype=torch.float64).reshape(3, 1, 1, 1)
    data = Batch(x, torch.zeros(3, dtype=torch.int64))
    return dataclasses.replace(
        make_task(),
        spec=spec,
        model=ONE_WEIGHT,
        train=data,
        evaluation=data,
        proxy=None,
        client_index=[torch.tensor([0, 1]), torch.tensor([2])],
        held_out=[torch.zeros(0, dtype=torch.int64)] * 2,
        client_sizes=torch.tensor([2.0, 1.0], dtype=torch.float64),
        cohorts=torch.tensor([cohorts[t % len(cohorts)] for t in range(rounds)]),
        params=one_weight(1.0),
        buffers=Tree(Layout.of({}), torch.zeros(0, dtype=torch.float64)),
    )


def one_weight(w: float) -> Tree:
    """The weight of ONE_WEIGHT."""
    return Tree(ONE_WEIGHT.layout, torch.tensor([w], dtype=torch.float64))


def first_state(task: Task, method: Method) -> ServerState:
    """The server's state before round 0."""
    return method.init(task.params, task.buffers, start_of(task))


def server_context(task: Task, cohort: Any = None, round: int = 0, **changes: Any) -> ServerContext:
    """The context of the server's parts in `round`, with the data of the cohort for parts that read it."""
    values: dict[str, Any] = {
        "cohort": cohort,
        "network": TrainingNetwork(task.model, task.buffers),
        "predict": partial(predict, task.model),
        "proxy": task.proxy,
        "rng": lambda purpose: rng.stream(task.seed, f"server/{purpose}", round),
        "round": round,
        "rounds": task.spec.rounds,
        "proxy_batch_size": task.spec.proxy_batch_size,
        "smallest_batch": task.model.smallest_batch,
        "notes": {},
    }
    return ServerContext(**(values | changes))


def cohort(updates: Any, weights: Sequence[float] = (), dtype: torch.dtype = torch.float64, **changes: Any) -> Cohort:
    """Clients 0, 1, ... with these updates [K, D], a Tree or numbers, and these shares, equal if none are given. They are all
    the clients, took one step each from a global model of zeros, and have no running statistics."""
    if not isinstance(updates, Tree):
        flat = torch.as_tensor(updates, dtype=dtype)
        updates = Tree(Layout.of({"w": flat.shape[1:]}), flat)
    flat, count = updates.flat, len(updates.flat)
    values: dict[str, Any] = {
        "clients": list(range(count)),
        "updates": updates,
        "weights": flat.new_tensor(weights or [1 / count] * count),
        "num_steps": flat.new_ones(count),
        "effective_steps": flat.new_ones(count),
        "fraction": 1.0,
        "population": count,
        "anchor": updates.like(torch.zeros_like(flat[0])),
        "buffers": Tree(Layout.of({}), flat.new_zeros(count, 0)),
    }
    return Cohort(**(values | changes))


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Normally distributed numbers, float64."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class Stopped(Exception):
    """Stands for a killed process."""


def stop_at(last: int, seen: list[int] | None = None) -> Callable[[int, Any], None]:
    """A report that raises `Stopped` in round `last`. `seen` gets the rounds up to it."""

    def stop(round: int, progress: Any) -> None:
        if seen is not None:
            seen.append(round)
        if round == last:
            raise Stopped

    return stop


def values_of(rows: list[tuple[int, str, float]], metric: str) -> list[float]:
    """The values of one metric of a run, round by round."""
    return [value for _, name, value in rows if name == metric]
