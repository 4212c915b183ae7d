"""The benchmarks run. They build their own tasks, so no other test would notice that they are outdated."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import run as bench
from benchmarks import works
from benchmarks.works import WORKS, write
from fedrepro import arithmetic

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


def test_all_contenders_evaluate_the_same_images(tmp_path: Path) -> None:
    """The plain loop evaluates at its end even if a work asks for no evaluation. A work without evaluation has only 100
    test images for all contenders, so this evaluation costs the plain loop little time."""
    for evaluate, count in ((True, 10_000), (False, 100)):
        tiny = replace(WORKS["C"], clients=10, participation=0.5, rounds=2, images=200, evaluate=evaluate)
        write(tiny, tmp_path / "tiny.npz", root=tmp_path)
        with np.load(tmp_path / "tiny.npz") as work:
            assert len(work["test_x"]) == len(work["test_y"]) == count


def test_only_a_whole_run_replaces_the_latest_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`latest.json` has all works and contenders. A run of one work, without other simulators or on a GPU leaves it alone."""
    whole = {work: {} for work in WORKS}
    for one in bench.contenders("cpu", peers=True, installed=False):
        for work in one.works:
            whole[work][one.name] = {"samples_per_second": 1.0, "peak_mib": 1.0}
    without_peers = {work: {name: one for name, one in rows.items() if "flower" not in name} for work, rows in whole.items()}
    monkeypatch.setattr(bench, "describe", lambda device: {"matmul_gflops": {"1": 1.0, "2": 1.0}})
    monkeypatch.setattr(bench, "CACHE", tmp_path / "cache")
    for found, device, replaces in (
        ({"A": whole["A"]}, "cpu", False),
        (without_peers, "cpu", False),
        (whole, "cuda", False),
        (whole, "cpu", True),
    ):
        timed = {work: rows | {"flops_per_sample": 1.0} for work, rows in found.items()}
        monkeypatch.setattr(bench, "run", lambda *_, timed=timed: timed)
        monkeypatch.setattr(sys, "argv", ["run", "--out", str(tmp_path), "--device", device])
        bench.main()
        assert list(tmp_path.glob(f"*-{device}.json"))
        assert (tmp_path / "latest.json").exists() == replaces


def test_images_of_a_sorted_file_have_every_class() -> None:
    """A subset of images is drawn at random. CIFAR-10's file is sorted by class, so its first images would not have every
    class."""
    labels = np.repeat(np.arange(10), 100)
    images, chosen = works._some(labels[:, None, None, None], labels, 200)
    assert len(images) == len(chosen) == 200
    assert set(chosen) == set(range(10))
    assert (images[:, 0, 0, 0] == chosen).all()


def test_a_profile_accounts_for_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile runs in another process, started as from a shell, in native arithmetic."""
    monkeypatch.delenv(arithmetic.VARIABLE, raising=False)
    code = "import json, sys; from pathlib import Path; from benchmarks.profile_round import profiled; "
    code += "print(json.dumps(profiled('simple_cnn', 1000, Path(sys.argv[1]), 'none')))"
    shares = json.loads(run("-c", code, str(tmp_path)).splitlines()[-1])
    assert shares["kernels of local training"] > 0
    assert sum(shares[name] for name in shares.keys() - {"seconds", "samples", "data"}) == pytest.approx(100, abs=0.1)


def test_a_setting_of_the_scaling_runs() -> None:
    found = json.loads(run("-m", "benchmarks.scaling", "--one", "20", "5", "fedavg+elastic", "10", "30"))
    assert found["round_ms"] > 0
