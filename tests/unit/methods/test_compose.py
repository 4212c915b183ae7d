"""From a name to a method: slots, recipes, arguments, canonical names and mistakes."""

from dataclasses import dataclass
from itertools import permutations

import pytest
import torch

from fedrepro.methods import parts
from fedrepro.methods.compose import compose, expand, with_arguments
from fedrepro.methods.parts import PARTS, Aggregate, Average, Buffers, LocalRule, Refine, Rescale, ServerOpt, Transform
from fedrepro.methods.presets import DEFAULTS, PRESETS
from fedrepro.registry import parse
from fedrepro.tree import Layout, Tree
from tests import toy
from tests.helpers.one_line import one_line

MEAN, STEP, BUFFERS = "mean(weighting=size)", "server_sgd(server_lr=1.0)", "mean_buffers(weighting=size)"
FEDAVG = f"local_sgd+{MEAN}+{STEP}+{BUFFERS}"
LEARNING = "server_epochs=100, halve_every=20, beta1=0.5, beta2=0.999"


def test_fedavg_is_the_default_of_every_slot() -> None:
    """The canonical name spells it out."""
    assert str(compose("fedavg")) == FEDAVG
    assert compose("fedavg").needs == frozenset()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("fedprox(mu=0.01)", f"fedprox(mu=0.01, steps=as_set)+{MEAN}+{STEP}+{BUFFERS}"),
        ("fixed_gamma+fedprox", f"fedprox(mu=0.001, steps=as_set)+{MEAN}+{STEP}+fixed_gamma(gamma=0.97)+{BUFFERS}"),
        ("fedavg+fixed_gamma(gamma=1)", f"local_sgd+{MEAN}+{STEP}+fixed_gamma(gamma=1.0)+{BUFFERS}"),
        (
            "fixed_gamma(gamma=0.9)+fixed_gamma(gamma=0.8)",
            f"local_sgd+{MEAN}+{STEP}+fixed_gamma(gamma=0.9)+fixed_gamma(gamma=0.8)+{BUFFERS}",
        ),
        ("fedlaw", f"local_sgd+fedlaw(server_lr=0.005, {LEARNING})+{STEP}+server_buffers"),
        (
            "adaptive_gws+server_sgd(server_lr=0.5)",
            f"local_sgd+{MEAN}+server_sgd(server_lr=0.5)+adaptive_gws(server_lr=0.005, {LEARNING})+server_buffers",
        ),
        (
            "feddyn",
            "feddyn(alpha=0.01, clip=10.0, norm=squared, weighting=uniform)+mean(weighting=uniform)"
            f"+{STEP}+mean_buffers(weighting=uniform)",
        ),
        (
            "first_client_buffers+feddyn+mean",
            f"feddyn(alpha=0.01, clip=10.0, norm=squared, weighting=uniform)+{MEAN}+{STEP}+first_client_buffers",
        ),
        ("fedlaw+mean_buffers", f"local_sgd+fedlaw(server_lr=0.005, {LEARNING})+{STEP}+{BUFFERS}"),
    ],
)
def test_canonical_names(text: str, canonical: str) -> None:
    """Parts are in the order of a round, repeated ones in the order written, with every argument spelt out. Hashes depend on
    it."""
    assert str(compose(text)) == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fedporx", "unknown method 'fedporx'; did you mean 'fedprox'?"),
        ("fedavg+fedlav", "did you mean 'fedlaw'?"),
        ("fedprox+local_sgd", "two parts for slot 'client', 'fedprox' and 'local_sgd'; keep one of them"),
        ("fedlaw+attentive_law", "two parts for slot 'aggregate', 'fedlaw' and 'attentive_law'"),
        ("fedprox(nu=1)", "fedprox: unknown argument 'nu'; Known: mu"),
        ("fedavg(mu=1)", "fedavg takes no arguments"),
        ("", "is not of the form"),
    ],
)
def test_mistakes_are_one_line(text: str, says: str) -> None:
    """The line says what is wrong and what was probably meant."""
    with one_line() as caught:
        compose(text)
    assert says in str(caught.value)


def test_a_recipe_stands_for_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes expand, also inside recipes, and combine with further parts."""
    monkeypatch.setitem(PRESETS, "proxgamma", "fedprox(mu=0.5)+fixed_gamma")
    monkeypatch.setitem(PRESETS, "outer", "proxgamma+fedlaw")
    assert [call.name for call in expand(parse("outer+adaptive_gws"))] == ["fedprox", "fixed_gamma", "fedlaw", "adaptive_gws"]
    assert compose("outer") == compose("fedprox(mu=0.5)+fixed_gamma+fedlaw")


def test_recipes_and_parts_do_not_share_names() -> None:
    """A recipe would hide a part of the same name."""
    assert not set(PRESETS) & set(PARTS.names())
    assert set(DEFAULTS.values()) <= set(PARTS.names())


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("fedavg", "fedavg"),
        ("mean+server_sgd+local_sgd+mean_buffers", "fedavg"),
        ("fixed_gamma+fedprox", "fedprox+fixed_gamma"),
        ("fedprox(mu=0.5)", "fedprox"),
        ("fedlaw", "fedlaw"),
        ("fedlaw+server_buffers", "fedlaw"),  # the part that it wants anyway
        ("fedlaw+mean_buffers", "fedlaw+mean_buffers"),  # the default of FedAvg, but not of FedLAW
        ("server_buffers", "server_buffers"),
        ("feddyn", "feddyn"),
        ("feddyn+mean(weighting=uniform)+mean_buffers(weighting=uniform)", "feddyn"),
        ("feddyn+mean", "feddyn+mean"),
        ("mean(weighting=uniform)", "mean"),
        ("server_sgd(server_lr=0.5)", "server_sgd"),
        ("fixed_gamma+fixed_gamma", "fixed_gamma+fixed_gamma"),
        ("fedbe+server_ft+fedadam+fedlaw_swa+feddyn", "feddyn+fedlaw_swa+fedadam+fedbe+server_ft"),
    ],
)
def test_labels_leave_out_what_an_open_slot_takes(text: str, label: str) -> None:
    """Parts are in the order of a round. The label names the same method again, up to arguments."""
    method = compose(text)
    assert method.label == label
    assert {part.name for part in compose(method.label).parts} == {part.name for part in method.parts}
    assert compose(str(method)).label == label


@pytest.mark.parametrize("text", ["fedlaw+feddyn", "adaptive_gws+feddyn", "feddyn+fedlaw_swa+adaptive_gws", "feddf+feddyn"])
def test_the_order_in_which_slots_are_written_changes_nothing(text: str) -> None:
    """`a+b` is `b+a` unless both are in a slot that repeats. This holds also if both want a part in a third slot."""
    calls = text.split("+")
    assert {str(compose("+".join(order))) for order in permutations(calls)} == {str(compose(text))}


WANTING = {text: part.wants for text in toy.PART_METHODS for part in [PARTS.make(parse(text)[0])] if part.wants}


@pytest.mark.parametrize("text", WANTING)
def test_what_a_part_wants_yields_to_what_is_written(text: str) -> None:
    """An open slot takes the wanted part, and a written part stays, in any order. Wanted parts fit their slots."""
    for slot, wanted in WANTING[text].items():
        (call,) = parse(wanted)
        assert PARTS.make(call).slot == slot
        assert PARTS.make(call) in compose(text).parts
        assert str(PARTS.canonical(PARTS.make(call))) in str(compose(text)).split("+")
        others = [other for other in PARTS.names() if PARTS.get(other).slot == slot and other != call.name]
        assert others
        for other in others:
            method = compose(f"{other}+{text}")
            assert PARTS.make(call) not in method.parts
            assert compose(f"{text}+{other}") == compose(str(method)) == method


def test_feddyn_wants_means_weighted_as_it_is() -> None:
    """The weighting of FedDyn's arguments decides. If two parts set a default for the same slot, the part in the later slot
    decides."""
    sizes = compose("feddyn(weighting=size)")
    assert compose("feddyn(weighting=size)+mean(weighting=size)+mean_buffers(weighting=size)") == sizes
    assert compose("feddyn+mean(weighting=uniform)+mean_buffers(weighting=uniform)") == compose("feddyn")
    assert compose("feddyn+fedlaw") == compose("feddyn+fedlaw+server_buffers")
    assert compose("feddyn+adaptive_gws") == compose("feddyn+mean(weighting=uniform)+adaptive_gws+server_buffers")


def test_arguments_are_filled_in_below_what_the_text_says() -> None:
    """Arguments in the text take precedence, null keeps the default, and arguments of other parts are ignored."""
    arguments = {"fedprox": {"mu": 0.5}, "fixed_gamma": {"gamma": None}, "fedlaw": {"server_epochs": 1}}
    assert compose(with_arguments("fedprox+fixed_gamma", arguments)) == compose("fedprox(mu=0.5)+fixed_gamma")
    assert compose(with_arguments("fedprox(mu=0.1)", arguments)) == compose("fedprox(mu=0.1)")
    assert compose(with_arguments("fedavg", arguments)) == compose("fedavg")


def test_parts_act_in_the_order_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """client -> transform* -> absorb -> aggregate -> rescale* -> correct -> server_opt -> refine* -> average*, in any order of
    the name. Each part gets only its own state back. Statistics are set before all of it and finished after it."""
    log: list[str] = []
    monkeypatch.setattr(PARTS, "_classes", dict(PARTS._classes))
    layout = Layout.of({"w": (1,)})
    base = {
        "client": LocalRule,
        "transform": Transform,
        "aggregate": Aggregate,
        "rescale": Rescale,
        "server_opt": ServerOpt,
        "refine": Refine,
        "average": Average,
        "buffers": Buffers,
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
        "transform": {"__call__": lambda self, x, state, ctx: (x, note(self, "call", state))},
        "aggregate": {"__call__": lambda self, x, state, ctx: (Tree(layout, x.updates.flat[0]), note(self, "call", state))},
        "rescale": {"__call__": lambda self, x, state, ctx: (x, note(self, "call", state))},
        "server_opt": {"__call__": lambda self, x, state, ctx: (x, note(self, "call", state))},
        "refine": {"__call__": lambda self, x, state, ctx: (x, note(self, "call", state))},
        "average": {"__call__": lambda self, x, state, ctx: (x, note(self, "call", state))},
        "buffers": {
            "start": lambda self, before, cohort: (log.append(f"{self.name}.start"), before)[1],
            "finish": lambda self, params, buffers, ctx: (log.append(f"{self.name}.finish"), buffers)[1],
        },
    }
    for slot, cls in base.items():
        for number in (1, 2) if slot in parts.REPEATABLE else (1,):
            made = type(f"{slot}{number}", (cls,), {**hooks[slot], "init": lambda self, params: (self.name, 0)})
            parts.register(slot, f"{slot}{number}")(dataclass(frozen=True)(made))
    method = compose(
        "average1+rescale2+refine2+average2+rescale1+refine1+server_opt1+aggregate1+buffers1+transform2+transform1+client1"
    )
    empty = Tree(Layout.of({}), torch.zeros(0))
    state = method.init(Tree(layout, torch.zeros(1)), empty)
    cohort = toy.cohort(Tree(layout, torch.ones(2, 1)), anchor=state.params)
    for _ in range(2):
        state = method.apply(state, toy.server_context(toy.make_task(), cohort))
    one_round = [
        "buffers1.start",
        "transform2.call",
        "transform1.call",
        "client1.absorb",
        "aggregate1.call",
        "rescale2.call",
        "rescale1.call",
        "client1.correct",
        "server_opt1.call",
    ]
    assert log == [*one_round, "refine2.call", "refine1.call", "average1.call", "average2.call", "buffers1.finish"] * 2
    assert state.shared == ("client1", 2)
    assert state.parts == {
        "transform": (("transform2", 2), ("transform1", 2)),
        "aggregate": (("aggregate1", 2),),
        "rescale": (("rescale2", 2), ("rescale1", 2)),
        "server_opt": (("server_opt1", 2),),
        "refine": (("refine2", 2), ("refine1", 2)),
        "average": (("average1", 2), ("average2", 2)),
    }


def test_arguments_reach_the_parts_that_slots_take_by_default() -> None:
    """The name "fedavg" does not contain `server_sgd`, but its argument is filled in. Arguments in the text still win."""
    given = {"server_sgd": {"server_lr": 0.5}, "fedprox": {"mu": 0.3}}
    assert compose(with_arguments("fedavg", given)) == compose("server_sgd(server_lr=0.5)")
    assert compose(with_arguments("fedprox(mu=0.1)+server_sgd(server_lr=1)", given)) == compose("fedprox(mu=0.1)")


def test_arguments_fill_in_below_what_a_part_wants() -> None:
    """FedDyn wants a uniform mean. A parameter for `mean` does not change that, unless `mean` is written. Other parts get
    theirs."""
    given = {"mean": {"weighting": "size"}, "mean_buffers": {"weighting": "size"}, "feddyn": {"alpha": 0.5}}
    assert compose(with_arguments("feddyn", given)) == compose("feddyn(alpha=0.5)")
    assert compose(with_arguments("feddyn+mean", given)) == compose("feddyn(alpha=0.5)+mean(weighting=size)")
    uniform = {"mean": {"weighting": "uniform"}}
    assert compose(with_arguments("fedprox", uniform)) == compose("fedprox+mean(weighting=uniform)")
