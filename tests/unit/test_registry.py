"""The grammar name(argument=value)+name, and the messages for text that does not follow it."""

from dataclasses import dataclass

import pytest

from fedrepro.errors import UserError
from fedrepro.registry import Call, Registry, coerce, parse, require, unknown
from tests.helpers.one_line import one_line


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("fedavg", [Call("fedavg", {})]),
        (" fedprox(mu=0.01) ", [Call("fedprox", {"mu": 0.01})]),
        ("a+b(x=1)+c", [Call("a", {}), Call("b", {"x": 1}), Call("c", {})]),
        ("a()", [Call("a", {})]),
        ("a(x=-2, y=5e-4)", [Call("a", {"x": -2, "y": 5e-4})]),
        ("a(x=true, y=false, z=null)", [Call("a", {"x": True, "y": False, "z": None})]),
        ("a(x=True, y=None)", [Call("a", {"x": True, "y": None})]),
        ("a(mode=exp)", [Call("a", {"mode": "exp"})]),
        ("a(mode='two words')", [Call("a", {"mode": "two words"})]),
        ("a(x=(1, 2))", [Call("a", {"x": [1, 2]})]),
    ],
)
def test_parse_and_back(text: str, calls: list[Call]) -> None:
    """The calls keep their order, and their text parses to the same calls."""
    assert parse(text) == calls
    assert parse("+".join(map(str, calls))) == calls


@pytest.mark.parametrize(
    "value", [1, -2, 0.1, 1e-9, 1e22, True, False, None, "exp", "two words", "true", "null", "None", "class"]
)
def test_every_value_survives_being_written(value: object) -> None:
    """str(Call) parses to the same value and type, even for a word that has a meaning when bare."""
    (back,) = parse(str(Call("a", {"x": value})))
    assert back.arguments["x"] == value
    assert type(back.arguments["x"]) is type(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not of the form"),
        ("fedavg+", "is not of the form"),
        ("fedprox(0.1)", "fedprox(argument=value)"),
        ("fedprox(mu=0.1", "is not of the form"),
        ("fedprox(mu=0.1, mu=0.2)", "given twice"),
        ("fedprox(**x)", "cannot read"),
        ("a*b", "cannot read 'a * b'"),
        ("a-b", "cannot read"),
        ("a.b(x=1)", "cannot read"),
        ("fedprox(mu=1+x)", "cannot read '1 + x'"),
        ("fedprox(mu=f(1))", "cannot read 'f(1)'"),
        ("fedprox(mu={[]: 1})", "cannot read"),
        ("__import__('os').system('true')", "arguments are given by name"),
        ("a\n+b", "is not of the form"),
        ("a\0", "is not of the form"),
    ],
)
def test_what_is_not_of_the_form_is_one_line_that_quotes_it(text: str, says: str) -> None:
    """Nothing is evaluated. The message quotes the text and names the part that is not understood."""
    with one_line() as caught:
        parse(text)
    assert says in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "object at" not in str(caught.value)


THINGS = Registry("thing")


@THINGS.register("widget", colour="red")
@dataclass(frozen=True)
class Widget:
    size: float
    count: int = 3
    mode: str = "exp"
    loud: bool = False
    limit: float | None = None

    def __post_init__(self) -> None:
        require(self.size > 0, "widget: size", self.size, "must be greater than 0")


def make(text: str):
    return THINGS.make(parse(text)[0])


def test_registration_names_the_class() -> None:
    """Name and further attributes are set on the class. A name can be used once."""
    assert (Widget.name, Widget.colour) == ("widget", "red")  # type: ignore[attr-defined]
    assert THINGS.names() == ["widget"]
    with pytest.raises(ValueError, match="twice"):
        THINGS.register("widget")(Widget)


def test_canonical_spells_every_argument_and_parses_back() -> None:
    """The canonical form has defaults too. Names and hashes are made from it."""
    part = make("widget(size=2)")
    assert str(THINGS.canonical(part)) == "widget(size=2.0, count=3, mode=exp, loud=false, limit=null)"
    assert make(str(THINGS.canonical(part))) == part == Widget(2.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("wigdet(size=1)", "unknown thing 'wigdet'; did you mean 'widget'? Known: widget"),
        ("widget(size=1, cuont=2)", "widget: unknown argument 'cuont'; did you mean 'count'?"),
        ("widget(zzz=1)", "Known: count, limit, loud, mode, size"),
        ("widget", "widget: argument 'size' is missing; write widget(size=...)"),
        ("widget(size=big)", "widget(size=...): 'big' is not a number"),
        ("widget(size=true)", "widget(size=...): True is not a number"),
        ("widget(size=1e999)", "widget(size=...) = inf: must be finite"),
        (f"widget(size={10**400})", "is not a number"),
        ("widget(size=1, count=2.5)", "widget(count=...): 2.5 is not a whole number"),
        ("widget(size=1, count=true)", "True is not a whole number"),
        ("widget(size=1, loud=1)", "widget(loud=...): 1 is not true or false"),
        ("widget(size=1, mode=2)", "widget(mode=...): 2 is not a word"),
        ("widget(size=1, limit=x)", "widget(limit=...): 'x' is not a number"),
        ("widget(size=null)", "None is not a number"),
        ("widget(size=0)", "widget: size = 0.0: must be greater than 0"),
    ],
)
def test_mistakes_name_the_part_the_argument_and_the_value(text: str, says: str) -> None:
    """One line has the nearest name, the wrong value, or the bound."""
    with one_line() as caught:
        make(text)
    assert says in str(caught.value)


def test_an_optional_argument_takes_its_type_or_null() -> None:
    """For `float | None`, a whole number becomes a float and null stays None."""
    assert make("widget(size=1, limit=2)").limit == 2.0
    assert type(make("widget(size=1, limit=2)").limit) is float
    assert make("widget(size=1, limit=null)").limit is None


def test_only_a_whole_number_converts_and_only_to_a_float() -> None:
    """3 is accepted for 3.0, but 3.0 is not accepted for 3."""
    assert type(coerce("x", 3, float)) is float
    with pytest.raises(UserError, match="whole number"):
        coerce("x", 3.0, int)


def test_unknown_without_a_near_name() -> None:
    """If no name is similar, none is suggested."""
    assert unknown("model", "zzzzz", ["mlp"]) == "unknown model 'zzzzz'; Known: mlp"
    assert unknown("model", "a", []) == "unknown model 'a'; Known: none"


def test_a_word_that_python_keeps_for_itself_may_be_bare() -> None:
    """`kind=global` equals `kind='global'`. Names that only begin with a keyword are not changed."""
    assert parse("attention(kind=global)")[0].arguments == {"kind": "global"}
    assert parse("a(x=lambda, y = globally, z=true)")[0].arguments == {"x": "lambda", "y": "globally", "z": True}
    assert parse(str(parse("attention(kind=global)")[0])) == parse("attention(kind=global)")
