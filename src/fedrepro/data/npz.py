"""`numpy.savez` with the same bytes under every Python.

Since 3.11.4 `zipfile` writes other headers for a streamed member, and a run records the sha256 of these files. So this module
writes the headers itself, as later versions do: members are stored without compression and with a fixed date.
"""

import io
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

_VERSION, _UNIX, _DATE, _MODE = 45, 3, 0x21, 0o600 << 16  # 45: with 64-bit sizes; 1 January 1980
_LATER = 0xFFFFFFFF  # the 64-bit size follows


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes `arrays` by name, without pickles. Together they must stay below 4 GiB."""
    body, index = io.BytesIO(), io.BytesIO()
    for name, array in arrays.items():
        member_name, content, offset = f"{name}.npy".encode(), _npy(array), body.tell()
        size, checksum = len(content), zlib.crc32(content)
        local_header = (b"PK\3\4", _VERSION, 0, 0, 0, _DATE, checksum, _LATER, _LATER, len(member_name), 20)
        body.write(struct.pack("<4s5H3L2H", *local_header) + member_name + struct.pack("<2H2Q", 1, 16, size, size) + content)
        entry = (
            b"PK\1\2",
            _VERSION,
            _UNIX,
            _VERSION,
            0,
            0,
            0,
            0,
            _DATE,
            checksum,
            size,
            size,
            len(member_name),
            0,
            0,
            0,
            0,
            _MODE,
            offset,
        )
        index.write(struct.pack("<4s4B4H3L5H2L", *entry) + member_name)
    index_offset, index_size = body.tell(), index.tell()
    end_record = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(arrays), len(arrays), index_size, index_offset, 0)
    Path(path).write_bytes(body.getvalue() + index.getvalue() + end_record)


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    npy.write_array(stream, np.asanyarray(array), allow_pickle=False)
    return stream.getvalue()
