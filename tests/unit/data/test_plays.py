"""Plays as plain text: speeches become windows of each role, in both formats. Text that is not speech is left out."""

import numpy as np
import pytest

from fedrepro.data import plays
from fedrepro.data.arrays import Arrays, load_arrays

ENTRY = {"kind": "plays", "speakers": "colon", "test_share": 0.2, "classes": 90, "native_shape": [4]}
TINY = """First Witch:
abcdefg

MACBETH:
One line
of two.

First Witch:
hi

ALL:
Once alone, and so no client.

First Witch:

MACBETH:
Tested.
"""
GUTENBERG = """\ufeffThe Project Gutenberg eBook of The Complete Works

                    Contents

    THE SONNETS
    THE TRAGEDY OF ONE
    TWO’S COMEDY


THE SONNETS

                    1

From fairest creatures we desire increase,
KING.

THE TRAGEDY OF ONE


Contents

ACT I
Scene I. A room.

Dramatis Personæ

KING OF FRANCE.
THE DUKE OF FLORENCE.
FOOL, a clown.

SERVANTS.
SOLDIERS.

SCENE: Partly in France.

THE PROLOGUE

 Enter Chorus.

CHORUS.
Two households, both alike.

ACT I

SCENE I. A room.

 Enter the King and
 FOOL.

KING.
[_Aside_.] We’ll “go”—

 [_Drum within._]

and _come_ [_Exit
Fool._] back.
  Indented verse.

FOOL.
Ay.

KING.
[_He dies._]

SCENE II. Another room.

This stands below a heading.

KING.
Again.

TWO’S COMEDY

KING.
Of another play.

THE END

*** END OF THE PROJECT GUTENBERG EBOOK ***

LICENCE.
Not a speech.
"""


def said(arrays: Arrays, split: str, role: str) -> str:
    """The text of a role's windows, with the last label."""
    mine = getattr(arrays, f"{split}_groups") == arrays.group_names.index(role)
    windows, labels = getattr(arrays, f"{split}_images")[mine], getattr(arrays, f"{split}_labels")[mine]
    assert (windows[1:, 0] == labels[:-1]).all()
    return "".join(plays.CHARACTERS[code] for code in [*windows.ravel(), *labels[-1:]])


def test_the_vocabulary_is_tffs() -> None:
    """The 86 characters are in ascending order, and each one's position is its number. All other characters share the next
    number."""
    assert len(plays.CHARACTERS) == 86
    assert list(plays.CHARACTERS) == sorted(set(plays.CHARACTERS))
    assert plays.encode(plays.CHARACTERS).tolist() == list(range(86))
    assert plays.encode("aé\t|{~☃").tolist() == [plays.CHARACTERS.index("a")] + 6 * [86]


def test_windows_follow_each_other() -> None:
    """Windows have four characters and the label after each. Nine characters make two windows, eight make one, four none."""
    windows, labels = plays.windows("abcdefghi", 4)
    assert windows.tolist() == [plays.encode("abcd").tolist(), plays.encode("efgh").tolist()]
    assert labels.tolist() == plays.encode("ei").tolist()
    assert (windows.dtype, labels.dtype) == (np.uint8, np.int64)
    for text, count in (("abcdefgh", 1), ("abcde", 1), ("abcd", 0), ("", 0)):
        windows, labels = plays.windows(text, 4)
        assert (windows.shape, labels.shape) == ((count, 4), (count,))


def test_lines_become_windows_of_a_role(published) -> None:
    """Of two lines the first is for training, the last for tests. A role with one line is not a client. Lines without words are
    not counted."""
    published.register(**ENTRY | {"files": [published.put("input.txt", TINY.encode())]})
    arrays = load_arrays(published.prepare())
    assert arrays.group_names == ("First Witch", "MACBETH")
    assert [said(arrays, "train", role) for role in arrays.group_names] == ["abcde", "One line\nof t"]
    assert said(arrays, "test", "MACBETH") == "Teste"
    assert arrays.test_groups is not None
    assert arrays.test_groups.tolist() == [1]  # two characters make no window
    names = arrays.manifest["class_names"]
    assert (len(names), len(set(names)), names[0], names[86]) == (90, 90, "line break", "another character")


@pytest.mark.parametrize(("lines", "trained"), [(2, 1), (4, 3), (5, 4), (6, 4), (10, 8), (35, 28), (36, 28)])
def test_the_last_fifth_is_tested_rounded_up(lines: int, trained: int, published) -> None:
    """Lines have three characters and a line break. Windows of four characters are as many as full lines before the last."""
    text = "".join(f"A:\n{number:03}\n\nB:\nx\n\n" for number in range(lines))
    published.register(**ENTRY | {"native_shape": [2], "files": [published.put("input.txt", text.encode())]})
    arrays = load_arrays(published.prepare())
    expected = "\n".join(f"{number:03}" for number in range(trained))
    assert said(arrays, "train", "A") == expected[: (len(expected) - 1) // 2 * 2 + 1]
    assert said(arrays, "test", "A")[:3] == f"{trained:03}"


def test_speeches_of_gutenbergs_text() -> None:
    """Titles separate the roles of different plays. Lists of persons, directions, headings, poems and the licence are left out.
    Typographic quotes and dashes become plain ones."""
    text = GUTENBERG.translate(plays._PLAIN)
    assert list(plays.in_capitals(text)) == [
        ("THE TRAGEDY OF ONE: CHORUS", "Two households, both alike."),
        ("THE TRAGEDY OF ONE: KING", 'We\'ll "go"--\nand come back.\nIndented verse.'),
        ("THE TRAGEDY OF ONE: FOOL", "Ay."),
        ("THE TRAGEDY OF ONE: KING", "Again."),
        ("TWO'S COMEDY: KING", "Of another play."),
    ]


def test_the_whole_works_become_arrays(published) -> None:
    """Windows line ends and a byte order mark change nothing."""
    files = [published.put("pg100.txt", GUTENBERG.replace("\n", "\r\n").encode())]
    published.register(**ENTRY | {"speakers": "capitals", "files": files})
    arrays = load_arrays(published.prepare())
    assert arrays.group_names == ("THE TRAGEDY OF ONE: KING",)
    assert said(arrays, "train", arrays.group_names[0]).startswith('We\'ll "go"--\nand come')
    assert said(arrays, "test", arrays.group_names[0]) == "Again"


def test_another_place_in_the_mirror(published) -> None:
    """The mirror may have the file in the folder of another data set, under another name."""
    published.folder.mkdir()
    (published.folder / "texts").mkdir()
    line = published.put("texts/tiny.txt", TINY.encode())
    published.register(**ENTRY | {"files": [{"name": "input.txt", "md5": line["md5"], "in_mirror": "texts/tiny.txt"}]})
    assert load_arrays(published.prepare()).group_names == ("First Witch", "MACBETH")


@pytest.mark.parametrize(
    ("content", "change", "line"),
    [
        (TINY.encode(), {"classes": 86}, "small: classes: 86 in data/registry.yaml, but kind plays has 87 or more"),
        (TINY.encode("utf-16"), {}, r"input\.txt: not a text in UTF-8 \(.* at byte 0\); get another file"),
        (
            TINY.encode(),
            {"speakers": "capitals"},
            r"input\.txt: speakers: capitals: the text has no line `\*\*\* END OF`: it broke",
        ),
        (
            f"{TINY}\n*** END OF THE PROJECT\n".encode(),
            {"speakers": "capitals"},
            r"no role has 5 characters to train on with speakers: capitals; correct either",
        ),
        (TINY.encode(), {"native_shape": [80]}, r"no role has 81 characters to train on"),
        (b"", {}, "no role has 5 characters"),
    ],
)
def test_refused_in_one_line(content: bytes, change: dict, line: str, published) -> None:
    """The line says which file, and what to do."""
    published.register(**ENTRY | {"files": [published.put("input.txt", content)]} | change)
    published.refused(line)
