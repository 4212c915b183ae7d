"""Dataclasses and models as JSON has them, and back: pydantic does both, by the types of the fields alone."""

import json
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fedrepro.errors import UserError
from fedrepro.files import again, json_text

T = TypeVar("T")


@cache
def adapter(kind: Any) -> TypeAdapter:
    """Of one type; made once, which takes milliseconds."""
    return TypeAdapter(kind)


def plain(value: Any) -> Any:
    """`value` as json.dumps takes it."""
    return adapter(type(value)).dump_python(value, mode="json")


def text(value: Any) -> str:
    """`value` as the text of a file: keys sorted, so that equal values are equal files."""
    return json_text(plain(value), ascii=False)


def typed(kind: type[T], content: Any, path: Path | str, advice: str = "") -> T:
    """`content`, the JSON of `path`, as a `kind`. UserError in one line where it is none; what a type does not name is left
    out."""
    try:
        # Strict: "1" and true are no numbers. Only as JSON are lists tuples, and texts whole numbers as keys, nevertheless.
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
