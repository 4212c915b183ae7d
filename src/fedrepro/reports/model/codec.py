"""Dataclasses from JSON and back. The types of the fields are all that decides; keys that a type does not name are left out.

A field's JSON key is its name, or what its metadata call `key`. Fields are described by `Annotated[type, "what it is"]`.
"""

import dataclasses
import types
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Mismatch(ValueError):
    """A value that is not of its type; the message names the key."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a dataclass, as JSON has it."""

    name: str
    key: str
    type: Any
    about: str
    required: bool


@cache
def fields(cls: type) -> tuple[Field, ...]:
    """The fields of a dataclass in their order."""
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for one in dataclasses.fields(cls):
        hint = hints[one.name]
        about = hint.__metadata__[0] if get_origin(hint) is Annotated else ""
        required = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        kind = hint.__origin__ if get_origin(hint) is Annotated else hint
        found.append(Field(one.name, one.metadata.get("key", one.name), kind, about, required))
    return tuple(found)


def decode(kind: Any, value: Any, key: str = "") -> Any:
    """`value`, as json.loads gives it, as a `kind`. Mismatch, naming the key, where it is none."""
    if dataclasses.is_dataclass(kind):
        return _object(kind, value, key)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, key)
    if origin is tuple:
        return tuple(decode(arguments[0], one, key) for one in _require(value, list, key))
    if origin is dict:
        names, values = arguments
        items = _require(value, dict, key).items()
        if values is Any:
            return value
        return {int(name) if names is int else name: decode(values, one, f"{key}.{name}") for name, one in items}
    if origin is list:  # long ones of numbers, which are not looked into
        return _require(value, list, key)
    if origin is Literal:
        if value not in arguments:
            raise Mismatch(f"{key} = {value!r} where one of {', '.join(map(str, arguments))} belongs")
        return value
    return value if kind is Any else _require(value, kind, key)


def _object(kind: Any, value: Any, key: str) -> Any:
    _require(value, dict, key)
    found = {}
    for field in fields(kind):
        if field.key in value:
            found[field.name] = decode(field.type, value[field.key], field.key)
        elif field.required:
            raise Mismatch(f"key {field.key!r} is missing" + (f" in {key}" if key else ""))
    return kind(**found)


def _one_of(kinds: tuple[Any, ...], value: Any, key: str) -> Any:
    """Of `X | None` None itself, of `X | str` the one that fits."""
    if value is None and types.NoneType in kinds:
        return None
    rest = [kind for kind in kinds if kind is not types.NoneType]
    for kind in rest[:-1]:
        try:
            return decode(kind, value, key)
        except Mismatch:
            continue
    return decode(rest[-1], value, key)


def _require(value: Any, kind: type, key: str) -> Any:
    wanted = (int, float) if kind is float else kind
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind in (int, float)):
        raise Mismatch(f"{key} = {value!r} where a {_NAMES.get(kind, kind.__name__)} belongs")
    return value


_NAMES = {dict: "mapping", list: "list", str: "text", bool: "true or false", int: "whole number", float: "number"}


def encode(value: Any) -> Any:
    """A dataclass, and all that it holds, as json.dumps takes it: names of fields become keys, tuples lists, keys texts."""
    if dataclasses.is_dataclass(value):
        return {field.key: encode(getattr(value, field.name)) for field in fields(type(value))}
    if isinstance(value, dict):
        return {str(key): encode(one) for key, one in value.items()}
    return [encode(one) for one in value] if isinstance(value, list | tuple) else value
