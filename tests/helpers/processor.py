"""Tests that need what not every processor has; a skipped test says what this one lacks."""

import pytest

from fedrepro import arithmetic

needs_avx2 = pytest.mark.skipif(bool(arithmetic.missing()), reason=f"this processor {arithmetic.missing()}")
needs_avx512 = pytest.mark.skipif(bool(arithmetic.missing(wide=True)), reason=f"this processor {arithmetic.missing(wide=True)}")
