"""The environment that computed a result. env.json and the evidence record it; it is never part of a run's identity."""

import contextlib
import ctypes
import gc
import os
import platform
import re
import resource
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fedrepro import arithmetic, console
from fedrepro.errors import UserError

# torch finds a cuda device only if /dev has one of these files: those of NVIDIA and Tegra, of WSL and of AMD.
_GPU_FILES = ("nvidia*", "nvhost*", "dxg", "kfd")
_CARDS = "nvidia[0-9]*"  # a card's own file; the other nvidia files may exist without a card

_gpu_warnings: list[str] = []  # torch's warnings about the GPU, which it gives once per process
_reported: set[str] = set()

COLLECT_AFTER = 700  # objects; Python's default
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _LARGEST = -1, -3, 2**30  # glibc's malloc.h, and one GiB


def pick_device(requested: str) -> str:
    """Returns the device, cpu or cuda; `requested` is auto, cpu or cuda. UserError if cuda is wanted and torch finds no GPU. If
    auto takes the CPU because torch cannot use the GPU, it says so on stderr, once per process.

    Imports torch, which takes seconds, only if a GPU is wanted or may be there.
    """
    if requested == "cpu" or (requested == "auto" and not gpu_possible()):
        return "cpu"
    import torch

    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    _gpu_warnings.extend(str(warning.message) for warning in caught_warnings)
    if available:
        return "cuda"
    trouble = _gpu_problem(torch.__version__, torch.version.cuda)
    if requested == "cuda":
        raise UserError(f"device = cuda: {trouble or 'torch finds no GPU here; set device: cpu or auto in params.yaml'}")
    if trouble and trouble not in _reported:
        _reported.add(trouble)
        console.say(f"device = auto: trains on the CPU, since {trouble}")
    return "cpu"


def _gpu_problem(torch: str, cuda: str | None, devices: Path = Path("/dev")) -> str:
    """Says why torch (its version and CUDA version) cannot use the GPU that is there, and what to do. "" if unknown."""
    cpu_hint = "or set device: cpu in params.yaml"
    warning_text = " ".join(" ".join(_gpu_warnings).split())
    driver_match = re.search(r"driver on your system is too old(?: \(found version (\d+)\))?", warning_text)
    if driver_match:
        cuda_note = f" (for CUDA {int(driver_match[1]) // 1000}.{int(driver_match[1]) % 1000 // 10})" if driver_match[1] else ""
        torch_cuda = f"torch {torch}, which needs CUDA {cuda}"
        return (
            f"the GPU's driver{cuda_note} is too old for {torch_cuda}; update the driver, or install a torch for it, {cpu_hint}"
        )
    if "CUDA" in warning_text:
        return f"torch cannot use the GPU ({warning_text[:200]}); see whether `nvidia-smi` finds it, {cpu_hint}"
    if not gpu_possible(devices) or not any(devices.glob(_CARDS)):
        return ""
    if cuda is None:
        return f"torch {torch} is built without CUDA and cannot use the GPU that is here; install one with CUDA, {cpu_hint}"
    return f"torch {torch} finds no GPU, though /dev has one; see whether `nvidia-smi` finds it, {cpu_hint}"


def gpu_possible(devices: Path = Path("/dev")) -> bool:
    """Whether torch may find a GPU: /dev has the file of one, and CUDA_VISIBLE_DEVICES does not hide them all."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1")
    return not hidden and any(any(devices.glob(pattern)) for pattern in _GPU_FILES)


def prepare(device: str, threads: int = 1) -> None:
    """Prepares a process that computes: one thread (jobs run in parallel instead), freed memory stays in the process, and on a
    GPU only deterministic kernels run.

    On a CPU the kernels used here are deterministic anyway (tested), and the switch would import torch's compiler, 4 s.
    """
    if device == "cpu":
        # Once torch has seen a GPU, the first backward pass, even on the CPU, makes forked workers fail.
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HIP_VISIBLE_DEVICES"] = ""
    import torch

    from fedrepro.models import known_answers

    gc.freeze()  # the imported objects stay: the collector leaves them alone and otherwise works as usual
    gc.set_threshold(COLLECT_AFTER)
    torch.set_num_threads(threads)
    if device == "cpu":
        known_answers.require()
    _keep_freed_memory()
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        # It would fill all new memory with NaN, one kernel per tensor. Nothing here reads memory that it has not written.
        torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore[reportAttributeAccessIssue]
    choose_products(device, "float32")


def choose_products(device: str, products: str) -> None:
    """Sets the precision of all float32 products of this process on a GPU: full, or with "tf32" factors rounded to 10 bits.

    UserError: a CPU has no TF32, and portable arithmetic has no bfloat16 units. For "bf16" see `fedrepro.models.build`.
    """
    if products == "tf32" and device == "cpu":
        raise UserError("products = 'tf32' (a setting of params.yaml or --set): a CPU has none; make it float32 or bf16")
    if products == "bf16" and device == "cpu" and arithmetic.current() == "portable":
        raise UserError(
            "products = 'bf16': portable arithmetic has none; set arithmetic: native in params.yaml or give --arithmetic native"
        )
    if device == "cuda":
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = products == "tf32"


def _keep_freed_memory() -> None:
    """Tells glibc to reuse freed memory instead of returning it to the system, which would have to zero it again.

    A cohort of twenty perceptrons is a tensor of 43 MB. If it is allocated again for each operation, the operation takes 20 ms
    instead of 2 (AMD EPYC, a virtual machine). Without glibc nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST)
        mallopt(_M_TRIM_THRESHOLD, _LARGEST)


def describe(device: str, engine: str, products: str = "float32") -> dict[str, str | int | bool | None]:
    """Versions and hardware."""
    import torch

    from fedrepro.models.kernels import linear_kernel

    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": _version("numpy"),
        "fedrepro": _version("fedrepro"),
        "platform": platform.platform(),
        "processor": name,
        "device": device,
        "threads": torch.get_num_threads(),
        "engine": engine,
        # Only the sequential engine promises portable arithmetic.
        "arithmetic": arithmetic.current() if (device, engine) == ("cpu", "sequential") else "native",
        "linear_kernel": linear_kernel() if device == "cpu" else "aten",
        "products": products,
    }


def forget_peak() -> bool:
    """Resets `peak_rss_mib`, so that a seed's cost excludes what came before. False off Linux, where it cannot."""
    try:
        return Path("/proc/self/clear_refs").write_text("5") > 0
    except OSError:
        return False


def peak_rss_mib() -> float:
    """Largest resident memory of this process since `forget_peak`, or since its start where that is not possible."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        for line in (line for line in lines if line.startswith("VmHWM:")):
            return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 if sys.platform != "darwin" else 1024**2)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
