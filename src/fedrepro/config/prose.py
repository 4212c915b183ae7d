"""Sentences on results, as papers/ has them: templates whose numbers are filled from the evidence when a page is rendered.

    FedAvg ends at {mean:fedavg/x} (printed {printed:fedavg/x}), behind {holds:gain:fedavg+gh-fedavg/x > 0} FedAvg + GH.

`{form:place|option=value, ...}` is filled in (`fedrepro.exhibits.prose.fill` has the forms); `{holds:...}` is a condition,
of which nothing is printed; `{paper:0.1}` is a number that the paper prints or states, `{given:1.3}` one of the table's
own file. A number without braces is refused, and so is a sentence with a word of comparison and without a condition. Pure.
"""

import re
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator

from fedrepro.errors import UserError

HOLDS, PAPER, GIVEN = "holds", "paper", "given"
# Words that say how two numbers lie to each other. A sentence that has one needs a condition.
COMPARING = (
    "ahead|behind|leads?|above|below|beyond|higher|lower|better|worse|best|worst|longer|shorter|larger|smaller|largest|smallest|"
    "highest|lowest|nearest|nearer|farther|further|rises?|falls?|rose|fell|drops?|grows?|grew|shrinks?|faster|slower|level|fits|"
    "exceeds?|loses?|wins?|beats?|outperforms?|increases?|decreases?|twice|more than|less than|fewer|the same as|as well as|"
    r"decides?|(?:includes?|excludes?|leaves? out) zero|no gain|(?:tells?|told)(?: \S+){0,6}? apart"
)
_COMPARING = re.compile(rf"\b(?:{COMPARING})\b", re.IGNORECASE)
_BRACES = re.compile(r"\{([^{}]*)\}")
# A number that stands alone: neither part of a name (CIFAR-10, top-3, 2NN) nor that of a table or a section.
_NUMBER = re.compile(r"(?<![\w.,/-])[-+−±]?\d+(?:[.,/]\d+)*(?![\w-])")
_NAMED = re.compile(
    r"\b(?:[Tt]ables?|[Ff]igures?|[Ss]ections?|[Aa]lgorithms?|[Ee]quations?|[Aa]ppendix)\s[\d.]+(?:(?:, | and | to )[\d.]+)*\b"
)
_QUOTED = re.compile(r"[\"“][^\"“”]*[\"”]")


@dataclass(frozen=True)
class Field:
    """What stands between braces: `form:place|options`."""

    form: str
    place: str
    options: tuple[tuple[str, str], ...] = ()
    text: str = ""  # as it is written, without the braces

    def option(self, key: str) -> str | None:
        """Its value; None where it is not given."""
        return dict(self.options).get(key)

    def each(self, key: str, separator: str) -> list["Field"]:
        """This field once for each of the values that an option has, `separator` between them; itself without the option."""
        values = (self.option(key) or "").split(separator)
        return [replace(self, options=(*self.options, (key, value.strip()))) if value else self for value in values]


Piece = str | Field


def pieces(text: str, where: str) -> list[Piece]:
    """`text` as words and fields. UserError for a brace that is not closed, or a field that is not of the form `form:place`."""
    parts: list[Piece] = []
    end = 0
    for match in _BRACES.finditer(text):
        parts += [text[end : match.start()], field(match[1], where)]
        end = match.end()
    parts.append(text[end:])
    for piece in parts:
        if isinstance(piece, str) and ("{" in piece or "}" in piece):
            raise UserError(f"{where}: {piece.strip()[:60]!r}: a brace has no partner; write {{form:place}}")
    return [piece for piece in parts if piece != ""]


def field(text: str, where: str) -> Field:
    """`mean:fedavg/mnist|digits=1` as a field. UserError for what is none."""
    form, colon, rest = text.strip().partition(":")
    if not colon or not form.isidentifier() or not rest.strip():
        raise UserError(f"{where}: {{{text}}}: write {{form:place}}, for example {{mean:fedavg/mnist}}")
    if form in (HOLDS, PAPER, GIVEN):
        return Field(form, rest.strip(), text=text.strip())
    place, _, options = rest.partition("|")
    pairs = []
    for option in filter(None, (entry.strip() for entry in re.split(r",(?![^(]*\))", options))):
        key, equals, value = option.partition("=")
        if not equals:
            raise UserError(f"{where}: {{{text}}}: option {option!r} is not of the form key=value")
        pairs.append((key.strip(), value.strip()))
    return Field(form, place.strip(), tuple(pairs), text.strip())


def check(text: str, where: str) -> list[Piece]:
    """The pieces of `text`. UserError, naming `where` and the words, for a number that nothing fills and no mark explains, and
    for a sentence with a word of comparison and without a condition."""
    parts = pieces(text, where)
    plain = _NAMED.sub(" ", "".join(piece if isinstance(piece, str) else "\0" for piece in parts))
    number = _NUMBER.search(plain)
    if number:
        raise UserError(
            f"{where}: {number[0]!r} is a number that nothing fills; fill it from the evidence ({{mean:row/column}}), or mark "
            f"it as the paper's ({{paper:{number[0]}}}) or the table's own ({{given:{number[0]}}})"
        )
    for sentence in sentences(parts):
        words = "".join(piece if isinstance(piece, str) else "\0" for piece in sentence)
        word = _COMPARING.search(_QUOTED.sub(" ", words))
        if word and not any(isinstance(piece, Field) and piece.form == HOLDS for piece in sentence):
            raise UserError(
                f"{where}: {word[0]!r} compares and no condition follows; add what must hold, "
                "{holds:mean:one/column > mean:other/column}"
            )
    return parts


def _checked(text: str) -> str:
    """The text, after `check`. ValueError, as a schema wants it."""
    try:
        check(text, "in it")
    except UserError as error:
        raise ValueError(str(error)) from error
    return text


Prose = Annotated[str, AfterValidator(_checked)]  # a text in a schema


def sentences(parts: list[Piece]) -> list[list[Piece]]:
    """Splits the pieces where a sentence ends."""
    parted: list[list[Piece]] = [[]]
    for piece in parts:
        if isinstance(piece, Field):
            parted[-1].append(piece)
            continue
        first, *rest = re.split(r"(?<=[.;!?])\s+(?=[A-Z\0]|$)", piece)
        parted[-1].append(first)
        parted += [[text] for text in rest]
    return [sentence for sentence in parted if sentence and sentence != [""]]
