"""Image data sets in parquet files: one row per image, an image column (a struct with `bytes`) and an integer label column.

The layout of the usual exports of data-set hubs; the column names are keys of the registry's entry. Rows keep their order, and
files of one split that of the entry.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.download import Fetcher
from fedrepro.data.images import decode
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source
from fedrepro.errors import UserError

_ROWS = 4096  # read at a time


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The four native arrays. UserError when a file cannot be had, or does not hold what the registry says."""
    files = {file.name: fetcher.fetch(file, file.name, unpack=False) for file in entry.files}
    images, labels = {}, {}
    for split in ("train", "test"):
        parts = [_read(fetcher.folder / file.name, entry) for file in entry.files if file.split == split]
        images[split], labels[split] = map(np.concatenate, zip(*parts, strict=True))
    return Source(images["train"], labels["train"], images["test"], labels["test"], files)


def _read(path: Path, entry: Entry) -> tuple[np.ndarray, np.ndarray]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _check_columns(path, file.schema_arrow, entry)
            labels = file.read([entry.label_column]).column(0)
            if labels.null_count:
                raise UserError(f"{path}: column {entry.label_column!r} has {labels.null_count} rows without a label")
            images = decode(_rows(path, file, entry.image_column), file.metadata.num_rows, entry.native_shape)
            return images, labels.to_numpy().astype(np.int64)
    except (pa.ArrowException, OSError) as error:
        problem = " ".join(str(error).split())
        raise UserError(
            f"{path}: not readable as a parquet file ({problem}); delete it and run the same command again"
        ) from error


def _rows(path: Path, file: Any, column: str) -> Iterator[tuple[str, bytes | None]]:
    row = 0
    for batch in file.iter_batches(_ROWS, columns=[f"{column}.bytes"]):
        for content in batch.column(0).field("bytes").to_pylist():
            yield f"{path}: row {row}", content
            row += 1


def _check_columns(path: Path, schema: Any, entry: Entry) -> None:
    import pyarrow as pa

    columns = ((entry.image_column, "image_column"), (entry.label_column, "label_column"))
    for column, key in columns:
        if column not in schema.names:
            raise UserError(
                f"{path}: no column {column!r}, only {', '.join(schema.names)}; correct {key} in data/registry.yaml"
            )
        if schema.names.count(column) > 1:
            raise UserError(f"{path}: {schema.names.count(column)} columns are called {column!r}; export it again with one")
    image, label = (schema.field(column).type for column, _ in columns)
    if not (pa.types.is_struct(image) and image.get_field_index("bytes") >= 0):
        raise UserError(f"{path}: column {entry.image_column!r} is {image}, expected a struct with the field bytes")
    encoded = image.field("bytes").type
    if encoded not in (pa.binary(), pa.large_binary(), pa.binary_view()) and not pa.types.is_fixed_size_binary(encoded):
        raise UserError(f"{path}: field bytes of column {entry.image_column!r} is {encoded}, expected binary; export it again")
    if not pa.types.is_integer(label):
        raise UserError(f"{path}: column {entry.label_column!r} is {label}, expected whole numbers")
