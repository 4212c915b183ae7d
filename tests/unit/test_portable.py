"""Portable arithmetic: the committed bits on every processor, and how it is chosen, fixed and refused."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from fedrepro import arithmetic
from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.models import known_answers
from tests.helpers.processor import AVX512, lacking, needs_avx2, needs_avx512, python
from tests.portable.compute import HASHES, hashes

WIDEN = arithmetic.widen  # other tests replace it (tests/conftest.py)
INTEL = "flags\t\t: fpu avx2 fma bmi1 bmi2 f16c movbe avx512f avx512bw avx512vl avx512dq\nflags\t\t: none\n"


@pytest.mark.parametrize("width", [pytest.param([], marks=needs_avx2), pytest.param(["--wide"], marks=needs_avx512)], ids=str)
def test_the_committed_hashes(width: list[str], tmp_path: Path) -> None:
    """Arrays, partitions, cohorts, initial models, two rounds of every method and a step of every model have the committed
    hashes on this processor, with AVX2 alone and with everything it has.

    To change them on purpose: python -m tests.portable.compute --write.
    """
    done = python(f"from tests.portable import compute; compute.main({[f'{tmp_path}/files', *width]})")
    assert done.returncode == 0, done.stderr[-3000:]
    found, committed = hashes(tmp_path / "files"), read_json(HASHES)
    assert found.keys() == committed.keys()
    assert [name for name in committed if found[name] != committed[name]] == []


OTHER_ROUNDING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#define ONE_UP(name) float name(float x) { \\
    float (*of_the_library)(float) = (float (*)(float))dlsym(RTLD_NEXT, #name); \\
    return nextafterf(of_the_library(x), INFINITY); }
ONE_UP(log1pf) ONE_UP(expm1f) ONE_UP(tanhf) ONE_UP(erff)
"""


@needs_avx2
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to build functions that round otherwise")
def test_functions_that_c_libraries_round_differently(tmp_path: Path) -> None:
    """A step of the models with log1p or tanh has the committed bits, also if the C library gives the next number up. glibc
    2.41 changed these functions. Torch takes a few numbers at a time from them, so a model must not ask it to."""
    source, library = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text(OTHER_ROUNDING)
    subprocess.run(["gcc", "-O1", "-fPIC", "-fno-builtin", "-shared", source, "-o", library, "-ldl", "-lm"], check=True)
    models = ("grid_detector", "shakespeare_lstm")
    code = f"""
from pathlib import Path
from fedrepro import arithmetic
arithmetic.use("portable")
from fedrepro.models import known_answers
known_answers.compute = lambda: known_answers.ANSWERS  # which have ends of rows from these functions
import torch
from fedrepro.engine import environment
from tests.portable.compute import _step
environment.prepare("cpu")
print(float(torch.nn.functional.softplus(torch.tensor([0.3]))))
for model in {models}:
    _step(Path({str(tmp_path)!r}) / "steps", model)
"""
    changed = python(code, LD_PRELOAD=str(library))
    assert changed.returncode == 0, changed.stderr
    assert float(changed.stdout) > float(F.softplus(torch.tensor([0.3])))  # the changed functions are in use
    names = [f"steps/{model}.safetensors" for model in models]
    assert [name for name in names if hashes(tmp_path)[name] != read_json(HASHES)[name]] == []


@needs_avx2
def test_known_answers() -> None:
    """This portable process has the known answers. A native process differs, or the test would prove nothing. Its children
    inherit the choice."""
    assert known_answers.compute() == known_answers.ANSWERS
    code = """
import os
from fedrepro import arithmetic
arithmetic.use("native")
from fedrepro.models import known_answers as k
print(sum(k.compute()[i] != k.ANSWERS[i] for i in k.ANSWERS), arithmetic.current(), os.environ[arithmetic.VARIABLE])
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    others, *choice = done.stdout.split()
    assert int(others) >= 1
    assert choice == ["native", "native"]


@needs_avx2
def test_other_bits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one kind of operation gives another answer, one line names it and what to do. Native arithmetic has no check."""
    monkeypatch.setattr(known_answers, "ANSWERS", known_answers.ANSWERS | {"small products": "0" * 16})
    monkeypatch.setattr(arithmetic, "wide", lambda: False)
    known_answers.require.cache_clear()
    with pytest.raises(UserError, match=r"portable: small products give other bits .* set arithmetic: native"):
        known_answers.require()
    monkeypatch.setattr(arithmetic, "current", lambda: "native")
    known_answers.require()
    known_answers.require.cache_clear()


@needs_avx2
def test_wide_instructions_with_other_bits_are_left_alone() -> None:
    """If a child process finds that AVX-512 gives other answers, this process stays with AVX2 and trains. torch itself reports
    the instructions it uses. Child processes inherit the choice."""
    code = """
import os
from fedrepro import arithmetic
arithmetic.use("portable")
os.environ[arithmetic.ONEDNN] = arithmetic.WIDER
from fedrepro.models import known_answers
known_answers._agrees_in_child = lambda: False
known_answers.require()
import torch
print(arithmetic.wide(), os.environ[arithmetic.ONEDNN], arithmetic.current())
print(os.environ[arithmetic.VARIABLE], torch.backends.cpu.get_cpu_capability())
"""
    assert python(code).stdout.split() == ["False", "AVX2", "portable", "portable", "AVX2"]


def test_what_this_process_loads() -> None:
    """It has chosen portable arithmetic wherever the processor can (tests/conftest.py), and native arithmetic elsewhere."""
    choice = "native" if arithmetic.unsupported_reason() else "portable"
    assert arithmetic.current() == os.environ[arithmetic.VARIABLE] == choice
    assert torch.backends.cpu.get_cpu_capability() == "AVX2" or choice == "native"


@needs_avx2
def test_too_late() -> None:
    """If NumPy or torch are already loaded with the other arithmetic, the choice is refused."""
    done = python("import numpy; from fedrepro import arithmetic; arithmetic.use('portable')")
    assert "this process has loaded its libraries for native; start a new one" in done.stderr
    with pytest.raises(UserError, match="loaded its libraries for portable"):
        arithmetic.use("native")
    with pytest.raises(UserError, match=r"arithmetic = 'exact' .*: must be one of auto, portable, native"):
        arithmetic.use("exact")


@needs_avx2
@pytest.mark.parametrize(("lacks", "kind"), [("", "portable"), ("is aarch64, not x86-64", "native")])
def test_auto_is_portable_where_the_processor_can(lacks: str, kind: str) -> None:
    """Elsewhere it is native, and one line says why. Processes that it starts take the choice and say nothing."""
    code = f"""
import os
from fedrepro import arithmetic
arithmetic.unsupported_reason = lambda *_, **__: {lacks!r}
arithmetic.export("auto")
arithmetic.use(arithmetic.chosen(None))  # as such a process does
print(arithmetic.current(), os.environ[arithmetic.VARIABLE], {{*arithmetic.PORTABLE}} <= os.environ.keys())
"""
    done = python(code)
    assert done.stdout.split() == [kind, kind, str(not lacks)]
    said = "arithmetic = auto: native on a CPU here, since this processor is aarch64, not x86-64; "
    said += "results have other last digits than on x86-64 processors with AVX2\n"
    assert done.stderr == (said if lacks else "")


@needs_avx2
def test_back_to_native() -> None:
    """A process that switches back to native passes no portable variables to its children."""
    code = """
import os
from fedrepro import arithmetic
arithmetic.export("portable")
arithmetic.export("native")
print(arithmetic.current(), *[name for name in arithmetic.PORTABLE if name in os.environ])
"""
    assert python(code).stdout.split() == ["native"]


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "problem"),
    [
        ("x86_64", INTEL, None),
        ("AMD64", "", None),  # Windows' name; there is no file that lists its instructions
        ("x86_64", INTEL.replace("avx2 ", "").replace("fma ", ""), "lacks avx2, fma"),
        ("aarch64", "", "is aarch64, not x86-64"),
    ],
)
def test_processors_without_avx2(machine: str, cpuinfo: str, problem: str | None, tmp_path: Path) -> None:
    """One line names what is missing and what to set instead."""
    path = tmp_path / "cpuinfo"
    if cpuinfo:
        path.write_text(cpuinfo)
    if problem is None:
        arithmetic.require_avx2(machine, path)
        return
    with pytest.raises(UserError, match=f"this one {problem}; set arithmetic: auto or native in params.yaml"):
        arithmetic.require_avx2(machine, path)


@needs_avx2
def test_wide_only_where_the_processor_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first processor's AVX-512 decides."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setenv(arithmetic.ONEDNN, "AVX2")
    for text, expected in ((INTEL.replace("avx512vl ", ""), False), (INTEL, True)):
        path.write_text(text)
        WIDEN(path)
        assert arithmetic.wide() is expected
    arithmetic.narrow()
    assert not arithmetic.wide()


def test_what_this_processor_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is right for the processor that runs this test. Without AVX-512 oneDNN stays with AVX2."""
    monkeypatch.setenv(arithmetic.ONEDNN, "AVX2")
    lacks = lacking(AVX512)
    assert arithmetic.unsupported_reason(machine="x86_64", wide=True) == (f"lacks {', '.join(lacks)}" if lacks else "")
    WIDEN()
    assert os.environ[arithmetic.ONEDNN] == ("AVX2" if lacks else arithmetic.WIDER)


def test_who_chooses(tmp_path: Path) -> None:
    """The order is: command line, parent process, params.yaml, auto."""
    params = tmp_path / "params.yaml"
    variable = {arithmetic.VARIABLE: "native"}
    assert arithmetic.chosen(None, params, {}) == "auto"
    params.write_text("scale: demo\n")
    assert arithmetic.chosen(None, params, {}) == "auto"
    params.write_text("arithmetic: native\n")
    assert arithmetic.chosen(None, params, {}) == "native"
    assert arithmetic.chosen(None, params, {arithmetic.VARIABLE: "portable"}) == "portable"
    assert arithmetic.chosen("portable", params, variable) == "portable"
    params.write_text("a: [")  # the command reports the error when it reads the file
    assert arithmetic.chosen(None, params, {}) == "auto"
