"""Fills the sentences of `fedrepro.config.prose` from the evidence. Pure functions of plans and evidence.

Forms, at a place `row/column` of the table whose remark it is, or `table/row/column`:

    mean printed difference deviation margin    of a cell
    seeds            the values of its seeds
    gain printed_gain    of `row-baseline/column`: the mean of the differences over paired seeds; of the printed numbers
    gains            the differences at each seed
    interval         the 95 % t-interval of a gain
    side             of zero on which that interval lies: above, below, or open if it includes zero
    rounds           that the row of `row-baseline/column` needs to reach what the baseline ends with, mean over seeds
    setting          of a cell's run, `|key=rounds`, or an argument, `|key=server_sgd.server_lr`
    distance         of a reading, by its name: the mean of |measured - printed| over the numbers that it is tried on
    readings         how many readings have a distance, the tables' own included: `readings:complete`
    count            how many cells have a status (`count:reproduced`), `count:judged` all with a verdict; of one `|table=`,
                     with one seed `|seeds=1`, as if each printed number were the mean of three seeds `|printed_seeds=3`
    seed_count       how many seeds of a cell have run
    status           of a cell
    diverged         the round in which each seed of a cell diverged
    verdict          of a claim, by its id
    claims           how many claims have a verdict: `claims:inconclusive`, `claims:judged` of all that the evidence decides

Rows and columns may be several, apart by commas: `mean:fedavg,fedavg+gh/mnist` is a list. Options: `metric=` and `read=`
another curve of the same runs and how it is read, `seed=` one seed or several, apart by semicolons, `digits=`, `sign=no`
without a sign, `as=range`, `largest`, `smallest` or `mean` of a list, of gains over columns `as=rise`, how far a straight line
through them rises, alone or as `as=rise;smallest`, `times=` and `plus=` for another unit. A mean may be of
several metrics, apart by semicolons.
"""

import itertools
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fedrepro import units
from fedrepro.choices import require_known
from fedrepro.config.prose import GIVEN, HOLDS, PAPER, Field, check
from fedrepro.config.prose import field as parse_field
from fedrepro.errors import UserError
from fedrepro.exhibits.prose.forms import FORMS, Facts, Quantity, Waits
from fedrepro.exhibits.statistics import mean

# Option -> pattern of its values, and an example.
OPTIONS = {
    "metric": (r".+", "metric=test_loss"),
    "read": (r".+", "read=last(1)"),
    "seed": (r"\d+(\s*;\s*\d+)*", "seed=8 or seed=8;9"),
    "digits": (r"\d", "digits=1"),
    "sign": (r"no", "sign=no"),
    "as": (r"range|rise|(rise;)?(largest|smallest|mean)", "as=range, largest, smallest, mean, rise or rise;largest"),
    "key": (r".+", "key=rounds"),
    "table": (r".+", "table=table1"),
    "seeds": (r"[1-9]\d*", "seeds=1"),
    "printed_seeds": (r"[1-9]\d*", "printed_seeds=3"),
    "times": (r"-?\d*\.?\d+", "times=0.01"),
    "plus": (r"-?\d*\.?\d+", "plus=0.5"),
}
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
_REDUCED: dict[str | None, Callable[[Sequence[float]], float]] = {"largest": max, "smallest": min, "mean": mean}
_COMPARED = re.compile(r"\s(<=|>=|<|>|=|is)\s")


def filled(texts: Iterable[str], facts: Facts, where: str) -> tuple[list[str], list[str]]:
    """Returns (the sentences with their numbers, what the others wait for). UserError, naming the sentence, where a condition
    does not hold, or a place is none."""
    sentences, waiting = [], []
    for number, text in enumerate(texts):
        place = f"{where}[{number}]"
        try:
            sentences.append(_fill(text, facts, place))
        except Waits as missing:
            waiting.append(str(missing))
    return sentences, waiting


def _fill(text: str, facts: Facts, where: str) -> str:
    parts = []
    for piece in check(text, where):
        if isinstance(piece, str):
            parts.append(piece)
        elif piece.form == HOLDS:
            require(piece.place, facts, where)
        elif piece.form in (PAPER, GIVEN):
            parts.append(piece.place)
        else:
            parts.append(_text(piece, values(piece, facts, where)))
    return re.sub(r"\s+([.,;:)])", r"\1", re.sub(r"\s+", " ", "".join(parts))).strip()


def require(condition: str, facts: Facts, where: str) -> None:
    """UserError where `condition` does not hold: `a < b`, `a < b < c`, `verdict:X is contradicted`; of lists every pair."""
    parts = _COMPARED.split(f" {condition} ")
    if len(parts) < 3:
        raise UserError(f"{where}: {{holds:{condition}}}: write a comparison, for example gain:x-y/column > 0")
    sides = [_side(part.strip(), facts, where) for part in parts[::2]]
    for (left, right), sign in zip(itertools.pairwise(sides), parts[1::2], strict=True):
        for a, b in _couples(left, right, condition, where):
            holds = str(a.value) == str(b.value) if sign == "is" else OPERATORS[sign](a.number, b.number)
            if not holds:
                raise UserError(
                    f"{where}: {condition!r} does not hold ({_value(a)} {sign} {_value(b)}); correct the sentence or drop it"
                )


def _side(text: str, facts: Facts, where: str) -> list[Quantity]:
    try:
        return [Quantity(float(text.replace("−", "-")))]
    except ValueError:
        pass
    return values(parse_field(text, where), facts, where) if ":" in text else [Quantity(text)]


def _couples(left: list[Quantity], right: list[Quantity], condition: str, where: str) -> list[tuple[Quantity, Quantity]]:
    if len(left) == len(right):
        return list(zip(left, right, strict=True))
    if 1 in (len(left), len(right)):
        return list(itertools.product(left, right))
    raise UserError(f"{where}: {condition!r}: {len(left)} numbers against {len(right)}")


def _value(quantity: Quantity) -> str:
    return quantity.value if isinstance(quantity.value, str) else f"{quantity.value:.6g}"


def values(request: Field, facts: Facts, where: str) -> list[Quantity]:
    """Returns the numbers that a field asks for. UserError for a form, row, column or option that there is none of, and for a
    value that an option does not take; Waits without evidence."""
    named = f"{where}: {{{request.text}}}"
    require_known(named, "form", request.form, sorted(FORMS))
    for key, value in request.options:
        require_known(named, "option", key, sorted(OPTIONS))
        pattern, example = OPTIONS[key]
        if not re.fullmatch(pattern, value):
            raise UserError(f"{named}: option {key} does not take {value!r}; write {example}")
    quantities = FORMS[request.form](request, facts, named)
    how = (request.option("as") or "").rpartition(";")[2]
    if how and any(isinstance(quantity.value, str) for quantity in quantities):
        raise UserError(f"{named}: as={how} takes numbers, and {request.form} gives words; leave it out")
    if how in _REDUCED and quantities:
        numbers = [quantity.value for quantity in quantities if not isinstance(quantity.value, str)]
        quantities = [Quantity(_REDUCED[how](numbers), quantities[0].unit, quantities[0].signed)]
    times, plus = float(request.option("times") or 1), float(request.option("plus") or 0)
    return [
        quantity if isinstance(quantity.value, str) else replace(quantity, value=quantity.value * times + plus)
        for quantity in quantities
    ]


def _text(request: Field, quantities: list[Quantity]) -> str:
    if request.option("as") == "range" or request.form == "interval":
        numbers = sorted(quantities, key=lambda quantity: quantity.number)
        return f"{_quantity_text(request, numbers[0])} to {_quantity_text(request, numbers[-1])}"
    *first, last = [_quantity_text(request, quantity) for quantity in quantities]
    return f"{', '.join(first)} and {last}" if first else last


def _quantity_text(request: Field, quantity: Quantity) -> str:
    if isinstance(quantity.value, str):
        return quantity.value
    digits = int(request.option("digits") or units.unit(quantity.unit).digits)
    if request.option("sign") == "no":
        return units.decimal(abs(quantity.value), digits)
    return units.decimal(quantity.value, digits, "+" if quantity.signed else "")
