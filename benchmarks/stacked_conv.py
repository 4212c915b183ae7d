"""Forms of a convolution over stacked clients, forward and backward: `python -m benchmarks.stacked_conv --device cuda`.

It measures each layer of LeNet and SimpleCNN and a layer of each stage of ResNet-20, for 20 clients with 64 images each.

- engine: the form that the vectorised engine takes: a product in one launch on a GPU, a grouped convolution on a CPU;
- grouped: one convolution with a group for each client;
- unfold: patches as a matrix, one batched product;
- loop: one convolution per client, the same launches as the sequential engine's.
"""

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.run import RESULTS
from fedrepro.engine import environment
from fedrepro.models import ops

# name -> (channels in, channels out, side, kernel, padding)
LAYERS = {
    "lenet conv1": (1, 16, 28, 5, 2),
    "lenet conv2": (16, 32, 14, 5, 2),
    "simple_cnn conv1": (3, 32, 32, 3, 0),
    "simple_cnn conv2": (32, 64, 15, 3, 0),
    "simple_cnn conv3": (64, 64, 6, 3, 0),
    "resnet20 stage 1": (16, 16, 32, 3, 1),
    "resnet20 stage 2": (32, 32, 16, 3, 1),
    "resnet20 stage 3": (64, 64, 8, 3, 1),
}


def unfold(x: Tensor, weight: Tensor, padding: int) -> Tensor:
    """Multiplies patches [K, C*k*k, B*places] by weights [K, out, C*k*k]."""
    clients, batch = x.shape[:2]
    kernel, side = weight.shape[-1], x.shape[-1] + 2 * padding - weight.shape[-1] + 1
    patches = F.unfold(x.flatten(0, 1), kernel, padding=padding).unflatten(0, (clients, batch))
    columns = patches.transpose(1, 2).flatten(2)
    return torch.bmm(weight.flatten(2), columns).unflatten(2, (batch, side, side)).transpose(1, 2)


def grouped(x: Tensor, weight: Tensor, padding: int) -> Tensor:
    """Clients as groups of channels."""
    y = F.conv2d(x.transpose(0, 1).flatten(1, 2), weight.flatten(0, 1), padding=padding, groups=len(x))
    return y.unflatten(1, (len(x), -1)).transpose(0, 1)


def loop(x: Tensor, weight: Tensor, padding: int) -> Tensor:
    """One client after another."""
    return torch.stack([F.conv2d(one, w, padding=padding) for one, w in zip(x, weight, strict=True)])


FORMS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "engine": lambda x, weight, padding: ops.conv2d(x, weight, padding=padding),
    "grouped": grouped,
    "unfold": unfold,
    "loop": loop,
}


def seconds(form: Callable[[Tensor, Tensor, int], Tensor], x: Tensor, weight: Tensor, padding: int, repeats: int) -> float:
    """Seconds of the fastest forward and backward pass."""
    wait = torch.cuda.synchronize if x.device.type == "cuda" else (lambda: None)
    taken = []
    for _ in range(repeats + 1):
        wait()
        began = time.perf_counter()
        torch.autograd.grad(form(x, weight, padding).square().sum(), [x, weight])
        wait()
        taken.append(time.perf_counter() - began)
    return min(taken[1:])


def main() -> None:
    """Checks that the forms agree, times them, and writes results/stacked-conv-<device>.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    environment.prepare(options.device)
    found = {}
    for name, (channels, out, side, kernel, padding) in LAYERS.items():
        x = torch.randn(options.clients, options.batch, channels, side, side, device=options.device, requires_grad=True)
        weight = torch.randn(options.clients, out, channels, kernel, kernel, device=options.device, requires_grad=True)
        expected = loop(x, weight, padding)
        for form in FORMS.values():
            torch.testing.assert_close(form(x, weight, padding), expected, rtol=1e-3, atol=1e-3)
        found[name] = {key: 1000 * seconds(form, x, weight, padding, options.repeats) for key, form in FORMS.items()}
        print(name, {key: f"{value:.1f} ms" for key, value in found[name].items()}, flush=True)
    content = {"measured": f"{datetime.now(UTC):%Y-%m-%d}", "clients": options.clients, "batch": options.batch, "ms": found}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"stacked-conv-{options.device}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
