"""Describes the machine of a benchmark and measures its ceiling: the rate of plain matrix products."""

import os
import platform
import subprocess
import sys
from typing import Any

from benchmarks.works import Work

# Times a float32 product of two square matrices, the fastest of 40: side 1024 on a CPU, 8192 on a GPU. One process per loaded
# core runs it. On a CPU it takes the faster of torch's product and oneDNN's.
_PRODUCT = """
import time, torch
torch.set_num_threads(1)
device = "{device}"
size = 1024 if device == "cpu" else 8192
a = torch.randn(size, size, device=device)
wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
ways, best = [lambda: a @ a], 1e9
if device == "cpu":
    from fedrepro.models import kernels
    ways += [lambda: kernels._onednn(a, a, None)] * kernels.works()
for way in ways * 40:
    wait(); began = time.perf_counter(); way(); wait()
    best = min(best, time.perf_counter() - began)
print(2 * size**3 / best / 1e9)
"""


def describe(device: str) -> dict[str, Any]:
    """Processor, versions, and the GFLOP/s of matrix products: for one process, and for the sum of two at once."""
    import torch

    from fedrepro.engine import environment

    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else environment.describe("cpu", "")["processor"],
        "cores": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "matmul_gflops": {str(count): round(_products(device, count), 1) for count in (1, 2)},
    }


def _products(device: str, count: int) -> float:
    command = [sys.executable, "-c", _PRODUCT.format(device=device)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return sum(float(process.communicate()[0]) for process in started)


def flops_per_sample(work: Work) -> float:
    """Additions and multiplications of linear and convolutional layers in one training step, for one image."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from fedrepro import tree
    from fedrepro.models import build, initial, ops

    model, size = build(work.model, work.shape, 10), 8
    # Meta tensors compute nothing. They also bypass the project's CPU kernels, whose operations the counter cannot count.
    params, buffers = (one.like(one.flat.to("meta")) for one in (initial.draw(model, 8), model.first_buffers()))
    x, y = torch.zeros((size, *work.shape), device="meta"), torch.zeros(size, dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as counter:
        tree.gradient(lambda p: ops.cross_entropy(model.forward(p, buffers, x, True)[0], y), params)
    return counter.get_total_flops() / size
