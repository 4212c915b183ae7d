"""DVC around the graph: an edit trains only what it affects, and a pulled clone trains nothing. Every step counts the
trainings."""

from pathlib import Path

from tests.workflow.conftest import Project, new_trainings, scramble_times

WIDE = "(data|results|src)/|Created|mean_of"  # columns of `dvc exp show` that a reader does not need, as in README
BY_HAND = ("--columns", "fashion_mnist-mlp-0.1", "--seeds", "8", "--set", "rounds=1")


def test_edits_train_only_what_they_touch(made: Project, tmp_path: Path) -> None:
    """An edited argument of one method retrains that method in every setting, and metrics and params show the change. A clone
    that pulls trains nothing, whatever the times of its files. An edited method is noticed. Git and DVC restore means and
    results of another branch, but not the pages: `dvc repro` renders them, and versions a run made by hand."""
    project = made
    project.run("dvc", "remote", "add", "-d", "store", tmp_path / "store")
    start = project.trained()
    assert len(start) == 6  # 3 methods x 2 settings
    project.run("dvc", "repro")
    project.commit()
    assert not new_trainings(start, project.trained())

    report = project.root / "reports/table3.md"
    main, page = report.read_text(), report.with_suffix(".html").read_text()
    home = project.run("git", "branch", "--show-current").stdout.strip()
    project.run("git", "checkout", "-q", "-b", "edited")
    start = project.trained()
    project.run("dvc", "exp", "run", "-S", "methods.fedlaw.fedprox.mu=0.5")  # edits and runs `dvc repro`
    assert "0.5" in project.run("dvc", "params", "diff").stdout
    edited = new_trainings(start, project.trained())
    assert len(edited) == 2
    assert all("-fedprox-" in name for name in edited)
    assert start.items() <= project.trained().items()
    assert "fedprox" in project.run("dvc", "metrics", "diff").stdout
    assert "mean_of" in (project.root / "results/means.json").read_text()
    shown = project.run("dvc", "exp", "show", "--only-changed", "--drop", WIDE, COLUMNS="130").stdout.splitlines()
    assert "methods.fedlaw.fedprox.mu" in shown[1]
    assert max(map(len, shown)) <= 130
    assert report.read_text() != main
    project.commit()

    project.run("dvc", "push")
    clone = Project(tmp_path / "clone")
    project.run("git", "clone", "-q", project.root, clone.root)
    clone.run("dvc", "pull")
    scramble_times(clone.root, "data", "results", "papers")
    clone.run("fedrepro", "runs", "fedlaw/table3")
    pulled = clone.trained()
    assert len(pulled) == 8
    assert clone.run("dvc", "repro").stdout.count("didn't change, skipping") == 2  # Snakemake checks runs and reports
    assert (clone.root / "reports/table3.md").exists()
    assert not new_trainings(pulled, clone.trained())

    part = clone.root / "src/fedrepro/methods/client/fedprox.py"
    part.write_text(part.read_text().replace("self.mu", "(5.0 + self.mu)"))
    next(clone.root.glob("reports/full/fedlaw/evidence/*/seed8.json")).unlink()  # as if a pull had changed published files
    said = clone.run("dvc", "status").stdout
    assert "reports/full" in said[said.index("\nreports:") :]
    assert "src/fedrepro/methods" in said[said.index("runs:") :]  # test_code.py tests that its runs train again

    project.run("git", "checkout", "-q", home)
    project.run("dvc", "checkout")
    start = project.trained()
    project.run("fedrepro", "run", "fedlaw/table3", "--rows", "fedprox", *BY_HAND)  # no file that DVC tracks shows it
    (own,) = new_trainings(start, project.trained())
    report.with_suffix(".html").unlink()
    project.run("dvc", "repro")
    assert (report.read_text(), report.with_suffix(".html").read_text()) == (main, page)
    assert (project.root / "results/versioned/runs" / own / "manifest.json").exists()  # so `dvc push` has it
