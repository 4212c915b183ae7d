"""The state at a round that several runs share. The first run leaves it, and the others continue from it to the same bits.

    results/checkpoints/forks/<key>/seed8-round225.pt    a checkpoint, with the global models of the rounds just before

`key` is a hash of everything that decides those rounds: the settings without what begins later (`forks.trunk`), seed, inputs,
engine, device, code of the parts. The file is deleted once all runs that share it have finished the seed. It stays if one of
them is never trained.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fedrepro.engine import checkpoint
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.forks import begins_later
from fedrepro.methods.compose import Method, ServerState
from fedrepro.tree import Tree

FOLDER = checkpoint.FOLDER / "forks"
Saved = tuple[ServerState, dict[int, dict[str, Tree]], Progress]


@dataclass(frozen=True)
class ForkPoint:
    """One round (from 0) of one seed. `models` is the number of global models kept with it, from the rounds just before."""

    round: int
    models: int
    path: Path
    key: str

    def save(
        self, method: Method, rounds: int, state: ServerState, client_states: dict[int, dict[str, Tree]], progress: Progress
    ) -> None:
        """Writes the state before `round`, unless another run has written it or `state` lacks the models."""
        model_count = min(self.models, self.round)
        if len(state.past) >= model_count and not self.path.exists():
            early_state = replace(
                _without_later_averages(method, self.round, rounds, state), past=state.past[len(state.past) - model_count :]
            )
            checkpoint.save(self.path, self.key, early_state, client_states, progress)

    def load(self, method: Method, rounds: int, device: torch.device | str) -> Saved | None:
        """The state from which a seed of `method` continues in `round`. None if no run left it with enough models."""
        saved = checkpoint.load(self.path, self.key, device)
        if saved is None or len(saved[0].past) < min(self.models, self.round):
            return None
        state, client_states, progress = saved
        return (
            _with_later_averages(method, self.round, rounds, state),
            client_states,
            replace(progress, shared=self.round, shared_s=progress.wall_s),
        )


def remember(points: Iterable[ForkPoint], round: int, past: tuple[Tree, ...], state: ServerState) -> ServerState:
    """Returns `state` after `round` with the global models that later `points` need. `past` are those of the rounds before."""
    model_counts = [point.models for point in points if point.round - point.models <= round < point.round]
    return replace(state, past=(*past, state.params)[-max(model_counts) :]) if any(model_counts) else state


def _without_later_averages(method: Method, round: int, rounds: int, state: ServerState) -> ServerState:
    """The state without the averages that begin in `round` or later."""
    pairs = zip(method.averages, state.parts["average"], strict=True)
    early_states = tuple(part_state for part, part_state in pairs if not begins_later(part.begins(rounds), round))
    return replace(state, parts=state.parts | {"average": early_states})


def _with_later_averages(method: Method, round: int, rounds: int, state: ServerState) -> ServerState:
    """The state with the averages that begin in `round` or later. Their state follows from the rounds before it."""
    early_states, part_states = iter(state.parts["average"]), []
    for part in method.averages:
        if begins_later(part.begins(rounds), round):
            past = state.past[max(0, len(state.past) - part.remembers(rounds)) :]
            part_states.append(part.inherit(past))
        else:
            part_states.append(next(early_states))
    return replace(state, parts=state.parts | {"average": tuple(part_states)}, past=())
