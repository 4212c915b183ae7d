"""The JSON schemas of reports, as pydantic has them, and the tables of docs/report-schema.md, made from these.

`python -m fedrepro.reports.schema` writes them anew, in the project's root; a test says when they are stale.
"""

import json
import re
from pathlib import Path
from typing import Any

from fedrepro.files import write_text
from fedrepro.reports import model
from fedrepro.typed import adapter

SCHEMA_FILE, FIGURE_FILE = (Path(__file__).with_name(f"{name}.schema.json") for name in ("table", "figure"))
SCHEMAS = {  # file -> the document that it describes, and its title
    SCHEMA_FILE: (model.Table, "fedrepro report of one table at one scale"),
    FIGURE_FILE: (model.Figure, "fedrepro figure at one scale: the data that it draws"),
}
DOCUMENT = Path("docs/report-schema.md")


def json_schema(path: Path) -> str:
    """The content of one of `SCHEMAS`, draft 2020-12."""
    kind, title = SCHEMAS[path]
    made = adapter(kind).json_schema(mode="serialization") | {"title": title}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema"} | made, indent=1, ensure_ascii=False) + "\n"


def tables(text: str) -> str:
    """`text` with every table between `<!-- model: Name -->` and `<!-- end -->` made anew."""
    made = lambda found: f"{found[1]}\n{_table(getattr(model, found[2]))}\n<!-- end -->"  # noqa: E731
    return re.sub(r"(<!-- model: (\w+) -->)\n.*?<!-- end -->", made, text, flags=re.DOTALL)


def _table(kind: type) -> str:
    made = adapter(kind).json_schema(mode="serialization")
    rows = []
    for key, field in made["properties"].items():
        about = field.get("description") or _first_line(field, made.get("$defs", {}))
        rows.append(f"| `{key}` | {_words(field)} | {about.replace('|', chr(92) + '|')} |")
    return "\n".join(["| key | type | what it is |", "| --- | --- | --- |", *rows])


def _first_line(field: dict[str, Any], known: dict[str, Any]) -> str:
    """What is said of the type that a field holds, alone, in a list or by name."""
    inner = [field, field.get("items", {}), field.get("additionalProperties") or {}, *field.get("anyOf", [])]
    named = [one["$ref"].rpartition("/")[2] for one in inner if isinstance(one, dict) and "$ref" in one]
    return known[named[0]].get("description", "").partition("\n")[0] if named else ""


def _words(field: dict[str, Any]) -> str:
    """A type as people say it."""
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(map(_words, field["anyOf"]))
    if "enum" in field or "const" in field:
        return ", ".join(f"`{one}`" for one in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return f"list of {_words(field.get('items', {}))}"
    if field.get("type") == "object":
        of = field.get("additionalProperties")
        return f"name → {_words(of)}" if isinstance(of, dict) else "mapping"
    names = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false", "null": "null"}
    return names.get(field.get("type", ""), "any")


if __name__ == "__main__":
    for schema in SCHEMAS:
        write_text(schema, json_schema(schema))
    write_text(DOCUMENT, tables(DOCUMENT.read_text()))
