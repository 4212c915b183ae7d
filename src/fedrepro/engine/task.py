"""One seed of a run as tensors in memory: data, partition, participation, proxy set, initial model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fedrepro import rng, tree
from fedrepro.data import arrays, participation, partition, proxy
from fedrepro.engine import corrupted
from fedrepro.engine.augment import Pipeline, augmentations
from fedrepro.engine.evaluate import EvaluationSet, Groups
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash
from fedrepro.models import Model, build, initial
from fedrepro.tree import Tree
from fedrepro.types import Batch


@dataclass(frozen=True)
class Task:
    """Everything that the engine computes with, on one device and in one floating type."""

    spec: RunSpec
    seed: int
    model: Model
    train: Batch  # all training samples, with the labels that clients see; clients index into it
    client_index: list[Tensor]  # per client, positions of its training samples in `train`
    held_out: list[Tensor]  # per client, positions of its held-out samples in `train`, less those of `local_test`
    client_sizes: Tensor  # N_i of the full client part, before the local validation split, [N]
    cohorts: Tensor  # client ids, [rounds, K]
    evaluation: Batch  # the test set without the proxy samples
    proxy: Batch | None
    params: Tree  # initial weights, [D]
    buffers: Tree  # initial running statistics, [D']
    inputs: dict[str, str]  # sha256 of each artifact that was read
    groups: Groups | None = None  # origin of the samples of `evaluation`
    own_test: list[Tensor] | None = None  # per client, positions in `train` of samples that only test models on its data
    host_index: list[np.ndarray] | None = None  # `client_index` on the host, if it is known there; replace both or neither

    @property
    def local_test(self) -> list[Tensor]:
        """Per client, the samples that test its models: those kept by `local_test`, or else all held-out samples."""
        return self.held_out if self.own_test is None else self.own_test

    @cached_property
    def evaluated(self) -> tuple[EvaluationSet, ...]:
        """What the global model is evaluated on: the test set; on request the proxy set and all training samples."""
        evaluation_sets = [EvaluationSet("test", self.evaluation, self.groups)]
        if self.spec.evaluate_proxy:
            assert self.proxy is not None  # `RunSpec` requires one
            evaluation_sets.append(EvaluationSet("proxy", self.proxy))
        if self.spec.evaluate_train:
            evaluation_sets.append(EvaluationSet("train", self.train.take(torch.cat(self.client_index).sort().values)))
        return tuple(evaluation_sets)

    def trains(self, client: int) -> bool:
        """Whether a client has enough data to train. Clients without enough data take no part at all."""
        return self.train_sizes[client] >= self.model.smallest_batch

    @cached_property
    def augmentation(self) -> Pipeline | None:
        """The changes of training images. None if there are none."""
        steps = augmentations(self.spec.augment)
        if not steps:
            return None
        mean, std = self.spec.channel_scale
        black = [-m / s for m, s in zip(mean, std, strict=True)] * (self.train.x.shape[-3] if len(mean) == 1 else 1)
        return Pipeline(steps, self.train.x.new_tensor(black))

    @cached_property
    def client_positions(self) -> list[np.ndarray]:
        """`client_index` on the host, where batches are built. Nothing is copied back from a GPU, which would wait for it."""
        if self.host_index is None:
            return [index.cpu().numpy() for index in self.client_index]
        assert list(map(len, self.host_index)) == self.train_sizes
        return self.host_index

    @cached_property
    def train_sizes(self) -> list[int]:
        """n_i, the number of samples that client i trains on."""
        return [len(index) for index in self.client_index]

    @property
    def most_at_once(self) -> int:
        """The most clients that train in a round."""
        return len(self.client_index) if self.spec.cohorts == "late" else self.cohorts.shape[1]

    @cached_property
    def training_clients(self) -> int:
        """N, the number of clients that can train. Computed once, so that clients outside the cohort cost a round nothing."""
        return sum(self.trains(client) for client in range(len(self.client_index)))


@dataclass(frozen=True)
class Inputs:
    """Where a run's artifacts lie: the arrays' folder and the ids of the others, under `root`."""

    arrays: str
    partition: str
    participation: str
    proxy: str
    init: str
    root: Path = Path()


@dataclass(frozen=True)
class Images:
    """A run's data set on the device: the same for all its seeds."""

    train: Batch
    test: Batch
    groups: Groups | None  # of the test set
    content: str  # sha256 of what a run reads from it


def load_images(spec: RunSpec, inputs: Inputs, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Images:
    """Reads and verifies the arrays. UserError when they are missing, damaged or do not fit `spec`."""
    data = arrays.load_arrays(inputs.root / inputs.arrays)
    if data.manifest["source"]["entry_sha"] != spec.dataset_sha:
        raise UserError(f"{inputs.arrays}: made from another entry of data/registry.yaml than today's; delete it and run again")
    has_labels = data.train_boxes is None  # or boxes, where there are any
    train_y, test_y = (data.train_labels, data.test_labels) if has_labels else (data.train_boxes, data.test_boxes)
    if data.shape != spec.input_shape:
        raise UserError(f"{inputs.arrays}: samples are {data.shape}, the run wants {spec.input_shape}; prepare them again")
    if arrays.is_text(data.shape):
        train, test = (as_text(x, y, device) for x, y in ((data.train_images, train_y), (data.test_images, test_y)))
        return Images(train, test, _groups(data, device), _content_sha256(data))
    train = as_batch(data.train_images, train_y, *spec.channel_scale, device, dtype)
    test = as_batch(data.test_images, test_y, *spec.channel_scale, device, dtype)
    return Images(train, test, _groups(data, device), _content_sha256(data))


def load_task(
    spec: RunSpec,
    inputs: Inputs,
    seed: int,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    images: Images | None = None,
) -> Task:
    """Reads and verifies the artifacts of one seed. `images` is the data set if it is already loaded.

    UserError if something is missing, damaged or does not fit `spec`.
    """
    images = images or load_images(spec, inputs, device, dtype)
    model = build(spec.model, spec.input_shape, spec.classes, spec.products)
    client_split = partition.load(inputs.root, inputs.partition, seed)
    round_cohorts = participation.load(inputs.root, inputs.participation, seed)
    proxy_split = proxy.load(inputs.root, inputs.proxy, seed)
    params, init_sha = initial.load(inputs.root, inputs.init, seed, model)
    seed_draws = SeedDraws(
        train=[client_split.train(client) for client in range(client_split.clients)],
        held_out=[client_split.validation(client) for client in range(client_split.clients)],
        sizes=client_split.sizes,
        cohorts=round_cohorts.cohorts,
        proxy=proxy_split.proxy_index,
        evaluation=proxy_split.evaluation_index,
        params=params,
    )
    shas = {
        "arrays": images.content,
        "partition": client_split.sha256,
        "participation": round_cohorts.sha256,
        "proxy": proxy_split.sha256,
        "init": init_sha,
    }
    return make_task(spec, seed, model, images, seed_draws, shas, dtype)


@dataclass(frozen=True)
class SeedDraws:
    """What is drawn for a seed. Positions are int64: of training samples for clients, of test samples for the proxy split."""

    train: list[np.ndarray]  # per client
    held_out: list[np.ndarray]  # per client, not trained on
    sizes: np.ndarray  # N_i of the full client parts, [N]
    cohorts: np.ndarray  # client ids, [rounds, K]
    proxy: np.ndarray
    evaluation: np.ndarray
    params: Tree  # initial weights, [D]


def make_task(
    spec: RunSpec,
    seed: int,
    model: Model,
    images: Images,
    seed_draws: SeedDraws,
    inputs: dict[str, str],
    dtype: torch.dtype = torch.float32,
) -> Task:
    """Builds one seed from data in memory, on the device of `images`. `inputs`: sha256 of each artifact, by name."""
    device = images.train.x.device

    def on_device(index: np.ndarray) -> Tensor:
        return torch.as_tensor(index, dtype=torch.int64, device=device)

    held_out_splits = [
        _split_held_out(index, spec.local_test, seed, client) for client, index in enumerate(seed_draws.held_out)
    ]
    train = images.train
    if spec.corrupted_clients:
        positions = [np.concatenate(pair) for pair in zip(seed_draws.train, seed_draws.held_out, strict=True)]
        train = corrupted.exchange_labels(
            train, positions, corrupted.draw_class_pairs(spec.corrupted_clients, len(positions), spec.classes, seed)
        )
    return Task(
        spec=spec,
        seed=seed,
        model=model,
        train=train,
        client_index=[on_device(index) for index in seed_draws.train],
        held_out=[on_device(held_out) for held_out, _ in held_out_splits],
        client_sizes=torch.as_tensor(seed_draws.sizes, dtype=dtype, device=device),
        cohorts=torch.as_tensor(seed_draws.cohorts, dtype=torch.int64),
        evaluation=images.test.take(on_device(seed_draws.evaluation)),
        proxy=images.test.take(on_device(seed_draws.proxy)) if len(seed_draws.proxy) else None,
        params=seed_draws.params.like(seed_draws.params.flat.to(device, dtype)),
        buffers=tree.map(lambda flat: flat.to(device, dtype), model.first_buffers()),
        inputs=inputs,
        groups=images.groups and Groups(images.groups.names, images.groups.group_index[on_device(seed_draws.evaluation)]),
        own_test=[on_device(own_test) for _, own_test in held_out_splits] if spec.local_test else None,
        host_index=[np.asarray(index, np.int64) for index in seed_draws.train],
    )


def _split_held_out(index: np.ndarray, share: float, seed: int, client: int) -> tuple[np.ndarray, np.ndarray]:
    """(samples that parts may measure on, samples that test models on the client's data), both ascending. The latter are the
    `share` of a client's held-out samples, rounded up."""
    if not share:
        return index, index[:0]
    order, count = rng.stream(seed, "local-test", client).permutation(index), math.ceil(share * len(index) - 1e-9)
    return np.sort(order[count:]), np.sort(order[:count])


def _groups(data: arrays.Arrays, device: str) -> Groups | None:
    return None if data.test_groups is None else Groups(data.group_names, torch.from_numpy(data.test_groups).to(device))


def _content_sha256(data: arrays.Arrays) -> str:
    """Hex sha256 of what a run reads from its data set. The rest of the manifest may change without changing a result."""
    files = data.manifest["files"]
    array_names = [name for name in (*arrays.NAMES, *arrays.BOXES, *arrays.GROUPS) if f"{name}.npy" in files]
    return canonical_hash({name: files[f"{name}.npy"]["sha256"] for name in array_names}, 64)


def as_text(windows, next_characters, device: str) -> Batch:
    """Windows of characters x [N, T], and y [N, T], the character after each. `after` [N]: the one after the window."""
    text = torch.cat([torch.from_numpy(windows).long(), torch.from_numpy(next_characters).unsqueeze(1)], 1).to(device)
    return Batch(text[:, :-1].contiguous(), text[:, 1:].contiguous())


def as_batch(images, targets, mean: Sequence[float], std: Sequence[float], device: str, dtype: torch.dtype) -> Batch:
    """Scales uint8 images [N, C, H, W] to [0, 1], then (x - mean) / std. Targets are int64 labels [N] or boxes [N, M, 5]."""
    x = torch.from_numpy(images).to(device, dtype).div_(255)
    mean_C11, std_C11 = (torch.as_tensor(statistic, dtype=dtype, device=device).reshape(-1, 1, 1) for statistic in (mean, std))
    y = torch.from_numpy(targets).to(device)
    return Batch(x.sub_(mean_C11).div_(std_C11), y.to(dtype) if y.is_floating_point() else y)
