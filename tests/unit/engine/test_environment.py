"""The record of what a result was computed with."""

import mmap
import platform
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from bare import python
from real_papers import ROOT

from fedrepro.config.schema import Params
from fedrepro.engine import checkout, environment
from fedrepro.engine.records import read
from fedrepro.errors import UserError


def git(*arguments: str) -> None:
    """Runs git in the working directory."""
    subprocess.run(["git", *arguments], check=True)


def objection() -> str:
    """Why what is trained here now could not be published."""
    return checkout.objection() or "none"


def test_an_untracked_source_is_a_difference_from_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new part or table and an edit of one make the tree dirty. An ignored file does not, nor does a file that no training
    reads, nor params.yaml, since receipts hold what it gives."""
    monkeypatch.chdir(tmp_path)
    assert checkout.state() == (None, None)
    for name in ("src/a.py", "papers/p/paper.yaml", "params.yaml", ".gitignore"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("*.pyc\n")
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    commit, dirty = checkout.state()
    assert (len(commit or ""), dirty) == (40, False)
    names = {
        "notes.txt": False,
        "src/a.pyc": False,
        "params.yaml": False,
        "papers/p/tables/table30.yaml": True,
        "src/a.py": True,
    }
    for name, counts in names.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
        assert checkout.state() == (commit, counts), name
        git("clean", "-fdq")


def test_the_objection_to_publishing_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git, outside a repository, in one of another user, before the first commit and after an edit; none otherwise."""
    monkeypatch.chdir(tmp_path)
    remedy = "; `git init`, `git add --all` and `git commit` make a repository, which DVC needs too"
    assert "not a git repository" in objection()
    assert objection().endswith(remedy)
    git("init", "-q")
    assert "HEAD" in objection()
    assert objection().endswith(remedy)
    source = tmp_path / "src" / "a.py"
    source.parent.mkdir()
    source.write_text("")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    assert objection() == "none"
    source.write_text("edited = True\n")
    assert objection() == f"src, papers or data/registry.yaml differ from commit {(checkout.state()[0] or '')[:8]}; commit them"
    with monkeypatch.context() as patch:
        patch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own tests make it refuse a folder with it
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        assert "dubious ownership" in objection()
        assert objection().endswith(f"; give `git config --global --add safe.directory {tmp_path}`")
    monkeypatch.setenv("PATH", "")
    assert objection() == "git is not installed"


def test_receipts_hold_what_params_yaml_gives_a_training() -> None:
    """An uncommitted edit hides nothing. A new key needs a place in receipts, or params.yaml one in `checkout.SOURCES`."""
    held = {"device": "environment", "arithmetic": "environment", "workers": "environment", "seeds": "seed"}
    held |= dict.fromkeys(("scale", "settings", "methods"), "config")
    assert {*Params.model_fields} == {"tables", *held}  # `tables` says which runs to train
    receipt = read(max(ROOT.glob("reports/full/fedlaw/evidence/fashion_mnist-lenet-*-feddf-*/seed8.json")))
    assert {*held.values()} <= receipt.keys()
    assert {key for key, where in held.items() if where == "environment"} <= receipt["environment"].keys()


def test_memory_of_what_came_before_counts_only_where_it_cannot_be_forgotten() -> None:
    """300 MB are allocated and freed. They stay in the peak until `forget_peak`, and after it only if the system cannot
    forget."""
    environment.forget_peak()
    before = environment.peak_rss_mib()
    taken = mmap.mmap(-1, 300_000_000)  # not from malloc, which may keep freed memory
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
    """torch is asked only in that case."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if file:
        (tmp_path / file).touch()
    assert environment.gpu_possible(tmp_path) == possible


def test_without_a_gpu_the_device_is_told_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """auto and cpu give cpu without loading torch. cuda is refused in one line."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    look = "import sys; from fedrepro.engine.environment import pick_device as p; print(p('auto'), p('cpu'), *sys.modules)"
    said = python(look).split()
    assert said[:2] == ["cpu", "cpu"]
    assert "torch" not in said
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="device = cuda"):
        environment.pick_device("cuda")


OLD = """CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU
driver by downloading and installing a new version. (Triggered internally at c10/cuda/CUDAFunctions.cpp:119.)"""
BROKEN = "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"


def without_a_usable_gpu(monkeypatch: pytest.MonkeyPatch, warning: str) -> None:
    """torch finds no GPU and warns once with the reason, as the real library does. The device file of a GPU may exist."""
    said: list[str] = []

    def is_available() -> bool:
        if warning and not said:
            said.append(warning)
            warnings.warn(warning, UserWarning, stacklevel=1)
        return False

    monkeypatch.setattr("torch.cuda.is_available", is_available)
    monkeypatch.setattr(torch, "__version__", "2.13.0+cu130")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(environment, "gpu_possible", lambda *_: True)
    for name, empty in (("_gpu_warnings", []), ("_reported", set())):
        monkeypatch.setattr(environment, name, empty)


@pytest.mark.parametrize(
    ("warning", "why"),
    [
        (
            OLD,
            "the GPU's driver (for CUDA 11.4) is too old for torch 2.13.0+cu130, which needs CUDA 13.0; update the driver, or "
            "install a torch for it, or set device: cpu in params.yaml",
        ),
        (BROKEN, f"torch cannot use the GPU ({BROKEN}); see whether `nvidia-smi` finds it, or set device: cpu in params.yaml"),
    ],
    ids=["old driver", "broken"],
)
def test_a_gpu_that_torch_cannot_use_is_spoken_of(
    warning: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """auto trains on the CPU and gives torch's reason, once. cuda is refused with the same words, also if torch has already
    warned."""
    without_a_usable_gpu(monkeypatch, warning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert environment.pick_device("auto") == environment.pick_device("auto") == "cpu"
    assert capsys.readouterr().err == f"device = auto: trains on the CPU, since {why}\n"
    with pytest.raises(UserError) as refused:
        environment.pick_device("cuda")
    assert str(refused.value) == f"device = cuda: {why}"


@pytest.mark.parametrize(
    ("file", "visible", "cuda", "expected"),
    [
        ("nvidia0", "0", None, "torch 2 is built without CUDA and cannot use the GPU that is here; install one with CUDA"),
        ("nvidia0", "0", "13.0", "torch 2 finds no GPU, though /dev has one; see whether `nvidia-smi` finds it"),
        ("nvidia0", "", "13.0", ""),
        ("nvidiactl", "0", "13.0", ""),
        ("dxg", "0", None, ""),
        ("kfd", "0", None, ""),
    ],
)
def test_only_a_card_that_is_there_is_spoken_of(
    file: str, visible: str, cuda: str | None, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """torch gives no reason here. Other device files may exist without a card. A card hidden by CUDA_VISIBLE_DEVICES needs no
    explanation."""
    monkeypatch.setattr(environment, "_gpu_warnings", [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    (tmp_path / file).touch()
    found = environment._gpu_problem("2", cuda, tmp_path)
    assert found == (expected and f"{expected}, or set device: cpu in params.yaml")


def test_freed_memory_is_kept_and_not_filled() -> None:
    """A tensor of 40 MB that is made and dropped repeatedly soon causes no page faults (glibc; in a new process). The heap may
    still grow sometimes, if a small object occupies part of the freed block.

    On a GPU, deterministic kernels do not fill every new tensor with NaN. The test needs no GPU. A million values: a few could
    be NaN by chance, since new memory has old contents.
    """
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
environment.prepare("cuda")
print(torch.are_deterministic_algorithms_enabled(), torch.empty(1 << 20).isnan().all().item())
print(torch.utils.deterministic.fill_uninitialized_memory)
print(*faults)
"""
    *filled, counts = python(code).splitlines()
    assert filled == ["True False", "False"]
    faults = [int(count) for count in counts.split()]
    if platform.libc_ver()[0] == "glibc":  # only its malloc can be told
        assert faults[0] > 1000
        assert sum(count > 100 for count in faults[20:]) <= 4, faults


def test_tf32_is_asked_for_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of torch's switches are set, which exist without a GPU too. The next run of the process has full float32 again."""
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
