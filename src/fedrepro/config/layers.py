"""Where the value of a setting or of a method's argument comes from: layer upon layer, each value with its source."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property, reduce

from fedrepro.config.reading import EDITED, At, Call, Last, Mean, make
from fedrepro.config.schema import Arguments, Paper, Params, Scalar, Scale, Sourced, Times
from fedrepro.config.table import Budget, Header, Metric, Table
from fedrepro.config.tune import Tune, TuneBudget
from fedrepro.engine import schedule
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.methods.compose import Method, expand, for_rounds
from fedrepro.methods.parts import PARTS
from fedrepro.registry import coerce, parse, require, unknown

# Filled in by the registry and the model, never written in a table.
_DERIVED = frozenset({"dataset_sha", "input_shape", "classes", "method", "channel_statistics"})
# How a table reads a run: these settings are no part of the run_id.
REPORTED = {"average_last": int}  # number of last rounds that a cell averages over
# name -> type of everything that a person may set
SETTINGS = {field.name: field.type for field in fields(RunSpec) if field.name not in _DERIVED} | REPORTED
# name -> default of those that a paper's files need not give
_OPTIONAL = {field.name: field.default for field in fields(RunSpec) if field.name in SETTINGS and field.default is not MISSING}

_LARGEST = 3.4028234663852886e38  # of float32
ARGUMENTS = (
    "an argument of a method is part.argument (in a file it stands under `methods`), one of a partition stands in its call"
)
TUNED = "tuned"  # the source of a value that a candidate of a tuned cell tries
SourcedArguments = dict[str, dict[str, Sourced]]


def require_setting(where: str, key: str) -> None:
    """UserError for a key that is no setting: it names the nearest, and where arguments stand."""
    if key not in SETTINGS:
        raise UserError(f"{where}: {unknown_setting(key)}")


def unknown_setting(key: str, arguments: Iterable[str] = ()) -> str:
    """Returns the message for a key that is no setting, and none of `arguments` where they may be given too. Where no name is
    near, it offers one with that word: `client_lr` for `lr`."""
    names = [*SETTINGS, *arguments]
    message = unknown("setting", key, sorted(names))
    longer = sorted((name for name in names if key in name.split("_")), key=len)
    if longer and "did you mean" not in message:
        message = message.replace("; ", f"; did you mean {longer[0]!r}? ", 1)
    advice = _where_an_argument_stands(key)
    return message.partition("Known: ")[0] + advice if advice else f"{message}; {ARGUMENTS}"


def _where_an_argument_stands(key: str) -> str:
    """Returns which partition schemes and parts have an argument of that name, and how to write it. Empty if none has."""
    from fedrepro.data.partition import SCHEMES  # imported here, so that the command line starts faster

    schemes, parts = (
        [name for name in registry.names() if key in {field.name for field in fields(registry.get(name))}]
        for registry in (SCHEMES, PARTS)
    )
    places = [f"of the partition scheme {', '.join(schemes)}, written in its call, {schemes[0]}({key}=...)"] if schemes else []
    places += [f"of {', '.join(parts)}, written {parts[0]}.{key} (in a file under `methods`)"] if parts else []
    return f"Known as an argument {'; and '.join(places)}" if places else ""


@dataclass(frozen=True)
class Layers:
    """The files that decide one cell of a table."""

    paper: Paper
    table: Table
    scale_name: str
    scale: Scale
    column: Header
    row: Header
    params: Params
    candidate: dict[str, Scalar] = field(default_factory=dict)  # what a candidate of a tuned cell tries
    trial_rounds: int | None = None  # instead of all rounds, while candidates are compared

    def settings(self, where: str) -> dict[str, Sourced]:
        """Every setting; later layers win: protocol, data set, table, column, scale, budget, params.yaml.

        Schedules follow the rounds: those of the paper's files are written for the protocol's, those of a scale, a budget or
        params.yaml for the rounds of the run that these make (a trial is a shorter one of it), see `schedule.scaled`.
        """
        printed = self._as_printed
        settings = dict(printed)
        if self._dataset != self._own_dataset:
            settings["dataset"] = Sourced(value=self._own_dataset, source=f"stands in for {self._dataset}")
        for key, value in self.scale.settings.items():
            if isinstance(value, Times):
                value = _multiply(value.times, settings.get(key), key)
            settings[key] = Sourced(value=value, source="scale")
        for budget in self.budgets:
            source = f"budget of the table at scale {self.scale_name}"
            settings |= {key: Sourced(value=value, source=source) for key, value in budget.changes.items()}
        for key, value in self.params.settings.items():
            settings[key] = _edit(settings.get(key), value)
        whole_rounds = settings.get("rounds")
        if self.trial_rounds:
            settings["rounds"] = Sourced(value=self.trial_rounds, source=TUNED)
        for key, item in settings.items():
            require_setting(f"{where} ({item.source})", key)
            place = self.place(key, item.source, where)
            value = coerce(place, item.value, SETTINGS[key])
            require(not isinstance(value, float) or abs(value) <= _LARGEST, place, value, "must fit into float32")
            settings[key] = item if value is item.value else Sourced(value=value, source=item.source)
        missing = sorted(set(SETTINGS) - set(settings) - set(_OPTIONAL))
        if missing:
            raise UserError(f"{where}: setting {missing[0]!r} has no value; give it in paper.yaml's protocol")
        for key in (key for key in schedule.DEFAULTS if key in settings):
            item, place = settings[key], self.place(key, settings[key].source, where)
            written = printed.get("rounds", whole_rounds) if item == printed.get(key) else whole_rounds
            run_rounds = coerce("rounds", settings["rounds"].value, int)
            written_rounds = coerce("rounds", (written or settings["rounds"]).value, int)
            try:
                text = schedule.scaled(str(item.value), key, run_rounds, written_rounds)
            except UserError as error:
                raise UserError(f"{place.removesuffix(key)}{error}") from error  # which begins with the key and its value
            if text != item.value:
                source = f"{item.source}; its rounds are the same share of {run_rounds} as of {written_rounds}"
                settings[key] = Sourced(value=text, source=source)
        return {key: item for key, item in settings.items() if key not in _OPTIONAL or item.value != _OPTIONAL[key]}

    def instead_of(self, settings: dict[str, Sourced]) -> dict[str, Scalar]:
        """The protocol's values of those `settings` that a scale, a budget or a stand-in changes; params.yaml is left out."""
        protocol = self._protocol
        protocol_values = {key: coerce(key, item.value, SETTINGS[key]) for key, item in protocol.items() if key not in REPORTED}
        follows = schedule.DEFAULTS if settings["rounds"].source == EDITED else ()
        changed = {key: item for key, item in settings.items() if item.source != EDITED and key not in follows}
        return {
            key: protocol_values[key]
            for key, item in changed.items()
            if key in protocol_values and item.value != protocol_values[key]
        }

    def unstated(self, keys: Iterable[str]) -> dict[str, str]:
        """Each of `keys` whose value in the protocol the paper does not state -> whose it is: ours, inferred, ..."""
        protocol = self._protocol
        origins = {key: _whose(protocol[key].source) for key in keys}
        return {key: origin for key, origin in origins.items() if origin != "paper"}

    @cached_property
    def _protocol(self) -> dict[str, Sourced]:
        """The settings before any scale, with the data set that a stand-in stands in for."""
        if self._dataset == self._own_dataset:
            return self._as_printed
        return self._as_printed | {"dataset": Sourced(value=self._dataset, source="paper")}

    @property
    def method(self) -> str:
        """The parts that the row and the column name."""
        return "+".join(entry.method for entry in (self.row, self.column) if entry.method)

    def followed(self, method: Method, sources: dict[str, str], rounds: int, where: str) -> Method:
        """The method for a run of `rounds` rounds. Arguments that name a round are scaled as schedules are (`settings`)."""
        if not any(part.counts_rounds for part in method.parts):
            return method

        def of(name: str) -> int:
            if sources[name] not in ("scale", EDITED):
                return self._protocol_rounds
            whole_rounds = replace(self, trial_rounds=None).settings(where)["rounds"].value if self.trial_rounds else rounds
            return int(str(whole_rounds))

        return for_rounds(method, rounds, of)

    @property
    def metric(self) -> Metric:
        """What the cell shows."""
        return self.row.metric or self.column.metric or self.table.metric

    def read(self, rounds: int, average_last: int) -> Call:
        """How a run of `rounds` rounds is read: as the row or the column says, or as the mean of the last `average_last`.

        UserError when it names a round that the protocol does not have.
        """
        text = self.row.read or self.column.read
        if text is None:
            return Last() if self.metric.diagnostic else Last(average_last)
        protocol, call = self._protocol_rounds, make(text)
        latest = {At: "round", Mean: "last", Last: "rounds"}.get(type(call))
        if latest and getattr(call, latest) > protocol:
            entry = self.row if self.row.read else self.column
            raise UserError(f"{entry.key}: read = {text!r}: the protocol has {protocol} rounds")
        return call.scaled(rounds / protocol)

    @property
    def tune(self) -> Tune | None:
        """How the cell is tuned, where it is: as the row, the column or the table says, within the budgets."""
        tune = self.row.tune or self.column.tune or self.table.tune
        return reduce(Tune.within, self._tune_budgets, tune) if tune and tune.grid else None

    @property
    def _tune_budgets(self) -> list[TuneBudget]:
        return [budget.tune for budget in self.budgets if budget.tune]

    def trial(self, rounds: int) -> "Layers":
        """The layers of a candidate's trial; `rounds` are those of the whole run.

        UserError for more than the protocol has; if a budget asks for more than the run has, unless params.yaml has `rounds`.
        """
        trial_rounds, protocol = self.tune and self.tune.rounds, self._protocol_rounds
        if trial_rounds and trial_rounds > protocol:
            raise UserError(f"tune: rounds = {trial_rounds}: the protocol has {protocol} rounds")
        budget_rounds = next((budget.rounds for budget in reversed(self._tune_budgets) if budget.rounds), None)
        # With `rounds` in params.yaml, a trial of more rounds than the run becomes a whole run.
        if budget_rounds and budget_rounds > rounds and "rounds" not in self.params.settings:
            raise UserError(
                f"tune: rounds = {budget_rounds} in the budget of scale {self.scale_name}: a run has {rounds} rounds there"
            )
        trial_rounds = budget_rounds or (trial_rounds and math.ceil(trial_rounds * rounds / protocol))
        return replace(self, trial_rounds=trial_rounds) if trial_rounds and trial_rounds < rounds else self

    def keep(self, rounds: int) -> list[int]:
        """The rounds whose models the table keeps, in a run of `rounds` rounds, and those that the diagnostic needs as well.

        UserError when the protocol does not have them, or when the table keeps no round at which a diagnostic is read.
        """
        keep, protocol = self.table.keep, self._protocol_rounds
        if keep and max(keep) > protocol:
            raise UserError(f"keep = {keep}: the protocol has {protocol} rounds")
        text = self.row.read or self.column.read or "last()"
        read = make(text).window(protocol) if self.table.reads else range(protocol)
        if self.metric.diagnostic and not {*keep} & {number + 1 for number in read}:
            raise UserError(f"keep = {keep}: {self.metric.name} is read by {text}, of which no round is kept; add one to keep")
        kept_rounds = self._kept_rounds(rounds)
        return sorted({*kept_rounds, *self._earlier(kept_rounds, rounds)})

    def measured(self, rounds: int, read: str) -> list[int]:
        """The kept rounds that `read` takes; if there is none, the last kept round before them; all kept rounds for a figure
        that shows every round."""
        kept_rounds = self._kept_rounds(rounds)
        window = make(read).window(rounds) if self.table.reads else range(rounds)
        inside = {number for number in kept_rounds if number - 1 in window}
        return sorted(inside or {max((number for number in kept_rounds if number <= window.stop), default=max(kept_rounds))})

    def _kept_rounds(self, rounds: int) -> set[int]:
        return {At(number).scaled(rounds / self._protocol_rounds).round for number in self.table.keep}

    def _earlier(self, kept_rounds: Iterable[int], rounds: int) -> Iterator[int]:
        """The earlier rounds that the diagnostic needs for the kept ones, from round 1 on. UserError if the protocol has too
        few rounds."""
        if self.metric.diagnostic is None:
            return
        from fedrepro.diagnostics.diagnostic import make as diagnostic

        measure, keep, protocol = diagnostic(self.metric.diagnostic), self.table.keep, self._protocol_rounds
        if all(min(measure.earlier(number, protocol), default=1) < 1 for number in keep):
            first = min(measure.earlier(max(keep), protocol))
            raise UserError(f"keep = {keep}: {measure.name} measures round {max(keep)} with round {first}; keep a later round")
        for number in kept_rounds:
            yield from (earlier for earlier in measure.earlier(number, rounds) if earlier >= 1)

    @property
    def _protocol_rounds(self) -> int:
        return coerce("rounds", self._as_printed["rounds"].value, int)

    def arguments(self, paper: str) -> SourcedArguments:
        """Arguments by method; later layers win: paper, paper for this data set, for this model, scale, params.yaml."""
        merged: SourcedArguments = {}
        for method, arguments in self.paper.methods.items():
            merged[method] = dict(arguments)
        for method, arguments in self.paper.methods_by_dataset.get(self._dataset, {}).items():
            merged[method] = merged.get(method, {}) | self._standing_in(arguments)
        model = self._as_printed.get("model")
        for method, arguments in self.paper.methods_by_model.get(str(model and model.value), {}).items():
            merged[method] = merged.get(method, {}) | arguments
        for method, arguments in self.scale.methods.items():
            scaled = {key: Sourced(value=value, source="scale") for key, value in arguments.items()}
            merged[method] = merged.get(method, {}) | scaled
        for name, value in self.candidate.items():
            method, dot, argument = name.partition(".")
            if dot:
                merged[method] = merged.get(method, {}) | {argument: Sourced(value=value, source=TUNED)}
        for method, arguments in (self.params.methods.get(paper) or {}).items():
            below = merged.setdefault(method, {})
            below |= {key: _edit(below.get(key), value) for key, value in (arguments or {}).items() if value is not None}
        return merged

    @property
    def budgets(self) -> list[Budget]:
        """The budgets of the table and then of the column at this scale, where they have one."""
        budgets = [self.table.budget.get(self.scale_name), self.column.budget.get(self.scale_name)]
        return [budget for budget in budgets if budget is not None]

    def left_out(self, row: str) -> str | None:
        """Why the budget does not run `row` in this column; None when it does. A column's list wins over the table's."""
        lists = [budget.rows for budget in self.budgets if budget.rows is not None]
        return f"not in the budget of the table at scale {self.scale_name}" if lists and row not in lists[-1] else None

    def place(self, key: str, source: str, where: str) -> str:
        """The file, and the place in it, where a person wrote the setting `key`, from the source of its value; `where`: of the
        cell."""
        layer = source.partition(";")[0]
        if layer == "scale":
            return f"papers/scales.yaml: {self.scale_name}: settings.{key}"
        return f"{EDITED}: settings.{key}" if layer == EDITED else f"{where}: {key}"

    @cached_property
    def _as_printed(self) -> dict[str, Sourced]:
        """The settings that the paper's own files give, before any scale."""
        settings = self.paper.protocol | self._standing_in(self.paper.datasets.get(self._dataset, {})) | self.table.base
        cell_settings = self.row.settings(self.column)
        settings |= {key: Sourced(value=value, source=self._source(key, value)) for key, value in cell_settings.items()}
        return settings | {key: Sourced(value=value, source=TUNED) for key, value in self.candidate.items() if "." not in key}

    def _source(self, key: str, value: Scalar) -> str:
        if self.column.setting.get(key) == value:
            return self.table.sources.get(key, self.table.source)
        return f"{self.table.source}: {self.row.full_label}"

    @cached_property
    def _dataset(self) -> str:
        """The paper's own data set of the column, whatever the scale puts in its place."""
        dataset = self._own_dataset
        return self.paper.stand_ins.get(dataset, dataset)

    @cached_property
    def _own_dataset(self) -> str:
        below = self.table.base.get("dataset") or self.paper.protocol.get("dataset")
        return str(self.row.settings(self.column).get("dataset", below and below.value))

    def _standing_in(self, values: dict[str, Sourced]) -> dict[str, Sourced]:
        """Values of the paper's data set, whose sources say so where another stands in for it."""
        if self._dataset == self._own_dataset:
            return values
        return {key: Sourced(value=item.value, source=f"as {self._dataset}: {item.source}") for key, item in values.items()}


def plain(arguments: dict[str, Sourced]) -> Arguments:
    """Values without their sources."""
    return {key: item.value for key, item in arguments.items()}


def argument_sources(method: Method, text: str, arguments: SourcedArguments, table: str) -> dict[str, str]:
    """`part.argument` -> source, for every argument of every part."""
    written = {call.name: call.arguments for call in expand(parse(text))}
    askers = {
        (call.name, key): part.name
        for part in method.parts
        for want in part.wants.values()
        for call in parse(want)
        for key in call.arguments
    }
    sources = {}
    for part in method.parts:
        for name in vars(part):
            sourced = arguments.get(part.name, {}).get(name)
            source = sourced.source if sourced else "default of the method"
            if (part.name, name) in askers:
                source = f"as {askers[part.name, name]} asks"
            sources[f"{part.name}.{name}"] = table if name in written.get(part.name, {}) else source
    return sources


def _edit(below: Sourced | None, value: object) -> Sourced:
    """A value of params.yaml. If it equals the value `below`, that one stays, with its source."""
    return below if below is not None and below.value == value else Sourced.model_validate({"value": value, "source": EDITED})


def _multiply(times: float, below: Sourced | None, key: str) -> float | int:
    """A share of the paper's value; a whole number stays whole and is at least 1."""
    value = below.value if below else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(
            f"{key} = {value!r}: papers/scales.yaml multiplies it at this scale; give a number in paper.yaml or the table"
        )
    return max(1, round(times * value)) if isinstance(value, int) else times * value


def _whose(source: str) -> str:
    """Whose a value is, by the first words of its source; a table's own name is the paper's, "Beside Table 3 (ours)" is not."""
    statement = source.partition(": ")[2] if source.startswith("as ") else source
    if (
        statement.startswith(("paper", "Table", "Figure", "Section", "section"))
        and "(ours)" not in statement
        and "varied" not in statement
    ):
        return "paper"
    return next((origin for origin in ("authors' code", "inferred") if statement.startswith(origin)), "ours")
