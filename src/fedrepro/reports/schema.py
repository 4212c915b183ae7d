"""The JSON schemas of reports and the tables of docs/report-schema.md, made from `fedrepro.reports.model`.

`python -m fedrepro.reports.schema` writes them anew, in the project's root; a test says when they are stale.
"""

import dataclasses
import inspect
import json
import re
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from fedrepro.files import write_text
from fedrepro.reports import model
from fedrepro.reports.model.codec import Field, fields

SCHEMA_FILE, FIGURE_FILE = (Path(__file__).with_name(f"{name}.schema.json") for name in ("table", "figure"))
SCHEMAS = {  # file -> the document that it describes, and its title
    SCHEMA_FILE: (model.Table, "fedrepro report of one table at one scale"),
    FIGURE_FILE: (model.Figure, "fedrepro figure at one scale: the data that it draws"),
}
DOCUMENT = Path("docs/report-schema.md")
TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", types.NoneType: "null"}


def json_schema(path: Path) -> str:
    """The content of one of `SCHEMAS`, draft 2020-12. A key that is not in the model is a mistake."""
    kind, title = SCHEMAS[path]
    found: dict[str, Any] = {}
    _define(kind, found)
    top = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | found.pop(kind.__name__)
    return json.dumps(top | {"$defs": dict(sorted(found.items()))}, indent=1, ensure_ascii=False) + "\n"


def _define(kind: type, found: dict[str, Any]) -> None:
    if kind.__name__ in found:
        return
    found[kind.__name__] = {}
    properties = {}
    for field in fields(kind):
        said = {"description": field.about} if field.about else {}
        properties[field.key] = _of(field.type, found) | said
    about = {"description": _first_line(kind), "type": "object", "additionalProperties": False}
    found[kind.__name__] = about | {"required": list(properties), "properties": properties}


def _of(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        _define(kind, found)  # type: ignore[arg-type]
        return {"$ref": f"#/$defs/{kind.__name__}"}  # type: ignore[union-attr]
    if origin in (Union, types.UnionType):
        parts = [_of(one, found) for one in arguments]
        if all(part.keys() == {"type"} for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (tuple, list):
        return {"type": "array", "items": _of(arguments[0], found)}
    if origin is dict:
        names = {"pattern": "^[0-9]+$"} if arguments[0] is int else {} if arguments[0] is str else _of(arguments[0], found)
        return {"type": "object", "additionalProperties": _of(arguments[1], found)} | (
            {"propertyNames": names} if names else {}
        )
    return {} if kind is Any else {"type": TYPES[kind]}


def tables(text: str) -> str:
    """`text` with every table between `<!-- model: Name -->` and `<!-- end -->` made anew."""
    made = lambda found: f"{found[1]}\n{_table(getattr(model, found[2]))}\n<!-- end -->"  # noqa: E731
    return re.sub(r"(<!-- model: (\w+) -->)\n.*?<!-- end -->", made, text, flags=re.DOTALL)


def _table(kind: type) -> str:
    rows = [f"| `{field.key}` | {_words(field.type)} | {_about(field).replace('|', chr(92) + '|')} |" for field in fields(kind)]
    return "\n".join(["| key | type | what it is |", "| --- | --- | --- |", *rows])


def _about(field: Field) -> str:
    """What is said of the field, or of the type that it holds."""
    inner = [one for one in (field.type, *get_args(field.type)) if dataclasses.is_dataclass(one)]
    return field.about or (_first_line(inner[0]) if inner else "")  # type: ignore[arg-type]


def _words(kind: Any) -> str:
    """A type as people say it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_words, arguments))
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in arguments)
    if origin in (tuple, list):
        return f"list of {_words(arguments[0])}"
    if origin is dict:
        return f"{'seed' if arguments[0] is int else 'name' if arguments[0] is str else 'each'} → {_words(arguments[1])}"
    return {Any: "any", types.NoneType: "null", str: "text", float: "number", int: "whole number", bool: "true or false"}.get(
        kind, getattr(kind, "__name__", "")
    )


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


if __name__ == "__main__":
    for schema in SCHEMAS:
        write_text(schema, json_schema(schema))
    write_text(DOCUMENT, tables(DOCUMENT.read_text()))
