"""Plays such as Shakespeare's, as plain text with speakers' names: next-character prediction, with speaking roles as groups.

McMahan et al. (AISTATS 2017, https://arxiv.org/abs/1602.05629): each role of each play with at least two lines is a client.
The last fifth of its lines, rounded up, is tested; the lines before are trained on. A line is all that a role says at a time,
up to the next speaker. Theirs are 1,146 roles; TensorFlow Federated keeps 715. A text without titles counts as one play, in
which roles of one name are one.

A role's training lines, and its test lines, follow each other in one text, with a line break between. It is cut into windows,
one after the other; a window's label is the character after it. What is left at the end is dropped, and so is a role without a
full window to train on: no window is padded.

The vocabulary is TensorFlow Federated's: 86 characters, and one class for all others. That makes 87; with the three marks that
TFF has besides (padding, begin and end of a text, which do not occur here) there are 90, and the model of 820,522 parameters.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedrepro.data.artifact import floor_share
from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Samples, Source
from fedrepro.errors import UserError

CHARACTERS = "\n\r !\"#$%&'()*,-./0123456789:;?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz"  # ascending
UNKNOWN = len(CHARACTERS)
NAMES = {"\n": "line break", "\r": "carriage return", " ": "space"}
_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "--"})
# Of Project Gutenberg's text, where names of roles, acts and plays are in capitals on lines of their own.
_CAST = re.compile(r"dramatis person", re.IGNORECASE)
_HEADING = re.compile(r"(THE )?(ACT|SCENE|PROLOGUE|INDUCTION|EPILOGUE|END)\b|FINIS")
_DIRECTION = re.compile(r"\[.*?\]", re.DOTALL)
_END = "*** END OF"

Speech = tuple[str, str]  # role, with the play's title if there is one, and what it says


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """Windows uint8 [N, T] of all roles in the order in which they first speak, roles as groups.

    UserError when the text cannot be had, has no speakers, or when the registry has fewer classes than characters.
    """
    if entry.classes <= UNKNOWN:
        raise UserError(
            f"{entry.name}: classes: {entry.classes} in data/registry.yaml, but kind plays has {UNKNOWN + 1} or more"
        )
    path, files = fetcher.only(entry)
    text = _text(path)
    assert entry.test_share is not None  # kind plays needs both
    assert entry.speakers is not None
    speeches: dict[str, list[str]] = {}
    try:
        for role, speech in {"colon": with_colons, "capitals": in_capitals}[entry.speakers](text):
            speeches.setdefault(role, []).append(speech)
    except UserError as error:
        raise UserError(f"{path}: {error}; delete {path.parent} and run the same command again") from error
    (length,) = entry.native_shape
    roles = {role: _split(lines, entry.test_share, length) for role, lines in speeches.items()}
    roles = {role: windows for role, windows in roles.items() if len(windows["train"][1])}
    if not roles:
        raise UserError(
            f"{path}: no role has {length + 1} characters to train on with speakers: {entry.speakers}; correct either"
        )
    names = [*(NAMES.get(character, character) for character in CHARACTERS), "another character"]
    names += [f"unused {number}" for number in range(1, entry.classes - len(names) + 1)]
    parts = {split: {role: by_split[split] for role, by_split in roles.items()} for split in ("train", "test")}
    return Source.of_groups(parts, files, class_names=tuple(names))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").translate(_PLAIN)  # line ends of any kind become \n
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text in UTF-8 ({error.reason} at byte {error.start}); get another file") from error


def _split(lines: list[str], share: float, length: int) -> dict[str, Samples]:
    """Windows and labels to train on and to test, of one role's lines. A single line is test data, and the role then has no
    training data."""
    trained = len(lines) + floor_share(-share, len(lines))  # what is tested is rounded up
    return {"train": windows("\n".join(lines[:trained]), length), "test": windows("\n".join(lines[trained:]), length)}


def windows(text: str, length: int) -> Samples:
    """uint8 [n, T] and int64 [n]: full windows, and the character after each."""
    codes = encode(text)
    count = max(len(codes) - 1, 0) // length
    return codes[: count * length].reshape(count, length), codes[length : count * length + 1 : length].astype(np.int64)


def encode(text: str) -> np.ndarray:
    """uint8 [characters]: the number of each in CHARACTERS, or UNKNOWN."""
    alphabet, codes = (np.frombuffer(characters.encode("utf-32-le"), "<u4") for characters in (CHARACTERS, text))
    place = np.searchsorted(alphabet, codes).clip(max=UNKNOWN - 1)
    return np.where(alphabet[place] == codes, place, UNKNOWN).astype(np.uint8)


def with_colons(text: str) -> Iterator[Speech]:
    """Yields the speeches of paragraphs that begin with a line `Speaker:`. One that does not continues the speech before it."""
    speaker, speech = "", []
    for lines in _paragraphs(text):
        if lines[0].endswith(":"):
            yield from _speech(speaker, speech)
            speaker, speech = lines[0].removesuffix(":"), lines[1:]
        else:
            speech = speech + lines
    yield from _speech(speaker, speech)


def in_capitals(text: str) -> Iterator[Speech]:
    """Yields the speeches of Project Gutenberg's complete works. The first paragraph after `Contents` lists the titles.

    A paragraph that is one of them begins that work. `ROLE.`, in capitals on the first line of a paragraph, speaks the lines
    below and the paragraphs that follow, until a role or a heading comes. Lists of persons, paragraphs that are indented
    (directions and songs) and what stands in brackets are left out, and marks of emphasis.
    """
    if _END not in text:
        raise UserError(f"speakers: capitals: the text has no line `{_END}`: it broke off, or is none of Project Gutenberg's")
    paragraphs = _paragraphs(text)
    titles: set[str] = set()
    for lines in paragraphs:
        if lines[0].strip() == "Contents":
            titles = {line.strip() for line in lines[1:] or next(paragraphs, [])}
            break
    play, speaker, speech, persons = "", "", [], False
    for lines in paragraphs:
        first, role = lines[0], lines[0].removesuffix(".")
        heading = first in titles or first.startswith(_END) or bool(_CAST.match(first.strip()) or _HEADING.match(first))
        speaks = len(lines) > 1 and first != role and role.isupper() and not first[0].isspace() and not persons
        speaks = speaks and not first.startswith(("ACT ", "SCENE "))
        if heading or speaks:
            yield from _speech(f"{play}: {speaker}" if speaker else "", speech)
            speaker, speech = (role, lines[1:]) if speaks and play else ("", [])
            persons = bool(_CAST.match(first.strip()))
            play = first if first in titles else "" if first.startswith(_END) else play
        elif not first[0].isspace():
            speech = speech + lines
    yield from _speech(f"{play}: {speaker}" if speaker else "", speech)


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Lines between empty lines."""
    for block in re.split(r"\n\s*\n", text):
        if lines := [line.rstrip() for line in block.split("\n") if line.strip()]:
            yield lines


def _speech(role: str, lines: list[str]) -> Iterator[Speech]:
    """Yields the speech; nothing where it has no speaker or no words."""
    spoken = _DIRECTION.sub("", "\n".join(lines)).replace("_", "")
    speech = "\n".join(" ".join(line.split()) for line in spoken.split("\n") if line.strip())
    if role and speech:
        yield role, speech
