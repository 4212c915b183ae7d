"""Planning a table and composing a method compute nothing, so they do not import torch. Code that computes uses it as if
imported."""

import pytest
import torch

from fedrepro import lazy
from tests.helpers.bare import python, without_large
from tests.helpers.composed import composed


def test_methods_are_composed_without_the_large_libraries() -> None:
    """Every part composes where none of these libraries can be imported. test_freeze.py covers the plans of all tables."""
    expected = composed()
    assert len(expected) > 20
    assert without_large("from tests.helpers.composed import composed", "composed()") == expected


def test_torch_is_imported_with_the_first_use() -> None:
    """The first tensor imports torch. The import of training code and the description of a method do not."""
    read = "import sys; from fedrepro import lazy, methods, models, tree; from fedrepro.models import initial; "
    look = "print('torch' in sys.modules)"
    before, after = python(f"{read}{look}; lazy.torch.zeros(1); {look}").split()
    assert (before, after) == ("False", "True")


def test_the_stand_in_has_what_torch_has() -> None:
    """The stand-in returns torch's objects and stores them, so later accesses are those of a plain module. A name that torch
    lacks raises AttributeError."""
    assert lazy.torch.zeros is torch.zeros
    assert lazy.torch.nn.functional is torch.nn.functional
    assert {"zeros", "nn"} <= vars(lazy.torch).keys()
    with pytest.raises(AttributeError, match="no attribute 'zeroes'"):
        _ = lazy.torch.zeroes  # pyright: ignore[reportAttributeAccessIssue]


def test_tensors_are_instances_of_the_stand_in() -> None:
    """Parameters are instances too, numbers are not. `float | lazy.Tensor` is a valid annotation."""
    assert isinstance(torch.zeros(1), lazy.Tensor)
    assert isinstance(torch.nn.Parameter(torch.zeros(1)), float | lazy.Tensor)
    assert not isinstance(1.0, lazy.Tensor)
