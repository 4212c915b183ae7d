"""Which names in a file are local variables, so that a fingerprint can leave out what they are called.

A local variable is bound in a function, a lambda or a comprehension: by an assignment, a loop, `with`, `except`, a pattern or a
nested `def`. Nothing outside sees its name. Parameters keep their names, since a caller may pass them by keyword. So do names
of modules and classes, imported names, and those declared `global`.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True, eq=False)
class Scope:
    """A function, lambda, comprehension or class body. `depth`: how many functions, lambdas and comprehensions surround it."""

    depth: int
    local: frozenset[str]
    fixed: frozenset[str] = frozenset()  # names that it binds and that keep their names
    is_class: bool = False


# The scope of each local variable, by the node that names it and by the name.
Bindings = dict[tuple[ast.AST, str], Scope]


def bindings(tree: ast.AST) -> Bindings:
    """Finds the local variables of a file. A name that is not in the result is no local variable."""
    return dict(_bindings(tree, ()))


def _bindings(node: ast.AST, scopes: tuple[Scope, ...]) -> Iterator[tuple[tuple[ast.AST, str], Scope]]:
    for name in _names(node):
        scope = next((scope for scope in reversed(scopes) if name in scope.local or name in scope.fixed), None)
        if scope is not None and name in scope.local:
            yield (node, name), scope
    outside, inside = _parts(node)
    for child in outside:
        yield from _bindings(child, scopes)
    if inside:
        visible = scopes if isinstance(node, ast.ClassDef) else tuple(scope for scope in scopes if not scope.is_class)
        scope = _scope(node, sum(not scope.is_class for scope in scopes))
        for child in inside:
            yield from _bindings(child, (*visible, scope))


def _parts(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """The children that see the names around `node`, and those that see its own."""
    children = [*ast.iter_child_nodes(node)]
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            inside: list[ast.AST] = [*node.body]
        case ast.Lambda():
            inside = [node.body]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            # The first iterable is evaluated outside.
            first, *others = node.generators
            results = [child for child in children if not isinstance(child, ast.comprehension)]
            return [first.iter], [*results, first.target, *first.ifs, *others]
        case _:
            inside = []
    return [child for child in children if child not in inside], inside


def _scope(node: ast.AST, depth: int) -> Scope:
    if isinstance(node, ast.ClassDef):
        return Scope(depth, frozenset(), frozenset(_bound(node.body)) | _fixed(node.body), is_class=True)
    if isinstance(node, _Comprehension):
        return Scope(depth, frozenset(_bound(loop.target for loop in node.generators)))
    assert isinstance(node, _Function | ast.Lambda)
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    arguments = frozenset(child.arg for child in ast.walk(node.args) if isinstance(child, ast.arg))
    fixed = arguments | _fixed(body)
    return Scope(depth, frozenset(_bound(body)) - fixed - _declared(body), fixed)


def _names(node: ast.AST) -> Iterator[str]:
    """The names of variables that `node` itself contains, its children apart."""
    match node:
        case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Nonlocal(names=names):
            yield from names


def _within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of one scope. A nested function, class or lambda is one node. Of a comprehension only `:=` belongs here."""
    for node in nodes:
        if isinstance(node, _Comprehension):
            yield from (child for child in ast.walk(node) if isinstance(child, ast.NamedExpr))
            yield from (child.target for child in ast.walk(node) if isinstance(child, ast.NamedExpr))
            continue
        yield node
        if not isinstance(node, _Function | ast.ClassDef | ast.Lambda):
            yield from _within(ast.iter_child_nodes(node))


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in _within(nodes):
        if not isinstance(node, ast.Nonlocal) and not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
            yield from _names(node)


def _fixed(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Names that imports, classes and `global` bind."""
    names = set[str]()
    for node in _within(nodes):
        match node:
            case ast.ClassDef(name=name):
                names.add(name)
            case ast.Global(names=declared):
                names |= {*declared}
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
    return frozenset(names)


def _declared(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Names that belong to a function around this one."""
    return frozenset(name for node in _within(nodes) if isinstance(node, ast.Nonlocal) for name in node.names)
