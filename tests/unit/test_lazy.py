"""Planning a table and composing a method compute nothing, so they need no torch. What computes finds it as if imported."""

import json
import subprocess
import sys

import pytest
import torch

from fedrepro import lazy
from tests.helpers import planned

LARGE = ("torch", "torchvision", "mlflow", "pandas", "matplotlib", "scipy", "sklearn", "pyarrow", "h5py", "snakemake", "dvc")
# Python refuses to import what is None there.
WITHOUT = f"import json, sys; sys.modules.update(dict.fromkeys({LARGE!r})); from tests.helpers import planned; "


def python(code: str) -> str:
    """What a new process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=planned.ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("what", ["plans", "methods"])
def test_the_same_without_the_large_libraries(what: str) -> None:
    """The plans of all tables, and every part alone, where none of these libraries can be imported."""
    expected = getattr(planned, what)()
    assert len(expected) > 20
    assert json.loads(python(f"{WITHOUT} print(json.dumps(planned.{what}()))")) == expected


def test_torch_is_imported_with_the_first_use() -> None:
    """Neither by what trains nor by the command that describes a method, but by the first tensor."""
    read = "import sys; from fedrepro import lazy, methods, models, tree; from fedrepro.models import initial; "
    look = "print('torch' in sys.modules)"
    assert python(f"{read}{look}; lazy.torch.zeros(1); {look}").split() == ["False", "True"]


def test_the_stand_in_has_what_torch_has() -> None:
    """The very same objects, which stay in it: later accesses are those of a module. What torch lacks it lacks, too."""
    assert lazy.torch.zeros is torch.zeros
    assert lazy.torch.nn.functional is torch.nn.functional
    assert {"zeros", "nn"} <= vars(lazy.torch).keys()
    with pytest.raises(AttributeError, match="no attribute 'zeroes'"):
        _ = lazy.torch.zeroes  # pyright: ignore[reportAttributeAccessIssue]


def test_tensors_are_instances_of_the_stand_in() -> None:
    """Parameters as well; numbers are not. It joins others in annotations."""
    assert isinstance(torch.zeros(1), lazy.Tensor)
    assert isinstance(torch.nn.Parameter(torch.zeros(1)), float | lazy.Tensor)
    assert not isinstance(1.0, lazy.Tensor)
