"""The wording that Markdown and HTML share, so that both say the same. Functions take a report document or a part of it."""

from typing import Any

from fedrepro.console import duration
from fedrepro.reports.settings import show

Document = dict[str, Any]

CURVES = (
    "Mean over seeds; the band reaches from the lowest to the highest seed. A line ends at the round at which a seed diverges. "
    "The first fifth of the rounds may start below the picture."
)
COST = (
    "wall time a seed",
    "peak memory",
    "samples a second",
    "a client sends / receives a round",
    "all send / receive in a run",
)
TRAFFIC = (
    "The last two columns are what a real deployment would send: float32 weights, running statistics where the method uses the "
    "clients', and what the client rule adds; nothing is compressed. Here nothing is sent."
)
READINGS = (
    "Papers differ in what they print of a run. The same runs, read in other ways, means over seeds; where a column is read "
    "before the last round, up to that round. The best round is picked on the test set, which flatters."
)
ACROSS = (
    "One method against another over all settings of the table, each setting once (columns that read one run at several rounds "
    "count as one): wins, ties and losses, mean difference, and the two-sided p-value of the exact Wilcoxon signed-rank test "
    "over settings; n settings cannot reach a p below 2^(1−n). As printed, and beside it as measured."
)
GLYPHS = {"reproduced": "✓", "within noise": "≈", "not reproduced": "✗"}


def title(document: Document) -> str:
    """`FedLAW, Table 3: main comparison [demo scale]`."""
    return f"{document['paper_name']}, {document['source']}: {document['title']} [{document['scale']} scale]"


def headline(document: Document) -> str:
    """The first sentence: whether these numbers may be compared with the printed ones."""
    if document["comparable"]:
        protocol = f"a variation of {document['varied']['source']}" if document["varied"] else "the paper's protocol"
        return f"Full scale: {protocol}. Measured numbers may be compared with the printed ones."
    scale = document["scale"].capitalize() + (" scale, on a budget" if document["on_budget"] else " scale")
    return f"{scale}: these numbers are not comparable with the printed ones; no difference is computed."


def protocol(document: Document) -> list[str]:
    """What was run where it is not the paper's protocol; how a variation differs from its table. From the plan alone."""
    said = []
    if not document["comparable"]:
        parts = [", ".join(_places(value) for value in entry["values"]) for entry in document["ran"]]
        planned = sum(cell["run_id"] is not None for cell in document["cells"])
        share = [f"{planned} of {len(document['cells'])} cells"] if planned < len(document["cells"]) else []
        said.append(f"Run here: {'; '.join([*parts, _seeds(document), *share])}.")
    if document["varied"]:
        values = [f"in {key}: {', '.join(map(show, new))}" for key, new in document["varied"]["values"].items()]
        source = document["varied"]["source"]
        said.append(f"It differs from {source} {'; '.join(values)}." if values else f"Here it is the same as {source}.")
    return said


def _seeds(document: Document) -> str:
    seeds = document["seeds"]
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"


def facts(document: Document) -> list[tuple[str, str]]:
    """Name and value of the opening facts, all of them about the runs."""
    about = document["about"]
    metrics = dict.fromkeys(
        f"{m['description']} ({m['unit']}, {m['better']} is better)" for m in (c["metric"] for c in document["columns"])
    )
    return [
        ("paper", f"{document['paper_title']}; {document['source']}"),
        ("data", _data(about["data"]) or "no run is planned"),
        ("metric", "; ".join(metrics)),
        ("reported", ", ".join(_places(entry) for entry in about["reported"]) or "no run is planned"),
        ("seeds", ", ".join(map(str, about["seeds"]))),
        ("device", "; ".join(about["devices"]) or "no run yet"),
        ("arithmetic", arithmetic(document)),
        ("runs finished", period(about["first_finished_at"], about["last_finished_at"])),
        ("commit of the runs", ", ".join(about["commits"]) or "no run yet"),
        (
            "complete",
            f"{about['cells_measured']} of {about['cells']} cells, {about['runs_done']} of {about['runs_planned']} runs",
        ),
    ]


def arithmetic(document: Document) -> str:
    """In how many cells anybody can have the same bits again, and how."""
    found = [cell["arithmetic"] for cell in document["cells"] if cell["arithmetic"]]
    if not found:
        return "no run yet"
    portable = found.count("portable")
    if not portable:
        return "not portable: another type of processor gives other last digits"
    count = "every cell" if portable == len(found) else f"{portable} of {len(found)} cells with runs"
    text = f"portable in {count}: the same bits on every x86-64 processor with AVX2"
    if document["scale"] not in ("full", "short"):  # published
        return text
    return f"{text}; to see for yourself: fedrepro verify {document['paper']}/{document['table']} --scale {document['scale']}"


def _data(entries: list[dict[str, Any]]) -> str:
    """`mnist (1×28×28)`; where columns differ, `FashionMNIST columns ran on digits (1×28×28)` for each group of them."""
    used = {" and ".join(entry["used"]): entry for entry in entries}
    if len(used) == 1:
        return next(iter(used))
    return "; ".join(f"{entry['printed']} columns ran on {' and '.join(entry['used'])}" for entry in entries)


def _places(entry: dict[str, Any]) -> str:
    """`the last of 5 rounds (CNN, α = 0.1)`; without the place where it is the same everywhere."""
    return entry["value"] + (f" ({'; '.join(entry['where'])})" if entry["where"] else "")


def period(first: str | None, last: str | None) -> str:
    """`2026-11-21 20:16 to 2026-11-21 21:56 UTC`."""
    if first is None or last is None:
        return "no run yet"
    first, last = (stamp[:16].replace("T", " ") for stamp in (first, last))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def caption(document: Document) -> str:
    """What the two numbers of a cell are."""
    text = (
        "Measured: mean ± sample standard deviation over seeds (number of seeds). "
        f"Below it the printed number{', of other data and for orientation only' if document['stand_in'] else ''}. "
        "Bold: best measured of the column, ties included; underlined: best printed."
    )
    if document["comparable"]:
        text += " Third line: measured minus printed, and ✓ reproduced, ≈ within noise, ✗ not reproduced."
    return text


def ordered_rows(document: Document) -> list[dict[str, Any]]:
    """Printed rows in the paper's order, then companions."""
    return sorted(document["rows"], key=lambda row: not row["printed"])


def column_label(column: dict[str, Any]) -> str:
    """`FashionMNIST · MLP, α = 100`."""
    return " · ".join(part for part in (column.get("group"), column["label"]) if part)


def metric_label(name: str) -> str:
    """`test top-3 accuracy` for test_top3_accuracy."""
    return name.replace("_", " ").replace("top3", "top-3")


def measured(cell: dict[str, Any]) -> str:
    """The mean, or why there is none."""
    if cell["mean"] is not None:
        return _number(cell, cell["mean"])
    return "diverged" if cell["per_seed"] else "not run"


def spread(cell: dict[str, Any]) -> str:
    """`± 0.21 (3)`; with one seed there is no spread to show."""
    std = "" if cell["std"] is None else f"± {_number(cell, cell['std'])} "
    return f"{std}({len(cell['per_seed'])})"


def printed(cell: dict[str, Any]) -> str:
    """`paper 89.29`; empty for what the paper does not print."""
    return "" if cell["printed"] is None else f"paper {_number(cell, cell['printed'])}"


def verdict(cell: dict[str, Any]) -> str:
    """`−0.19 ✓`."""
    return f"{difference(cell)} {GLYPHS.get(cell['status'], '')}".strip()


def difference(cell: dict[str, Any]) -> str:
    """Signed, with a true minus."""
    return "" if cell["difference"] is None else f"{cell['difference']:+.{cell['digits']}f}".replace("-", "−")


def seed_value(cell: dict[str, Any], seed: str) -> str:
    """One seed's value; a diverged seed says so, a missing one is a dash."""
    if seed not in cell["per_seed"]:
        return "–"
    value = cell["per_seed"][seed]
    return "diverged" if value is None else _number(cell, value)


def _number(cell: dict[str, Any], value: float) -> str:
    return f"{value:.{cell['digits']}f}"


def remark(cell: dict[str, Any]) -> str:
    """Why seeds are missing, and what is odd about the printed number."""
    return "; ".join(text for text in (cell["reason"], cell["note"]) if text)


def rule(document: Document) -> str:
    """The rule behind the statuses, in words."""
    if document["stand_in"]:
        return "This is not the printed table: a measured cell is not comparable with its printed number, whatever the two are."
    if not document["comparable"]:
        return f"At {document['scale']} scale a measured cell is not comparable with its printed number, whatever the two are."
    tolerance, factor = document["rule"]["tolerance"], document["rule"]["noise_factor"]
    return (
        f"Reproduced: measured and printed differ by at most {tolerance:g} point{'' if tolerance == 1 else 's'}. Within noise: "
        f"by at most {factor:g} × the standard deviation over seeds, pooled over the rows of the column. Otherwise, and where "
        "a seed diverged: not reproduced. The rule was fixed before the runs; three seeds decide little."
    )


def other(entry: dict[str, Any]) -> list[str]:
    """What to write into params.yaml to run the other variant, `methods.fedlaw.feddyn.norm: plain`; empty where nothing can."""
    return _paths("", entry["other"]) if entry.get("other") else []


def _paths(above: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [path for key, below in value.items() for path in _paths(f"{above}.{key}" if above else str(key), below)]
    return [f"{above}: {str(value).lower() if isinstance(value, bool) else value}"]


def alternatives(document: Document) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table that shows the counts under other thresholds."""
    shown = ("reproduced", "within noise", "not reproduced")
    rows = []
    for entry in document["rule_alternatives"]:
        chosen = all(entry[key] == document["rule"][key] for key in ("tolerance", "noise_factor"))
        tolerance = f"{entry['tolerance']:g}" + (" (ours)" if chosen else "")
        rows.append([tolerance, f"{entry['noise_factor']:g}", *(str(entry["counts"][status]) for status in shown)])
    return ["tolerance (points)", "noise factor", *shown], rows


def setting_rows(document: Document) -> list[tuple[str, list[str], str]]:
    """Per setting: key, its values (each with where it holds), source."""
    rows = []
    for entry in document["settings"]:
        values = sorted(entry["values"], key=lambda v: len(v["where"]), reverse=True)
        # The commonest value needs no list of places: it holds wherever nothing else is said.
        texts = [_value(v, elsewhere=index == 0 and len(v["where"]) > 6) for index, v in enumerate(values)]
        rows.append((entry["key"], texts, entry["source"]))
    return rows


def _value(entry: dict[str, Any], *, elsewhere: bool) -> str:
    if not entry["where"]:
        return entry["value"]
    return f"{entry['value']}: {'everywhere else' if elsewhere else '; '.join(entry['where'])}"


def cost(run: dict[str, Any]) -> tuple[str, ...]:
    """Mean wall time of a seed, highest peak memory, samples a second over all seeds; bytes of a client's round and a seed."""
    seeds = run["seeds"]
    if not seeds:
        return ("–",) * len(COST)
    wall = sum(one["wall_s"] for one in seeds)
    rate = sum(one["samples"] for one in seeds) / wall if wall else 0.0
    first = (duration(wall / len(seeds)), f"{max(one['peak_rss_mib'] for one in seeds):,.0f} MiB", f"{rate:,.0f}")
    counted = [one for one in seeds if one["client_rounds"]]
    if not counted:  # evidence from before traffic was counted
        return (*first, "–", "–")
    up, down, rounds = (sum(one[key] for one in counted) for key in ("bytes_up", "bytes_down", "client_rounds"))
    both = lambda parts: f"{volume(up / parts)} / {volume(down / parts)}"  # noqa: E731
    return (*first, both(rounds), both(len(counted)))


def volume(size: float) -> str:
    """Bytes as `492 B`, `17.0 kB`, `2.1 MB`, `1,204.3 MB`; a MB has a million bytes."""
    if size < 1000:
        return f"{size:.0f} B"
    return f"{size / 1e3:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def readings(document: Document) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of other readings; no rows without any run."""
    cells = [cell for cell in document["cells"] if cell["readings"]]
    ks = sorted({int(k) for cell in cells for k in cell["readings"]["mean_of_last"]} - {1})
    show = lambda value: "–" if value is None else f"{value:.2f}"  # noqa: E731
    rows = []
    for cell in cells:
        found = cell["readings"]
        means = [show(found["mean_of_last"].get(str(k))) for k in ks]
        values = [measured(cell), show(found["last"]), show(found["best"]), *means]
        rows.append([cell["method_label"], cell["setting_label"], *values])
    return ["method", "setting", "as reported", "last round", "best round", *(f"mean of last {k}" for k in ks)], rows


def comparisons(document: Document) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table across settings."""
    digits = {column["metric"]["name"]: 2 if column["metric"]["unit"] == "percent" else 3 for column in document["columns"]}
    header = ["method", "against", "metric"]
    header += [f"{what}, {side}" for side in ("printed", "measured") for what in ("wins–ties–losses", "mean difference", "p")]
    rows = []
    for one in document["comparisons"]:
        row = [one["method_label"], one["baseline_label"], metric_label(one["metric"])]
        rows.append([*row, *(text for side in ("printed", "measured") for text in _score(one[side], digits[one["metric"]]))])
    return header, rows


def across(document: Document) -> str:
    """What the table across settings is."""
    aside = "" if document["comparable"] else " The printed side is for orientation only: nothing here is comparable with it."
    return ACROSS + aside


def _score(side: dict[str, Any], digits: int) -> list[str]:
    """`4–1–0`, `+4.85`, `0.125`."""
    if not side["settings"]:
        return ["–", "–", "–"]
    p = "–" if side["p_value"] is None else f"{side['p_value']:.3g}"
    counts = f"{side['wins']}–{side['ties']}–{side['losses']}"
    return [counts, f"{side['mean_difference']:+.{digits}f}".replace("-", "−"), p]


def total_cost(document: Document) -> str:
    """One sentence on the whole table."""
    about = document["about"]
    if not about["runs_done"]:
        return "Nothing has run yet."
    peak = f"{about['peak_rss_mib']:,.0f} MiB"
    return f"{about['runs_done']} runs, {duration(about['wall_s'])} of computing in all, at most {peak} each."


def versions(document: Document) -> list[tuple[str, list[str]]]:
    """Versions of what computed the numbers, then the commits."""
    return named_versions(document["provenance"]["versions"], document["about"]["commits"])


def named_versions(versions: dict[str, list[str]], commits: list[str]) -> list[tuple[str, list[str]]]:
    """Names as people write them."""
    return [*((name.replace("_", " "), values) for name, values in versions.items()), ("commit", commits)]
