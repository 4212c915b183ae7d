"""Local variables of a file: a fingerprint leaves out their names, and no others."""

import ast
import symtable
from pathlib import Path

import pytest

import fedrepro
from fedrepro.engine import sources
from fedrepro.engine.bindings import bindings

BODY = "def f(a, b):\n    ...\n    return 0\n"


def digest(text: str) -> str:
    return sources._parsed(Path("fedrepro/methods/part.py"), text.encode()).digest


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("x = a + b\n    y = x * x", "u = a + b\n    v = u * u"),
        ("for x in a: b.append(x)", "for u in a: b.append(u)"),
        ("x = [y * b for y in a if y]", "u = [v * b for v in a if v]"),
        ("x = {y: z for y, z in a for y in y}", "u = {v: w for v, w in a for v in v}"),
        ("x = [x for x in a]", "u = [v for v in a]"),
        ("x = a\n    y = [x for x in x]", "u = a\n    v = [w for w in u]"),
        ("x = [y for y in a if (z := y)], z", "u = [v for v in a if (w := v)], w"),
        ("with a as (x, *y): b(x, y)", "with a as (u, *v): b(u, v)"),
        ("try: a()\n    except OSError as x: b(x)", "try: a()\n    except OSError as u: b(u)"),
        ("def g(c):\n        nonlocal x\n        x = c\n    x = 0", "def h(c):\n        nonlocal u\n        u = c\n    u = 0"),
        ("x = lambda c: (y := c) + y", "u = lambda c: (v := c) + v"),
        ("match a:\n        case [x, *y]: b(x, y)\n        case {'k': z, **x}: b(z, x)",
         "match a:\n        case [u, *v]: b(u, v)\n        case {'k': w, **u}: b(w, u)"),
        ("x = a\n    class C:\n        y = x\n        def g(self): return x",
         "u = a\n    class C:\n        y = u\n        def g(self): return u"),
        ("x: int = a\n    x += b\n    del x", "u: int = a\n    u += b\n    del u"),
    ],
)  # fmt: skip
def test_other_names_of_local_variables_change_nothing(text: str, renamed: str) -> None:
    """Each form that binds a variable, also where scopes share a name."""
    assert text != renamed
    assert digest(BODY.replace("...", text)) == digest(BODY.replace("...", renamed))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("def f(a, b): return a - b", "def f(b, a): return b - a"),
        ("def f(a): return a", "def f(b): return b"),
        ("def f(): return x", "def f(): return y"),
        ("def f(a): a.x = 1", "def f(a): a.y = 1"),
        ("def f(a): return a(x=1)", "def f(a): return a(y=1)"),
        ("x = 1", "y = 1"),
        ("def f():\n    global x\n    x = 1", "def f():\n    global y\n    y = 1"),
        ("class C:\n    x = 1", "class C:\n    y = 1"),
        ("class C:\n    def x(self): return 1", "class C:\n    def y(self): return 1"),
        ("def f():\n    class C:\n        x = 1\n    return C", "def f():\n    class C:\n        y = 1\n    return C"),
        ("def f():\n    import torch as x\n    return x", "def f():\n    import torch as y\n    return y"),
        ("def f(a):\n    x, y = a\n    return x - y", "def f(a):\n    x, y = a\n    return y - x"),
        ("def f(a):\n    x = y = a\n    return [x for z in a]", "def f(a):\n    x = y = a\n    return [z for z in a]"),
        ("def f(a):\n    x = a\n    return lambda: x", "def f(a):\n    x = a\n    return lambda: y"),
        ("def f(x):\n    def g(): x = 1\n    return x",
         "def f(x):\n    def g():\n        nonlocal x\n        x = 1\n    return x"),
        ("def f(a): return [x for x in a for y in x]", "def f(a): return [y for x in a for y in x]"),
        ("def f():\n    x = 1\n    class C:\n        x = 2\n        y = x",
         "def f():\n    x = 1\n    class C:\n        z = 2\n        y = x"),
    ],
)  # fmt: skip
def test_every_other_name_counts(text: str, other: str) -> None:
    """Names that others see, and local variables that change places."""
    assert digest(text) != digest(other)


def test_code_for_a_gpu_does_not_renumber_the_rest() -> None:
    """A variable that only GPU code has changes the digest of that code alone."""
    body = "def f(a):\n    if gpu.takes(a):\n        {}return a\n    y = a\n    return y\n"
    path = Path("fedrepro/models/ops.py")
    plain, other = (sources._parsed(path, body.format(text).encode()) for text in ("", "x = a\n        "))
    assert plain.digest == other.digest
    assert plain.on_gpu != other.on_gpu


@pytest.mark.parametrize("folder", ["", "engine", "methods", "exhibits", "config", "tracking"])
def test_python_names_the_same_variables(folder: str) -> None:
    """In every file of the package each function and comprehension has the local variables that Python's symbol table gives
    it."""
    files = sorted(Path(fedrepro.__file__).parent.joinpath(folder).glob("*.py" if not folder else "**/*.py"))
    assert files
    for path in files:
        text = path.read_text()
        ours: dict[object, set[str]] = {}
        for (_, name), scope in bindings(ast.parse(text)).items():
            ours.setdefault(scope, set()).add(name)
        assert sorted(map(sorted, ours.values())) == sorted(symbols(symtable.symtable(text, str(path), "exec"))), path


def symbols(table: symtable.SymbolTable) -> list[list[str]]:
    """The local variables of each function and comprehension in a table, without parameters, imports and classes."""
    inner = [names for child in table.get_children() for names in symbols(child)]
    if not isinstance(table, symtable.Function):
        return inner
    classes = {child.get_name() for child in table.get_children() if isinstance(child, symtable.Class)}
    local = [s.get_name() for s in table.get_symbols() if s.is_local() and not s.is_parameter() and not s.is_imported()]
    names = sorted({*local} - classes)
    return [*([names] if names else []), *inner]
