"""The result of composing each method alone, without torch."""

from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS


def composed() -> dict[str, list[str]]:
    """Every part -> the canonical name, the label and what a run must provide, when it is composed alone."""
    made = {name: compose(name) for name in PARTS.names()}
    return {name: [str(method), method.label, *sorted(method.needs)] for name, method in made.items()}
