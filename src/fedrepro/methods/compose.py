"""Makes a method from a name such as `fedprox(mu=0.01)+fixed_gamma`. The registry finds the parts for each slot."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fedrepro import rounds, tree
from fedrepro.errors import UserError
from fedrepro.lazy import torch
from fedrepro.methods.parts import (
    PARTS,
    REPEATABLE,
    SLOTS,
    Aggregate,
    Average,
    Buffers,
    LocalRule,
    Part,
    Refine,
    Rescale,
    ServerOpt,
    ServerPart,
    Transform,
)
from fedrepro.methods.presets import DEFAULTS, PRESETS
from fedrepro.registry import Call, parse, unknown
from fedrepro.tree import Tree
from fedrepro.types import Network, ServerContext, Start

LOSES_MESSAGES = "clients of {} send what changed of their states, and the server must take all of it; set it to drawn"


@dataclass(frozen=True)
class ServerState:
    """Everything that the server carries from round to round. Each part owns its slice."""

    params: Tree  # global weights, [D]
    buffers: Tree  # running statistics of the global model, [D']
    shared: Any  # the client rule's state on the server
    parts: dict[str, tuple]  # slot -> the states of its parts, in their order
    past: tuple[Tree, ...] = ()  # global weights of the rounds before, oldest first, if another run will continue from here


@dataclass(frozen=True)
class Method:
    """The parts of all slots. For the server's work the training loop calls only `init` and `apply`."""

    client: LocalRule
    transforms: tuple[Transform, ...]
    aggregate: Aggregate
    rescales: tuple[Rescale, ...]
    server_opt: ServerOpt
    refines: tuple[Refine, ...]
    averages: tuple[Average, ...]
    buffers: Buffers

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, in the order of the slots."""
        earlier_parts = (self.client, *self.transforms, self.aggregate, *self.rescales)
        return (*earlier_parts, self.server_opt, *self.refines, *self.averages, self.buffers)

    @property
    def needs(self) -> frozenset[str]:
        """What a run must provide for this method: "proxy", a proxy set; "held_out", clients' held-out samples that parts
        measure on; "local_test", held-out samples that test clients' own models."""
        own_needs = {"held_out"} if self.probing else set()
        own_needs |= {"local_test"} if self.personalises else set()
        return frozenset(own_needs).union(*(part.needs for part in self.parts))

    @cached_property
    def probing(self) -> tuple[Part, ...]:
        """The parts that measure something on clients' held-out samples."""
        return tuple(part for part in self.parts if type(part).probe is not Part.probe)

    @property
    def sends_own_changes(self) -> bool:
        """Whether clients send the changes of their kept state. Then a message that the server does not take is lost."""
        return self.client.sends > 0 and type(self.client).init_client_state is not LocalRule.init_client_state

    @property
    def personalises(self) -> bool:
        """Whether clients make their own models from the global one. These models are evaluated too."""
        return type(self.client).personalise is not LocalRule.personalise

    def traffic(self, parameters: int, buffers: int, network: Network | None = None) -> tuple[int, int]:
        """The numbers that one client sends and receives in a round. A model has `parameters` and `buffers` (running
        statistics).

        `network` is the model itself, for parts that send more than vectors of such lengths (`Part.numbers`).

        The statistics travel both ways if a part reads the clients' statistics. Otherwise they stay on the server. Single
        numbers (a count of steps, a learning rate) are left out.
        """
        statistics = buffers if any(part.reads_buffers for part in self.parts) else 0
        vectors_sent, vectors_received = (1 + sum(getattr(part, key) for part in self.parts) for key in ("sends", "receives"))
        extra_numbers = [part.numbers(network) for part in self.parts] if network else []
        extra_sent, extra_received = (sum(column) for column in zip((0, 0), *extra_numbers, strict=True))
        return parameters * vectors_sent + statistics + extra_sent, parameters * vectors_received + statistics + extra_received

    @cached_property
    def label(self) -> str:
        """The parts that differ from those of an open slot, `fedprox+fixed_gamma`. `fedavg` if there are none."""
        implied_parts = {slot: PARTS.make(call) for slot, call in _open_slots(self.parts).items()}
        return "+".join(part.name for part in self.parts if part != implied_parts.get(part.slot)) or "fedavg"

    def __str__(self) -> str:
        """The canonical name: every part with every argument. It parses back to the same method."""
        return "+".join(str(PARTS.canonical(part)) for part in self.parts)

    def init(self, params: Tree, buffers: Tree, start: Start | None = None) -> ServerState:
        """The server's state before round 0. `start` is for client rules that draw their state (`LocalRule.draw_shared`)."""
        shared = self.client.draw_shared(params, start) if start else self.client.init_shared(params)
        parts = {slot: tuple(part.init(params) for part in slot_parts) for slot, slot_parts in self._served.items()}
        return ServerState(params, buffers, shared, parts)

    def apply(self, state: ServerState, ctx: ServerContext) -> ServerState:
        """One round on the server: turns what `ctx.cohort` sent into the next global model.

        Running statistics are those of `ctx.network`, which starts anew with each context. If a slot is in `starting_over`, its
        parts work from their first state in this round. Their state from before stays, and their new state is dropped.
        """
        parts: dict[str, tuple] = {}

        def apply_slot(slot: str, x: Any, ctx: ServerContext) -> Any:
            new_states = []
            # Checkpoints from before a slot existed have no state for it.
            for part, part_state in zip(self._served[slot], state.parts.get(slot, ()), strict=True):
                if slot in ctx.starting_over:
                    x, _ = part(x, part.init(state.params), ctx)
                else:
                    x, part_state = part(x, part_state, ctx)
                new_states.append(part_state)
            parts[slot] = tuple(new_states)
            return x

        ctx.network.buffers = self.buffers.start(state.buffers, ctx.cohort)
        if (cohort := apply_slot("transform", ctx.cohort, ctx)) is not ctx.cohort:
            ctx = replace(ctx, cohort=cohort)
        shared = self.client.absorb(state.shared, ctx.cohort)
        update = apply_slot("rescale", apply_slot("aggregate", ctx.cohort, ctx), ctx)
        update = self.client.correct(update, shared)
        params = tree.map(torch.add, state.params, apply_slot("server_opt", update, ctx))
        for slot in ("refine", "average"):
            params = apply_slot(slot, params, ctx)
        return ServerState(params, self.buffers.finish(params, ctx.network.buffers, ctx), shared, parts)

    @cached_property
    def _served(self) -> dict[str, tuple[ServerPart, ...]]:
        """The parts of the server's slots."""
        single_parts = {"aggregate": (self.aggregate,), "server_opt": (self.server_opt,)}
        repeatable = {"transform": self.transforms, "rescale": self.rescales, "refine": self.refines, "average": self.averages}
        return single_parts | repeatable


def compose(text: str) -> Method:
    """The method that `text` names. UserError for unknown names or arguments, and for two parts in one slot."""
    parts_by_slot: dict[str, list[Any]] = {slot: [] for slot in SLOTS}
    for call in complete(expand(parse(text))):
        part = PARTS.make(call)
        if parts_by_slot[part.slot] and part.slot not in REPEATABLE:
            first_name = parts_by_slot[part.slot][0].name
            raise UserError(
                f"method {text!r}: two parts for slot {part.slot!r}, {first_name!r} and {part.name!r}; keep one of them"
            )
        parts_by_slot[part.slot].append(part)
    single_parts: dict[str, Any] = {slot: slot_parts[0] for slot, slot_parts in parts_by_slot.items() if slot not in REPEATABLE}
    repeated_parts: dict[str, Any] = {
        f"{slot}s": tuple(slot_parts) for slot, slot_parts in parts_by_slot.items() if slot in REPEATABLE
    }
    return Method(**single_parts, **repeated_parts)


def expand(calls: list[Call]) -> list[Call]:
    """Replaces recipes by their parts. Recipes take no arguments; their parts do."""
    expanded_calls = []
    for call in calls:
        if call.name in PRESETS:
            if call.arguments:
                raise UserError(
                    f"{call.name} takes no arguments; it stands for {PRESETS[call.name] or 'the default of every slot'}"
                )
            expanded_calls += expand(parse(PRESETS[call.name])) if PRESETS[call.name] else []
        elif call.name in PARTS.names():
            expanded_calls.append(call)
        else:
            raise UserError(unknown("method", call.name, sorted([*PRESETS, *PARTS.names()])))
    return expanded_calls


def complete(calls: list[Call]) -> list[Call]:
    """`calls`, then one for every slot that they leave open: what their parts want there, or else FedAvg's part."""
    named_parts = [PARTS.make(call) for call in calls]
    taken_slots = {part.slot for part in named_parts}
    return calls + [call for slot, call in _open_slots(named_parts).items() if slot not in taken_slots]


def _open_slots(parts: Iterable[Any]) -> dict[str, Call]:
    """The part that each slot takes beside `parts` if none is named for it: what one of them wants, or else FedAvg's.

    If two of them want something, the later slot wins: a server's training on its proxy set matters more than a mean.
    """
    wanted_parts = {
        slot: text for part in sorted(parts, key=lambda part: SLOTS.index(part.slot)) for slot, text in part.wants.items()
    }
    return {slot: parse(text)[0] for slot, text in (DEFAULTS | wanted_parts).items()}


def with_arguments(text: str, arguments: dict[str, dict[str, Any]]) -> str:
    """`text` with {part: {argument: value}} filled in for all its parts, including the parts of open slots.

    Arguments that `text` writes itself win, and so do those that its parts want of others. null leaves the default.
    """
    part_arguments = {
        name: {key: value for key, value in values.items() if value is not None} for name, values in arguments.items()
    }

    def fill(calls: Iterable[Call]) -> list[Call]:
        return [Call(call.name, part_arguments.get(call.name, {}) | call.arguments) for call in calls]

    return "+".join(map(str, fill(complete(fill(expand(parse(text)))))))


def for_rounds(method: Method, run_rounds: int, written_rounds: Callable[[str], int]) -> Method:
    """`method` for a run of `run_rounds` rounds. `written_rounds`: the number of rounds for which a `part.argument` is written.

    Whole numbers that are rounds (`Part.counts_rounds`) keep their share of the rounds, as starts of schedules do.
    """
    calls = []
    for part in method.parts:
        call = PARTS.canonical(part)
        round_numbers = {key: call.arguments[key] for key in sorted(part.counts_rounds) if isinstance(call.arguments[key], int)}
        scaled_rounds = {
            key: rounds.scaled(value, run_rounds, written_rounds(f"{part.name}.{key}")) for key, value in round_numbers.items()
        }
        calls.append(Call(call.name, call.arguments | scaled_rounds))
    text = "+".join(map(str, calls))
    return method if text == str(method) else compose(text)
