"""The benchmarks run: they build tasks of their own, which no other test would notice to be out of date."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.works import WORKS, write

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_our_contender_trains_a_work_item(tmp_path: Path) -> None:
    write(replace(WORKS["C"], clients=10, participation=0.5, rounds=2, images=200), tmp_path / "tiny.npz", root=tmp_path)
    found = json.loads(run("-m", "benchmarks.contenders.ours", str(tmp_path / "tiny.npz")).splitlines()[-1])
    assert found["samples_round"] == 100
    assert len(found["round_s"]) == 2


def test_a_setting_of_the_scaling_runs() -> None:
    found = json.loads(run("-m", "benchmarks.scaling", "--one", "20", "5", "fedavg+elastic", "10", "30"))
    assert found["round_ms"] > 0
