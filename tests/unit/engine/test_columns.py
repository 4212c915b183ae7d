"""Columns of a Parquet file, compared with pyarrow's."""

import io
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedrepro.engine.columns import column

CASES = (
    ([1, 2, 3] * 3000, pa.int32()),
    ([3, None, 1], pa.int32()),
    ([0.1, float("nan"), float("inf"), -0.0], pa.float64()),
    ([None, 1.5, None] * 11, pa.float64()),
    ([None] * 9, pa.float64()),
    ([], pa.float64()),
    (["accuracy", "é", ""] * 4000, pa.string()),
    ([None, "x", None], pa.string()),
    ([], pa.string()),
)


@pytest.mark.parametrize(("values", "kind"), CASES)
def test_the_file_has_the_bytes_that_pyarrow_writes(values: list, kind: pa.DataType) -> None:
    """The bytes agree also with nulls, values that are not finite, and no rows at all."""
    made = column(values, kind)
    made.validate(full=True)
    assert _file(made) == _file(pa.array(values, kind))


def test_pandas_is_not_imported() -> None:
    """Columns, table and file are made without pandas, which `pyarrow.array` imports."""
    code = (
        "import io, sys, pyarrow as pa, pyarrow.parquet as pq; from fedrepro.engine.columns import column; "
        "columns = [column([1], pa.int32()), column(['a'], pa.string()), column([None], pa.float64())]; "
        "pq.write_table(pa.Table.from_arrays(columns, ['a', 'b', 'c']), io.BytesIO()); before = 'pandas' in sys.modules; "
        "pa.array([1]); print(before, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def _file(values: pa.Array) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([values], ["x"]), content)
    return content.getvalue()
