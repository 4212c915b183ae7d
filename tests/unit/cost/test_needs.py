"""What a cluster is asked for: enough for every published seed to be trained again, and more at each attempt."""

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from fedrepro.workflow import needs
from fedrepro.workflow.needs import MARGIN_MEMORY, MARGIN_TIME, START_MIB, START_MINUTES, Needs

ROOT = Path(__file__).parents[3]


def publish(root: Path, name: str, config: dict[str, Any], wall_s: float, mib: float, device: str = "cpu") -> None:
    """A published seed of a hundred rounds, as far as costs go."""
    path = root / f"reports/full/paper/evidence/{config['dataset']}-{config['model']}-{name}/seed8.json"
    path.parent.mkdir(parents=True)
    cost, curves = {"wall_s": wall_s, "peak_rss_mib": mib}, {"round": list(range(100))}
    path.write_text(json.dumps({"config": config, "cost": cost, "environment": {"device": device}, "curves": curves}))


def settings(**changed: Any) -> dict[str, Any]:
    usual = {"dataset": "mnist", "model": "cnn", "method": "a", "rounds": 100, "local_epochs": 2, "participation": 0.5}
    return usual | changed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish(tmp_path, "one", settings(), 100, 500)
    publish(tmp_path, "slow", settings(method="b"), 400, 900)
    publish(tmp_path, "light", settings(local_epochs=1, participation=0.1), 20, 400)
    publish(tmp_path, "gpu", settings(), 10, 2000, "cuda")
    publish(tmp_path, "wide-x", settings(model="cnn-wide"), 9999, 9999)  # its folder begins as one of `cnn` does
    (tmp_path / "reports/full/paper/evidence/mnist-cnn-broken").mkdir()
    (tmp_path / "reports/full/paper/evidence/mnist-cnn-broken/seed8.json").write_text("{")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "device", "expected"),
    [
        ({}, "cpu", (100, 500)),  # the same
        ({"rounds": 250}, "cpu", (250, 500)),  # 1 s a round
        ({"method": "b"}, "cpu", (400, 900)),
        ({"method": "new"}, "cpu", (400, 900)),  # the slowest of those with as much work
        ({"local_epochs": 1, "participation": 0.2}, "cpu", (40, 400)),  # nearest: 0.2 s a round with half the work
        ({"local_epochs": 4}, "cpu", (200, 500)),  # twice the work
        ({"local_epochs": 1, "participation": 0.4}, "cpu", (100, 500)),  # less work is no promise of less time
        ({}, "cuda", (10, 2000)),
    ],
)
def test_a_seed_takes_what_its_like_took(changed: dict, device: str, expected: tuple[float, float], root: Path) -> None:
    """By hand, from four published seeds: a round takes 1 s, 4 s with method b, 0.2 s with little work, 0.1 s on a GPU."""
    assert needs.seed(settings(**changed), device, root) == pytest.approx(expected)
    assert needs.seed(settings(model="resnet"), device, root) is None


def test_seeds_workers_and_attempts_add_up() -> None:
    """Time goes with the seeds, memory with the processes, both with the attempts."""
    one = needs.of(100, 500, seeds=1)
    assert one == Needs(START_MIB + MARGIN_MEMORY * 500, math.ceil(START_MINUTES + MARGIN_TIME * 100 / 60))
    three = needs.of(100, 500, seeds=3, workers=2)
    assert three == Needs(START_MIB + MARGIN_MEMORY * 1000, math.ceil(START_MINUTES + MARGIN_TIME * 300 / 60))
    assert one.at(3) == Needs(3 * one.mem_mb, 3 * one.minutes)


def test_every_published_seed_would_have_had_enough() -> None:
    """Of all evidence in this repository: at least half as much again in time, and a quarter in memory."""
    records = [json.loads(path.read_text()) for path in ROOT.glob("reports/*/*/evidence/*/seed*.json")]
    assert records
    for record in records:
        found, cost = needs.seed(record["config"], record["environment"]["device"], ROOT), record["cost"]
        assert found is not None
        asked = needs.of(*found, seeds=1)
        assert asked.minutes * 60 > 1.5 * cost["wall_s"], record["run_id"]
        assert asked.mem_mb > 1.25 * cost["peak_rss_mib"] * 1.048576, record["run_id"]


def test_thousands_of_jobs_cost_no_time(root: Path) -> None:
    """Evidence is read once."""
    needs.seed(settings(), root=root)
    begun = time.process_time()
    for seeds in range(5000):
        needs.seed(settings(rounds=seeds + 1), root=root)
    assert time.process_time() - begun < 1
