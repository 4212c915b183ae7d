"""Expects a user's error."""

import contextlib
from collections.abc import Iterator

import pytest

from fedrepro.errors import UserError


@contextlib.contextmanager
def one_line(match: str | None = None) -> Iterator[pytest.ExceptionInfo[UserError]]:
    """Expects a UserError of one line that fits `match`."""
    with pytest.raises(UserError, match=match) as caught:
        yield caught
    assert "\n" not in str(caught.value)
