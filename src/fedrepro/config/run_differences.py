"""What differs between runs: a changed setting, the names of their methods, the settings that tell them apart. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from fedrepro.methods.compose import complete, expand
from fedrepro.methods.parts import PARTS
from fedrepro.methods.presets import DEFAULTS, PRESETS
from fedrepro.registry import Call, named_arguments, parse

# A setting that follows from another one; it is no change by itself.
_FOLLOWS = {"dataset_sha": "dataset", "classes": "dataset", "channel_statistics": "dataset", "input_shape": "model"}
_ASIDE = _FOLLOWS | {"evaluate_every": "rounds"}  # lists of settings also leave this one out
_RECIPES = {parts: name for name, parts in PRESETS.items()}
MAIN = ("dataset", "model", "partition", "clients", "participation", "local_epochs", "rounds")  # settings that describe a run


@dataclass(frozen=True)
class ChangedSetting:
    """A setting or an argument of the method that differs; `method` stands for parts that only one of the two has."""

    key: str
    value: str
    before: str

    def __str__(self) -> str:
        return f"{self.key} {self.value} (table: {self.before})"


def flatten(config: dict[str, Any]) -> dict[str, Any]:
    """Returns every setting by its name, every argument of the method as `part.argument`, and every part as `part()`."""
    settings = {key: value for key, value in config.items() if key != "method"}
    parts = {f"{call.name}()": True for call in parse(config["method"])}
    return settings | parts | named_arguments(config["method"])


def changes(config: dict[str, Any], base: dict[str, Any]) -> list[ChangedSetting]:
    """Lists the differences between two runs: settings, arguments of parts that both have, and parts that one lacks."""
    changed_keys = [key for key in dict.fromkeys([*base, *config]) if key != "method" and config.get(key) != base.get(key)]
    listed = [
        ChangedSetting(key, text(config, key), text(base, key)) for key in changed_keys if _FOLLOWS.get(key) not in changed_keys
    ]
    run_calls, base_calls = (parse(settings["method"]) for settings in (config, base))
    names = [{call.name for call in calls} for calls in (run_calls, base_calls)]
    unshared = [
        "+".join(str(call) for call in calls if call.name not in names[1 - i]) or "–"
        for i, calls in enumerate((run_calls, base_calls))
    ]
    if unshared != ["–", "–"]:
        listed.append(ChangedSetting("method", *unshared))
    arguments, base_arguments = (named_arguments(settings["method"]) for settings in (config, base))
    shared = [key for key in arguments if key in base_arguments and arguments[key] != base_arguments[key]]
    return listed + [ChangedSetting(key, text(arguments, key), text(base_arguments, key)) for key in shared]


def method_names(methods: Sequence[str], whole: bool = False) -> list[str]:
    """`fedavg`, `fedprox(mu=0.1)+gh`: the parts that no open slot takes by itself, and the arguments in which these methods
    differ. The other parts' arguments are named only where two methods would have one name.

    `methods`: with every part and argument, as runs have them. `whole`: also name the arguments that are not a part's default.
    """
    values: dict[tuple[str, str], set[str]] = {}
    for call in (call for method in methods for call in parse(method)):
        for key, value in call.arguments.items():
            values.setdefault((call.name, key), set()).add(repr(value))

    def named(method: str, implied_too: bool) -> str:
        parts = []
        for call in parse(method):
            implied, defaults = call.name in _implied(method), _defaults(call.name)
            own = {key for key, value in call.arguments.items() if value != defaults.get(key, value)}
            keys = {key for key in call.arguments if len(values[call.name, key]) > 1}
            if whole and not implied:
                keys |= own
            elif implied:
                keys = own & keys if implied_too else set()
            arguments = {key: value for key, value in call.arguments.items() if key in keys}
            parts += [str(Call(call.name, arguments))] if arguments or not implied else []
        name = "+".join(parts)
        return _RECIPES.get(name, name)

    short = {method: named(method, implied_too=False) for method in methods}
    times = Counter(short.values())
    return [short[method] if times[short[method]] == 1 else named(method, implied_too=True) for method in methods]


def columns(configs: Sequence[dict[str, Any]], always: Iterable[str] = ()) -> dict[str, list[str]]:
    """Setting -> its value in each run, as text: the method's name and what differs; the settings `always` in any case.

    Of one partition scheme its arguments stand alone: `alpha`.
    """
    names = method_names([config["method"] for config in configs])
    settings = [{key: value for key, value in config.items() if key != "method"} for config in configs]
    schemes = [parse(config["partition"])[0] for config in configs]
    if len({scheme.name for scheme in schemes}) == 1:
        settings = [run_settings | scheme.arguments for run_settings, scheme in zip(settings, schemes, strict=True)]
        for run_settings in settings:
            del run_settings["partition"]
    keys = list(dict.fromkeys([*(schemes[0].arguments), *MAIN, *(key for run_settings in settings for key in run_settings)]))
    texts = {
        key: [text(run_settings, key) for run_settings in settings]
        for key in keys
        if any(key in run_settings for run_settings in settings)
    }
    differ = {key for key, values in texts.items() if len(set(values)) > 1}
    listed = {
        key: values for key, values in texts.items() if key in always or (key in differ and _ASIDE.get(key) not in differ)
    }
    return ({"method": names} if len(set(names)) > 1 else {}) | listed


def shared(configs: Sequence[dict[str, Any]]) -> str:
    """`dataset mnist, clients 20`: of the settings that a run is known by, those that all of these have in common."""
    names = set(method_names([config["method"] for config in configs], whole=True))
    phrases = [f"method {names.pop()}"] if len(names) == 1 else []
    for key in (*MAIN, "normalise"):
        values = {text(config, key) for config in configs}
        if len(values) == 1 and (key, *values) != ("participation", "1"):
            phrases.append(f"{key} {values.pop()}")
    return ", ".join(phrases)


def has_parts(method: str, required: str) -> bool:
    """Whether a canonical method has the parts of `required` with the arguments it names; "fedavg": only FedAvg's parts."""
    method_calls, required_calls = parse(method), expand(parse(required))
    if not required_calls:
        return {call.name for call in method_calls} <= {*DEFAULTS.values()}
    return all(
        any(
            call.name == method_call.name and call.arguments.items() <= method_call.arguments.items()
            for method_call in method_calls
        )
        for call in required_calls
    )


def text(values: dict[str, Any], key: str) -> str:
    """A value as a person writes it; `default` where it is left out."""
    return argument_text(values.get(key, "default"))


@cache
def _implied(method: str) -> set[str]:
    """Returns the parts that the method has by default. Nothing is known of those whose file is gone."""
    calls = [call for call in parse(method) if call.name in PARTS.names()]
    other_calls = {call.name: [other for other in calls if other.name != call.name] for call in calls}
    return {name for name, rest in other_calls.items() if name in {call.name for call in complete(rest)}}


@cache
def _defaults(part: str) -> dict[str, Any]:
    return {field.name: field.default for field in fields(PARTS.get(part))} if part in PARTS.names() else {}


def argument_text(value: Any) -> str:
    """A value as params.yaml has it, but shapes as `3×32×32`: `0.1`, `true`, `null`, words without quotes."""
    if isinstance(value, list | tuple):
        return "×".join(map(argument_text, value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
