"""Portable arithmetic: the same bits on every x86-64 processor with AVX2. Native arithmetic: the processor's fastest kernels.

Libraries choose their kernels by processor, and each kernel adds in its own order. `use` fixes those choices through
environment variables that the libraries read when they are loaded, so it must run before NumPy and torch are loaded. It fixes:

MKL (products that `fedrepro.models.kernels` leaves to torch) to its code for every x86-64 processor; torch's own loops and
NumPy's to AVX2; NumPy's OpenBLAS to its Haswell kernels; oneDNN (convolutions, linear layers) to AVX2. This module uses only
the standard library, since a process calls it before it loads anything.
"""

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from fedrepro import console
from fedrepro.errors import UserError
from fedrepro.files import read_yaml

AUTO = "auto"  # portable where the processor can compute it, otherwise native
CHOICES = (AUTO, "portable", "native")
VARIABLE = "FEDREPRO_ARITHMETIC"  # the choice, for the processes that this one starts
ONEDNN = "ONEDNN_MAX_CPU_ISA"
PORTABLE = {
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "NPY_ENABLE_CPU_FEATURES": "X86_V3",
    "OPENBLAS_CORETYPE": "Haswell",
    ONEDNN: "AVX2",
}
# With AVX-512 oneDNN takes half the time. It adds some sums in another order. `fedrepro.models` chooses forms whose sums keep
# their order, so the bits are the same (`fedrepro.models.known_answers` checks that first).
WIDER = "AVX512_CORE"
_FLAGS = {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}  # x86-64-v3, the part that /proc/cpuinfo lists under these names
_WIDE_FLAGS = {"avx512f", "avx512bw", "avx512vl", "avx512dq"}


def current() -> str:
    """The arithmetic of this process: "portable" if `use` fixed the libraries' choices, otherwise "native"."""
    allowed_values = {ONEDNN: (PORTABLE[ONEDNN], WIDER)}
    is_fixed = all(os.environ.get(name) in allowed_values.get(name, (value,)) for name, value in PORTABLE.items())
    return "portable" if is_fixed and os.environ.get(VARIABLE) == "portable" else "native"


def use(choice: str) -> None:
    """Fixes the arithmetic of this process and of those that it starts, before NumPy and torch are loaded.

    UserError if the processor cannot do portable arithmetic, and if libraries are already loaded with another arithmetic.
    """
    kind = _kind(choice)
    if kind != current() and ("numpy" in sys.modules or "torch" in sys.modules):
        raise UserError(f"arithmetic = {kind}: this process has loaded its libraries for {current()}; start a new one")
    export(choice)


def export(choice: str) -> None:
    """Fixes the arithmetic of the processes that this one starts. UserError if the processor cannot do portable arithmetic.

    If `auto` becomes native, it says so on stderr. The processes that this one starts take the choice as it is.
    """
    kind = _kind(choice)
    if kind == "portable" != current():
        require_avx2()
        os.environ.update(PORTABLE)
        os.environ.pop("NPY_DISABLE_CPU_FEATURES", None)  # NumPy accepts one of the two
    elif kind == "native":
        for name in PORTABLE.keys() & os.environ.keys() if os.environ.get(VARIABLE) == "portable" else ():
            del os.environ[name]
        if choice == AUTO:
            console.say(
                f"arithmetic = auto: native on a CPU here, since this processor {unsupported_reason()}; "
                "results have other last digits than on x86-64 processors with AVX2"
            )
    os.environ[VARIABLE] = kind


def _kind(choice: str) -> str:
    """portable or native. UserError for another word than those of CHOICES."""
    if choice not in CHOICES:
        raise UserError(f"arithmetic = {choice!r} (params.yaml or --arithmetic): must be one of {', '.join(CHOICES)}")
    return ("native" if unsupported_reason() else "portable") if choice == AUTO else choice


def require_avx2(machine: str | None = None, cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """UserError if the processor lacks an instruction set that portable arithmetic uses."""
    problem = unsupported_reason(machine, cpuinfo)
    if problem:
        raise UserError(
            f"arithmetic = portable: needs an x86-64 processor with AVX2, and this one {problem}; "
            "set arithmetic: auto or native in params.yaml, or give --arithmetic native"
        )


def unsupported_reason(machine: str | None = None, cpuinfo: Path = Path("/proc/cpuinfo"), wide: bool = False) -> str:
    """What the processor lacks for portable arithmetic: "lacks avx2, fma", "is aarch64, not x86-64". "" if it has everything.

    `wide`: checks AVX-512, too.
    """
    machine, flags, required_flags = machine or platform.machine(), _flags(cpuinfo), _FLAGS | (_WIDE_FLAGS if wide else set())
    if machine.lower() not in ("x86_64", "amd64"):
        return f"is {machine}, not x86-64"
    if (flags or wide) and not flags >= required_flags:
        return f"lacks {', '.join(sorted(required_flags - flags))}"
    return ""


def chosen(option: str | None, params: Path = Path("params.yaml"), environment: Mapping[str, str] = os.environ) -> str:
    """The choice of the command line, else of the process that started this one, else of params.yaml, else "auto"."""
    choice = option or environment.get(VARIABLE)
    if choice is None and params.is_file():
        try:
            content = read_yaml(params)
        except UserError:
            content = None  # the command reports the error when it reads the file
        choice = content.get("arithmetic") if isinstance(content, dict) else None
    return AUTO if choice is None else str(choice)


def widen(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Lets oneDNN use AVX-512 in this process if the processor has it: `fedrepro.models` asks for forms with the same bits.

    Not for the vectorised engine, whose grouped convolutions have no such form.

    Call it before oneDNN's first use in this process. In native arithmetic it does nothing.
    """
    if current() == "portable" and not unsupported_reason(cpuinfo=cpuinfo, wide=True):
        os.environ[ONEDNN] = WIDER


def narrow() -> None:
    """Undoes `widen`."""
    if wide():
        os.environ[ONEDNN] = PORTABLE[ONEDNN]


def wide() -> bool:
    """Whether oneDNN uses AVX-512 in this process, in portable arithmetic, after `widen`."""
    return os.environ.get(ONEDNN) == WIDER and current() == "portable"


def _flags(cpuinfo: Path) -> set[str]:
    """The flags of the first processor. Empty if they are unknown."""
    if not cpuinfo.exists():
        return set()
    lines = (line.partition(":") for line in cpuinfo.read_text().splitlines())
    return next((set(value.split()) for key, _, value in lines if key.strip() == "flags"), set())
