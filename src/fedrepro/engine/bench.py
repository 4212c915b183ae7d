"""The model and the method of a run on samples made up here: what `fedrepro.engine.estimate` measures."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fedrepro import rng, tree
from fedrepro.engine.batches import side_by_side
from fedrepro.engine.evaluate import predict
from fedrepro.engine.local import FORMS, LocalResult, TrainingNetwork
from fedrepro.engine.spec import RunSpec
from fedrepro.methods.compose import Method, ServerState
from fedrepro.models import Model, build, initial
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Cohort, ServerContext, Solver, Start

# Arguments of parts that count passes over the proxy set.
PASSES = ("server_epochs", "passes")


@dataclass(frozen=True)
class Bench:
    """One run."""

    spec: RunSpec
    method: Method
    model: Model
    device: str
    engine: str

    @classmethod
    def of(cls, spec: RunSpec, method: Method, device: str, engine: str) -> "Bench":
        return cls(spec, method, build(spec.model, spec.input_shape, spec.classes, spec.products), device, engine)

    @property
    def model_key(self) -> tuple:
        return self.spec.model, self.spec.input_shape, self.spec.classes, self.spec.products

    def steps(self, size: int, count: int) -> Callable[[], LocalResult]:
        """`count` local steps on a batch of `size` images, at a learning rate that moves nothing far."""
        if self.model.detects:
            import torchvision.ops  # noqa: F401  the seconds that this takes are no part of a step
        (params, _), data, rule, ctx = self._weights(), self._images(size), self.method.client, self._context(count)
        index_B, into = torch.arange(size, device=self.device), torch.empty_like(params.flat)
        taken = lambda: (data.take(index_B) for _ in range(count))  # noqa: E731
        each = lambda: side_by_side(*(taken() for _ in range(rule.batches_per_step)))  # noqa: E731
        return lambda: FORMS[self.engine](rule, each() if rule.batches_per_step > 1 else taken(), ctx, into)

    def probes(self, size: int) -> Callable[[], list[Tree]]:
        """What the method's parts measure on a batch of `size` held-out samples."""
        ctx, data = self._context(1, train=False), self._images(size)
        return lambda: [part.probe([data], ctx) for part in self.method.probing]

    def personal(self, size: int) -> Callable[[], Tree]:
        """A client's own model, from one batch of `size` training samples."""
        ctx, data = self._context(1), self._images(size)
        return lambda: self.method.client.personalise([data], ctx)

    def _context(self, count: int, train: bool = True) -> ClientContext:
        """A client's before its first round, of `count` steps."""
        (params, buffers), rule = self._weights(), self.method.client
        keys = Keys(torch.tensor(0, device=self.device)) if train else None
        return ClientContext(
            network=TrainingNetwork(self.model, buffers, closed_form=self.engine != "plain", keys=keys, train=train),
            anchor=params,
            client_lr=1e-6,
            num_steps=count,
            solver=rule.solver(Solver(self.spec.client_momentum, self.spec.weight_decay)),
            round=self.spec.rounds - 1,  # in which a method does all that it ever does
            rounds=self.spec.rounds,
            shared=rule.draw_shared(params, self._start(buffers)),
            own=rule.init_own(params),
        )

    def _start(self, buffers: Tree) -> Start:
        return Start(TrainingNetwork(self.model, buffers), lambda purpose: rng.stream(0, purpose))

    def forward(self, count: int) -> Callable[[], Tensor]:
        """Evaluation of `count` images."""
        (params, buffers), data = self._weights(), self._images(count)
        return lambda: predict(self.model, params, buffers, data.x)

    def server(self, cohort: int, proxy: int, passes: int) -> Callable[[], ServerState]:
        """The server's part of one round, with at most `passes` over the proxy set."""
        method = with_passes(self.method, passes)
        (params, buffers), message = self._weights(), self.steps(self.model.smallest_batch, 1)().message
        measuring = self._context(1, train=False)
        repeat = lambda one: tree.stack([one] * cohort)  # noqa: E731
        noise = torch.randn((cohort, params.layout.size), generator=torch.Generator().manual_seed(0)).to(self.device)
        share = torch.full((cohort,), 1 / cohort, device=self.device)
        arrived = Cohort(
            clients=list(range(cohort)),
            updates=params.like(noise * 1e-3),
            weights=share,
            num_steps=torch.ones_like(share),
            effective_steps=torch.ones_like(share),
            fraction=cohort / self.spec.clients,
            population=self.spec.clients,
            anchor=params,
            buffers=repeat(buffers),
            messages=None if message is None else repeat(message),
            probes={part.name: repeat(part.probe([], measuring)) for part in method.probing},
        )
        ctx = ServerContext(
            cohort=arrived,
            network=TrainingNetwork(self.model, buffers),
            predict=partial(predict, self.model),
            proxy=self._images(proxy) if proxy else None,
            rng=lambda purpose: rng.stream(0, purpose),
            round=0,
            rounds=self.spec.rounds,
            proxy_batch_size=self.spec.proxy_batch_size,
            smallest_batch=self.model.smallest_batch,
        )
        state = method.init(params, buffers, self._start(buffers))
        return lambda: method.apply(state, ctx)

    def _weights(self) -> tuple[Tree, Tree]:
        """(parameters, running statistics) as before round 0."""
        move = lambda flat: flat.to(self.device)  # noqa: E731
        return tree.map(move, initial.draw(self.model, 0)), tree.map(move, self.model.first_buffers())

    def _images(self, count: int) -> Batch:
        found = self.model.random(count, torch.Generator().manual_seed(0))
        return Batch(found.x.to(self.device), found.y.to(self.device))


def with_passes(method: Method, passes: int) -> Method:
    """The method with at most so many passes over the proxy set, whatever its parts are."""

    def shorten(part: Any) -> Any:
        found = {key: min(passes, getattr(part, key)) for key in PASSES if hasattr(part, key)}
        return dataclasses.replace(part, **found) if found else part

    slots: dict[str, Any] = {one.name: getattr(method, one.name) for one in dataclasses.fields(method)}
    short = {slot: tuple(map(shorten, part)) if isinstance(part, tuple) else shorten(part) for slot, part in slots.items()}
    return dataclasses.replace(method, **short)
