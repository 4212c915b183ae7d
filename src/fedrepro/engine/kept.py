"""Models of chosen rounds, kept for diagnostics. They belong neither to a run's identity nor to its results.

    results/kept/<run_id>/seed8/round50.safetensors    the models of round 50, counted from 1
    results/kept/<run_id>/seed8.json                   the rounds that there are, with their sha256

A round's file holds the global model before and after the round (`before.params` [D], `after.params`), the models of its
clients after local training (`clients.params` [K, D]), their ids and data-size weights, the running statistics of all of
them, and what the server's parts leave (`server.<name>`). Vectors are in the layout of the model, which stands in the
metadata beside run, seed, round and the curves so far: a file whose curves are not the receipt's is of another training, and
counts as missing.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from fedrepro import tree
from fedrepro.engine.measurements import DIAGNOSTICS, KEPT, model_index_path
from fedrepro.engine.receipts import receipt_path
from fedrepro.engine.records import Record, Row, curves
from fedrepro.errors import UserError
from fedrepro.files import json_text, read_json, sha256_file, write_atomic, write_json
from fedrepro.methods.compose import ServerState
from fedrepro.tree import Layout, Tree
from fedrepro.types import Cohort

SCHEMA = 1
_ABOUT = "fedrepro"  # one key of the metadata: the order of several is not fixed


@dataclass(frozen=True)
class Global:
    """The global model at one moment."""

    params: Tree  # [D]
    buffers: Tree  # [D']

    def at(self, index: int | slice | list[int]) -> "Global":
        """Returns some of several models, params [K, D]; if `index` is a number, one model [D]."""
        return Global(*(vectors.like(vectors.flat[index]) for vectors in (self.params, self.buffers)))


@dataclass(frozen=True)
class RoundModels:
    """The models of one round."""

    round: int  # counted from 1
    before: Global  # what the clients received
    after: Global  # what the server made of their models
    clients: list[int]  # ids of the cohort's clients that trained, ascending, length K
    params: Tree  # their weights after local training, [K, D]
    buffers: Tree  # their running statistics, [K, D']
    weights: Tensor  # their data-size weights, which sum to 1, [K]
    server: dict[str, Tensor] = field(default_factory=dict)  # what the server's parts left, see `ServerContext.diagnostics`
    others: dict[int, "RoundModels"] = field(default_factory=dict)  # by round, the other rounds that a diagnostic needs

    @property
    def models(self) -> Global:
        """The clients' models after local training, [K, D] and [K, D']."""
        return Global(self.params, self.buffers)

    @property
    def updates(self) -> Tree:
        """w_k - w, [K, D]."""
        return self.params.like(self.params.flat - self.before.params.flat)

    @property
    def mean(self) -> Global:
        """The mean of the clients' models by their data-size weights, with their running statistics."""
        return Global(*(tree.weighted_sum(self.weights, vectors) for vectors in (self.params, self.buffers)))


@dataclass
class Keeper:
    """Writes the models of `rounds`, counted from 1, during a training."""

    root: Path
    run_id: str
    seed: int
    rounds: frozenset[int]
    until: int | None = None  # the round after which the training stops, since it is only there for the models
    _met: tuple[ServerState, Cohort | None] | None = field(default=None, init=False)
    _server: dict[str, Tensor] = field(default_factory=dict, init=False)

    def meet(self, round: int, before: ServerState, cohort: Cohort | None) -> None:
        """Stores the server's state and the cohort at the start of `round` (from 0). `cohort` is None if no client has training
        data."""
        self._met = (before, cohort) if round + 1 in self.rounds else None
        self._server = {}

    def add(self, server: dict[str, Tensor]) -> None:
        """Stores the tensors that the server's parts leave for diagnostics in this round."""
        self._server = server

    def keep(self, round: int, after: ServerState, rows: list[Row]) -> None:
        """Writes the models at the end of `round` (from 0), if it is one of `rounds`. `rows`: the metrics recorded so far."""
        if self._met is None:
            return
        (before, cohort), self._met = self._met, None
        about = {"schema": SCHEMA, "run_id": self.run_id, "seed": self.seed, "round": round + 1}
        about |= {"params": _layout(after.params), "buffers": _layout(after.buffers), "curves": curves(rows, round + 1)}
        content = save(_tensors(before, after, cohort, self._server), {_ABOUT: json.dumps(about, sort_keys=True)})
        path = round_path(self.root, self.run_id, self.seed, round + 1)
        write_atomic(path, lambda temporary: temporary.write_bytes(content))


def round_path(root: Path, run_id: str, seed: int, round: int) -> Path:
    """`results/kept/<run_id>/seed<k>/round<t>.safetensors`."""
    return Path(root) / KEPT / run_id / f"seed{seed}" / f"round{round}.safetensors"


def missing(root: Path, receipt: Record, rounds: Iterable[int]) -> list[int]:
    """Returns the `rounds` that a finished seed lacks models of. A diverged seed has none of the rounds it did not reach."""
    present, reached = kept_rounds(root, receipt), len(receipt["curves"]["round"])
    return sorted(r for r in rounds if r <= reached and not present.get(r))


def write_index(root: Path, receipt: Record) -> None:
    """Writes the list of a finished seed's kept rounds. An unchanged list is not written again and keeps its modification
    time."""
    run_id, seed = receipt["run_id"], receipt["seed"]
    path = model_index_path(root, run_id, seed)
    for leftover in path.with_suffix("").glob(".round*"):  # left by a process that was killed while writing
        leftover.unlink()
    own = [number for number, fits in sorted(kept_rounds(root, receipt).items()) if fits]
    rounds = {str(number): sha256_file(round_path(root, run_id, seed, number)) for number in own}
    content = {"run_id": run_id, "seed": seed, "rounds": rounds, "reached": len(receipt["curves"]["round"])}
    if not path.exists() or read_json(path) != content:
        write_json(path, content)


def kept_rounds(root: Path, receipt: Record) -> dict[int, bool]:
    """Round -> whether its models are of the training of the receipt. Those that are not, or are damaged, count as not kept."""
    files = model_index_path(root, receipt["run_id"], receipt["seed"]).with_suffix("").glob("round*.safetensors")
    numbers = {file.stem.removeprefix("round"): file for file in files}
    return {int(n): _fits(file, receipt) for n, file in numbers.items() if n.isdecimal()}  # not a file manager's `round2 copy`


def forget_others(root: Path, receipt: Record) -> None:
    """Before a new result of a seed is written: takes the rounds of other trainings off the list of kept rounds, and deletes
    what was measured on models of a result that this one replaces, if their curves differ."""
    run_id, seed = receipt["run_id"], receipt["seed"]
    path, before = model_index_path(root, run_id, seed), receipt_path(root, run_id, seed)
    if path.exists():
        try:
            rounds = load_index(root, run_id, seed)["rounds"].items()
            own = {number: sha for number, sha in rounds if _fits(round_path(root, run_id, seed, int(number)), receipt)}
            write_json(path, {"run_id": run_id, "seed": seed, "rounds": own, "reached": len(receipt["curves"]["round"])})
        except (UserError, KeyError, AttributeError, ValueError):  # damaged; it is made again from the files
            path.unlink()
    if before.exists() and not _same_curves(before, receipt):
        for file in (Path(root) / DIAGNOSTICS / run_id).glob(f"*/seed{seed}.parquet"):
            file.unlink()


def _same_curves(before: Path, receipt: Record) -> bool:
    try:
        return json_text(read_json(before)["curves"]) == json_text(receipt["curves"])
    except (UserError, KeyError, TypeError):  # damaged
        return False


def load_index(root: Path, run_id: str, seed: int) -> dict[str, Any]:
    """`rounds`, round -> sha256 of its file, and `reached`, the seed's number of rounds. UserError if no models are kept."""
    path = model_index_path(root, run_id, seed)
    if not path.exists():
        raise UserError(f"{path}: no models are kept; `fedrepro run` with --keep and the rounds keeps them")
    content = read_json(path)
    if not isinstance(content, dict) or (content.get("run_id"), content.get("seed")) != (run_id, seed):
        raise UserError(
            f"{path}: not the list of what is kept of {run_id}, seed {seed}; delete it and run the same command again"
        )
    return content


def load_round(root: Path, run_id: str, seed: int, round: int, sha256: str, device: str = "cpu") -> RoundModels:
    """The models of one round. UserError where the file is not the one that the list of kept rounds names."""
    path = round_path(root, run_id, seed, round)
    if not path.exists() or sha256_file(path) != sha256:
        raise UserError(
            f"{path}: missing or damaged (another sha256); delete {path.parent}.json and run the same command again"
        )
    about, tensors = _about(path), load_file(path, device=device)
    layouts = {kind: Layout(tuple(about[kind]["names"]), tuple(map(tuple, about[kind]["shapes"]))) for kind in _KINDS}

    def models(whose: str) -> list[Tree]:
        return [Tree(layouts[kind], tensors[f"{whose}.{kind}"]) for kind in _KINDS]

    before, after, (params, buffers) = Global(*models("before")), Global(*models("after")), models("clients")
    clients, weights = tensors["clients.ids"].tolist(), tensors["clients.weights"]
    server = {name.removeprefix(_SERVER): tensor for name, tensor in tensors.items() if name.startswith(_SERVER)}
    return RoundModels(round, before, after, clients, params, buffers, weights, server)


_KINDS, _SERVER = ("params", "buffers"), "server."


def _tensors(before: ServerState, after: ServerState, cohort: Cohort | None, server: dict[str, Tensor]) -> dict[str, Tensor]:
    states = {"before": before, "after": after}
    tensors = {f"{moment}.{kind}": getattr(state, kind).flat for moment, state in states.items() for kind in _KINDS}
    if cohort is None:
        none = {f"clients.{kind}": getattr(after, kind).flat[None][:0] for kind in _KINDS}
        tensors |= none | {"clients.ids": torch.zeros(0, dtype=torch.int64), "clients.weights": after.params.flat[:0]}
    else:
        tensors |= {"clients.params": cohort.models.flat, "clients.buffers": cohort.buffers.flat}
        tensors |= {"clients.ids": torch.tensor(cohort.clients), "clients.weights": cohort.weights}
    tensors |= {f"{_SERVER}{name}": tensor for name, tensor in server.items()}
    # safetensors requires separate memory for each tensor, and one vector may be the global model before and after the round.
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _layout(tree: Tree) -> dict[str, Any]:
    return {"names": list(tree.layout.names), "shapes": [list(shape) for shape in tree.layout.shapes]}


def _about(path: Path) -> dict[str, Any]:
    with safe_open(path, "pt") as file:
        return json.loads((file.metadata() or {})[_ABOUT])


def _fits(path: Path, receipt: Record) -> bool:
    """Whether the models at `path` come from the training of the receipt. Metrics that only one of the two has are not
    compared."""
    try:
        about = _about(path)
    except (OSError, SafetensorError, KeyError, ValueError):
        return False
    if (about["schema"], about["run_id"], about["seed"]) != (SCHEMA, receipt["run_id"], receipt["seed"]):
        return False
    shared = about["curves"].keys() & receipt["curves"].keys()
    return all(about["curves"][name] == receipt["curves"][name][: about["round"]] for name in shared)


def first_difference(receipt: Record, rows: list[Row], round: int) -> str:
    """Describes a metric of `round` (from 0) that differs from the receipt. "" if every metric that both have is the same."""
    for number, name, value in reversed(rows):
        if number < round:
            break
        curve = receipt["curves"].get(name)
        current = value if math.isfinite(value) else None
        if curve is not None and curve[round : round + 1] != [current]:
            return f"{name} of round {round + 1} is {current!r}, was {curve[round] if round < len(curve) else 'missing'!r}"
    return ""
