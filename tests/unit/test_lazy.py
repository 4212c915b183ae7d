"""Planning a table and composing a method compute nothing, so they need no torch. What computes finds it as if imported."""

import pytest
import torch

from fedrepro import lazy
from tests.helpers.bare import python, without_large
from tests.helpers.composed import composed


def test_methods_are_composed_without_the_large_libraries() -> None:
    """Every part alone, where none of them can be imported. The plans of all tables: test_freeze.py."""
    expected = composed()
    assert len(expected) > 20
    assert without_large("from tests.helpers.composed import composed", "composed()") == expected


def test_torch_is_imported_with_the_first_use() -> None:
    """Neither by what trains nor by the command that describes a method, but by the first tensor. What trains imports nothing
    that validates, tracks or draws, either: those packages cost seconds at each start."""
    read = "import sys; from fedrepro import lazy, methods, models, tree; from fedrepro.models import initial; "
    look = "print('torch' in sys.modules)"
    names = "import fedrepro.engine.run; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    before, after, *loaded = python(f"{read}{look}; lazy.torch.zeros(1); {look}; {names}").split()
    assert (before, after) == ("False", "True")
    slow = {"pydantic", "snakemake", "dvc", "mlflow", "pandas", "torchvision", "matplotlib", "sklearn", "scipy"}
    assert not slow & {*loaded}


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
