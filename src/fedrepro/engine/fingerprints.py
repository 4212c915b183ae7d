"""Fingerprints of the code that makes a result. A receipt records them; if one differs today, other code made the result.

    part gh                          the method part of that name
    partition dirichlet_per_class    the scheme that deals out the data
    model mlp                        the architecture, and its entry in `fedrepro.models.names`
    engine                           all that these share: the loop, both engines, the data, the operations of models, trees,
                                     the base classes of parts, and how a method is put together
    GPU kernels                      what stands below `if gpu.takes(...)`, and what that hands over to; of runs on a GPU alone

A fingerprint covers one module and the modules of the package that it imports. A helper of several parts is in the fingerprint
of each. Modules that the engine imports are in the engine's fingerprint only. Modules that change no number (the console,
locks, forecasts, kept models, names of recipes) are in none. File names do not matter, so a part may move to another file. Nor
do comments, docstrings and the names of local variables.

Computing a fingerprint imports none of these modules and not torch, see `fedrepro.engine.sources`. A process reads the files
once. A training reads them at its start, since it computes with the code of that moment.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedrepro.engine.sources import Import, ParsedSource, read
from fedrepro.registry import parse

PACKAGE = Path(__file__).parents[1]
ENGINE, KERNELS = "engine", "GPU kernels"
# The engine's fingerprint covers these modules and all that they import, except modules with another fingerprint.
ROOTS = ("engine.loop", "engine.task", "engine.environment", "engine.records")
# The engine imports these, but no number depends on them: messages, file writing, lists of names, input of diagnostics.
APART = {"", "console", "errors", "files", "pictures", "methods.presets", "models.names"}
APART |= {"data.labels", "data.registry", "data.partition.picture"}
APART |= {f"engine.{name}" for name in ("bindings", "clock", "fingerprints", "identity", "kept", "measurements", "sources")}
RULE = "2:"  # before every fingerprint: what it leaves out; raised when `fedrepro.engine.sources` leaves out other things
STALE = ("part ", "partition ")  # if their code changed, a result is trained again; otherwise only marked


@dataclass(frozen=True)
class Changed:
    """The names in a recorded `code` whose fingerprint differs today or does not exist any more."""

    retrain: tuple[str, ...] = ()  # parts and partition schemes: results of this machine are stale
    mark: tuple[str, ...] = ()  # engine, model and GPU kernels: reported, but not trained again

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """All names of changed code."""
        return self.retrain + self.mark


@dataclass(frozen=True)
class Code:
    """The code in `package`, the folder `fedrepro`, with each file as it was when first read."""

    package: Path = PACKAGE
    _fingerprints: dict[str, str] = field(default_factory=dict)
    _files: dict[str, ParsedSource | None] = field(default_factory=dict)

    def today(self, config: Mapping[str, Any], device: str = "cpu") -> dict[str, str]:
        """The `code` of a run with this `config` on `device`, without unknown parts and models."""
        names = [KERNELS] if device == "cuda" else []
        names += [f"part {call.name}" for call in parse(config["method"])]
        names += [f"partition {call.name}" for call in parse(config["partition"])]
        fingerprints = {name: self.of(name) for name in sorted({*names, f"model {config['model']}", ENGINE})}
        return {name: fingerprint for name, fingerprint in fingerprints.items() if fingerprint}

    def changed(self, code: Mapping[str, str] | None, config: Mapping[str, Any]) -> Changed:
        """Returns the names in a recorded `code` whose fingerprint differs today. Without a `code`, or with one of an earlier
        rule, nothing counts as changed."""
        recorded = comparable(code)
        now = self.today(config, "cuda" if KERNELS in recorded else "cpu") if recorded else {}
        return split(name for name, fingerprint in recorded.items() if fingerprint != now.get(name))

    def of(self, name: str) -> str | None:
        """The fingerprint of `part gh`, `model mlp`, `partition iid` or `engine`; None where there is no such thing."""
        if name not in self._fingerprints:
            self._fingerprints[name] = self._engine() if name == ENGINE else self._thing(name)
        return self._fingerprints[name] or None

    @cached_property
    def things(self) -> dict[str, str]:
        """`part gh` -> methods.transform.gh, and so on, for everything that has a fingerprint except the engine."""
        module_of = {KERNELS: "models.gpu"} | {f"model {name}": f"models.{module}" for name, module, _ in self._models}
        for kind, folder in (("part", "methods"), ("partition", "data/partition")):
            for path in sorted((self.package / folder).rglob("*.py")):
                module = ".".join(path.relative_to(self.package).with_suffix("").parts)
                module_of |= {f"{kind} {name}": module for name in read(path).registers}
        return module_of

    def _engine(self) -> str:
        """Leaves out imports of modules with another fingerprint, so that a new model or part does not change the engine's."""
        enrolled = {*self.things.values()}
        return _hash(f"{name} {self._content(name, enrolled)}" for name in self._shared)

    def _thing(self, name: str) -> str:
        module = self.things.get(name, "")
        if self._source(module) is None:
            return ""
        entry = next((digest for model, _, digest in self._models if name == f"model {model}"), "")
        helpers = [f"{name} {self._content(name)}" for name in self._covered(module) - {module}]
        if name == KERNELS:
            helpers += [source.on_gpu for shared in self._shared if (source := self._source(shared)) and source.on_gpu]
        return _hash([entry, self._content(module), *helpers])

    @cached_property
    def _models(self) -> tuple[tuple[str, str, str], ...]:
        source = self._source("models.names")
        return source.models if source else ()

    @cached_property
    def _shared(self) -> frozenset[str]:
        return self._reachable(ROOTS, APART | {*self.things.values()})

    def _covered(self, module: str) -> frozenset[str]:
        return self._reachable([module], APART | self._shared)

    def _reachable(self, start: Iterable[str], excluded: Iterable[str]) -> frozenset[str]:
        names, remaining = set[str](), [*start]
        while remaining:
            name = remaining.pop()
            source = self._source(name)
            if source is not None and name not in names:
                names.add(name)
                remaining += {self._target(imported) for imported in source.imports} - {*excluded}
        return frozenset(names)

    def _target(self, imported: Import) -> str:
        """`from fedrepro.methods import pairs` imports the module methods.pairs; `from fedrepro.methods.parts import
        proxy_batches` the module methods.parts."""
        below = ".".join(filter(None, [imported.module, imported.name]))
        return below if self._source(below) is not None else imported.module

    def _content(self, name: str, enrolled: Iterable[str] = ()) -> str:
        """A module's tree, and its imports in any order without those of `enrolled` modules."""
        source = self._source(name)
        assert source is not None, name
        imports = (item for item in source.imports if self._target(item) not in enrolled)
        return " ".join([source.digest, *sorted({f"{item.module}.{item.name}={item.here}" for item in imports})])

    def _source(self, name: str) -> ParsedSource | None:
        """The module without `fedrepro.` before its name; None where there is no such file."""
        if name not in self._files:
            path = self.package.joinpath(*name.split("."))
            files = [path / "__init__.py", *([path.with_suffix(".py")] if name else [])]
            self._files[name] = next((read(file) for file in files if file.is_file()), None)
        return self._files[name]


@cache
def load() -> Code:
    """Reads all code of this process. Must be called before it trains."""
    code = Code()
    for name in (ENGINE, *code.things):
        code.of(name)
    return code


def today(config: Mapping[str, Any], device: str = "cpu") -> dict[str, str]:
    """The `code` of a result of a run with this `config` that is made now on `device`, "cpu" or "cuda"."""
    return load().today(config, device)


def changed(code: Mapping[str, str] | None, config: Mapping[str, Any]) -> Changed:
    """Returns the names in a recorded `code` (None: unknown) whose fingerprint differs today; `config`: the run's."""
    return load().changed(code, config)


def apart(codes: Iterable[Mapping[str, str] | None]) -> tuple[str, ...]:
    """The parts and partition schemes whose code differs between these results. Such results have no common mean.

    A result without a comparable `code` is skipped, since its code is unknown.
    """
    fingerprints_of: dict[str, set[str]] = {}
    for code in codes:
        for name, fingerprint in comparable(code).items():
            fingerprints_of.setdefault(name, set()).add(fingerprint)
    return split(name for name, fingerprints in fingerprints_of.items() if len(fingerprints) > 1).retrain


def comparable(code: Mapping[str, str] | None) -> dict[str, str]:
    """A recorded `code` without fingerprints of an earlier rule, which say nothing about today's code."""
    return {name: fingerprint for name, fingerprint in (code or {}).items() if fingerprint.startswith(RULE)}


def split(names: Iterable[str]) -> Changed:
    """Separates names whose change needs a new training from names that are only marked."""
    ordered = sorted(names)
    stale = tuple(name for name in ordered if name.startswith(STALE))
    return Changed(stale, tuple(name for name in ordered if name not in stale))


def listed(names: Iterable[object]) -> str:
    """`part gh`; `part gh and engine`; `part a, part b and engine`."""
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last


def _hash(lines: Iterable[str]) -> str:
    return RULE + hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]
