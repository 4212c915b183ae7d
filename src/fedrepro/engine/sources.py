"""A file of the package as fingerprints see it: a digest of its syntax tree, its imports from the package, the names it
registers.

Comments, docstrings, layout, the order of imports and the names of local variables do not matter. The digest is the same under
every Python from 3.11 on.
Parsing all files takes half a second, so the results are cached beside Python's bytecode. If Python may not write bytecode,
nothing is cached.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

from fedrepro.engine import bindings
from fedrepro.engine.bindings import Bindings, Scope
from fedrepro.errors import UserError
from fedrepro.files import write_text

PACKAGE = "fedrepro"
_IGNORED = ("ctx", "type_comment")
_READERS = b"".join(Path(file).read_bytes() for file in (__file__, bindings.__file__))
READER = hashlib.sha256(_READERS).hexdigest()  # a cache of another version of these files is not used


@dataclass(frozen=True)
class Import:
    """`from fedrepro.methods import pairs as p`: module methods, name pairs, here p. `import fedrepro.tree` has no name."""

    module: str
    name: str = ""
    here: str = ""


@dataclass(frozen=True)
class ParsedSource:
    """The parsed content of a file."""

    digest: str  # of all but docstrings, and imports from the package
    imports: tuple[Import, ...]  # anywhere in the file, except imports for type checkers only
    registers: tuple[str, ...]  # names that `@register("slot", "name")` and `@SCHEMES.register("name")` give
    models: tuple[tuple[str, str, str], ...]  # of the table MODELS: (name, module of fedrepro.models, digest of the entry)
    on_gpu: str = ""  # digest of what runs on a GPU alone, which the other digest leaves out


def read(path: Path) -> ParsedSource:
    """The file at `path`; read again only when it has changed."""
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_size)


@cache
def _read(path: Path, changed_ns: int, size: int) -> ParsedSource:
    content = path.read_bytes()
    try:
        cache_file = Path(cache_from_source(path)).with_suffix(".parsed.json")
    except NotImplementedError:  # this Python does not cache bytecode
        return _parsed(path, content)
    key = [READER, _below_package(path), hashlib.sha256(content).hexdigest()]  # also valid in a copy of the checkout
    with suppress(OSError, ValueError, TypeError, KeyError):
        cached = json.loads(cache_file.read_bytes())
        if cached["key"] == key:
            digest, imports, registers, models, on_gpu = cached["parsed"]
            read = tuple(Import(*fields) for fields in imports), (*registers,), tuple(map(tuple, models))
            return ParsedSource(digest, *read, on_gpu)
    parsed = _parsed(path, content)
    if not sys.dont_write_bytecode:
        with suppress(OSError, UserError):  # the folder belongs to another user, or the disk is full
            write_text(cache_file, json.dumps({"key": key, "parsed": astuple(parsed)}))
    return parsed


def _parsed(path: Path, content: bytes) -> ParsedSource:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # the training that imports it reports the error
        return ParsedSource(hashlib.sha256(content).hexdigest()[:16], (), (), ())
    bound = bindings.bindings(tree)
    reader = _Reader(path, bound)
    reader.visit(tree)
    digest = _digest([*reader.words, *sorted(reader.outside)])
    on_gpu = _digest(reader.on_gpu) if reader.on_gpu else ""
    return ParsedSource(digest, tuple(reader.imports), tuple(reader.registers), tuple(_table(tree, path, bound)), on_gpu)


class _Reader:
    """Converts a syntax tree to a list of words."""

    def __init__(self, path: Path, bound: Bindings) -> None:
        self.path, self.words, self.registers = path, list[str](), list[str]()
        self.bound, self.numbers = bound, dict[Scope, dict[str, int]]()
        self.imports, self.outside = list[Import](), set[str]()  # from the package, and all others
        self.on_gpu = list[str]()  # words of what runs on a GPU alone

    def visit(self, node: ast.AST, unseen: bool = False) -> None:
        """`unseen`: code for type checkers, which never runs. Empty fields are left out, since they differ between Python
        versions."""
        words = self.words
        words.append(type(node).__name__)
        if isinstance(node, ast.Constant):
            words.append(repr(node.value))
            return
        if isinstance(node, ast.ClassDef):
            self.registers += _registered(node)
        unseen = unseen or (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
        for key in node._fields:
            value = getattr(node, key, None)
            if value is None or key in _IGNORED:
                continue
            before = len(words)
            words.append(key)
            for child in value if isinstance(value, list) else (value,):
                if not isinstance(child, ast.AST):
                    words.append(self._word(node, child))
                elif not self._skips(child, unseen):
                    self.visit(child, unseen)
            if len(words) == before + 1:
                words.pop()
            else:
                words.append("]")

    def _word(self, node: ast.AST, value: object) -> str:
        """A local variable is known by the depth of its scope, and by its number in the order in which they appear there."""
        scope = self.bound.get((node, value)) if isinstance(value, str) else None
        if scope is None:
            return repr(value)
        numbers = self.numbers.setdefault(scope, {})
        return f"local {scope.depth} {numbers.setdefault(str(value), len(numbers))}"

    def _skips(self, node: ast.AST, unseen: bool) -> bool:
        """Whether `node` is a docstring or other constant, `pass`, for a GPU alone, or an import. The last two are recorded
        separately."""
        if isinstance(node, ast.If) and _on_a_gpu(node):
            reader = _Reader(self.path, self.bound)  # with its own numbers, so that other code of the function does not matter
            reader.visit(node)
            self.on_gpu += reader.words
            return True
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported = () if unseen else tuple(_imported(node, self.path))
            self.imports += (item for item in imported if isinstance(item, Import))
            self.outside |= {item for item in imported if isinstance(item, str)}
            return True
        return isinstance(node, ast.Pass)


def _on_a_gpu(node: ast.If) -> bool:
    """Whether `node` is `if gpu.takes(...):`, possibly with more conditions, without `else`: a CPU never runs its body."""
    test = node.test.values[0] if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else node.test
    match test:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="gpu"), attr="takes")):
            return not node.orelse
    return False


def _imported(node: ast.Import | ast.ImportFrom, path: Path) -> Iterator[Import | str]:
    """Yields imports from the package as Import, and all others as text."""
    module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    if isinstance(node, ast.ImportFrom) and node.level:
        folder = _below_package(path)[: -node.level]
        module = ".".join([PACKAGE, *folder, *filter(None, [node.module])])
    for alias in node.names:
        full, name = (module, alias.name) if isinstance(node, ast.ImportFrom) else (alias.name, "")
        if full.partition(".")[0] == PACKAGE:
            yield Import(full.removeprefix(PACKAGE).strip("."), name, alias.asname or "")
        else:
            yield f"{full}:{name}={alias.asname}"


def _below_package(path: Path) -> list[str]:
    """["methods", "transform", "gh.py"]: what a relative import starts from."""
    parts = path.parts
    return [*parts[len(parts) - parts[::-1].index(PACKAGE) :]]


def _registered(node: ast.ClassDef) -> Iterator[str]:
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) == "register":
            texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            yield from texts[-1:]


def _table(tree: ast.Module, path: Path, bound: Bindings) -> Iterator[tuple[str, str, str]]:
    """Yields the entries of `MODELS = {"mlp": Architecture("mlp", ...)}`."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Dict):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == "MODELS" for target in targets):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                match key, value:
                    case ast.Constant(value=str(name)), ast.Call(args=[ast.Constant(value=str(module)), *_]):
                        reader = _Reader(path, bound)
                        reader.visit(value)
                        yield name, module, _digest(reader.words)


def _digest(words: list[str]) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:16]
