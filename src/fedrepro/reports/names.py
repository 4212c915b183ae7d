"""How numbers, units and pairs of methods are written; pictures and pages say them alike."""

import re

from fedrepro.reports.model import Gap, GapSetting
from fedrepro.units import unit


def decimal(value: float | None, digits: int = 2) -> str:
    """So many decimals and a true minus; a dash for nothing."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 2) -> str:
    """With its sign and a true minus; a dash for nothing."""
    return "–" if value is None else f"{value:+.{digits}f}".replace("-", "−")


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts table2 before table10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def metric_label(name: str) -> str:
    """`test top-3 accuracy` for test_top3_accuracy."""
    return name.replace("_", " ").replace("top3", "top-3")


def volume(size: float) -> str:
    """Bytes as `492 B`, `17.0 kB`, `2.1 MB`, `1,204.3 MB`; a MB has a million bytes."""
    if size < 1000:
        return f"{size:.0f} B"
    return f"{size / 1e3:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def period(first: str | None, last: str | None) -> str:
    """`2026-11-21 20:16 to 2026-11-21 21:56 UTC`."""
    if first is None or last is None:
        return "no run yet"
    first, last = (stamp[:16].replace("T", " ") for stamp in (first, last))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def shows_printed(gap: Gap) -> bool:
    """At scale demo the data are others: no printed number has any meaning there."""
    return gap.scale != "demo"


def gap_title(gap: Gap) -> str:
    """`FedAvg + GH minus FedAvg`."""
    return f"{gap.method_label} minus {gap.base_label}"


def gap_unit(gap: Gap) -> str:
    """What a difference is counted in."""
    return "percentage points" if gap.unit == "percent" else unit(gap.unit).difference or gap.unit


def gap_interval(one: GapSetting) -> str:
    """`−1.10 to +0.50`."""
    return "–" if one.low is None else f"{signed(one.low)} to {signed(one.high)}"


def gap_text(gap: Gap) -> str:
    """The picture in words, with all its numbers."""
    said = []
    for one in gap.settings:
        parts = [f"measured {signed(one.ours)}" if one.ours is not None else f"not measured ({one.reason})"]
        if one.low is not None:
            parts.append(f"95 % interval {gap_interval(one)}, {len(one.per_seed)} seeds")
        if shows_printed(gap) and one.printed is not None:
            parts.append(f"printed {signed(one.printed)}")
        said.append(f"{one.label}: {', '.join(parts)}")
    return f"{gap.source}, {gap_title(gap)}, in {gap_unit(gap)}. {'; '.join(said)}."
