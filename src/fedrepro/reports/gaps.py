"""How far two methods are apart: printed difference and measured one, paired by seed. Pure functions of a table's report.

Paired, because both methods of a seed share partition, cohorts and initial model: what the seed adds to both drops out.
"""

from typing import Any

from fedrepro.reports import words
from fedrepro.reports.paired import interval, mean
from fedrepro.reports.words import Document


def gaps(document: Document) -> list[dict[str, Any]]:
    """One entry per pair of rows and unit of the metric: `{table, source, method, base, *_label, unit, settings}`, in order.

    A pair is `x+part` against `x`, where the table has both, and otherwise a row against the first one. `settings` has an entry
    per column in which a difference is measured or printed; a pair without any measured one is left out.
    """
    cells = {(cell["method"], cell["setting"]): cell for cell in document["cells"]}
    found = []
    for row, base in pairs(document):
        for unit in dict.fromkeys(column["metric"]["unit"] for column in document["columns"]):
            columns = [column for column in document["columns"] if column["metric"]["unit"] == unit]
            settings = [
                _gap(cells[row["key"], column["key"]], cells[base["key"], column["key"]], words.column_label(column))
                for column in columns
            ]
            if any(gap["ours"] is not None for gap in settings):
                found.append(
                    {
                        **{key: document[key] for key in ("table", "source", "scale", "comparable")},
                        "method": row["key"],
                        "base": base["key"],
                        "method_label": row["label"],
                        "base_label": base["label"],
                        "unit": unit,
                        "settings": [gap for gap in settings if gap["ours"] is not None or gap["printed"] is not None],
                    }
                )
    return found


def pairs(document: Document) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(row, the row it is compared with), in the table's order. Rows of several readings stay among themselves."""
    rows = {row["key"]: row for row in words.ordered_rows(document)}
    first: dict[str | None, dict[str, Any]] = {}
    for row in rows.values():
        first.setdefault(row["variant"], row)
    bases = {key: rows.get(key.rpartition("+")[0], first[row["variant"]]) for key, row in rows.items()}
    return [(rows[key], base) for key, base in bases.items() if base["key"] != key]


def _gap(cell: dict[str, Any], base: dict[str, Any], label: str) -> dict[str, Any]:
    """One setting. As in the table, a diverged seed of either method leaves no measured difference."""
    seeds = [seed for seed in cell["per_seed"] if seed in base["per_seed"]]
    diverged = any(one["per_seed"][seed] is None for one in (cell, base) for seed in seeds)
    per_seed = {} if diverged else {seed: cell["per_seed"][seed] - base["per_seed"][seed] for seed in seeds}
    low, high = interval(list(per_seed.values())) or (None, None)
    printed = None if None in (cell["printed"], base["printed"]) else round(cell["printed"] - base["printed"], 6)
    return {
        "setting": cell["setting"],
        "label": label,
        "metric": cell["metric"],
        "printed": printed,
        "ours": mean(list(per_seed.values())) if per_seed else None,
        "low": low,
        "high": high,
        "per_seed": per_seed,
        "runs": [f"{one['run_id']}/seed{seed}" for one in (cell, base) for seed in per_seed],
        "reason": "a seed diverged" if diverged else None if per_seed else "no seed of both",
    }
