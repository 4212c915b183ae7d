"""Registries of things that a table names: method parts, partition schemes. Grammar: `name(arg=value, ...)` joined by `+`."""

import ast
import dataclasses
import difflib
import keyword
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar

from fedrepro.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One parsed token: `fedprox(mu=0.01)` is Call("fedprox", {"mu": 0.01}).

    `positional` holds arguments without a name, in order, where the grammar allows them: `mean(90, 110)`.
    """

    name: str
    arguments: dict[str, Any]
    positional: tuple[Any, ...] = ()

    def __str__(self) -> str:
        arguments = ", ".join(f"{key}={_literal(value)}" for key, value in self.arguments.items())
        return f"{self.name}({arguments})" if arguments else self.name


def parse(text: str, positional: bool = False) -> list[Call]:
    """Parses text such as `fedprox(mu=0.01)+gh` into calls. Values are numbers, true/false/null, quoted strings or bare words.

    Arguments have names, unless `positional` allows them without. Raises a UserError that quotes the text and says which part
    of it is not understood.
    """
    return [Call(call.name, dict(call.arguments), call.positional) for call in _parsed(text, positional)]


@cache  # a plan parses the same few calls thousands of times
def _parsed(text: str, positional: bool) -> tuple[Call, ...]:
    try:
        tree = ast.parse(_KEYWORD.sub(_quoted, text.strip()), mode="eval").body
        return tuple(_calls(tree, positional))
    except (SyntaxError, ValueError, RecursionError) as error:
        detail = error.msg if isinstance(error, SyntaxError) else error
        raise UserError(f"{text!r} is not of the form name(argument=value)+name: {detail}") from error


_KEYWORD = re.compile(r"(?<==)\s*([a-z]+)\b")


def _quoted(word: re.Match[str]) -> str:
    """A bare word that is a keyword of Python, as in `kind=global`, as a quoted string."""
    return repr(word[1]) if keyword.iskeyword(word[1]) else word[0]


def _calls(node: ast.expr, positional: bool) -> Iterator[Call]:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _calls(left, positional)
            yield from _calls(right, positional)
        case ast.Name(id=name):
            yield Call(name, {})
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if all(k.arg for k in keywords) and (
            positional or not args
        ):
            arguments = {str(k.arg): _value(k.value) for k in keywords}
            if len(arguments) < len(keywords):
                raise ValueError(f"an argument is given twice in {ast.unparse(node)!r}")
            yield Call(name, arguments, tuple(map(_value, args)))
        case ast.Call(args=[_, *_]):
            raise ValueError(f"arguments are given by name, as in {ast.unparse(node.func)}(argument=value)")
        case _:
            raise ValueError(f"cannot read {ast.unparse(node)!r}")


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id, node.id)
    try:
        value = ast.literal_eval(node)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cannot read {ast.unparse(node)!r}") from error
    return list(value) if isinstance(value, tuple) else value


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_literal, value)) + ",)"
    is_bare_word = isinstance(value, str) and value.isidentifier() and value not in _WORDS and not keyword.iskeyword(value)
    return value if is_bare_word else repr(value)


def named_arguments(text: str) -> dict[str, Any]:
    """`part.argument` -> value for every call in `text`. A part that occurs twice is `part.2` the second time."""
    arguments: dict[str, Any] = {}
    occurrences: Counter[str] = Counter()
    for call in parse(text):
        occurrences[call.name] += 1
        part = call.name if occurrences[call.name] == 1 else f"{call.name}.{occurrences[call.name]}"
        arguments |= {f"{part}.{argument}": value for argument, value in call.arguments.items()}
    return arguments


class Registry:
    """Frozen dataclasses by name. `noun` is their name in error messages: "method part", "partition scheme"."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._classes: dict[str, type] = {}

    def register(self, name: str, **attributes: Any) -> Callable[[type[T]], type[T]]:
        """Class decorator: registers the dataclass under `name` and sets `attributes` (such as its slot) on it."""

        def enrol(cls: type[T]) -> type[T]:
            if name in self._classes:
                raise ValueError(f"{self.noun} {name!r} is registered twice")
            for key, value in {"name": name, **attributes}.items():
                setattr(cls, key, value)
            self._classes[name] = cls
            return cls

        return enrol

    def names(self) -> list[str]:
        """Registered names, sorted."""
        return sorted(self._classes)

    def get(self, name: str) -> type:
        """The class registered as `name`. UserError with the nearest name if there is none."""
        if name not in self._classes:
            raise UserError(unknown(self.noun, name, self.names()))
        return self._classes[name]

    def make(self, call: Call) -> Any:
        """The part that `call` describes. UserError for an unknown argument, a wrong type or a value out of range."""
        cls = self.get(call.name)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        values = {}
        if len(call.positional) > len(fields):
            raise UserError(f"{call.name}: takes {len(fields)} arguments, not {len(call.positional)}")
        positional_arguments = dict(zip(fields, call.positional, strict=False))
        for key in positional_arguments.keys() & call.arguments.keys():
            raise UserError(f"{call.name}: argument {key!r} is given twice")
        for key, value in (positional_arguments | call.arguments).items():
            if key not in fields:
                raise UserError(f"{call.name}: {unknown('argument', key, sorted(fields))}")
            values[key] = coerce(f"{call.name}({key}=...)", value, fields[key].type)
        missing_names = [n for n, f in fields.items() if f.default is dataclasses.MISSING and n not in values]
        if missing_names:
            raise UserError(f"{call.name}: argument {missing_names[0]!r} is missing; write {call.name}({missing_names[0]}=...)")
        return cls(**values)

    def canonical(self, part: Any) -> Call:
        """The call with every argument written out, defaults too. Names and hashes are made from this form."""
        return Call(part.name, {f.name: getattr(part, f.name) for f in dataclasses.fields(part)})


def unknown(noun: str, name: object, known_names: list[str]) -> str:
    """`unknown method part 'fedporx'; did you mean 'fedprox'? Known: ...`"""
    matches = difflib.get_close_matches(str(name), known_names, n=1)
    hint = f"did you mean {matches[0]!r}? " if matches else ""
    return f"unknown {noun} {name!r}; {hint}Known: {', '.join(known_names) or 'none'}"


def coerce(where: str, value: Any, kind: Any) -> Any:
    """`value` as `kind` (int, float, bool, str, one of several, or none). An int serves as a float; nothing else converts."""
    if kind in (int, float, bool, str):
        if kind is float and type(value) is int and abs(value) <= sys.float_info.max:
            return float(value)
        if type(value) is not kind:
            raise UserError(f"{where}: {value!r} is not {_ARTICLE[kind]}")
        require(kind is not float or math.isfinite(float(value)), where, value, "must be finite")
        return value
    alternatives = getattr(kind, "__args__", ())
    if value is None and type(None) in alternatives:
        return None
    kinds = [option for option in alternatives if option is not type(None)]
    if isinstance(kind, UnionType) and len(kinds) > 1:  # such as a round or a share of rounds: each keeps its type
        type_names = " or ".join(_ARTICLE[option] for option in kinds)
        require(type(value) in kinds, where, value, f"must be {type_names}")
    for option in sorted(kinds, key=lambda option: type(value) is not option):
        return coerce(where, value, option)
    return value


def require(condition: bool, where: str, value: object, rule: str) -> None:
    """Raises UserError `where = value: rule` unless `condition` holds. Parts use it in `__post_init__`."""
    if not condition:
        raise UserError(f"{where} = {value!r}: {rule}")


_WORDS = {"true": True, "false": False, "null": None}
_ARTICLE = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
