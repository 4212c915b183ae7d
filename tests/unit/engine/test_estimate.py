"""How long a run takes: the arithmetic by hand, with a clock of our own; and that every method can be measured at all."""

import dataclasses
import math
from pathlib import Path

import pytest

from fedrepro.data.registry import load_registry
from fedrepro.engine import estimate
from fedrepro.engine.bench import with_passes
from fedrepro.engine.estimate import Affine, Rates, image_counts, makespan
from fedrepro.engine.spec import RunSpec
from fedrepro.files import write_json
from fedrepro.methods.compose import compose
from tests import client_rules, toy

ROOT = Path(__file__).parents[3]
SETTING = {"model": "mlp", "clients": 10, "local_epochs": 2, "rounds": 3, "batch_size": 40, "proxy_batch_size": 64}


def spec(method: str = "fedavg", **changes) -> RunSpec:
    """10 clients, 2 epochs, 3 rounds, batches of 40, 30 proxy images of 3 classes, on the toy's images."""
    values = SETTING | {"participation": 0.5, "local_validation": 0.2, "proxy_per_class": 10} | changes
    return toy.make_spec(**values, method=str(compose(method)))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What a measurement answers, by what is measured: nothing is run."""
    answers = dict.fromkeys(("steps", "image", "forward", "server", "pass", "probe", "probed", "own", "owned"), 0.0)
    bench = estimate.Bench
    monkeypatch.setattr(bench, "steps", lambda self, size, count: count * (answers["steps"] + size * answers["image"]))
    monkeypatch.setattr(bench, "forward", lambda self, count: count * answers["forward"])
    monkeypatch.setattr(bench, "server", lambda self, cohort, proxy, passes: answers["server"] + passes * answers["pass"])
    monkeypatch.setattr(bench, "probes", lambda self, size: answers["probe"] + size * answers["probed"])
    monkeypatch.setattr(bench, "personal", lambda self, size: answers["own"] + size * answers["owned"])
    monkeypatch.setattr(estimate, "fastest_seconds", lambda answer, device, enough_s: answer)
    return answers


def test_a_run_by_hand(clock: dict[str, float]) -> None:
    """1000 images, a fifth held out: each round 5 of 10 clients train 80 images twice, 800 in all, in 800 / 40 full batches and
    5 * 2 / 2 halves of one. With 0.01 s a step and 0.001 s an image: 0.25 + 0.8 s. Evaluation: 200 - 30 images at 0.002 s, or
    all 200 with the proxy set's."""
    clock |= {"steps": 0.01, "image": 0.001, "forward": 0.002}
    assert Rates().seconds(spec(), 1000, 200) == pytest.approx(3 * (0.25 + 0.8 + 0.34))
    assert Rates().seconds(spec(evaluate_proxy=True), 1000, 200) == pytest.approx(3 * (0.25 + 0.8 + 0.4))
    more = Rates().seconds(spec(evaluate_train=True), 1000, 200) - Rates().seconds(spec(), 1000, 200)
    assert more == pytest.approx(3 * 0.4 * 1000 * (1 - spec().local_validation) / 200)


@pytest.mark.parametrize(
    ("calls", "images"),
    [
        (["plane(points=3)"], (9 + 5) * 170),
        (["line(points=9, samples=50)", "ensemble"], (9 + 2) * 50 + (5 + 1) * 170),
        (["cka(on=train, samples=5000)"], 5 * 800),  # no more than there are
        (["decomposition(draws=2)"], 5 * 800 + 2 * 6 * 170),
        (["client_distance"], 0),
        ([], 0),
    ],
)
def test_diagnostics_by_hand(calls: list[str], images: int, clock: dict[str, float]) -> None:
    """200 - 30 test images, 800 training images, 5 clients a round, 3 kept rounds, at 0.002 s an image."""
    clock |= {"forward": 0.002}
    assert Rates().measuring(spec(), calls, 3, 1000, 200) == pytest.approx(3 * images * 0.002)


def test_a_server_by_hand(clock: dict[str, float]) -> None:
    """Half a second, and 100 passes of 0.02 s, however few of them were measured; Server-FT has its two."""
    clock |= {"server": 0.5, "pass": 0.02}
    assert Rates().seconds(spec("feddf"), 1000, 200) == pytest.approx(3 * (0.5 + 100 * 0.02))
    assert Rates().seconds(spec("feddf+proxy_buffers(passes=7)"), 1000, 200) == pytest.approx(3 * (0.5 + 100 * 0.02))
    assert Rates().seconds(spec("server_ft"), 1000, 200) == pytest.approx(3 * (0.5 + 2 * 0.02))


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods that measure and personalise, by the names of `tests.client_rules`."""
    monkeypatch.setattr(estimate, "compose", lambda text: client_rules.METHODS.get(text) or compose(text))


@pytest.mark.usefixtures("toys")
def test_what_clients_do_on_held_out_samples_by_hand(clock: dict[str, float]) -> None:
    """1000 images, a fifth held out, 5 of 10 clients a round. A cohort measures on 100 samples, in 100 / 40 full batches and 5
    halves of one: 5 batches, each 0.01 s and 0.001 s a sample. Every client's own model: 800 samples in 800 / 40 + 5 = 25
    batches, each 0.02 s and 0.003 s a sample; evaluated on 200 at 0.002 s. Evaluated after rounds 2 and 3 of 3."""
    clock |= {"probe": 0.01, "probed": 0.001, "own": 0.02, "owned": 0.003, "forward": 0.002}
    tests = 2 * 170 * 0.002
    probed, personal = 3 * (5 * 0.01 + 100 * 0.001), 2 * (25 * 0.02 + 800 * 0.003 + 200 * 0.002)
    for method, expected in (("sensitivity", probed), ("personal", personal), ("all", probed + personal), ("own_momentum", 0)):
        made = dataclasses.replace(spec(evaluate_every=2), method=method)
        assert Rates().seconds(made, 1000, 200) == pytest.approx(tests + expected)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("method", ["all", "meta_hessian_free"])
def test_client_rules_to_come_are_measured(method: str) -> None:
    """By running them, probes and own models included, and steps of several batches."""
    rates = Rates(limit_s=1e-3)
    rates.spent_s = -math.inf
    made = dataclasses.replace(spec(), method=method)
    assert rates.seconds(made, 1000, 200) > 0
    assert {key[0] for key in rates._steps} >= ({"probes", "personal"} if method == "all" else set())


def test_epochs_of_a_schedule_are_counted(clock: dict[str, float]) -> None:
    """4, 3 and 2 epochs instead of 2: 9 / 6 of the steps."""
    clock |= {"steps": 0.01, "image": 0.001}
    usual, scheduled = (Rates().seconds(spec(**c), 1000, 200) for c in ({}, {"local_epochs": 4, "epochs": "fewer(every=1)"}))
    assert scheduled == pytest.approx(1.5 * usual)


def test_when_time_is_up_passes_cost_as_much_as_local_training(clock: dict[str, float]) -> None:
    """No more is measured of the server: 100 passes over 30 images in one batch, at 0.01 s a step and 0.001 s an image."""
    clock |= {"steps": 0.01, "image": 0.001, "server": 1e9}
    local = 25 * 0.01 + 800 * 0.001
    rates = Rates(limit_s=0.0)
    assert rates.seconds(spec("fedlaw"), 1000, 200) == pytest.approx(3 * (local + 100 * (0.01 + 30 * 0.001)))
    clock["steps"] = 1e9
    again = rates.seconds(spec("fedprox+fedlaw"), 1000, 200)
    assert again == pytest.approx(3 * (local + 100 * (0.01 + 30 * 0.001))), "another client rule on the same model"


def test_two_gradients_a_step_cost_twice(clock: dict[str, float]) -> None:
    """FedASAM's images by FedAvg's, of which only the overhead is measured anew: 0.01 s a step, 2 x 0.001 s an image. FedAvg's
    by FedASAM's, once time is up: half of what that took."""
    clock |= {"steps": 0.01, "image": 0.001}
    rates = Rates()
    rates.seconds(spec(), 1000, 200)
    clock |= {"image": 0.002}
    assert rates.seconds(spec("fedasam"), 1000, 200) == pytest.approx(3 * (25 * 0.01 + 800 * 0.002))
    rates = Rates()
    asam = rates.seconds(spec("fedasam"), 1000, 200)
    rates.spent_s = rates.limit_s
    assert rates.seconds(spec(), 1000, 200) == pytest.approx(asam / 2)


METHODS = [
    "fedavg",
    "fedprox",
    "fedasam",
    "fedfa",
    "feddyn",
    "fedlaw_swa",
    "feddf",
    "fedbe",
    "server_ft",
    "fedavg+proxy_buffers",
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", ["mlp", "resnet8"])
def test_every_method_is_measured_by_running_it(method: str, model: str) -> None:
    """On images made up here, with and without BatchNorm; twice the rounds take exactly twice as long by the same rates."""
    rates = Rates(limit_s=1e-3)
    rates.spent_s = -math.inf  # never out of time
    once = rates.seconds(spec(method, model=model), 1000, 200)
    assert 0 < once < math.inf
    assert rates.seconds(spec(method, model=model, rounds=6), 1000, 200) == pytest.approx(2 * once)


def test_shortening_touches_passes_alone() -> None:
    """Parts with fewer passes, and all other arguments, stay as they are."""
    method = compose("feddyn+fedlaw(server_lr=0.5)+server_ft+proxy_buffers(passes=50)")
    short = with_passes(method, 4)
    passes = [part.server_epochs for part in (short.aggregate, *short.refines)] + [short.buffers.passes]
    assert passes == [4, 2, 4]
    assert short.client == method.client
    assert dataclasses.replace(short.aggregate, server_epochs=100) == method.aggregate


def test_a_line_through_two_measurements() -> None:
    """0.3 s for 10 and 0.5 s for 20: 0.1 + 0.02 a piece. Noise that points downwards gives no negative cost."""
    assert Affine.through((10, 0.3), (20, 0.5)) == Affine(pytest.approx(0.1), pytest.approx(0.02))
    assert Affine.through((10, 0.6), (20, 0.5)) == Affine(0.5, 0.0)
    assert Affine.through((10, 0.1), (20, 0.5)).overhead == 0.0
    assert Affine.through((1, 0.5), (1, 0.5)).seconds(3) == pytest.approx(1.5)


@pytest.mark.parametrize(("slots", "seconds"), [(1, 18.0), (2, 10.0), (3, 7.0), (9, 7.0)])
def test_makespan_by_hand(slots: int, seconds: float) -> None:
    """7, 5, 3, 3 with two slots: 7 + 3 and 5 + 3; the longest job alone is the least."""
    assert makespan([3.0, 7.0, 3.0, 5.0], slots) == seconds
    assert makespan([], slots) == 0


def test_how_many_images_there_are(tmp_path: Path) -> None:
    """From the registry; or else from prepared arrays of any shape; unknown where neither says."""
    entry = load_registry(ROOT / "data" / "registry.yaml")["digits"]
    assert image_counts(tmp_path, entry) == (1297, 500)
    silent = entry.model_copy(update={"images": None})
    assert image_counts(tmp_path, silent) is None
    write_json(tmp_path / "data/arrays/digits/1x28x28/manifest.json", {"counts": {"train": 7, "test": 3}})
    assert image_counts(tmp_path, silent) == (7, 3)
