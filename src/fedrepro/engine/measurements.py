"""The files that diagnostics write, readable without torch: a parquet file for each run, call and seed.

    results/diagnostics/<run_id>/<call>/seed8.parquet    columns round (from 1), metric, client, x, y, value
    reports/<scale>/<paper>/evidence/<run_id>/<call>/seed8.parquet    a copy that reports are rendered from

`client` is null for a value of the whole round; `x` and `y` are null unless the metric is a curve or a surface within a round.
The file's metadata name the measured models and hold a digest of the content. The same rows give the same bytes.
"""

import io
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fedrepro.choices import PUBLISHED
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, write_atomic
from fedrepro.registry import parse

KEPT = Path("results/kept")
DIAGNOSTICS = Path("results/diagnostics")
SCHEMA = 1
_ABOUT = b"fedrepro"


class Value(NamedTuple):
    """One measured value."""

    round: int  # counted from 1
    metric: str
    value: float | None  # None: not finite
    client: int | None = None  # whose value it is; None: the round's
    x: float | None = None  # where along a line or on a plane, in the units of the diagnostic
    y: float | None = None

    @property
    def on_line(self) -> bool:
        """Whether it stands at a place of a curve over x of the whole round."""
        return self.x is not None and self.y is None and self.client is None


class Measurements(NamedTuple):
    """The content of a file. `about`: run_id, seed, diagnostic, `models` (round -> sha256 of what was measured), and `reached`,
    the rounds that the seed has."""

    about: dict[str, Any]
    values: list[Value]

    def within(self, rounds: Iterable[int]) -> "Measurements":
        """Returns what was measured in these rounds, counted from 1."""
        numbers = {*rounds}
        models = {number: sha256 for number, sha256 in self.about["models"].items() if int(number) in numbers}
        return Measurements(self.about | {"models": models}, [value for value in self.values if value.round in numbers])

    def curve(self, metric: str, rounds: int) -> list[float | None]:
        """Returns a value for each of `rounds` rounds, None for a round without."""
        round_values = {v.round: v.value for v in self.values if (v.metric, v.client, v.x) == (metric, None, None)}
        return [round_values.get(number) for number in range(1, rounds + 1)]

    def measured_in(self, rounds: range) -> list[int]:
        """Lists the rounds that were measured among `rounds`, or else the last one before them; all count from 0."""
        measured = [number for number in sorted(int(name) - 1 for name in self.about["models"]) if number < rounds.stop]
        return [number for number in measured if number in rounds] or measured[-1:]

    def at(self, metric: str, round: int) -> list[Value]:
        """Every value of `metric` in one round, also those that are not finite."""
        return [v for v in self.values if v.metric == metric and v.round == round]

    def surface(self, metric: str, round: int) -> dict[tuple[float, float], float]:
        """(x, y) -> value, of one round; empty for a metric that is no surface."""
        return {(v.x, v.y): v.value for v in self.at(metric, round) if None not in (v.x, v.y, v.value)}  # type: ignore[misc]

    def line(self, metric: str, round: int) -> dict[float, float]:
        """x -> value, of one round; empty for a metric that is no curve over x."""
        values = [v for v in self.at(metric, round) if v.on_line]
        return {v.x: v.value for v in values if v.value is not None}  # type: ignore[misc]

    def marks(self, metric: str, round: int) -> dict[str, tuple[float, float, float]]:
        """Mark -> (x, y, value), of one round: metrics called `<metric>/<mark>` that stand at a place of that surface."""
        values = [v for v in self.values if v.metric.startswith(f"{metric}/") and v.round == round and v.value is not None]
        marked = [v for v in values if v.x is not None and v.y is not None]
        return {v.metric.removeprefix(f"{metric}/"): (v.x, v.y, v.value) for v in marked}  # type: ignore[misc]

    def last(self, rounds: Iterable[int], metric: str) -> int | None:
        """The last of `rounds` with values of `metric` at places x."""
        within = {*rounds}
        return max((v.round for v in self.values if v.metric == metric and v.x is not None and v.round in within), default=None)

    def covers(self, rounds: Iterable[int]) -> bool:
        """Whether all of these rounds were measured, so far as the seed reached them."""
        return all(str(number) in self.about["models"] or number > self.about["reached"] for number in rounds)


def model_index_path(root: Path, run_id: str, seed: int) -> Path:
    """The path of the list of rounds with kept models, `results/kept/<run_id>/seed<k>.json`."""
    return Path(root) / KEPT / run_id / f"seed{seed}.json"


def folder(call: str) -> str:
    """The name of the folder of a call with all its arguments."""
    return f"{parse(call)[0].name}-{canonical_hash(call, 6)}"


def measurements_path(root: Path, run_id: str, call: str, seed: int) -> Path:
    """`results/diagnostics/<run_id>/<call>/seed<k>.parquet`."""
    return Path(root) / DIAGNOSTICS / run_id / folder(call) / f"seed{seed}.parquet"


def curve_name(call: str | None, metric: str) -> str:
    """Returns a metric's name in the curves of a receipt: a diagnostic's metric has its call before it."""
    return f"{call}: {metric}" if call else metric


def write(path: Path, about: dict[str, Any], values: Iterable[Value]) -> Path:
    """Writes what one call has measured."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fedrepro.engine.columns import column

    rows = [v._replace(value=v.value if v.value is not None and math.isfinite(v.value) else None) for v in values]
    types = {"round": pa.int32(), "metric": pa.string(), "client": pa.int32(), "x": pa.float64(), "y": pa.float64()}
    types |= {"value": pa.float64()}
    sealed = json.dumps(about | {"schema": SCHEMA, "digest": _digest(about, rows)}, sort_keys=True).encode()
    schema = pa.schema(list(types.items()), metadata={_ABOUT: sealed})
    columns = [column([getattr(row, name) for row in rows], kind) for name, kind in types.items()]
    table = pa.Table.from_arrays(columns, schema=schema)
    content = io.BytesIO()
    pq.write_table(table, content)
    return write_atomic(path, lambda temporary: temporary.write_bytes(content.getvalue()))


def read(path: Path) -> Measurements:
    """The content of a file, verified: run and seed are those of its path, its digest is right. UserError where not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        about = json.loads((table.schema.metadata or {})[_ABOUT])
        rows = [Value(**row) for row in table.to_pylist()]
        schema, digest = about.pop("schema"), about.pop("digest")
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a readable file of diagnostics; {_repair(path)}") from error
    place = (path.parent.parent.name, path.parent.name, path.stem)
    recorded = (about["run_id"], folder(about["diagnostic"]), f"seed{about['seed']}")
    if schema != SCHEMA or place != recorded or digest != _digest(about, rows):
        raise UserError(f"{path}: its digest is not that of its content, or it is another run's; {_repair(path)}")
    return Measurements(about, rows)


def _digest(about: dict[str, Any], rows: list[Value]) -> str:
    return canonical_hash([about, rows], 64)


def _repair(path: Path) -> str:
    if {*PUBLISHED} & {*path.parts[-6:-5]}:
        return f"restore it with `git checkout -- {path}`, or delete it and run the same command again"
    return "delete it and run the same command again"
