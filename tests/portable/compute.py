"""Computes all results that portable arithmetic promises, in one process and one folder, for comparison between processors.

    python -m tests.portable.compute FOLDER           # AVX2 alone
    python -m tests.portable.compute FOLDER --wide    # AVX-512 too, if this processor has it
    python -m tests.portable.compute FOLDER --skip 3  # starts after the first three steps; each step is a line of the output
    python -m tests.portable.compute FOLDER --share 0/2  # every second model and method, from the first; all else as before
    python -m tests.portable.compute --write          # writes tests/portable/hashes.json again

FOLDER gets the arrays of the embedded data; a partition by every scheme; cohorts, proxy split and initial models; the results
of every method after two rounds, as `fedrepro run` writes them; and every model after a step, as safetensors.
"""

import argparse
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from fedrepro import arithmetic
from fedrepro.files import sha256_file, write_json

HASHES = Path(__file__).with_name("hashes.json")
# These files contain the machine, the time or the commit.
VARY = ("env.json", "manifest.json", "config.json", "seed8.json", "registry.yaml")
SCHEMES = (
    "iid",
    "dirichlet_per_class(alpha=0.1)",
    "dirichlet_per_class(alpha=100)",
    "dirichlet_per_client(beta=0.01)",
    "dirichlet_per_client(beta=1)",
    "dirichlet_first_come(beta=0.01)",
    "dirichlet_unmapped(beta=0.5)",
    "dirichlet_balanced(alpha=0.1)",
    "dirichlet_hybrid",
    "dirichlet_hybrid_equal(alpha_first=100, alpha_rest=0.1)",
    "long_tailed(ratio=5)",
    "log_normal_sizes(sigma=2)",
    "log_normal_dirichlet(sigma=0.3, alpha=100)",
    "classes_per_client(k=2)",
    "shards(per_client=2)",
    "pachinko(alpha=0.1, beta=10, hierarchy='0-1-2-3-4 5-6-7-8-9')",
)
SETTINGS: dict[str, Any] = {
    "dataset": "digits",
    "normalise": "centred",
    "classes": 10,
    "partition": "dirichlet_per_class(alpha=1)",
    "clients": 12,
    "participation": 0.25,
    "local_validation": 0.2,
    "proxy_per_class": 2,
    "proxy_batch_size": 16,
    "rounds": 2,
    "local_epochs": 1,
    "batch_size": 32,
    "client_lr": 0.05,
    "client_lr_decay": 0.99,
    "client_momentum": 0.5,
    "keep_client_momentum": False,
    "weight_decay": 0.0005,
}
# An emulated product takes some hundred times as long. So there are three clients of about ten samples, one evaluation and
# small proxy sets.
FEW = {
    "clients": 96,
    "participation": 1 / 32,
    "batch_size": 4,
    "evaluate_every": 2,
    "proxy_per_class": 1,
    "proxy_batch_size": 8,
}
EVALUATED = 40
# For the same reason pFedMe, which takes inner steps for every client, takes fewer of them, and large networks get smaller
# images.
FEWER_STEPS = {"pfedme": "pfedme(steps=2)"}
SMALLER: dict[str, int] = dict.fromkeys(("fedgh_cnn", "fedgh_cnn_relu", "resnet20", "resnet20_gn"), 16)
SMALLER |= dict.fromkeys(("resnet56", "resnet110", "wrn56_4", "densenet121", "fedima_resnet18"), 8)
SMALLER |= {"mcmahan_cifar": 24, "shakespeare_lstm": 8, "fedima_alexnet": 63}
# These take a minute or more each under emulation, so they make one step less.
LARGE = ("fedima_vgg11", "wrn56_4", "densenet121", "fedima_alexnet", "resnet18", "fedima_resnet18")


def compute(folder: Path, skip: int = 0, share: str = "0/1") -> None:
    """Writes everything below `folder`, except for the first `skip` steps and the share that `steps` leaves to others. Call
    `arithmetic.use` first."""
    from fedrepro.data.registry import REGISTRY
    from fedrepro.engine import environment

    environment.prepare("cpu")
    (folder / REGISTRY).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(REGISTRY, folder / REGISTRY)
    with mock.patch("fedrepro.data.partition.picture.save_picture"):  # not promised, and under emulation a checkpoint takes 4 s
        for number, (name, step) in enumerate(steps(folder, share), 1):
            if number > skip:
                step()
                print(f"{number} {name}", flush=True)


def steps(folder: Path, share: str = "0/1") -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, call) of each step; a step may be repeated. "k/n" takes every n-th model and method, from number k."""
    from fedrepro.data.registry import load_registry
    from fedrepro.models.names import MODELS

    entry = load_registry()["digits"]
    yield "drawn", partial(_drawn, folder, entry)
    first, every = map(int, share.split("/"))
    for name in [*(name for name in MODELS if name not in LARGE), *LARGE][first::every]:
        yield f"step of {name}", partial(_step, folder / "steps", name)
    for settings in itertools.islice(_runs(), first, None, every):
        yield f"{settings['model']}, {settings['method']}", partial(_train, folder, entry, settings)


def hashes(folder: Path) -> dict[str, str]:
    """Path below `folder` -> sha256, for every file that must be the same on all processors."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in VARY)
    return {str(path.relative_to(folder)): sha256_file(path) for path in found if "checkpoints" not in path.parts}


def _drawn(folder: Path, entry: Any) -> None:
    from fedrepro.cli.drawing import draw_seeds
    from fedrepro.data import participation, partition
    from fedrepro.data.prepare import prepare

    for shape in ((1, 4, 4), (1, 8, 8), (1, 28, 28)):
        prepare("digits", shape, folder, None)
    for scheme in SCHEMES:
        draw_seeds("partition", partition.definition(entry, scheme, 10, 0.1), [8], folder)
    draw_seeds("participation", participation.definition(100, 0.1, 50), [8], folder)


def _runs() -> Iterator[dict[str, Any]]:
    """Settings of every recipe and part. Those that concern running statistics also run with BatchNorm, and one runs with
    larger batches."""
    from fedrepro.methods.compose import compose
    from fedrepro.methods.presets import PRESETS
    from tests.golden.regenerate import concerns_statistics
    from tests.toy import PART_METHODS

    skewed = {"corrupted_clients": 0.5, "proxy": "long_tailed(ratio=4)", "proxy_sampling": "balanced", "proxy_per_class": 4}
    yield SETTINGS | FEW | skewed | {"method": "server_ft", "model": "mlp", "input_shape": (1, 8, 8)}
    yield SETTINGS | {"clients": 24, "participation": 1 / 8, "method": "fedavg", "model": "mlp", "input_shape": (1, 28, 28)}
    texts = [FEWER_STEPS.get(text, text) for text in [*PRESETS, *PART_METHODS, "fedprox(mu=0.1)+gh+fedavgm"]]
    for method in {str(compose(text)): text for text in reversed(texts)}.values():  # several names of one method give one run
        yield SETTINGS | FEW | {"method": method, "model": "mlp", "input_shape": (1, 8, 8)}
    for method in ("fedavg", *(text for text in PART_METHODS if concerns_statistics(text))):
        yield SETTINGS | FEW | {"method": method, "model": "resnet8", "input_shape": (1, 4, 4)}


def _train(folder: Path, entry: Any, settings: dict[str, Any]) -> None:
    from fedrepro.cli.drawing import draw_seeds
    from fedrepro.data.arrays import arrays_folder
    from fedrepro.engine.artifacts import MODULES, definitions
    from fedrepro.engine.identity import settings_hash
    from fedrepro.engine.run import Options, run_seeds
    from fedrepro.engine.spec import RunSpec
    from fedrepro.methods.compose import compose

    made = compose(settings["method"])
    spec = RunSpec(**settings | {"dataset_sha": entry.sha, "method": str(made)})
    inputs = {"arrays": str(arrays_folder(Path(), "digits", spec.input_shape))}
    for kind, definition in definitions(spec, entry).items():
        draw_seeds(kind, definition, [8], folder)
        inputs[kind] = MODULES[kind].artifact_id(definition)
    label, config = f"{spec.model}-{settings['method']}".replace(" ", ""), spec.as_dict()
    run_id = f"digits-{label}-{settings_hash(config)}"
    run = {"run_id": run_id, "method": str(made), "method_label": label, "config": config, "inputs": inputs}
    with mock.patch("fedrepro.engine.run.load_task", _few_evaluated):
        run_seeds(run, [8], Options(root=folder, device="cpu"))


def _few_evaluated(*arguments: Any, **more: Any) -> Any:
    """A task that is evaluated on its first EVALUATED images. Under emulation 400 images take longer than the training."""
    import torch

    from fedrepro.engine.task import load_task

    task = load_task(*arguments, **more)
    return replace(task, evaluation=task.evaluation.take(torch.arange(EVALUATED)))


def _step(folder: Path, name: str) -> None:
    """Writes an architecture's weights, gradient and outputs after a step on two random images and one on a single image.

    Images or windows have the size of its paper, with sides of at most 32, or of what SMALLER says.
    """
    import numpy as np
    import torch
    from safetensors.torch import save_file

    from fedrepro import tree
    from fedrepro.models import build, initial
    from fedrepro.models.dropout import Keys
    from fedrepro.models.names import MODELS

    folder.mkdir(exist_ok=True)
    known = MODELS[name]
    shape = tuple(min(side, SMALLER.get(name, 32)) for side in known.input_shape)
    generator, model = np.random.default_rng(0), build(name, shape, 10)

    def images(count: int) -> torch.Tensor:
        if known.reads == "text":
            return torch.from_numpy(generator.integers(0, 10, (count, *shape)))
        return torch.from_numpy(generator.random((count, *shape), np.float32))

    params, buffers, x = initial.draw(model, 8), model.first_buffers(), images(2)
    y = torch.from_numpy(generator.integers(0, 10, x.shape if known.reads == "text" else 2))
    if known.detects:
        boxes = [[class_, 0.3 + class_ / 20, 0.5, 0.4, 0.3] for class_ in y.tolist()]
        y = torch.tensor(boxes).unsqueeze(1)
    more = {"key": Keys(torch.tensor(1)).next()} if known.dropout else {}

    def loss(p: tree.Tree, count: int = 2) -> torch.Tensor:
        return model.loss(model.forward(p, buffers, x[:count], True, **more)[0], y[:count])

    g = tree.gradient(loss, params)
    if model.gradient is not None:
        closed = model.gradient(params, x, y)
        params = tree.axpy(-0.05, closed, params)
    params = tree.axpy(-0.05, g, params)
    if known.smallest_batch == 1 and name not in LARGE:  # the last batch of an epoch may be a single image
        params = tree.axpy(-0.05, tree.gradient(partial(loss, count=1), params), params)
    with torch.no_grad():
        outputs = model.forward(params, buffers, images(2), False)[0]
    save_file({"params": params.flat, "gradient": g.flat, "outputs": outputs.contiguous()}, folder / f"{name}.safetensors")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.portable.compute")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    arithmetic.use("portable")
    if options.wide:
        arithmetic.widen()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        compute(folder, options.skip, options.share)
        if options.write:
            write_json(HASHES, hashes(folder))


if __name__ == "__main__":
    main()
