"""The digest chain from metrics.parquet to evidence: real files, real edits, and folders of an older version."""

import json
import random
import shutil
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedrepro.engine import receipts, records, results
from fedrepro.engine.differences import _first_difference
from fedrepro.engine.identity import settings_hash
from fedrepro.engine.loop import train
from fedrepro.errors import UserError
from fedrepro.files import sha256_file, write_json
from fedrepro.methods.compose import compose
from tests import toy
from tests.helpers.one_line import one_line

FEDAVG = compose("fedavg")
CONFIG = toy.make_spec().as_dict() | {"method": str(FEDAVG)}
RUN_ID = f"toy-fedavg-{settings_hash(CONFIG)}"
RUN = {"run_id": RUN_ID, "method": str(FEDAVG), "method_label": "fedavg", "config": CONFIG}
INPUTS = {"arrays": "a" * 64, "partition": "b" * 64}
FOLDER = Path("results/runs", RUN_ID, "seed8")
RECEIPT = FOLDER.with_suffix(".json")
EVIDENCE = Path("reports/full/fedlaw/evidence", RUN_ID, "seed8.json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The result folder of seed 8 in a new project, which is the current folder. There is no receipt yet."""
    monkeypatch.chdir(tmp_path)
    outcome = train(toy.make_task(), FEDAVG)
    found = results.evidence(toy.make_spec(), RUN, 8, outcome, {"device": "cpu"}, INPUTS, {"wall_s": 1.5})
    results.write_seed(Path(), RUN_ID, found, outcome)
    return FOLDER


def confirm() -> bool:
    return receipts.confirm(Path(), RUN_ID, 8, INPUTS)


def edit(path: Path, change) -> None:
    """Changes one value of a JSON file."""
    content = json.loads(path.read_text())
    change(content)
    write_json(path, content)


def without_digest(path: Path) -> None:
    """Rewrites a file as versions before digests wrote it."""
    edit(path, lambda content: content.pop("digest"))


def to_98(content: dict) -> None:
    content["curves"]["test_accuracy"][-1] = 98.0


def test_a_digest_survives_any_number(tmp_path: Path) -> None:
    """A thousand floats of random bits that are written and read give the same digest. If the last bit differs, the digest
    differs."""
    draw = random.Random(8)
    values = [struct.unpack("<d", draw.randbytes(8))[0] for _ in range(1000)]
    values = [value for value in values if value == value and abs(value) != float("inf")] + [0.1, 1e22, 5e-324, -0.0, 1.0, 1]
    record = records.seal({"values": values, "name": "α"})
    again = json.loads(write_json(tmp_path / "x.json", record).read_text())
    assert records.digest_fault(again) == ""
    (bits,) = struct.unpack("<q", struct.pack("<d", values[0]))
    again["values"][0] = struct.unpack("<d", struct.pack("<q", bits ^ 1))[0]
    assert records.digest_fault(again) == records.CHANGED


def test_curves_end_with_the_last_round_that_was_evaluated() -> None:
    """A later round without an evaluation does not change the curves."""
    rows = [(0, "test_accuracy", 50.0), (0, "test_loss", 0.5), (0, "train_loss", 2.0), (1, "train_loss", 1.5)]
    expected = {"round": [0], "test_accuracy": [50.0], "test_loss": [0.5], "train_loss": [2.0]}
    assert records.numbers(rows, "mlp", "diverged")["curves"] == expected


def test_the_first_difference_is_that_of_the_earliest_round() -> None:
    """`b` differs before `a`. A missing round differs, too."""
    published, again = {"a": [1, 2, 3], "b": [1, 2, 3]}, {"a": [1, 2, 9], "b": [1, 9, 3]}
    assert _first_difference(published, again) == "b of round 1 is 9, published is 2"
    assert _first_difference(published, {"a": [1, 2]}) == "a of round 2 is missing, published is 3"


def test_the_summary_has_the_best_value_and_the_last_of_a_finished_seed() -> None:
    """A diverged seed has no last value."""
    rows = [(round, name, value) for round, value in enumerate((50.0, 70.0, 60.0)) for name in ("test_accuracy", "test_loss")]
    summary = {"last_test_accuracy": 60.0, "best_test_accuracy": 70.0, "test_loss": 60.0}
    assert records.numbers(rows, "mlp", "finished")["summary"] == summary
    assert records.numbers(rows, "mlp", "diverged")["summary"] == summary | {"last_test_accuracy": None}


def test_the_receipt_is_the_manifest_and_evidence_is_the_receipt(folder: Path) -> None:
    """From the result folder to the committed file the bytes are the same and contain the sha256 of the metrics. Another seed
    has no receipt."""
    assert confirm()
    assert not receipts.confirm(Path(), RUN_ID, 9, INPUTS)
    assert not receipts.receipt_path(Path(), RUN_ID, 9).exists()
    assert RECEIPT.read_bytes() == (folder / "manifest.json").read_bytes()
    record = records.read_receipt(RECEIPT)
    assert record["files"]["metrics.parquet"] == sha256_file(folder / "metrics.parquet")
    assert record == records.seal(record) == records.read_folder(folder)


@pytest.mark.parametrize("old", [False, True], ids=["with a digest", "as older versions wrote it"])
@pytest.mark.parametrize(
    "change",
    [
        to_98,
        lambda c: c["summary"].__setitem__("best_test_accuracy", 98.0),
        lambda c: c["cost"].__setitem__("wall_s", 0.5),
        lambda c: c["environment"].__setitem__("device", "cuda"),
        lambda c: c["config"].__setitem__("client_lr", 0.5),
        lambda c: c.__setitem__("method", "fedprox(mu=1.0)"),
        lambda c: c["files"].__setitem__("metrics.parquet", "0" * 64),
        lambda c: c["files"].pop("model.safetensors"),
        lambda c: c["inputs"].__setitem__("partition", "c" * 64),
        lambda c: c.__setitem__("seed", 9),
        lambda c: c.pop("cost"),
    ],
)
def test_an_edited_manifest_is_refused(change, old: bool, folder: Path) -> None:
    """For any edited key one line tells the repair, and no receipt is made. If the folder is deleted, the seed is trained."""
    manifest = folder / "manifest.json"
    if old:
        without_digest(manifest)
    edit(manifest, change)
    with one_line(f"delete {folder} to compute it again$") as caught:
        confirm()
    assert str(folder) in str(caught.value)
    assert not RECEIPT.exists()
    shutil.rmtree(folder)
    assert not confirm()


def test_a_manifest_with_a_wrong_digest_is_refused(folder: Path) -> None:
    """Only the manifest has the fingerprints of the code, so no other file of the folder shows the edit."""
    edit(folder / "manifest.json", lambda content: content.__setitem__("code", {"run": "0" * 12}))
    with pytest.raises(UserError, match="its digest is not that of its content"):
        confirm()


def test_a_folder_of_an_older_version_gets_a_receipt_of_today(folder: Path) -> None:
    """The folder has no digest, but all its values follow from the files beside it. Nothing trains, and the folder stays as it
    is."""
    sealed = (folder / "manifest.json").read_bytes()
    without_digest(folder / "manifest.json")
    old = (folder / "manifest.json").read_bytes()
    assert confirm()
    assert RECEIPT.read_bytes() == sealed
    assert (folder / "manifest.json").read_bytes() == old
    assert records.read_receipt(RECEIPT)["digest"]


def test_metrics_that_were_replaced_are_refused(folder: Path) -> None:
    """Another metrics.parquet is in place, and its sha256 and a digest are forged in the manifest. The curves still show it."""
    table = pq.read_table(folder / "metrics.parquet")
    named = zip(table["metric"].to_pylist(), table["value"].to_pylist(), strict=True)
    values = [98.0 if name == "test_accuracy" else value for name, value in named]
    pq.write_table(table.set_column(2, "value", pa.array(values)), folder / "metrics.parquet")
    with pytest.raises(UserError, match=r"metrics\.parquet: does not match the sha256 in its manifest"):
        confirm()
    record = json.loads((folder / "manifest.json").read_text())
    record["files"]["metrics.parquet"] = sha256_file(folder / "metrics.parquet")
    write_json(folder / "manifest.json", records.seal(record))
    with pytest.raises(UserError, match=r"manifest\.json: curves are not those of metrics\.parquet"):
        confirm()


def test_an_edited_receipt_is_refused_and_written_again(folder: Path) -> None:
    """Every reader that makes evidence of it refuses it. As the error advises, after its deletion the folder gives the same
    receipt."""
    assert confirm()
    good = RECEIPT.read_bytes()
    for spoil in (
        lambda: edit(RECEIPT, to_98),
        lambda: edit(RECEIPT, lambda content: content["cost"].__setitem__("wall_s", 0.5)),
        lambda: without_digest(RECEIPT),
        lambda: RECEIPT.write_text(""),
    ):
        spoil()
        with pytest.raises(UserError, match=r"delete it and run the same command again$") as caught:
            records.read_receipt(RECEIPT)
        assert str(caught.value).startswith(f"{RECEIPT}: ")
        RECEIPT.unlink()
        assert confirm()
        assert RECEIPT.read_bytes() == good


def test_a_receipt_of_other_files_is_refused(folder: Path) -> None:
    """The receipt is valid, but the metrics in the folder are not those that it was made from."""
    assert confirm()
    pq.write_table(pq.read_table(folder / "metrics.parquet").slice(1), folder / "metrics.parquet")
    with pytest.raises(UserError, match=r"seed8\.json: was made from another metrics\.parquet"):
        records.read_receipt(RECEIPT)


def test_committed_evidence_is_verified_before_it_becomes_a_receipt(folder: Path) -> None:
    """In a clone without results, evidence that is edited or has no digest is named with both repairs; valid evidence is taken;
    deleted evidence is trained again."""
    assert confirm()
    good = RECEIPT.read_bytes()
    shutil.rmtree("results")
    EVIDENCE.parent.mkdir(parents=True)
    for change in (to_98, lambda content: content.pop("digest")):
        EVIDENCE.write_bytes(good)
        edit(EVIDENCE, change)
        advice = f"restore it with `git checkout -- {EVIDENCE}`, or delete it and run the same command again$"
        with pytest.raises(UserError, match=advice):
            confirm()
        assert not RECEIPT.exists()
    EVIDENCE.write_bytes(good)
    assert confirm()
    assert RECEIPT.read_bytes() == good
    RECEIPT.unlink()
    EVIDENCE.unlink()
    assert not confirm()


def test_a_receipt_without_its_folder_is_kept_as_long_as_its_inputs_are_the_same(folder: Path) -> None:
    """`existing` says so, too. With other inputs it is refused and stays. The line of a folder with other inputs names the
    receipt beside it."""
    assert confirm()
    other = INPUTS | {"partition": "c" * 64}
    with pytest.raises(UserError, match=f"delete {folder} and {RECEIPT} to compute it again$"):
        receipts.confirm(Path(), RUN_ID, 8, other)
    shutil.rmtree(folder)
    content = RECEIPT.read_bytes()
    assert receipts.existing(Path(), RUN_ID, 8) == "receipt"
    assert confirm()
    with pytest.raises(UserError, match=f"{RECEIPT}: was computed from another partition .* delete {RECEIPT} to compute it"):
        receipts.confirm(Path(), RUN_ID, 8, other)
    assert RECEIPT.read_bytes() == content
    edit(RECEIPT, to_98)
    with pytest.raises(UserError, match=r"delete it and run the same command again$"):
        confirm()


def test_a_damaged_folder_is_named_with_its_receipt(folder: Path) -> None:
    """After the deletion of the folder alone the receipt would be kept."""
    assert confirm()
    (folder / "env.json").unlink()
    with pytest.raises(UserError, match=f"delete {folder} and {RECEIPT} to compute it again$"):
        confirm()
