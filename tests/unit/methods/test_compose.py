"""From a name to a method: slots, recipes, arguments, canonical names, and mistakes."""

from dataclasses import dataclass

import pytest
import torch

from fedrepro.errors import UserError
from fedrepro.methods import parts
from fedrepro.methods.compose import compose, expand, with_arguments
from fedrepro.methods.parts import PARTS, Aggregate, Average, LocalRule, Refine, ServerOpt, Transform
from fedrepro.methods.presets import DEFAULTS, PRESETS
from fedrepro.registry import parse
from fedrepro.tree import Layout, Tree
from fedrepro.types import Cohort
from tests import toy


def test_fedavg_is_the_default_of_every_slot() -> None:
    """The canonical name spells it out."""
    assert str(compose("fedavg")) == "local_sgd+mean+server_sgd(server_lr=1.0)"
    assert compose("fedavg").needs == frozenset()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("fedprox(mu=0.01)", "fedprox(mu=0.01)+mean+server_sgd(server_lr=1.0)"),
        ("fixed_gamma+fedprox", "fedprox(mu=0.001)+mean+server_sgd(server_lr=1.0)+fixed_gamma(gamma=0.97)"),
        ("fedavg+fixed_gamma(gamma=1)", "local_sgd+mean+server_sgd(server_lr=1.0)+fixed_gamma(gamma=1.0)"),
        (
            "fixed_gamma(gamma=0.9)+fixed_gamma(gamma=0.8)",
            "local_sgd+mean+server_sgd(server_lr=1.0)+fixed_gamma(gamma=0.9)+fixed_gamma(gamma=0.8)",
        ),
        (
            "fedlaw",
            "local_sgd+fedlaw(server_lr=0.005, server_epochs=100, halve_every=20, beta1=0.5, beta2=0.999)"
            "+server_sgd(server_lr=1.0)",
        ),
    ],
)
def test_canonical_names(text: str, canonical: str) -> None:
    """Parts in the order of a round, those that repeat in the order written, every argument spelt out. Hashes hang on it."""
    assert str(compose(text)) == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fedporx", "unknown method 'fedporx'; did you mean 'fedprox'?"),
        ("fedavg+fedlav", "did you mean 'fedlaw'?"),
        ("fedprox+local_sgd", "two parts for slot 'client', 'fedprox' and 'local_sgd'; keep one of them"),
        ("fedlaw+attentive_law", "two parts for slot 'aggregate', 'fedlaw' and 'attentive_law'"),
        ("fedprox(nu=1)", "fedprox: unknown argument 'nu'; Known: mu"),
        ("fedprox(mu=-1)", "fedprox: mu = -1.0: must be at least 0"),
        ("fixed_gamma(gamma=1.1)", "fixed_gamma: gamma = 1.1: must be greater than 0 and at most 1"),
        ("fixed_gamma(gamma=0)", "fixed_gamma: gamma = 0.0"),
        ("server_sgd(server_lr=0)", "server_sgd: server_lr = 0.0"),
        ("fedavg(mu=1)", "fedavg takes no arguments"),
        ("", "is not of the form"),
    ],
)
def test_mistakes_are_one_line(text: str, says: str) -> None:
    """What is wrong and what was meant."""
    with pytest.raises(UserError) as caught:
        compose(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_recipe_stands_for_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes expand, also inside recipes, and join with further parts."""
    monkeypatch.setitem(PRESETS, "proxgamma", "fedprox(mu=0.5)+fixed_gamma")
    monkeypatch.setitem(PRESETS, "outer", "proxgamma+fedlaw")
    assert [call.name for call in expand(parse("outer+adaptive_gws"))] == ["fedprox", "fixed_gamma", "fedlaw", "adaptive_gws"]
    assert compose("outer") == compose("fedprox(mu=0.5)+fixed_gamma+fedlaw")


def test_recipes_and_parts_do_not_share_names() -> None:
    """A recipe would hide the part."""
    assert not set(PRESETS) & set(PARTS.names())
    assert set(DEFAULTS.values()) <= set(PARTS.names())


def test_arguments_are_filled_in_below_what_the_text_says() -> None:
    """The text's own arguments win, null leaves the default, other parts' arguments do not matter."""
    arguments = {"fedprox": {"mu": 0.5}, "fixed_gamma": {"gamma": None}, "fedlaw": {"server_epochs": 1}}
    assert compose(with_arguments("fedprox+fixed_gamma", arguments)) == compose("fedprox(mu=0.5)+fixed_gamma")
    assert compose(with_arguments("fedprox(mu=0.1)", arguments)) == compose("fedprox(mu=0.1)")
    assert compose(with_arguments("fedavg", arguments)) == compose("fedavg")


def test_parts_act_in_the_order_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """client -> transform* -> absorb -> aggregate -> correct -> server_opt -> refine* -> average*, whatever the order of the
    name; each part gets its own state back and nobody else's."""
    log: list[str] = []
    monkeypatch.setattr(PARTS, "_classes", dict(PARTS._classes))
    layout = Layout.of({"w": (1,)})
    base = {
        "client": LocalRule,
        "transform": Transform,
        "aggregate": Aggregate,
        "server_opt": ServerOpt,
        "refine": Refine,
        "average": Average,
    }

    def note(part, step: str, state):
        log.append(f"{part.name}.{step}")
        assert state is None or state[0] == part.name
        return (part.name, 1 + (state[1] if state else 0))

    hooks = {
        "client": {
            "init_shared": lambda self, params: (self.name, 0),
            "absorb": lambda self, shared, cohort: note(self, "absorb", shared),
            "correct": lambda self, update, shared: (log.append(f"{self.name}.correct"), update)[1],
        },
        "transform": {"__call__": lambda self, cohort, state, ctx: (cohort, note(self, "call", state))},
        "aggregate": {
            "__call__": lambda self, cohort, ctx: (log.append(f"{self.name}.call"), Tree(layout, cohort.updates.flat[0]))[1]
        },
        "server_opt": {"__call__": lambda self, params, update, state: (params, note(self, "call", state))},
        "refine": {"__call__": lambda self, params, state, cohort, ctx: (params, note(self, "call", state))},
        "average": {"__call__": lambda self, params, state, ctx: (params, note(self, "call", state))},
    }
    for slot, cls in base.items():
        for number in (1, 2) if slot in parts.REPEATABLE else (1,):
            made = type(f"{slot}{number}", (cls,), {**hooks[slot], "init": lambda self, params: (self.name, 0)})
            parts.register(slot, f"{slot}{number}")(dataclass(frozen=True)(made))
    method = compose("average1+refine2+average2+refine1+server_opt1+aggregate1+transform2+transform1+client1")
    empty = Tree(Layout.of({}), torch.zeros(0))
    state = method.init(Tree(layout, torch.zeros(1)), empty)
    updates = Tree(layout, torch.ones(2, 1))
    cohort = Cohort([0, 1], updates, torch.tensor([0.5, 0.5]), torch.ones(2), 1.0, state.params, empty)
    for _ in range(2):
        state = method.apply(state, cohort, toy.server_context(toy.make_task()))
    one_round = [
        "transform2.call",
        "transform1.call",
        "client1.absorb",
        "aggregate1.call",
        "client1.correct",
        "server_opt1.call",
    ]
    assert log == [*one_round, "refine2.call", "refine1.call", "average1.call", "average2.call"] * 2
    assert state.shared == ("client1", 2)
    assert state.transforms == (("transform2", 2), ("transform1", 2))
    assert (state.server_opt, state.refines[0], state.averages[1]) == (("server_opt1", 2), ("refine2", 2), ("average2", 2))


def test_an_unknown_slot_is_a_bug() -> None:
    """Refused where the part is written, not in a user's run."""
    with pytest.raises(ValueError, match="slot"):
        parts.register("clients", "x")


def test_arguments_reach_the_parts_that_slots_take_by_default() -> None:
    """`server_sgd` is nowhere in "fedavg", yet its argument is filled in; what the text writes itself still wins."""
    given = {"server_sgd": {"server_lr": 0.5}, "fedprox": {"mu": 0.3}}
    assert str(compose(with_arguments("fedavg", given))) == "local_sgd+mean+server_sgd(server_lr=0.5)"
    assert str(compose(with_arguments("fedprox(mu=0.1)+server_sgd(server_lr=1)", given))) == (
        "fedprox(mu=0.1)+mean+server_sgd(server_lr=1.0)"
    )
