"""What composing methods gives, without torch."""

from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS


def composed() -> dict[str, list[str]]:
    """Every part -> what composing it alone gives: the canonical name, the label, what a run must provide."""
    made = {name: compose(name) for name in PARTS.names()}
    return {name: [str(method), method.label, *sorted(method.needs)] for name, method in made.items()}
