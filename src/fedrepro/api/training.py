"""Federated training on a caller's tensors, by the engine, methods and random streams of the tables, without files."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fedrepro.api.arguments import class_count, clients_of, index_arrays, samples, whole_number, whole_numbers
from fedrepro.api.by_name import compose
from fedrepro.api.own_model import model_of, require_logits
from fedrepro.choices import DEVICES, ENGINES, require_known
from fedrepro.config.defaults import SETTINGS
from fedrepro.config.run_differences import method_names
from fedrepro.data import participation, proxy
from fedrepro.data import partition as partitions
from fedrepro.data.arrays import is_text
from fedrepro.data.source import channel_statistics
from fedrepro.engine import environment
from fedrepro.engine.evaluate import predict
from fedrepro.engine.loop import Outcome
from fedrepro.engine.loop import train as run_rounds
from fedrepro.engine.run import Options, choose_engine
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Images, SeedDraws, Task, as_batch, as_text, make_task
from fedrepro.errors import UserError
from fedrepro.methods.compose import Method
from fedrepro.models import Model, build, initial
from fedrepro.models.names import MODELS
from fedrepro.registry import coerce, require
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch

if TYPE_CHECKING:
    import pandas as pd

_DERIVED = frozenset({"dataset", "dataset_sha", "input_shape", "classes", "method", "model", "channel_statistics"})
DECIMALS = 4  # of a channel's mean and deviation, as in data/registry.yaml: a table's run uses the same numbers
_SETTINGS = {field.name: field.type for field in fields(RunSpec) if field.name not in _DERIVED}
Pair = tuple[Any, Any]  # x and y


@dataclass(frozen=True)
class Trained:
    """The result of a training."""

    curves: "pd.DataFrame"  # method, seed, round (from 1), metric, value
    status: str  # finished or diverged
    weights: dict[str, Tensor]  # the global model's, with its running statistics: a state dict
    method: str  # with every argument
    model: Model
    inputs: Callable[[Tensor], Tensor]  # x as it was given -> x as the model reads it

    def __repr__(self) -> str:
        rounds = self.curves["round"].max() if len(self.curves) else 0
        return f"Trained({self.method!r}: {self.status} after {rounds} rounds, model {self.model.name})"

    def predict(self, x: Any) -> Tensor:
        """Logits [B, classes] of x like those that were trained on, in evaluation mode, on the CPU."""

        def named(layout: Layout) -> dict[str, Tensor]:
            return {name: self.weights[name] for name in layout.names}

        params, buffers = (Tree.from_tensors(named(layout)) for layout in (self.model.layout, self.model.buffer_layout))
        return predict(self.model, params, buffers, self.inputs(samples("predict: x", x).cpu()))


def train(
    method: str | Method,
    data: tuple[Pair, Pair],
    *,
    model: str | nn.Module = "mlp",
    clients: int | Sequence[Any] = 10,
    partition: str | None = None,
    seed: int = 8,
    classes: int | None = None,
    device: str = "cpu",
    engine: str = "auto",
    **settings: Any,
) -> Trained:
    """Trains `method` on ((x, y) to train on, (x, y) to test on): arrays or tensors, x [N, ...] and whole numbers y [N] from 0.

    x of type uint8 are pixels, scaled by the setting `normalise`; `standard` takes mean and deviation of each channel of the
    training pixels. Floating x are taken as they are. Of a model by name x is
    [N, C, H, W], or [N, H, W] or [N, F], which count as one channel; of a text model x is [N, T], y [N] what follows.
    model: a name of `fedrepro list models`, drawn at the seed, or a torch module, which starts from the weights that it has.
    clients: how many, dealt by the scheme `partition` (iid); or for each client the positions of its samples.
    classes: how many there are; the largest label and one more if it is not given, and then each class must have a sample
    (of text: the characters of the alphabet, which need not all occur).
    settings: any other of `fedrepro list settings`, with the defaults that it names: `rounds=20, client_lr=0.1`.

    The same arguments give the same numbers: those of a table's run, where data and settings are the run's. UserError for what
    does not fit.
    """
    seed, client_split = whole_number("train: seed", seed, 0), clients_of(clients)
    if partition is not None and not isinstance(client_split, int):
        raise UserError(f"train(partition={partition!r}): goes with a number of clients; here clients has their samples")
    for key, value, choices in (("device", device, DEVICES), ("engine", engine, ENGINES)):
        require(value in choices, f"train: {key}", value, f"must be one of {', '.join(choices)}")
    scheme_hint = "must be a scheme as text, such as 'dirichlet_per_client(beta=0.5)'"
    require(isinstance(partition, str | None), "train: partition", partition, scheme_hint)
    model_hint = "must be a name of `fedrepro list models`, or a torch module (an object, not its class)"
    require(isinstance(model, str | nn.Module), "train: model", model, model_hint)
    run_settings, parts = _settings(settings), method if isinstance(method, Method) else compose(method)
    (train_x, train_y), (test_x, test_y) = _pairs(data)
    labels = [train_y, test_y]
    name = model if isinstance(model, str) else type(model).__name__
    reads_text = name in MODELS and MODELS[name].reads == "text"
    if reads_text and classes is None:  # not every character of an alphabet occurs
        classes = 1 + max(int(array.max()) for array in (*labels, train_x, test_x))
    spec = RunSpec(
        **run_settings,
        dataset="own",
        dataset_sha="",
        input_shape=tuple(train_x.shape[1:]) if reads_text else _as_images(tuple(train_x.shape[1:])),
        classes=class_count("train", np.concatenate(labels), classes),
        model=name,
        partition=partition or "iid" if isinstance(client_split, int) else "given",
        clients=client_split if isinstance(client_split, int) else len(client_split),
        method=str(parts),
        channel_statistics=_statistics(train_x) if run_settings["normalise"] == "standard" else None,
    )
    products_hint = "a module of your own is trained in float32; leave products out, or cast in its forward"
    require(isinstance(model, str) or spec.products != "bf16", "train: products", spec.products, products_hint)
    require(device != "cuda" or torch.cuda.is_available(), "train: device", device, "torch finds no GPU here; leave it out")
    device = environment.pick_device(device)
    inputs = partial(_inputs, spec=spec, shape=tuple(train_x.shape[1:]) if isinstance(model, nn.Module) else spec.input_shape)
    with _computing(device, spec.products, seed):
        network, params = _model(model, spec)
        if params is not None:
            require_logits(network, params, inputs(train_x[:2].cpu()))
        batch = partial(_batch, spec=spec, inputs=inputs, device=device)
        images = Images(batch(train_x, train_y), batch(test_x, test_y), None, "")
        task = make_task(spec, seed, network, images, _draw(spec, seed, labels, client_split, params), {})
        engine_name = choose_engine(Options(device=device, engine=engine if network.stackable else "sequential"), device, spec)
        outcome = run_rounds(task, parts, engine=engine_name)
    return _result(outcome, task, parts, inputs)


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns all settings of a run but those that follow from the data."""
    for key in settings:
        require_known(f"train({key}=...)", "setting", key, sorted(_SETTINGS))
    defaults = {key: value for key, value in SETTINGS.items() if key in _SETTINGS and key not in ("partition", "clients")}
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in settings.items()}
    return defaults | {key: coerce(f"train({key}=...)", value, _SETTINGS[key]) for key, value in plain.items()}


def _pairs(data: Any) -> tuple[tuple[Tensor, np.ndarray], tuple[Tensor, np.ndarray]]:
    """Returns ((x, y), (x, y)) with x as tensors and y as int64 [N]. UserError where x and y, or the two x, do not go
    together."""
    try:
        (train_x, train_y), (test_x, test_y) = data
    except (TypeError, ValueError) as error:
        raise UserError(
            "train: data must be ((x, y) to train on, (x, y) to test on), arrays or tensors; stack the samples of a Dataset"
        ) from error
    xs = [samples(f"train: the {part} x", x) for part, x in (("training", train_x), ("test", test_x))]
    ys = [whole_numbers(f"the {part} labels", y) for part, y in (("training", train_y), ("test", test_y))]
    for what, x, y in zip(("training", "test"), xs, ys, strict=True):
        if x.dim() < 2 or not len(x) or len(x) != len(y):
            raise UserError(
                f"train: the {what} data have x of shape {tuple(x.shape)} and {len(y)} y; give x [N, ...] and y [N]"
            )
    if xs[0].shape[1:] != xs[1].shape[1:]:
        raise UserError(f"train: training x are {tuple(xs[0].shape[1:])}, test x {tuple(xs[1].shape[1:])}; make them alike")
    if len({x.dtype == torch.uint8 for x in xs}) > 1:
        raise UserError(
            f"train: training x are {xs[0].dtype}, test x {xs[1].dtype}; give both as pixels (uint8) or both scaled"
        )
    return (xs[0], ys[0]), (xs[1], ys[1])


def _as_images(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns (C, H, W) of a sample [C, H, W], [H, W] or [F]; further axes are part of W."""
    return (1,) * (3 - len(shape)) + shape if len(shape) <= 3 else (*shape[:2], prod(shape[2:]))


def _statistics(x: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns mean and deviation of each channel of pixels / 255, as rounded in the registry; 0 and 1 if x are no pixels."""
    if x.dtype != torch.uint8:
        return (0.0,), (1.0,)
    pixels = x.reshape(len(x), *_as_images(tuple(x.shape[1:]))).cpu().numpy()
    by_channel = [channel_statistics(pixels[:, channel]) for channel in range(pixels.shape[1])]
    for channel, (_, deviation) in enumerate(by_channel):
        where = f"train(normalise='standard'): the deviation of channel {channel}"
        require(round(deviation, DECIMALS) > 0, where, deviation, "is not above 0 in the training x; choose normalise='unit'")
    means, deviations = (tuple(round(value, DECIMALS) for value in values) for values in zip(*by_channel, strict=True))
    return means, deviations


def _model(model: str | nn.Module, spec: RunSpec) -> tuple[Model, Tree | None]:
    """Returns the network, and its first weights where it brings them."""
    if isinstance(model, nn.Module):
        return model_of(model, spec.input_shape, spec.classes)
    if model in MODELS and MODELS[model].detects:
        raise UserError(f"train(model={model!r}): learns from boxes, and y are class labels; choose another model")
    return build(model, spec.input_shape, spec.classes, spec.products), None


def _inputs(x: Tensor, spec: RunSpec, shape: tuple[int, ...]) -> Tensor:
    """Returns x as the model reads it: float32 [N, *shape], pixels of type uint8 scaled; text as it is. UserError for x of
    another shape or type."""
    if not len(x.shape) or prod(x.shape[1:]) != prod(shape) or not len(x):
        raise UserError(f"x of shape {tuple(x.shape)}; the model reads [N, {', '.join(map(str, shape))}]")
    if is_text(spec.input_shape):
        _require_text(x, spec.classes)
        return x.long()
    if x.dtype == torch.uint8:
        none = np.zeros(len(x), np.int64)
        x = as_batch(x.reshape(len(x), *spec.input_shape).numpy(), none, *spec.channel_scale, "cpu", torch.float32).x
    elif not x.is_floating_point():
        raise UserError(f"x of type {x.dtype}; give uint8 pixels, or floating numbers")
    return x.reshape(len(x), *shape).float()


def _require_text(x: Tensor, classes: int) -> None:
    if x.is_floating_point() or x.is_complex() or int(x.min()) < 0 or int(x.max()) >= classes:
        raise UserError(f"x of type {x.dtype}; a text model reads windows of whole numbers from 0 to {classes - 1}")


def _batch(x: Tensor, y: np.ndarray, spec: RunSpec, inputs: Callable[[Tensor], Tensor], device: str) -> Batch:
    """Returns samples and labels on the device; of text windows [N, T], and what follows each of their characters."""
    if not is_text(spec.input_shape):
        return Batch(inputs(x.cpu()).to(device), torch.from_numpy(y).to(device))
    _require_text(x, spec.classes)
    return as_text(x.cpu().numpy(), y, device)


def _draw(spec: RunSpec, seed: int, labels: list[np.ndarray], clients: int | Sequence[Any], params: Tree | None) -> SeedDraws:
    """Draws partition, cohorts, proxy samples and initial model from the random streams that the workflow uses."""
    train_y, test_y = labels
    if isinstance(clients, int):
        if partitions.needs_groups(spec.partition):
            raise UserError(f"train(partition={spec.partition!r}): reads groups of samples; deal them by `fedrepro.partition`")
        parts = partitions.draw(spec.partition, train_y, spec.classes, clients, seed).parts
    else:
        parts = index_arrays(clients, len(train_y))
    split = [partitions.split_locally(part, spec.local_validation, seed, client) for client, part in enumerate(parts)]
    rounds = participation.definition(spec.clients, spec.participation, spec.rounds, spec.cohorts)
    proxy_index, evaluation_index = proxy.draw(test_y, spec.classes, spec.proxy_per_class, seed, spec.proxy)
    return SeedDraws(
        train=[train_part for train_part, _ in split],
        held_out=[held_out for _, held_out in split],
        sizes=np.array([len(part) for part in parts]),
        cohorts=participation.draw(rounds, seed),
        proxy=proxy_index,
        evaluation=evaluation_index,
        params=params or initial.draw(build(spec.model, spec.input_shape, spec.classes, spec.products), seed),
    )


@contextlib.contextmanager
def _computing(device: str, products: str, seed: int) -> Iterator[None]:
    """Sets one thread, as every training does, since results depend on the number of threads, and torch's generator to the
    seed, since a module of one's own may draw from it. Restores the caller's number and generator."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if device == "cuda":
            environment.prepare(device)
        environment.choose_products(device, products)
        with torch.random.fork_rng([torch.cuda.current_device()] if device == "cuda" else []):
            torch.manual_seed(seed % 2**63)
            yield
    finally:
        torch.set_num_threads(threads)


def _result(outcome: Outcome, task: Task, method: Method, inputs: Callable[[Tensor], Tensor]) -> Trained:
    import pandas as pd

    rounds, metrics, values = zip(*outcome.progress.rows, strict=True)
    (label,) = method_names([str(method)], whole=True)
    constants = {"method": label, "seed": task.seed}
    curves = pd.DataFrame({**constants, "round": [number + 1 for number in rounds], "metric": metrics, "value": values})
    tensors = (*outcome.params.items(), *outcome.buffers.items())
    weights = {name: tensor.detach().cpu().clone() for name, tensor in tensors}
    return Trained(curves, outcome.status, weights, str(method), task.model, inputs)
