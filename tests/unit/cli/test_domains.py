"""A run on a data set with domains, from the command to its evidence: embedded data, one round."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fedrepro.cli import main
from fedrepro.data.digit_domains import DOMAINS

ROOT = Path(__file__).parents[3]
COMMAND = [
    *("run", "--method", "fedavg", "--dataset", "digit_domains", "--model", "fedima_cnn_digits", "--rounds", "1"),
    *("--partition", "by_group(within='classes_per_client(k=2)')", "--seeds", "8", "--device", "cpu"),
    *("--set", "clients=20", "participation=0.1", "batch_size=30", "local_epochs=1", "normalise=centred"),
]


def test_each_domain_is_tested_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five accuracies of a hundred images each, their unweighted mean, and what is recorded of every other data set."""
    shutil.copytree(ROOT / "papers", tmp_path / "papers")
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data/registry.yaml", tmp_path / "data")
    (tmp_path / "params.yaml").write_text("scale: demo\nseeds: [8]\n")
    monkeypatch.chdir(tmp_path)
    assert main(COMMAND) == 0, capsys.readouterr().err
    (path,) = tmp_path.glob("results/runs/*/seed8.json")
    curves = json.loads(path.read_text())["curves"]
    each = [curves[f"test_accuracy/{domain}"][-1] for domain in DOMAINS]
    assert all(value == int(value) for value in each)  # of a hundred images
    assert curves["domain_accuracy"] == curves["test_group_mean_accuracy"]
    assert curves["domain_accuracy"][-1] == pytest.approx(np.mean(each))
    assert {"test_accuracy", "test_loss"} <= curves.keys()
