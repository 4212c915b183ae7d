"""Formats names, sizes and dates, the same for pictures and pages. Numbers: `fedrepro.units`."""


def metric_label(name: str) -> str:
    """Writes the name of a metric, `test top-3 accuracy` for test_top3_accuracy."""
    return name.replace("_", " ").replace("top3", "top-3")


def volume(size: float) -> str:
    """Writes bytes as `492 B`, `17.0 kB`, `2.1 MB`, `1,204.3 MB`; a MB has a million bytes."""
    if round(size) < 1000:
        return f"{size:.0f} B"
    return f"{size / 1e3:.1f} kB" if round(size / 1e3, 1) < 1000 else f"{size / 1e6:,.1f} MB"


def period(times: tuple[str, str] | None) -> str:
    """Writes the span between two times, `2026-11-21 20:16 to 2026-11-21 21:56 UTC`."""
    if times is None:
        return "no run yet"
    first, last = (stamp[:16].replace("T", " ") for stamp in times)
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"
