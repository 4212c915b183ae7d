"""What a person asks for on the command line: values of settings and of method arguments, a method in any setting."""

import contextlib
import re
from argparse import Namespace
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.config.by_hand import Request
    from fedrepro.config.plan import Run

SHORT = ("dataset", "model", "partition", "rounds")  # settings with an option of their own


def split(text: str) -> list[str]:
    """Splits `text` at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth <= 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def given_values(options: Namespace) -> dict[str, Any]:
    """Returns the settings, and each part.argument, that --set and the options short for it give. UserError for an unknown
    name, or a value of another type or out of range.
    """
    from fedrepro.config.layers import require_setting

    values = {key: value for key in SHORT if (value := getattr(options, key, None)) is not None}
    for item in options.set:
        key, equals, text = item.partition("=")
        if not equals:
            raise UserError(f"--set {item}: write key=value")
        if key in values:
            raise UserError(f"--set {item}: {key} is given twice")
        if "." not in key:
            require_setting(f"--set {item}", key)
        values[key] = checked_value(f"--set {key}", key, read_value(f"--set {item}", text))
    return values


def read_value(where: str, text: str) -> Any:
    """Returns a number, true, false, null, or a word. UserError for text that is none of these."""
    import yaml

    from fedrepro.files import parse_yaml

    try:
        return parse_yaml(text)
    except yaml.constructor.ConstructorError as error:
        raise UserError(f"{where}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{where}: {text!r} is not a value; quote it") from error


def checked_value(where: str, key: str, value: Any) -> Any:
    """Returns the value of a setting, or of part.argument, in its type. UserError for an unknown name or a bad value."""
    from fedrepro.config.layers import SETTINGS, require_setting
    from fedrepro.registry import Call, coerce

    part, dot, argument = key.partition(".")
    if dot:
        from fedrepro.config.project import at
        from fedrepro.methods.parts import PARTS

        with at(where):
            return PARTS.canonical(PARTS.make(Call(part, {argument: value}))).arguments[argument]
    require_setting(where, key)
    return coerce(where, value, SETTINGS[key])


def request_of(options: Namespace, over: dict[str, tuple[Any, ...]] | None = None) -> "Request":
    """Returns the request that --method, --like and the settings on the command line make."""
    from fedrepro.config.by_hand import Request
    from fedrepro.config.project import at
    from fedrepro.methods.compose import compose

    for method in options.method:
        with at("--method"):
            compose(method)
    return Request(tuple(options.method), given_values(options), options.like, over or {}, tuple(options.seeds or ()))


def sources_line(run: "Run", explicit: dict[str, Any], like: str | None) -> str:
    """Returns a line on the settings of a run that were not given: those of `like`, and defaults."""
    from fedrepro.config.defaults import SOURCE
    from fedrepro.config.run_differences import argument_text

    def named(keys: Iterable[str]) -> str:
        return ", ".join(f"{key} {argument_text(run.config[key])}" for key in keys)

    remaining = [key for key in run.sources if key not in explicit and key in run.config]
    default = [key for key in remaining if run.sources[key] == SOURCE]
    others = [key for key in remaining if key not in default]
    parts = [f"as {like} has it: {named(others)}"] if others else []
    parts += [f"by default: {named(default)}"] if default else []
    return f"not given; {'; '.join(parts)}" if parts else "every setting is given"


@contextlib.contextmanager
def blaming_the_options(options: Namespace, over: Container[str] | None = None) -> Iterator[None]:
    """Rewrites a UserError so that it names the option that gave the value, and not a file that no person wrote. `over`: keys
    of a sweep, whose files are not written yet."""
    from fedrepro.config.by_hand import PAPER, TABLE

    folder = f"papers/{PAPER}" if over is None else r"sweeps/\w+"
    file = rf"{folder}/tables/{TABLE}\.yaml"
    try:
        yield
    except UserError as error:
        text = re.sub(rf"{file}: [^:]*: (\w+)(?=:| =)", r"--set \1", str(error))
        for key in {item.partition("=")[0] for item in options.set} | {key for key in SHORT if getattr(options, key, None)}:
            text = text.replace(f"params.yaml: settings.{key}", f"--set {key}")
        if getattr(options, "scale", None):
            text = text.replace("params.yaml: scale: ", f"--scale {options.scale}: ")
        text = re.sub(rf"{file}: rows: [^:]*: method(?=:)", "--method", text)
        text = text.replace(f"papers/{PAPER}/tables/{TABLE}.yaml: ", "")
        raise UserError(re.sub(r"--set (\w+)(?=:| =)", lambda match: _option(match[1], options, over or ()), text)) from error


def _option(key: str, options: Namespace, over: Container[str]) -> str:
    """Returns the option that gave a setting."""
    if key in over:
        return f"--over {key}"
    return f"--{key}" if key in SHORT and getattr(options, key, None) is not None else f"--set {key}"
