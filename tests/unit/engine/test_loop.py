"""Rounds, evaluation, divergence, checkpoints, and the evidence that results from them."""

import dataclasses
import hashlib
import io
import json
import math
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from fedrepro.engine import checkpoint, evaluate, live, receipts, results
from fedrepro.engine.cohort import Clients
from fedrepro.engine.identity import settings_hash
from fedrepro.engine.loop import Checkpoints, Outcome, _server_keys, train
from fedrepro.errors import UserError
from fedrepro.files import sha256_file, write_json
from fedrepro.methods.compose import compose
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch
from tests import toy
from tests.helpers.one_line import one_line

FEDAVG = compose("fedavg")


def test_evaluation_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five samples in batches of 2, 2, 1; logits (ln 3, 0) give probability 3/4 to class 0. Labels are 0, 0, 0, 1, 1, so 60 %
    are right and the mean loss is (3 * ln(4/3) + 2 * ln 4) / 5."""
    monkeypatch.setattr(evaluate, "BATCH", 2)
    seen = []

    def forward(params, buffers, x, train):
        seen.append((len(x), train, torch.is_grad_enabled()))
        return torch.tensor([[math.log(3), 0.0]], dtype=torch.float64).expand(len(x), 2), buffers

    model = dataclasses.replace(toy.tiny_model(), forward=forward)
    data = Batch(torch.zeros(5, 1, 4, 4, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 1]))
    empty = Tree(Layout.of({}), torch.zeros(0))
    found = evaluate.evaluate(model, empty, empty, data)
    assert found["test_accuracy"] == pytest.approx(60.0)
    assert found["test_loss"] == pytest.approx((3 * math.log(4 / 3) + 2 * math.log(4)) / 5)
    assert seen == [(2, False, False), (2, False, False), (1, False, False)]


def test_the_label_among_the_three_highest_by_hand() -> None:
    """Logits are 5, 4, 3, 2 for four classes, with one label of each: one of four is the highest, three are among the highest
    three."""

    def forward(params, buffers, x, train):
        return torch.tensor([[5.0, 4.0, 3.0, 2.0]], dtype=torch.float64).expand(len(x), 4), buffers

    model = dataclasses.replace(toy.tiny_model(), forward=forward)
    data = Batch(torch.zeros(4, 1, 4, 4, dtype=torch.float64), torch.arange(4))
    empty = Tree(Layout.of({}), torch.zeros(0))
    found = evaluate.evaluate(model, empty, empty, data)
    assert (found["test_accuracy"], found["test_top3_accuracy"]) == (25.0, 75.0)


def test_the_server_drops_other_units_in_each_round() -> None:
    """Five rounds have five keys; a model without dropout has none."""
    plain = toy.make_task()
    task = dataclasses.replace(plain, model=dataclasses.replace(plain.model, dropout=True))
    assert len({int(_server_keys(task, round).next()) for round in range(5)}) == 5
    assert _server_keys(plain, 0) is None


def diverged() -> Outcome:
    """A run with a learning rate of 1e300, which overflows in the first steps and stops there."""
    return train(toy.make_task(rounds=9, client_lr=1e300), FEDAVG)


def test_divergence_is_recorded_and_ends_the_run() -> None:
    """The status is "diverged" after the round in which it happened, with the records up to then."""
    outcome = diverged()
    assert outcome.status == "diverged"
    assert outcome.progress.round == len(toy.values_of(outcome.progress.rows, "test_loss")) < 9


def test_a_loss_that_is_not_finite_is_divergence_even_with_finite_weights() -> None:
    """Weights of 1e200 stay, since no client has data, but their logits overflow. In the last round no later round would notice
    it."""
    task = toy.make_task(rounds=1, cohorts=toy.EMPTY)
    task = dataclasses.replace(task, params=task.params.like(torch.full_like(task.params.flat, 1e200)))
    outcome = train(task, FEDAVG)
    assert torch.isfinite(outcome.params.flat).all()
    assert outcome.status == "diverged"


CONFIG = toy.make_spec().as_dict() | {"method": str(FEDAVG)}
RUN_ID = f"toy-fedavg-{settings_hash(CONFIG)}"
RUN = {"run_id": RUN_ID, "method": str(FEDAVG), "method_label": "fedavg", "config": CONFIG}
COST = {"wall_s": 1.0, "samples": 1}
INPUTS = {"arrays": "a" * 64, "partition": "b" * 64}


def evidence_of(outcome: Outcome, **spec) -> dict:
    return results.evidence(toy.make_spec(**spec), RUN, 8, outcome, {"device": "cpu"}, INPUTS, COST)


def test_evidence_of_a_finished_run() -> None:
    """Last, best and every curve are there. Values that a table computes are not."""
    outcome = train(toy.make_task(rounds=6), FEDAVG)
    accuracy = toy.values_of(outcome.progress.rows, "test_accuracy")
    assert accuracy[-1] < max(accuracy), "last and best would be the same"
    found = evidence_of(outcome)
    assert found["status"] == "finished"
    assert "test_accuracy" not in found["summary"]
    assert found["summary"]["last_test_accuracy"] == accuracy[-1]
    assert found["summary"]["best_test_accuracy"] == max(accuracy)
    assert found["summary"]["test_loss"] == toy.values_of(outcome.progress.rows, "test_loss")[-1]
    assert found["curves"]["round"] == [0, 1, 2, 3, 4, 5]
    assert found["curves"]["test_accuracy"] == accuracy
    recorded = {"client_lr", "test_accuracy", "test_top3_accuracy", "test_loss", "update_norm"}
    assert set(found["curves"]) == recorded | {"round"}
    assert (found["schema"], found["run_id"], found["seed"], found["inputs"]) == (2, RUN_ID, 8, INPUTS)


def test_a_metric_that_not_every_round_has_is_null_elsewhere() -> None:
    """No client trains in round 1, so that round has no update_norm. All curves are as long as `round`."""
    task = toy.make_task()
    task = dataclasses.replace(task, cohorts=torch.tensor([[0], [2], [1]]))
    curves = evidence_of(train(task, FEDAVG))["curves"]
    assert curves["update_norm"][1] is None
    assert curves["update_norm"][0] > 0
    assert {len(curve) for curve in curves.values()} == {3}


def test_evidence_of_a_diverged_run_is_valid_json_with_nulls(tmp_path: Path) -> None:
    """No file contains NaN or Infinity, and the last accuracy is null."""
    found = evidence_of(diverged())
    assert found["status"] == "diverged"
    assert found["summary"]["last_test_accuracy"] is None
    assert found["summary"]["test_loss"] is None
    assert found["curves"]["test_loss"][-1] is None

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in a JSON file")

    text = write_json(tmp_path / "seed8.json", found).read_text()
    assert json.loads(text, parse_constant=refuse) == found


# --- a seed's folder and receipt -----------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Outcome]:
    """The root of a project with the folder of seed 8 and no receipt for it."""
    outcome = train(toy.make_task(), FEDAVG)
    results.write_seed(tmp_path, RUN_ID, evidence_of(outcome), outcome)
    return tmp_path, outcome


def test_a_seeds_folder_holds_metrics_model_environment_and_their_sums(written: tuple[Path, Outcome]) -> None:
    """Metrics are (int32, string, float64) rows, weights are stored by name, and the manifest has the sha256 of every file."""
    root, outcome = written
    folder = root / "results/runs" / RUN_ID / "seed8"
    assert sorted(path.name for path in folder.iterdir()) == [
        "env.json",
        "manifest.json",
        "metrics.parquet",
        "model.safetensors",
    ]
    table = pq.read_table(folder / "metrics.parquet")
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("round", "int32"),
        ("metric", "string"),
        ("value", "double"),
    ]
    rows = list(zip(*(table[name].to_pylist() for name in ("round", "metric", "value")), strict=True))
    assert rows == outcome.progress.rows
    tensors = load_file(folder / "model.safetensors")
    assert all(torch.equal(tensors[name], value) for name, value in outcome.params.items())
    files = json.loads((folder / "manifest.json").read_text())["files"]
    assert files == {name: sha256_file(folder / name) for name in ("env.json", "metrics.parquet", "model.safetensors")}


@pytest.mark.parametrize("name", ["metrics.parquet", "model.safetensors", "env.json"])
@pytest.mark.parametrize("damage", ["flip", "delete"])
def test_a_damaged_result_is_refused(name: str, damage: str, written: tuple[Path, Outcome]) -> None:
    """One line names the file's path, and no receipt is written."""
    root, _ = written
    path = root / "results/runs" / RUN_ID / "seed8" / name
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(UserError, match="sha256") as caught:
        receipts.confirm(root, RUN_ID, 8, INPUTS)
    assert str(path) in str(caught.value)
    assert not receipts.receipt_path(root, RUN_ID, 8).exists()


def test_results_of_other_inputs_are_refused(written: tuple[Path, Outcome]) -> None:
    """If the partition file is not the one that the results were computed from, an error says so and nothing is overwritten."""
    root, _ = written
    with one_line("another partition"):
        receipts.confirm(root, RUN_ID, 8, INPUTS | {"partition": "c" * 64})


# --- checkpoints (resuming bit for bit, for every method: tests/contract) -----------------------------------------------


def interrupted(path: Path, *, at: int, every_s: float = 0) -> Checkpoints:
    """A run of 4 rounds that died while it reported round `at`."""
    checkpoints = Checkpoints(path, "k", every_s)
    with pytest.raises(toy.Stopped):
        train(toy.make_task(rounds=4), FEDAVG, checkpoints=checkpoints, report=toy.stop_at(at))
    return checkpoints


def rounds_of(checkpoints: Checkpoints) -> tuple[list[int], Outcome]:
    """Starts again. Returns the rounds that were computed and the outcome."""
    seen: list[int] = []
    return seen, train(toy.make_task(rounds=4), FEDAVG, checkpoints=checkpoints, report=lambda t, _: seen.append(t))


def nothing(path: Path) -> None:
    pass


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path, bit: int | None = None) -> None:
    """Flips one bit, in the middle of the weights unless a place is given."""
    content = bytearray(path.read_bytes())
    bit = len(content) * 4 if bit is None else bit
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def old_format(path: Path) -> None:
    """Rewrites a checkpoint as older versions wrote it: valid, but without a digest."""
    path.write_bytes(path.read_bytes()[hashlib.sha256().digest_size :])
    assert torch.load(path, weights_only=True)["key"] == "k"


@pytest.mark.parametrize(
    ("damage", "expected"),
    [(nothing, [2, 3]), (cut, [0, 1, 2, 3]), (flip, [0, 1, 2, 3]), (old_format, [0, 1, 2, 3]), (Path.unlink, [0, 1, 2, 3])],
)
def test_a_damaged_checkpoint_starts_anew(
    damage, expected: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rounds 0 and 1 were saved. For any damage to the file, a line names it and the result is that of an undisturbed run."""
    checkpoints = interrupted(tmp_path / "seed8.pt", at=2)
    damage(checkpoints.path)
    capsys.readouterr()
    seen, outcome = rounds_of(checkpoints)
    assert seen == expected
    line = (
        f"{checkpoints.path}: checkpoint damaged or of an older version (another sha256); the seed starts over from round 0\n"
    )
    assert capsys.readouterr().err == (line if expected[0] == 0 and damage is not Path.unlink else "")
    whole = train(toy.make_task(rounds=4), FEDAVG)
    assert torch.equal(outcome.params.flat, whole.params.flat)
    assert outcome.progress.rows == whole.progress.rows


def test_a_checkpoint_of_another_layout_starts_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The checkpoint is valid and of this run, but has an older layout: one line, and the run starts from round 0."""
    checkpoints = interrupted(tmp_path / "seed8.pt", at=2)
    content = torch.load(io.BytesIO(checkpoints.path.read_bytes()[hashlib.sha256().digest_size :]), weights_only=True)
    del content["version"]
    buffer = io.BytesIO()
    torch.save(content, buffer)
    checkpoints.path.write_bytes(hashlib.sha256(buffer.getvalue()).digest() + buffer.getvalue())
    capsys.readouterr()
    assert rounds_of(checkpoints)[0] == [0, 1, 2, 3]
    line = f"{checkpoints.path}: checkpoint of another version of fedrepro; the seed starts over from round 0\n"
    assert capsys.readouterr().err == line


def test_what_a_checkpoint_holds_is_told_beside_it(tmp_path: Path) -> None:
    """A file beside it lists the rounds so far with their finite values, and the process. Reading it needs no torch. It is
    removed with the checkpoint."""
    path = live.file(tmp_path, "run", 8)
    path.parent.mkdir(parents=True)
    checkpoints = interrupted(path.with_suffix(".pt"), at=2)
    told = live.read(tmp_path, "run", 8)
    _, _, progress = checkpoint.load(checkpoints.path, "k")
    assert (told.rounds, told.started_at, told.pid) == (2, progress.started_at, os.getpid())
    assert told.rows == progress.rows
    assert told.alive
    live.remove(checkpoints.path)
    assert not list(path.parent.iterdir())


def test_no_flipped_bit_gets_into_a_checkpoint(tmp_path: Path) -> None:
    """Flips bits all over the file, also in its digest. An undamaged one is read for its own run only."""
    path = interrupted(tmp_path / "seed8.pt", at=2).path
    good, bits = path.read_bytes(), path.stat().st_size * 8
    for bit in [0, 255, 256, bits - 1, *range(300, bits, bits // 200)]:
        flip(path, bit)
        assert checkpoint.load(path, "k") is None, bit
        path.write_bytes(good)
    assert checkpoint.load(path, "k") is not None
    assert checkpoint.load(path, "another run") is None


def test_checkpoints_go_by_the_clock(tmp_path: Path) -> None:
    """With an hour between saves nothing is saved within a second. The interval leaves no trace in the result."""
    path = tmp_path / "seed8.pt"
    interrupted(path, at=3, every_s=3600)
    assert not path.exists()
    train(toy.make_task(rounds=1), FEDAVG, checkpoints=Checkpoints(path, "k", 0))
    assert not path.exists(), "nothing is left to go on with after the last round"
    often = train(toy.make_task(rounds=4), FEDAVG, checkpoints=Checkpoints(path, "k", 0))
    assert torch.equal(often.params.flat, train(toy.make_task(rounds=4), FEDAVG).params.flat)


@pytest.mark.parametrize(("rule", "batches"), [("fedavg", 1), ("per_fedavg", 2), ("per_fedavg(variant=hessian_free)", 3)])
def test_samples_count_every_batch_of_a_step(rule: str, batches: int) -> None:
    """Clients 0 and 1 train two epochs on 7 and 12 samples."""
    assert Clients(toy.make_task(), compose(rule)).samples([0, 1], 0) == batches * 2 * (7 + 12)


def test_cost_adds_up_over_attempts(tmp_path: Path) -> None:
    """Samples and seconds include all attempts. The start is that of the first attempt."""
    checkpoints = interrupted(tmp_path / "seed8.pt", at=2)
    saved = checkpoint.load(checkpoints.path, "k")
    assert saved is not None
    before = saved[2]
    assert before.round == 2
    _, outcome = rounds_of(checkpoints)
    assert outcome.progress.samples == 4 * 2 * (7 + 12 + 20 + 5)
    assert outcome.progress.wall_s > before.wall_s > 0
    assert outcome.progress.started_at == before.started_at
