"""A method part in its slot, and its test: a round worked by hand and the limiting case."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.skeletons import Skeleton, fill, require_folder, require_name, title

_PART = '''
"""$title. AUTHORS, VENUE, https://arxiv.org/abs/..., equation ...

$idea Limiting case: strength = 0 is FedAvg.
"""

$imports

@register("$slot", "$name")
@dataclass(frozen=True)
class $cls($base):
    """`strength`: from 0 to 1, of what this part does; its default is our choice."""

$attributes    strength: float = 0.1

    def __post_init__(self) -> None:
        require(0 <= self.strength <= 1, "$name: strength", self.strength, "must lie in [0, 1] (0 is FedAvg)")

$body
'''


@dataclass(frozen=True)
class _Slot:
    """What is particular to a slot's skeleton."""

    base: str
    idea: str
    types: str  # of `fedrepro.types`
    body: str
    attributes: str = ""

    @property
    def imports(self) -> str:
        """The import statements that the body needs, in ruff's order."""
        lines = [
            f"from dataclasses import dataclass{', replace' if ' replace(' in self.body else ''}",
            *(["from typing import Any"] if "Any" in self.body else []),
            "",
            "from fedrepro import tree",
            f"from fedrepro.methods.parts import {self.base}, register",
            "from fedrepro.registry import require",
            *(["from fedrepro.tree import Tree"] if "Tree" in self.body else []),
            f"from fedrepro.types import {self.types}",
            "",
        ]
        return "\n".join(lines)


def _call(takes: str, gives: str, value: str) -> str:
    """A server part that keeps no state."""
    return f"""\
    def __call__(self, x: {takes}, state: Any, ctx: ServerContext) -> tuple[{gives}, Any]:
        return {value}, state"""


_SLOTS = {
    "client": _Slot(
        "LocalRule",
        "Local steps are pulled back to the weights that were received.",
        "Batch, ClientContext",
        """\
    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        g = super().direction(params, batch, ctx)
        return tree.map(lambda g, w, anchor: g + self.strength * (w - anchor), g, params, ctx.anchor)""",
    ),
    "transform": _Slot(
        "Transform",
        "Every update is shortened.",
        "Cohort, ServerContext",
        _call("Cohort", "Cohort", "replace(x, updates=tree.scale(x.updates, 1 - self.strength))"),
    ),
    "aggregate": _Slot(
        "Aggregate",
        "The weighted mean is shortened.",
        "Cohort, ServerContext",
        _call("Cohort", "Tree", "tree.scale(tree.weighted_sum(x.weights, x.updates), 1 - self.strength)"),
    ),
    "rescale": _Slot(
        "Rescale", "The update is shortened.", "ServerContext", _call("Tree", "Tree", "tree.scale(x, 1 - self.strength)")
    ),
    "server_opt": _Slot(
        "ServerOpt",
        "The server's step is shortened.",
        "ServerContext",
        _call("Tree", "Tree", "tree.scale(x, 1 - self.strength)"),
    ),
    "refine": _Slot(
        "Refine",
        "The new weights are pulled back to those of the round before.",
        "ServerContext",
        _call("Tree", "Tree", "tree.axpy(self.strength, tree.sub(ctx.cohort.anchor, x), x)"),
    ),
    "average": _Slot(
        "Average",
        "Weights are mixed with those that were handed out before.",
        "ServerContext",
        """\
    def init(self, params: Tree) -> Tree:
        return params  # what was handed out last, [D]

    def __call__(self, x: Tree, state: Tree, ctx: ServerContext) -> tuple[Tree, Tree]:
        mixed = tree.axpy(self.strength, tree.sub(state, x), x)
        return mixed, mixed""",
    ),
    "buffers": _Slot(
        "Buffers",
        "The clients' mean is mixed with the statistics before the round.",
        "Cohort",
        """\
    def start(self, before: Tree, cohort: Cohort) -> Tree:
        mean = tree.weighted_sum(cohort.weights, cohort.buffers)
        return tree.axpy(self.strength, tree.sub(before, mean), mean)""",
        attributes="    reads_buffers = True\n\n",
    ),
}
_TEST = '''
"""$title: a round by hand, its limiting case, its range."""

import pytest
import torch

from fedrepro.engine.loop import train
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from tests import toy

PLAIN = {"client_momentum": 0.0, "weight_decay": 0.0}


def test_one_round_by_hand() -> None:
    """w starts at 1, client_lr is 0.1, the loss is w x: gradients are 2, 2 (client 0) and -1 (client 1), whatever w is.

    $derivation
    """
    task = toy.linear_task(1, **PLAIN)
    found = train(task, toy.linear("$name(strength=0.5)")).params.flat
    assert found.tolist() == pytest.approx([$expected], abs=1e-12)


def test_without_strength_it_is_fedavg() -> None:
    """To the bit, over the rounds of the toy task."""
    task = toy.make_task()
    found, plain = (train(task, compose(text)).params.flat for text in ("$name(strength=0)", "fedavg"))
    torch.testing.assert_close(found, plain, rtol=0, atol=0)


def test_the_range_of_its_argument() -> None:
    with pytest.raises(UserError, match=r"$name: strength = 2[.]0: must lie in"):
        compose("$name(strength=2)")
'''
_SERVER_ROUND = """Updates are -0.4 and 0.1, of 2/3 and 1/3 of the samples, -0.7/3 in the mean. At strength 0.5
    half of that way is left."""
_CLIENT_ROUND = """Client 0 steps to 0.8, then along 2 + 0.5 * (0.8 - 1) = 1.9 to 0.61; client 1 to 1.1. Updates are
    -0.39 and 0.1, of 2/3 and 1/3 of the samples."""
_TEST_OF_BUFFERS = '''
"""$title: running statistics by hand, its limiting case, its range."""

import pytest
import torch

from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.tree import Layout, Tree
from fedrepro.types import Cohort

LAYOUT, NONE = Layout.of({"running_mean": (2,)}), Layout.of({})
BEFORE = Tree(LAYOUT, torch.tensor([1.0, 1.0], dtype=torch.float64))
COHORT = Cohort(
    clients=[0, 1],
    updates=Tree(NONE, torch.zeros(2, 0, dtype=torch.float64)),
    weights=torch.tensor([0.75, 0.25], dtype=torch.float64),
    num_steps=torch.ones(2, dtype=torch.float64),
    effective_steps=torch.ones(2, dtype=torch.float64),
    fraction=1.0,
    population=2,
    anchor=Tree(NONE, torch.zeros(0, dtype=torch.float64)),
    buffers=Tree(LAYOUT, torch.tensor([[4.0, 0.0], [0.0, 4.0]], dtype=torch.float64)),
)


@pytest.mark.parametrize(("strength", "expected"), [(0.5, [2.0, 1.0]), (0.0, [3.0, 1.0])])
def test_by_hand(strength: float, expected: list[float]) -> None:
    """The clients' mean is 3/4 * (4, 0) + 1/4 * (0, 4) = (3, 1); half way to (1, 1) is (2, 1)."""
    found = compose(f"$name(strength={strength})").buffers.start(BEFORE, COHORT)
    assert found.flat.tolist() == pytest.approx(expected, abs=1e-12)


def test_without_strength_they_are_fedavgs() -> None:
    found, plain = (compose(text).buffers.start(BEFORE, COHORT).flat for text in ("$name(strength=0)", "fedavg"))
    torch.testing.assert_close(found, plain, rtol=0, atol=0)


def test_the_range_of_its_argument() -> None:
    with pytest.raises(UserError, match=r"$name: strength = 2[.]0: must lie in"):
        compose("$name(strength=2)")
'''


def files(root: Path, name: str, slot: str) -> Skeleton:
    """The part `name` of `slot`, and its test. UserError for a name that is taken or is none."""
    from fedrepro.errors import UserError
    from fedrepro.methods.parts import PARTS
    from fedrepro.methods.presets import PRESETS

    require_name("method", name)
    require_folder(root, f"src/fedrepro/methods/{slot}")
    require_folder(root, "tests/unit/methods")
    if name in PARTS.names() or name in PRESETS:
        raise UserError(
            f"new method {name}: there is a method of that name, see `fedrepro describe {name}`; choose another one"
        )
    part, test = Path("src/fedrepro/methods", slot, f"{name}.py"), Path("tests/unit/methods", f"test_{name}.py")
    steps = (
        f"edit {part} and {test}, then: python -m pytest -n 0 {test}",
        f"fedrepro run --method {name} --rounds 5 --seeds 8",
        "python -m tests.golden.regenerate --write    # its golden curve; commit it with the part",
        "docs/adding-a-method.md has the hooks of each slot, and what else belongs to a method",
    )
    return Skeleton({part: _part(name, slot), test: _test(name, slot)}, steps)


def _part(name: str, slot: str) -> str:
    one = _SLOTS[slot]
    cls = "".join(word.capitalize() for word in name.split("_"))
    own = {"idea": one.idea, "imports": one.imports, "base": one.base, "attributes": one.attributes, "body": one.body}
    return fill(_PART, title=title(name), slot=slot, name=name, cls=cls, **own)


def _test(name: str, slot: str) -> str:
    if slot == "buffers":
        return fill(_TEST_OF_BUFFERS, title=title(name), name=name)
    derivation, expected = (_CLIENT_ROUND, "1 - 0.68 / 3") if slot == "client" else (_SERVER_ROUND, "1 - 0.35 / 3")
    return fill(_TEST, title=title(name), name=name, derivation=derivation, expected=expected)
