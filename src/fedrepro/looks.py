"""The name of a method and the look of its line, the same in every table, every figure and MLflow.

A method has its colour from the list below, not from its place in a table. No two methods of one table share a colour. A method
with an added part (`FedAvg + GH`) takes the second tone and a dash; the second tone of grey is a blue, which is easy to tell
from it. Rows that vary one method (`τ = 0.1`) go along a ramp. Add a new method to a colour that its tables do not use yet.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

# Ten colours of Okabe and Ito's kind, each with a second tone; all are visible on white and on dark pages.
TONES = {
    "grey": ("#7A7A7A", "#3F3FFF"),
    "blue": ("#0072B2", "#7FB2E5"),
    "vermillion": ("#D55E00", "#F2A47C"),
    "green": ("#009E73", "#7CCBA2"),
    "pink": ("#CC79A7", "#8F3F6B"),
    "orange": ("#E69F00", "#A87400"),
    "purple": ("#6A3D9A", "#B79AD8"),
    "brown": ("#8C510A", "#C4A27A"),
    "cyan": ("#22B8CF", "#0E7C8C"),
    "wine": ("#A5144F", "#FF8FB3"),
}
METHODS = {
    "grey": ("FedAvg", "fields marked at random", "plain average", "all clients", "by data size"),
    "blue": (
        "FedProx",
        "nearest, of the weights",
        "γ of adaptive GWS",
        "FedAvg with FedLAW's γ",
        "FedAvg with IMA's decay",
        "dataset size (DS)",
        "client 0",
        "factor γ",
    ),
    "vermillion": (
        "FedAdam",
        "FedLAW",
        "threshold, of the weights",
        "lowest point of the line",
        "imbalanced clients",
        "heterogeneity degree (HD)",
        "client 1",
    ),
    "green": (
        "SCAFFOLD",
        "FedFA",
        "FedDyn",
        "nearest, of the scores before the softmax",
        "FedAvg with FedLAW's weights",
        "FedAvg with IMA's averages",
        "norm of the global gradient",
        "balanced clients",
        "client 2",
        "weights λ",
    ),
    "pink": ("FedYogi", "FedDF", "IGFL-S", "mean attention between the others", "attentive LAW, SWA"),
    "orange": ("FedAvgM", "FedNova", "FedBE", "attentive LAW, early-stopped", "norm of the shrinking"),
    "purple": (
        "FedAdagrad",
        "FedASAM",
        "FedLAW-SWA",
        "IGFL",
        "mean attention between clients that share a label",
        "r, ratio of the two norms",
        "DS × HD",
    ),
    "brown": ("PFNM", "FedGMA", "Server-FT", "FedLAW, quad"),
    "cyan": ("Per-FedAvg, own models", "IGFL-C", "adaptive GWS"),
    "wine": ("pFedMe, own models", "attentive LAW", "by learnt weight"),
}
PARTS = (" + GH", " + IMA", " + elastic")
SAME = {"naive": "FedAvg", "elastic": "FedAvg + elastic", "moving average": "FedAvg + IMA"}
# A method, and rows of one table that vary it, in the order of the ramp.
VARIED = (
    ("FedAvg", ("no decay", "decay 0.01")),
    ("FedAvg", tuple(f"naive, server_lr = {value}" for value in (1.1, 1.2, 1.3, 1.4, 1.5))),
    ("FedAvg", tuple(f"FedAvg, server_lr = {value}" for value in (1.5, 2, 2.5))),
    ("FedAvg + elastic", tuple(f"τ = {tenth / 10}" for tenth in range(11))),
    ("FedAvg + elastic", tuple(f"elastic, server_lr = {value}" for value in (0.7, 0.8, 0.9))),
    ("FedAvg + IMA", tuple(f"from round {start}, window {size}" for start in (150, 200, 250, 300) for size in (3, 5, 10, 20))),
    ("FedAvg + GH", ("FedAvg + GH, server_lr = 0.5",)),
    ("fixed GWS", tuple(f"γ = {value}" for value in (1, 0.99, 0.97, 0.95, 0.93, 0.9))),
    (
        "FedAvg + GH",
        (
            "FedAvg + GH: copies, projected on the other",
            "in place, divided by its own norm (the slides to the letter)",
            "copies, divided by its own norm",
            "in place, projected on the other",
            "each pair once (later version, by a summary)",
            "copies, others in ascending order",
            "copies, mean by data size (later version)",
        ),
    ),
    ("IGFL", ("GA", "SA", "TA")),
)
# The colours along a ramp: for methods, and for methods with an added part.
RAMPS = (("#5A2A82", "#2A6F97", "#2FA36B", "#B5B82E"), ("#8F1D6B", "#D0424F", "#EE7B30", "#E3B23C"))
SHADES = (("#FFFFFF", 0.0), ("#FFFFFF", 0.45), ("#000000", 0.4), ("#FFFFFF", 0.7), ("#000000", 0.65), ("#FFFFFF", 0.25))
DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))


class Look(NamedTuple):
    """The look of a line: `#RRGGBB`, and what matplotlib takes as `linestyle`."""

    colour: str
    dash: Any


@cache
def name_of(label: str) -> str:
    """Returns the name of a row's method everywhere: `FedAvg` of the rows `naive`, `fedavg` and `naive, by module`,
    `FedProx + GH` of `fedprox(mu=1)+gh`; the label itself if no list has it."""
    for head in _heads(label):
        same = SAME.get(head) or next((name for name, labels in VARIED if head in labels), None)
        if same := same or next((name for name in _names() if _bare(name) == _bare(head)), None):
            return same
    return label


def _heads(label: str) -> Iterator[str]:
    """Yields the label, then the label without its last reading (`, by module`), until no comma is left."""
    while label:
        yield label
        label = label.rpartition(", ")[0]


def _names() -> Iterator[str]:
    return (f"{name}{part}" for names in METHODS.values() for name in names for part in ("", *PARTS))


def _bare(label: str) -> str:
    """The label in lower case without arguments: letters, digits and `+` only."""
    return re.sub(r"\(.*?\)|[^a-z0-9+]", "", label.lower())


@cache
def look_of(label: str) -> Look | None:
    """Returns how the row with this label looks in every table; None if no list above contains it."""
    return next((look for head in _heads(label) if (look := _look(head))), None)


def looks_of(labels: Iterable[str], methods: Mapping[str, str] | None = None) -> dict[str, Look]:
    """How the rows of one table look. Rows of one look (`naive, by module`) keep its colour and differ in the dash, from the
    fifth on in the shade, too. Labels that no list has take unused looks, in alphabetical order. `methods`: label -> the name
    of its method in runs (`gh`)."""
    labels, looks = list(dict.fromkeys(labels)), {}
    for label in sorted(labels, key=len):
        look = look_of(name_of(methods[label])) or look_of(name_of(f"fedavg+{methods[label]}")) if methods else look_of(label)
        if look:
            shades = (_mixed(look.colour, end, share) for end, share in SHADES)
            candidates = (look, *(Look(shade, dash) for shade in shades for dash in DASHES))
            looks[label] = next((candidate for candidate in candidates if candidate not in looks.values()), look)
    every = (Look(first, dash) for dash in DASHES for first, _ in TONES.values())
    free = itertools.cycle([look for look in every if look not in looks.values()])
    return looks | {label: next(free) for label in sorted(labels) if label not in looks}


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """The colours of lines that cannot be dashed. Where two looks have one colour, the second one takes another shade of it."""
    colours: dict[str, str] = {}
    for label, look in looks_of(labels).items():
        shades = (_mixed(look.colour, end, share) for end, share in SHADES)
        colours[label] = next((shade for shade in shades if shade not in colours.values()), look.colour)
    return colours


def _look(label: str) -> Look | None:
    for name, labels in VARIED:
        if label in labels:
            return _on_ramp(labels.index(label), len(labels), part=name.endswith(PARTS))
    label = SAME.get(label, label)
    part = label.endswith(PARTS)
    name = label.rpartition(" + ")[0] if part else label
    colour = next((colour for colour, names in METHODS.items() if name in names), None)
    return Look(TONES[colour][part], DASHES[part]) if colour else None


def _on_ramp(step: int, steps: int, part: bool) -> Look:
    """Returns the look of `step`, with `steps` colours evenly spaced on the ramp. Every second step has another dash."""
    ends = RAMPS[part]
    place = step / max(1, steps - 1) * (len(ends) - 1)
    low = min(int(place), len(ends) - 2)
    return Look(_mixed(ends[low], ends[low + 1], place - low), DASHES[2 * part + step % 2])


def _mixed(start: str, end: str, share: float) -> str:
    """The colour that lies `share` of the way from one to another."""
    pairs = zip(bytes.fromhex(start[1:]), bytes.fromhex(end[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)
