"""What a result was computed with."""

import mmap
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fedrepro.engine import environment
from fedrepro.errors import UserError


def test_memory_of_what_came_before_counts_only_where_it_cannot_be_forgotten() -> None:
    """300 MB are taken and given back: in the peak until it is forgotten, and longer only where the system cannot forget."""
    environment.forget_peak()
    before = environment.peak_rss_mib()
    taken = mmap.mmap(-1, 300_000_000)  # not by malloc, which may keep what is given back
    np.frombuffer(taken, np.uint8)[:] = 1
    taken.close()
    assert environment.peak_rss_mib() > before + 250
    forgotten = environment.forget_peak()
    assert (environment.peak_rss_mib() < before + 50) == forgotten


@pytest.mark.parametrize(
    ("file", "visible", "possible"),
    [
        (None, None, False),
        ("nvme0", None, False),
        ("nvidia0", None, True),
        ("nvidia0", "0,1", True),
        ("nvidia0", "", False),
        ("nvidia0", "-1", False),
        ("dxg", None, True),
        ("kfd", None, True),
        ("nvhost-gpu", None, True),
    ],
)
def test_a_device_file_that_is_not_hidden_may_be_a_gpu(
    file: str | None, visible: str | None, possible: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only then is torch asked."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if file:
        (tmp_path / file).touch()
    assert environment.gpu_possible(tmp_path) == possible


def test_without_a_gpu_the_device_is_told_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """auto and cpu are cpu, and torch is not loaded for it; cuda is refused in one line."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    look = "import sys; from fedrepro.engine.environment import pick_device as p; print(p('auto'), p('cpu'), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["cpu", "cpu"]
    assert "torch" not in done.stdout.split()
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="device = cuda"):
        environment.pick_device("cuda")


def test_freed_memory_is_kept() -> None:
    """A tensor of 40 MB that is made and dropped again and again soon costs no page faults (glibc; in a fresh process).

    The heap may still grow now and then, when something small has taken a piece of what was free.
    """
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("only glibc's malloc can be told")
    code = """
import resource, torch
from fedrepro.engine import environment
environment.prepare("cpu")
a = torch.zeros(10_000_000)
faults = []
for _ in range(60):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    b = a + 1
    del b
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(*faults)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    faults = [int(count) for count in done.stdout.split()]
    assert faults[0] > 1000
    assert sum(count > 100 for count in faults[20:]) <= 4, faults


def test_tf32_is_asked_for_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of torch's switches, which are there without a GPU too; the next run of the process has full float32 again."""
    for products, expected in (("tf32", True), ("bf16", False), ("tf32", True), ("float32", False)):
        environment.choose_products("cuda", products)
        assert torch.backends.cuda.matmul.allow_tf32 is expected
        assert torch.backends.cudnn.allow_tf32 is expected
    with pytest.raises(UserError, match="products = 'bf16': portable arithmetic has none; set arithmetic: native"):
        environment.choose_products("cpu", "bf16")
    monkeypatch.setattr(environment.arithmetic, "current", lambda: "native")
    environment.choose_products("cpu", "bf16")
    with pytest.raises(UserError, match="a CPU has none"):
        environment.choose_products("cpu", "tf32")
