"""Forecasts from published seeds, worked out by hand, and the time and memory requested on a cluster."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fedrepro.cost import needs
from fedrepro.cost.forecast import Forecast, Job
from fedrepro.cost.needs import EMBEDDED, MARGIN_MEMORY, MARGIN_TIME, START_MIB, START_MINUTES, UNKNOWN, Needs
from fedrepro.cost.rates import Rates
from fedrepro.data.registry import REGISTRY, load_registry

ROOT = Path(__file__).parents[3]
DATA = load_registry(ROOT / REGISTRY)
MNIST = 60_000 + 10_000 / 3  # a full pass with its evaluation, in trained samples: an evaluated sample counts a third


def settings(**changed: Any) -> dict[str, Any]:
    """The settings of a run whose rounds train on all of MNIST and evaluate once."""
    usual = {"dataset": "mnist", "model": "cnn", "input_shape": [1, 28, 28], "method": "a", "rounds": 100, "batch_size": 10}
    return usual | {"local_epochs": 1, "participation": 1.0, "local_validation": 0.0} | changed


@pytest.mark.parametrize(
    ("call", "changed", "samples"),
    [
        ("averaged_models(orders=1)", {"participation": 0.5}, 10 * 10_000),  # a model for each of the cohort's ten clients
        ("averaged_models(orders=1)", {}, 20 * 10_000),
        ("rescaled(points=5, on=train)", {"local_validation": 0.3}, 5 * 42_000),  # held-out samples are not measured
        ("rescaled(points=5, on=train, samples=1000)", {}, 5 * 1000),
    ],
)
def test_the_time_of_a_diagnostic_is_that_of_its_evaluations(
    call: str, changed: dict[str, Any], samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training of 100 rounds with 1,000 samples each takes 300,000 s, so a sample takes 3 s, and an evaluated one a third."""
    rates = Rates(ROOT, DATA)
    monkeypatch.setattr(rates, "seconds", lambda config, device: 300_000.0)
    monkeypatch.setattr(rates, "work", lambda config: 1000.0)
    assert rates.measuring(settings(clients=20, **changed), call) == pytest.approx(samples)


def publish(root: Path, name: str, config: dict[str, Any], wall_s: float, mib: float, device: str = "cpu", **env: Any) -> None:
    """Writes the cost of a published seed of a hundred rounds."""
    path = root / f"reports/full/paper/evidence/{config['dataset']}-{config['model']}-{name}/seed8.json"
    path.parent.mkdir(parents=True)
    cost, curves = {"wall_s": wall_s, "peak_rss_mib": mib}, {"round": list(range(100))}
    path.write_text(json.dumps({"config": config, "cost": cost, "environment": {"device": device, **env}, "curves": curves}))


@pytest.fixture
def rates(tmp_path: Path) -> Rates:
    """A round takes 1 s, with method b 4 s, with a fifth of the clients 0.2 s, on a GPU 0.1 s."""
    publish(tmp_path, "one", settings(), 100, 500)
    publish(tmp_path, "slow", settings(method="b"), 400, 900)
    publish(tmp_path, "light", settings(participation=0.2), 20, 400)
    publish(tmp_path, "gpu", settings(), 10, 2000, "cuda")
    publish(tmp_path, "wide-x", settings(model="cnn-wide"), 9999, 9999)  # this folder's name has `-cnn-` in it too
    publish(tmp_path, "large", settings(input_shape=[3, 32, 32]), 9999, 9999)
    (tmp_path / "reports/full/paper/evidence/mnist-cnn-broken").mkdir()
    (tmp_path / "reports/full/paper/evidence/mnist-cnn-broken/seed8.json").write_text("{")
    return Rates(tmp_path, DATA)


@pytest.mark.parametrize(
    ("changed", "device", "seconds", "at_most"),
    [
        ({}, "cpu", 100, (100, 500)),  # the same settings
        ({"rounds": 250}, "cpu", 250, (250, 500)),  # 1 s a round
        ({"method": "b"}, "cpu", 400, (400, 900)),
        ({"method": "b(x=2)"}, "cpu", 400, (400, 900)),  # arguments of a method do not matter
        ({"method": "local_sgd+mean"}, "cpu", 100, (400, 900)),  # FedAvg: every other method does as much work or more
        ({"method": "new"}, "cpu", 100, (400, 900)),  # seconds: the fastest method with as much work; at_most: the slowest
        ({"local_epochs": 2}, "cpu", 100 * (MNIST + 60_000) / MNIST, (100 * (MNIST + 60_000) / MNIST, 500)),
        ({"evaluate_every": 10}, "cpu", 100 * (60_000 + 1_000 / 3) / MNIST, (100, 500)),  # less work keeps the upper limit
        ({"local_validation": 0.8}, "cpu", 20, (20, 400)),  # a fifth of the samples, as with a fifth of the clients
        ({"batch_size": 20}, "cpu", 100, (100, 500)),
        ({"dataset": "fashion_mnist"}, "cpu", 100, (100, 500)),  # as many images of the same shape in the same network
        ({}, "cuda", 10, (10, 2000)),
    ],
)
def test_a_seed_takes_what_its_like_took(
    changed: dict, device: str, seconds: float, at_most: tuple[float, float], rates: Rates
) -> None:
    """The seconds, worked out by hand from the seeds of `rates`. Time is proportional to trained samples plus a third of
    evaluated samples."""
    assert rates.seconds(settings(**changed), device) == pytest.approx(seconds)
    assert rates.at_most(settings(**changed), device) == pytest.approx(at_most)


def test_the_servers_training_is_work(rates: Rates) -> None:
    """40 epochs on 1,500 proxy images add 60,000 samples, as a client epoch does. 40 forward passes add a third of that."""
    proxy = {"proxy_per_class": 150, "classes": 10}
    for call, more in (("a(server_epochs=40)", 60_000), ("a+proxy_buffers(passes=40)", 20_000)):
        assert rates.work(settings(method=call, **proxy)) == pytest.approx(MNIST + more)
        assert rates.seconds(settings(method=call, **proxy)) == pytest.approx(100 * (MNIST + more) / MNIST)


def test_the_fastest_quarter_of_many_counts(tmp_path: Path) -> None:
    """With up to three seeds the fastest counts, with four to seven the second fastest."""
    for number, wall_s in enumerate((120, 40, 100, 110)):
        publish(tmp_path, f"run{number}", settings(), wall_s, 500)
        assert Rates(tmp_path, DATA).seconds(settings()) == (120, 40, 40, 100)[number]


def test_what_this_folder_has_trained_corrects_a_forecast(rates: Rates, tmp_path: Path) -> None:
    """Two trainings here took three and five times as long as published ones. The factor is three, the less disturbed one. A
    third took twice as long, but at 20 s it was too short to count. Other networks and devices keep their times, and so do
    requests to a cluster."""
    for name, like, wall_s in (("mine", "one", 300), ("busy", "one", 500), ("short", "light", 40)):
        path = tmp_path / f"results/runs/mnist-cnn-{name}/seed8.json"
        path.parent.mkdir(parents=True)
        found = json.loads((tmp_path / f"reports/full/paper/evidence/mnist-cnn-{like}/seed8.json").read_text())
        path.write_text(json.dumps(found | {"cost": {"wall_s": wall_s, "peak_rss_mib": 1}}))
    assert rates.slower("cnn") == 3
    assert rates.seconds(settings()) == 300
    assert rates.seconds(settings(participation=0.2)) == pytest.approx(60)
    assert rates.seconds(settings(), "cuda") == 10
    assert rates.seconds(settings(model="cnn-wide")) == pytest.approx(9999)
    assert rates.at_most(settings()) == (100, 500)


def test_where_nothing_is_published_own_trainings_tell(rates: Rates, tmp_path: Path) -> None:
    """An example is digits in scale demo: the published runs of this network have 43 times as much work, too much for a
    forecast. A round trained here took 0.03 s."""
    small, mine = settings(dataset="digits", model="cnn-wide"), tmp_path / "results/runs/digits-cnn-wide-own/seed8.json"
    assert rates.seconds(small) is None
    publish(tmp_path, "own", small, 3, 100)
    mine.parent.mkdir(parents=True)
    (tmp_path / "reports/full/paper/evidence/digits-cnn-wide-own/seed8.json").rename(mine)
    rates = Rates(tmp_path, DATA)
    assert rates.seconds(small | {"rounds": 8}) == pytest.approx(0.24)
    assert rates.slower("cnn-wide") == 1
    assert rates.at_most(small) is None  # requests to a cluster do not use trainings here
    run = {"run_id": "one", "method": "fedavg", "config": small | {"partition": "iid"}}
    total = "about 5.0 s on one core, by runs trained here"  # 0.24 s and two starts
    assert Forecast([Job(run, [8], {}, [])], rates, "cpu").lines(1)[-1] == total


def test_seeds_of_the_same_processor_count_first(tmp_path: Path) -> None:
    """The forecast for another processor uses the fastest time of all processors."""
    publish(tmp_path, "epyc", settings(), 100, 500, processor="AMD EPYC")
    publish(tmp_path, "xeon", settings(), 300, 600, processor="Intel Xeon")
    publish(tmp_path, "old", settings(), 50, 400)  # recorded before evidence named the processor
    seconds = {name: Rates(tmp_path, DATA, name).seconds(settings()) for name in ("AMD EPYC", "Intel Xeon", "another", None)}
    assert seconds == {"AMD EPYC": 100, "Intel Xeon": 300, "another": 50, None: 50}


def test_workers_are_no_faster_core(tmp_path: Path) -> None:
    """Two workers took 60 s, which is at most 120 s of processor time. One alone took 100 s on a core of the same speed. The
    recorded memory is that of all workers."""
    publish(tmp_path, "alone", settings(), 100, 500, workers=1)
    publish(tmp_path, "shared", settings(), 60, 500, workers=2)
    publish(tmp_path, "shared", settings(model="lstm"), 60, 500, workers=2)
    rates = Rates(tmp_path, DATA)
    assert rates.seconds(settings()) == 100
    assert rates.seconds(settings(model="lstm")) == 120
    assert rates.at_most(settings(model="lstm")) == (120, 250)
    assert needs.of(rates, settings(model="lstm"), "cpu", seeds=1, workers=2).mem_mb == START_MIB + MARGIN_MEMORY * 500


def test_what_is_not_known_is_not_guessed(rates: Rates) -> None:
    """There is no time for another network, another shape, 28 times the work or a data set of unknown size. A CPU's time is an
    upper limit on a GPU and no forecast."""
    for changed in ({"model": "resnet"}, {"input_shape": [1, 64, 64]}, {"dataset": "nothing"}, {"local_epochs": 30}):
        assert rates.seconds(settings(**changed)) is rates.at_most(settings(**changed)) is None
    assert rates.seconds(settings(model="cnn-wide"), "cuda") is None
    assert rates.at_most(settings(model="cnn-wide"), "cuda") == (9999, 9999)


def test_epochs_of_a_schedule_are_counted(rates: Rates) -> None:
    """4, 3 and 2 epochs in three rounds are as much work as three epochs in each."""
    config = settings(rounds=3, local_epochs=4, epochs="fewer(every=1)")
    assert rates.work(config) == rates.work(settings(local_epochs=3))


@pytest.mark.parametrize(
    ("call", "samples"),
    [
        ("plane(points=3)", (9 + 5) * 9_900),
        ("line(points=9, samples=50)", (9 + 2) * 50),
        ("ensemble", (5 + 1) * 9_900),
        ("cka(on=train, samples=90000)", 5 * 60_000),  # all training images
        ("decomposition(draws=2)", 5 * 60_000 + 2 * 6 * 9_900),
        ("client_distance", 0),
    ],
)
def test_diagnostics_take_a_third_of_training_on_as_many_samples(call: str, samples: int, rates: Rates) -> None:
    """Five clients, and 10,000 test images of which 100 are the proxy set. A round of MNIST takes 1 s."""
    config = settings(clients=5, proxy_per_class=10, classes=10)
    assert rates.measuring(config, call) == pytest.approx(samples / 3 / MNIST)
    assert rates.measuring(config | {"model": "other"}, call) is None


def test_seeds_workers_and_attempts_add_up(rates: Rates) -> None:
    """Time grows with seeds, memory with workers, and both with attempts. Short trainings on CPUs share a job."""
    one = needs.of(rates, settings(), "cpu", seeds=1)
    assert one == Needs(START_MIB + MARGIN_MEMORY * 500, math.ceil(START_MINUTES + MARGIN_TIME * 100 / 60), "short")
    many = needs.of(rates, settings(), "cpu", seeds=6, workers=2)
    assert many == Needs(START_MIB + MARGIN_MEMORY * 1000, math.ceil(START_MINUTES + MARGIN_TIME * 600 / 60), None)
    assert one.at(3) == Needs(3 * one.mem_mb, 3 * one.minutes, "short")
    assert needs.of(rates, settings(), "cuda", seeds=1).group is None


@pytest.mark.parametrize(("first", "second", "third"), [(600, 1200, 1440), (1500, 1500, 1500)])
def test_time_grows_with_attempts_up_to_a_day(first: int, second: int, third: int) -> None:
    """A first attempt that needs more than a day gets it, and so do further ones. Memory grows always."""
    asked = Needs(1000, first)
    assert [asked.at(attempt).minutes for attempt in (1, 2, 3)] == [first, second, third]
    assert asked.at(3).mem_mb == 3000


def test_a_gpu_job_has_the_memory_of_cuda(tmp_path: Path) -> None:
    """Only a run on a CPU is published, which took 500 MiB."""
    publish(tmp_path, "one", settings(), 100, 500)
    assert needs.of(Rates(tmp_path, DATA), settings(), "cuda", seeds=1).mem_mb == 3000
    assert needs.of(Rates(tmp_path, DATA), settings(), "cpu", seeds=1).mem_mb == START_MIB + MARGIN_MEMORY * 500


@pytest.mark.parametrize(
    ("dataset", "known", "group"), [("digits", EMBEDDED, "short"), ("mnist", UNKNOWN, None), ("pacs", UNKNOWN, None)]
)
def test_where_nothing_is_published(dataset: str, known: tuple[float, float], group: str | None, rates: Rates) -> None:
    """Data embedded in a library are small. PACS has no address: it comes from the user's folder."""
    seconds, mib = known
    asked = needs.of(rates, settings(dataset=dataset, model="resnet"), "cpu", seeds=1)
    expected = math.ceil(START_MIB + MARGIN_MEMORY * mib), math.ceil(START_MINUTES + MARGIN_TIME * seconds / 60)
    assert (asked.mem_mb, asked.minutes, asked.group) == (*expected, group)


def test_every_published_seed_would_have_had_enough() -> None:
    """For every seed in this repository's evidence the request is 1.5 times the time and 1.25 times the memory that the seed
    took."""
    records, rates = evidence(), Rates(ROOT, DATA)
    for record in records:
        ran = record["environment"]
        asked = needs.of(rates, record["config"], ran["device"], seeds=1, workers=ran.get("workers", 1))
        assert asked.minutes * 60 > 1.5 * record["cost"]["wall_s"], record["run_id"]
        assert asked.mem_mb > 1.25 * record["cost"]["peak_rss_mib"] * 1.048576, record["run_id"]


def test_a_published_table_is_forecast_within_a_factor_of_two() -> None:
    """The times of all runs of a paper and scale are summed, on the processors that trained them. Some seeds shared their cores
    with other work."""
    rates, sums = {}, {}
    for record in evidence():
        processor, device = (record["environment"].get(key) for key in ("processor", "device"))
        on = rates.setdefault(processor, Rates(ROOT, DATA, processor))
        found = on.seconds(record["config"], device)
        assert found
        one = sums.setdefault(record["place"], [0.0, 0.0])
        one[0] += found
        one[1] += record["cost"]["wall_s"]
    assert len(sums) > 5
    assert {place: guess / took for place, (guess, took) in sums.items() if not 0.5 < guess / took < 2} == {}


@cache
def evidence() -> list[dict[str, Any]]:
    paths = sorted(ROOT.glob("reports/*/*/evidence/*/seed*.json"))
    assert paths
    return [json.loads(path.read_text()) | {"place": "/".join(path.parts[-5:-3])} for path in paths]


def test_evidence_is_read_once(rates: Rates, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands of jobs."""
    first = rates.seconds(settings(rounds=1))
    monkeypatch.setattr("fedrepro.cost.rates.read_json", lambda *_: pytest.fail("read again"))
    assert rates.seconds(settings(rounds=2)) == 2 * first
