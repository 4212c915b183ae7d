"""Text of eight roles, made here by a Markov chain: a data set of characters and of groups that needs no download.

The next character depends on the last two: three candidates follow each pair, with 11, 4 and 1 chances of 16. So no model has
an accuracy above 68.75 %, and one that uses the last character alone stays far below that. For a quarter of the pairs each role
has candidates of its own. Role r speaks 30 + 10 r windows to train on and a fifth as many to test. Windows of 80 characters
follow each other in its speech, and the label of one is the first character of the next.

Whole random numbers only, so that the bytes are the same on every machine.
"""

import numpy as np

from fedrepro import rng
from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Samples, Source

ROLES = ("king", "queen", "prince", "nurse", "fool", "ghost", "soldier", "witch")
CHANCES = (11, 4, 1)  # of 16
FIRST_ROLE = 30  # windows of the first role
MORE_EACH = 10  # how many more windows each further role has
TESTED = 5  # training windows for each test window
OWN = 4  # one pair in four has followers that belong to a role


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The arrays, roles as groups. UserError when they are not those that the registry knows.

    `fetcher` is unused: all readers have the same arguments.
    """
    (length,) = entry.native_shape
    parts: dict[str, dict[str, Samples]] = {"train": {}, "test": {}}
    for number, role in enumerate(ROLES):
        trained = FIRST_ROLE + MORE_EACH * number
        for split, count in (("train", trained), ("test", trained // TESTED)):
            text = speech(entry.classes, number, split, count * length + 1)
            parts[split][role] = text[:-1].reshape(-1, length), text[length::length].astype(np.int64)
    return Source.of_groups(parts, {}).checked(entry.name, entry.content_sha256, "the texts made here")


def speech(characters: int, role: int, split: str, length: int) -> np.ndarray:
    """uint8 [length]: what a role says."""
    follows, generator = followers(characters, role), rng.stream(0, f"synthetic-text/{split}", role)
    choices = np.repeat(np.arange(len(CHANCES)), CHANCES)[generator.integers(sum(CHANCES), size=length)]
    text, before, last = np.empty(length, np.uint8), 0, 0
    for place, choice in enumerate(choices):
        before, last = last, int(follows[before, last, choice])
        text[place] = last
    return text


def followers(characters: int, role: int) -> np.ndarray:
    """int64 [V, V, 3]: what follows each pair of characters, the most likely first."""
    common, of_role = (_candidates(characters, name, number) for name, number in (("common", 0), ("own", role)))
    replaced = rng.stream(0, "synthetic-text/chosen", role).integers(OWN, size=(characters, characters)) == 0
    return np.where(replaced[..., np.newaxis], of_role, common)


def _candidates(characters: int, name: str, number: int) -> np.ndarray:
    order = rng.stream(0, f"synthetic-text/{name}", number).integers(2**31, size=(characters, characters, characters))
    return order.argsort(-1, kind="stable")[..., : len(CHANCES)]
