"""What a user can get wrong, and what a machine can do to files: one clear line each, and nothing finished is lost."""

import os
import shutil
import subprocess

import pytest
import yaml

from tests.workflow.conftest import Project, make_project

TABLE = ("snakemake", "--cores", "2", "reports/table3.md")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("mistakes") / "project")


def test_a_bad_configuration_is_one_line_and_exit_code_2(project: Project) -> None:
    """Snakemake stops while it loads: nothing is computed, and the line names file, key and value. What else can be wrong is
    asked of the configuration itself (tests/unit/config)."""
    project.params(lambda params: params["methods"]["fedlaw"].update(fedporx={"mu": 1}))
    done = project.run(*TABLE, ok=False)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in ("params.yaml", "'fedporx'", "'fedprox'"):
        assert word in lines[0], lines[0]


def test_a_claim_that_names_no_row_is_one_line(untouched: Project) -> None:
    """Before anything is computed, in the workflow and by hand; tables do not wait for claims."""
    path = untouched.root / "papers/fedlaw/claims.yaml"
    saved, claim = path.read_bytes(), yaml.safe_load(path.read_text())[0]
    path.write_text(yaml.safe_dump([claim | {"pairs": {"fedlwa": "fedavg"}}]))
    try:
        untouched.run("snakemake", "--cores", "1", "--dry-run", "reports/short/fedlaw/table3.md")  # which writes its plan
        refused = (
            untouched.run("snakemake", "--cores", "1", "reports/short/fedlaw/index.html", ok=False),
            untouched.run("fedrepro", "page", "results/plans/short/fedlaw/table3.json", ok=False),
        )
    finally:
        path.write_bytes(saved)
    for done in refused:
        assert done.returncode == 2
        for word in ("papers/fedlaw/claims.yaml", claim["id"], claim["table"], "'fedlwa'", "'fedlaw'"):
            assert word in last_line(done)
        assert "Traceback" not in done.stderr


def test_an_unknown_target_is_one_line(untouched: Project) -> None:
    """A table that no file describes, named on the command line: the near one is offered, no traceback."""
    done = untouched.run("snakemake", "--cores", "1", "reports/demo/fedlaw/table33.md", ok=False)
    assert done.returncode == 2
    assert last_line(done).startswith("fedrepro: error: ")
    assert "'fedlaw/table3'" in last_line(done)
    assert "Traceback" not in done.stderr


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.strip().splitlines()[-1]


RUN = ("fedrepro", "run", "fedlaw/table3", "--columns", "fashion_mnist-mlp-0.1", "--seeds", "8", "--rows")


def forget(project: Project, *rows: str) -> None:
    """Results of these methods go."""
    project.run("rm", "-rf", *(path for row in rows for path in (project.root / "results/runs").glob(f"*-{row}-*")))


def test_damaged_files_are_named_and_nothing_finished_is_lost(made: Project) -> None:
    """A flipped byte in the arrays, then in a partition, stops the runs that need it with one line; results that exist stay as
    they are, and the same command succeeds once the file is mended. Inputs that changed under a finished result stop it too."""
    forget(made, "fedprox")
    finished = made.metrics()
    damaged = [
        made.root / "data/arrays/digits/1x28x28/train_images.npy",
        next((made.root / "data/partitions").glob("*alpha0.1-*/seed8.npz")),
    ]
    for victim in damaged:
        good = victim.read_bytes()
        victim.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        done = made.run(*RUN, "fedprox", ok=False)
        assert done.returncode == 2
        assert victim.name in last_line(done)
        assert "sha256" in last_line(done)
        assert made.metrics() == finished
        victim.write_bytes(good)
    made.run(*RUN, "fedprox")
    kept = made.metrics()
    assert finished.items() < kept.items()

    other = next((made.root / "data/init").rglob("seed8.safetensors"))
    made.run("fedrepro", "draw", f"results/configs/init/{other.parent.name}.json", "--seeds", "9")
    nine = other.with_name("seed9.safetensors")
    nine.replace(other)
    manifest = other.with_suffix(".json")
    manifest.write_text(nine.with_suffix(".json").read_text().replace('"seed": 9', '"seed": 8'))
    done = made.run(*RUN, "fedavg", ok=False)
    assert done.returncode == 2
    assert "another init" in last_line(done)
    assert made.metrics() == kept


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounting a file system needs root and unshare"
)
def test_full_or_read_only_results(made: Project) -> None:
    """A results folder that cannot be written (a tmpfs in a mount namespace of its own): one line, then the same command
    succeeds."""
    forget(made, "fedavg")
    before, runs = made.trained(), made.root / "results/runs"
    for options, words in (("size=64k", "disk is full"), ("ro", "read-only")):
        mounted = f'mount -t tmpfs -o {options} none {runs} && exec "$@"'
        done = made.run("unshare", "-m", "sh", "-c", mounted, "sh", *RUN, "fedavg", ok=False)
        assert done.returncode == 2, done.stderr
        assert words in last_line(done)
        assert "results/runs" in last_line(done)
        assert made.trained() == before
    made.run(*RUN, "fedavg")
    assert len(made.trained()) == len(before) + 1
