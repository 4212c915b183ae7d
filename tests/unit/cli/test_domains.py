"""Runs on data of several domains and on text, from the command to the receipt: embedded data, one or two rounds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import real_papers

from fedrepro.cli import main
from fedrepro.data.digit_domains import DOMAINS

COMMAND = [
    *("run", "--method", "fedavg", "--dataset", "digit_domains", "--model", "fedima_cnn_digits", "--rounds", "1"),
    *("--partition", "by_group(within='classes_per_client(k=2)')", "--seeds", "8", "--device", "cpu"),
    *("--set", "clients=20", "participation=0.1", "batch_size=30", "local_epochs=1", "normalise=centred"),
]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return real_papers.enter(tmp_path, monkeypatch, "scale: demo\nseeds: [8]\n")


def curves() -> list[dict[str, list[Any]]]:
    """The curves of each run."""
    return [json.loads(path.read_text())["curves"] for path in sorted(Path("results/runs").glob("*/seed8.json"))]


def test_each_domain_is_tested_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """The receipt has five accuracies of a hundred images each, their unweighted mean, and the metrics that every data set
    has."""
    assert main(COMMAND) == 0, capsys.readouterr().err
    (found,) = curves()
    each = [found[f"test_accuracy/{domain}"][-1] for domain in DOMAINS]
    assert all(value == int(value) for value in each)  # each of a hundred images
    assert found["domain_accuracy"] == found["test_group_mean_accuracy"]
    assert found["domain_accuracy"][-1] == pytest.approx(np.mean(each))
    assert {"test_accuracy", "test_loss"} <= found.keys()


def test_a_table_on_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Two cells: each role is a client and is measured on held-out windows. The elastic run records the boosted share in each
    round."""
    assert main(["run", "elastic/table5", "--set", "rounds=2"]) == 0, capsys.readouterr().err
    elastic, naive = sorted(curves(), key=lambda found: "boosted/tensor" not in found)
    assert "boosted/tensor" not in naive
    assert len(elastic["boosted/tensor"]) == 2
    for found in (naive, elastic):
        assert 0 < found["test_accuracy"][-1] <= 100
    assert naive["test_accuracy"] != elastic["test_accuracy"]
