"""results/versioned has links to results for DVC. DVC deletes and replaces this folder by force, and no result is lost."""

import shutil
from pathlib import Path

import pytest

from fedrepro import versioned

RUN = "runs/digits-mlp-fedavg-0123abcd"
MEASURED = "diagnostics/digits-mlp-fedavg-0123abcd/cka-0123ab/seed8.parquet"
FILES = (f"{RUN}/config.json", f"{RUN}/seed8.json", f"{RUN}/seed8/metrics.parquet", MEASURED)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a seed, a measurement, and files that are no results."""
    for name in (*FILES, f"{RUN}/jobs/8", f"{RUN}/.seed9.x/metrics.parquet"):
        write(tmp_path / "results" / name, name)
    return tmp_path


def write(path: Path, text: str) -> None:
    """Writes a new file, as trainings and DVC's checkout do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)


def stored(root: Path) -> set[str]:
    """The files in results/versioned."""
    folder = root / versioned.FOLDER
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_finished_results_are_linked(root: Path) -> None:
    """There are no copies, markers or partial files. One that a killed process left is deleted."""
    write(root / versioned.FOLDER / RUN / ".seed8.json.123", "{")
    assert versioned.store(root) == root / "results/versioned"
    assert stored(root) == {*FILES}
    assert all((root / "results" / name).samefile(root / versioned.FOLDER / name) for name in FILES)


def test_what_dvc_deletes_is_not_lost(root: Path) -> None:
    """`dvc exp run` deletes what its lock does not name."""
    versioned.store(root)
    shutil.rmtree(root / versioned.FOLDER)
    versioned.arrive(root)
    assert all((root / "results" / name).exists() for name in FILES)
    versioned.store(root)
    assert stored(root) == {*FILES}


def test_what_dvc_brings_arrives_and_replaces_nothing_new(root: Path) -> None:
    """A pull fills the results of a new clone. A later pull does not replace a result that was computed here in the
    meantime."""
    versioned.store(root)
    shutil.rmtree(root / "results/runs")
    (root / versioned.KNOWN).unlink()  # a new clone has no such file
    versioned.arrive(root)
    assert (root / "results" / FILES[2]).read_text() == FILES[2]
    write(root / "results" / FILES[1], "computed here")
    write(root / versioned.FOLDER / FILES[1], "pulled")
    versioned.arrive(root)
    assert (root / "results" / FILES[1]).read_text() == "computed here"
    versioned.store(root)
    assert (root / versioned.FOLDER / FILES[1]).read_text() == "computed here"


def test_receipts_arrive_last(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a kill interrupts the links, there is neither a receipt nor a manifest without the files that it names."""
    write(root / "results" / RUN / "seed8/manifest.json", "manifest")
    versioned.store(root)
    shutil.rmtree(root / "results/runs")
    (root / versioned.KNOWN).unlink()
    linked: list[str] = []
    monkeypatch.setattr(versioned, "link", lambda source, target: linked.append(target.name))
    versioned.arrive(root)
    assert linked[:2] == ["metrics.parquet", "manifest.json"]
    assert {*linked[2:]} == {"config.json", "seed8.json"}


def test_what_dvc_restores_replaces_what_was_stored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The result and its link in results/versioned are one file, so damage affects both. `dvc checkout` restores the file, and
    a line names the replaced result."""
    versioned.store(root)
    (root / "results" / FILES[2]).write_text("damaged")
    write(root / versioned.FOLDER / FILES[2], FILES[2])
    versioned.arrive(root)
    assert (root / "results" / FILES[2]).read_text() == FILES[2]
    assert capsys.readouterr().err.startswith(f"results/{RUN}: DVC brought another result, which takes the place")


def test_a_result_folder_comes_back(root: Path) -> None:
    """After a damaged folder is deleted as in docs/reproducibility.md, the stored files are linked back."""
    versioned.store(root)
    write(root / "results" / FILES[2], "damaged")
    shutil.rmtree(root / "results" / RUN)
    (root / versioned.KNOWN).unlink()
    versioned.arrive(root)
    assert all((root / "results" / name).read_text() == name for name in FILES)


def test_a_copy_that_dvc_makes_becomes_a_link_again(root: Path) -> None:
    """DVC replaces hard links by copies if its cache has no links. The result itself does not change."""
    versioned.store(root)
    before = (root / "results" / FILES[2]).stat()
    write(root / versioned.FOLDER / FILES[2], FILES[2])
    versioned.arrive(root)
    after = (root / "results" / FILES[2]).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (root / "results" / FILES[2]).samefile(root / versioned.FOLDER / FILES[2])
    write(root / "results" / FILES[2], "computed here")
    versioned.arrive(root)
    assert (root / "results" / FILES[2]).read_text() == "computed here"


def test_what_was_deleted_here_stays_deleted(root: Path) -> None:
    """A user deletes results/runs/<run_id> to train the run again."""
    versioned.store(root)
    shutil.rmtree(root / "results" / RUN)
    versioned.arrive(root)
    assert not (root / "results" / RUN).exists()
    versioned.store(root)
    assert stored(root) == {FILES[3]}


def test_on_another_disk_files_are_copied(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    versioned.store(root)
    assert stored(root) == {*FILES}
