"""Where sections are registered, each for a page and at a place on it."""

from collections.abc import Callable, Sequence
from typing import Any

from fedrepro.exhibits.write.blocks import Block

Make = Callable[[Any], Sequence[Block]]
PAGES: dict[str, dict[float, Make]] = {"table": {}, "paper": {}, "details": {}}  # page -> place -> section


def section(page: str, at: float) -> Callable[[Make], Make]:
    """Registers a function for a page. Functions of `table` get an Exhibit; those of `paper` and `details` get a PaperPage.
    `at` decides the order of sections. ValueError if two sections of a page have the same `at`."""

    def register(make: Make) -> Make:
        registered = PAGES[page].setdefault(at, make)
        if registered is not make:
            raise ValueError(f"{page}: place {at} has {registered.__module__} already; give {make.__module__} another one")
        return make

    return register


def blocks_of(page: str, subject: Any) -> tuple[Block, ...]:
    """Returns all blocks of a page, in order."""
    return tuple(block for _, make in sorted(PAGES[page].items(), key=lambda entry: entry[0]) for block in make(subject))
