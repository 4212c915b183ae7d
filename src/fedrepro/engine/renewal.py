"""Updates published evidence after a training has confirmed it. Only two keys change:

    code        the fingerprints of today
    verified    {"commit": ..., "at": ...}: the commit of that code, and the day

`environment` still describes the training that computed the numbers.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrepro.engine import checkout, fingerprints, records
from fedrepro.engine.receipts import committed
from fedrepro.engine.records import Record
from fedrepro.errors import UserError
from fedrepro.files import read_json, write_json


def stamp() -> dict[str, Any]:
    """Returns the value of `verified`. UserError if the working tree differs from its commit."""
    commit, dirty = checkout.state()
    if dirty:
        raise UserError(
            f"--renew: {', '.join(checkout.SOURCES[:-1])} or {checkout.SOURCES[-1]} differ from the commit; commit them"
        )
    return {"commit": commit, "at": datetime.now(UTC).date().isoformat()}


def renew(root: Path, published: Record, verified: dict[str, Any]) -> list[Path]:
    """Writes today's fingerprints into evidence that came out identical, and into its copies where papers share the run.
    Returns the files that were written: none where the code is the same."""
    code = fingerprints.today(published["config"], published["environment"].get("device", "cpu"))
    if published.get("code") == code:
        return []
    sealed = records.seal(published | {"code": code, "verified": verified})
    paths = [path for path in committed(root, published["run_id"], published["seed"]) if read_json(path) == published]
    return [write_json(path, sealed) for path in paths]
