"""Converts dataclasses and models to JSON and back, and checks files that people write. pydantic does both by the types of the
fields."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fedrepro.errors import UserError
from fedrepro.files import again, json_text
from fedrepro.registry import unknown

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
LONGEST = 100  # characters of a wrong value that are shown
NAMES = ("key", "id", "name")  # keys that identify an entry of a list
_SHAPES = {  # clearer words than pydantic's messages
    "list_type": "a list, in brackets: [first, second]",
    "too_short": "longer: it has no entry, or too few",
    "string_type": "a word, in quotes where YAML takes it for something else",
    "dict_type": "a mapping: lines of `key: value`",
    "model_type": "a mapping: lines of `key: value`",
}
_SCALARS = ("bool", "int", "float", "str")  # pydantic ends the place of a value of a wrong type with one of them


class Strict(BaseModel):
    """The base class of frozen models. An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@cache
def adapter(kind: Any) -> TypeAdapter:
    """Returns the adapter of one type; made once, which takes milliseconds."""
    return TypeAdapter(kind)


def plain(value: Any) -> Any:
    """`value` in the types that json.dumps accepts."""
    return adapter(type(value)).dump_python(value, mode="json")


def text(value: Any) -> str:
    """`value` as the text of a file: keys sorted, so that equal values are equal files."""
    return json_text(plain(value), ascii=False)


def typed(kind: type[T], content: Any, path: Path | str, advice: str = "") -> T:
    """`content`, the JSON of `path`, as a `kind`. UserError in one line if it does not fit. Keys that the type does not have
    are left out."""
    try:
        # Strict: "1" and true are not numbers. From JSON, pydantic still accepts lists as tuples and texts as integer keys.
        return adapter(kind).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        advice = advice or again(path)
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            raise UserError(f"{path}: key {key!r} is missing; {advice}") from error
        message = first["msg"].removeprefix("Value error, ")
        where = f"{key} = {first['input']!r}: " if key else ""
        raise UserError(f"{path}: {where}{message[:1].lower()}{message[1:]}; {advice}") from error


def check(model: type[Model], value: Any, where: str) -> Model:
    """`value` as `model`. UserError naming `where`, the key and the value."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # After a misspelling the correct key is also missing. The message about the misspelling helps more.
        first = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        loc = first["loc"][:-1] if first["loc"][-1:] and first["loc"][-1] in _SCALARS else first["loc"]
        *inside, last = first["loc"] or [""]
        what = ""
        if first["type"] == "extra_forbidden":
            what = unknown("key", last, _fields_at(model, tuple(inside)))
        elif first["type"] == "missing":
            what = f"key {last!r} is missing"
        elif last == "[key]":
            what = f"key {inside.pop()}: must be a word; put it in quotes"
        if what:
            raise UserError(": ".join(filter(None, [where, _place(inside, value), what]))) from error
        key = _place(loc, value) or "the whole file"
        message = first["msg"].removeprefix("Value error, ")
        if loc != first["loc"]:
            message = "give a number, a word, true, false or null"
        elif first["type"] in _SHAPES:
            message = f"must be {_SHAPES[first['type']]}"
        value_text = repr(first["input"])
        if len(value_text) > LONGEST:
            value_text = "" if isinstance(first["input"], list | dict) else f"{value_text[: LONGEST - 3]}..."
        # Long lists are not shown: the place names the wrong entry.
        assignment = f" = {value_text}" if value_text and loc else ""
        what = f"{key}{assignment}: " if loc or first["type"] != "value_error" else ""
        raise UserError(f"{where}: {what}{message[:1].lower() + message[1:]}") from error


def _place(loc: Iterable[int | str], value: Any) -> str:
    """`rows: entry 2 (median): method`: where in the content `value` an error lies. Entries count from 1; an entry with one of
    the keys NAMES is shown with its value."""
    words: list[str] = []
    for part in loc:
        try:
            value = value[part]
        except (LookupError, TypeError):
            value = None
        if isinstance(part, int):
            name = next((value[key] for key in NAMES if key in value), None) if isinstance(value, dict) else None
            words += [f"entry {part + 1}" + (f" ({name})" if name else ""), ""]
        elif words and words[-1]:
            words[-1] += f".{part}"
        else:
            words[-1:] = [part]
    return ": ".join(filter(None, words))


def _fields_at(model: type[BaseModel], loc: tuple) -> list[str]:
    """Names of the fields that are allowed at `loc`, those of the last model on the way there."""
    for part in loc:
        field = model.model_fields.get(str(part)) if isinstance(part, str) else None
        inner = _flatten(field.annotation) if field else []
        models = [a for a in inner if isinstance(a, type) and issubclass(a, BaseModel)]
        if models:
            model = models[0]
    return sorted(model.model_fields)


def _flatten(annotation: Any) -> list[Any]:
    arguments = getattr(annotation, "__args__", ())
    return [annotation, *(leaf for a in arguments for leaf in _flatten(a))]
