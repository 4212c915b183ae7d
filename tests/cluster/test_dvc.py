"""Results in an S3 store by DVC, on moto's server: another clone pulls what one clone has pushed and trains nothing."""

import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import servers
from tests.cluster.conftest import cut_down
from tests.cluster.slurm import wait_until
from tests.workflow.conftest import Project, make_project


class Store:
    """An S3 server with a bucket, `lab`."""

    def __init__(self, address: str) -> None:
        self.address = address

    def objects(self, prefix: str) -> int:
        """Number of objects below `prefix`."""
        with urllib.request.urlopen(f"{self.address}/lab?list-type=2&max-keys=1000&prefix={prefix}/") as answer:
            return len(re.findall("<Key>", answer.read().decode()))

    def serve(self, project: Project, name: str) -> None:
        """Makes the folder `name` of the bucket the remote store of the project."""
        project.run("dvc", "remote", "add", "--force", "--default", "s3", f"s3://lab/{name}")
        project.run("dvc", "remote", "modify", "s3", "endpointurl", self.address)
        project.commit()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with servers.s3(tmp_path_factory.mktemp("s3") / "server") as server:
        yield Store(server.address)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with git and DVC that has trained one seed."""
    project = make_project(tmp_path_factory.mktemp("trained") / "project")
    cut_down(project, rounds=2)
    project.run("git", "init", "-q", "-b", "main")
    project.commit()
    project.run("dvc", "repro")
    project.commit()
    assert len(project.trained()) == 4
    return project


def clone(project: Project, root: Path) -> Project:
    project.run("git", "clone", "-q", project.root, root)
    return Project(root)


def pulled(project: Project, root: Path) -> Project:
    """A new clone that has pulled everything from the store."""
    found = clone(project, root)
    found.run("dvc", "pull", **servers.AWS)
    found.run("fedrepro", "runs")  # any command links the pulled files into the results
    return found


def test_a_fresh_clone_pulls_and_trains_nothing(trained: Project, store: Store, tmp_path: Path) -> None:
    """A new clone gets the same files. snakemake and dvc have nothing to train there."""
    store.serve(trained, "whole")
    trained.run("dvc", "push", **servers.AWS)
    fresh = pulled(trained, tmp_path / "clone")
    assert fresh.metrics() == trained.metrics()
    before = fresh.trained()
    fresh.run("snakemake", "--cores", "2", "reports/table3.md")
    # DVC skips two stages. Snakemake checks whether runs and reports are missing.
    assert fresh.run("dvc", "repro", **servers.AWS).stdout.count("didn't change, skipping") == 2
    assert fresh.trained() == before


def test_a_killed_push_is_healed_by_the_next(trained: Project, store: Store, tmp_path: Path) -> None:
    """A push is killed by kill -9 when the store has some of the files. After the next push a new clone gets all of them."""
    store.serve(trained, "killed")
    process = trained.start("dvc", "push", "--jobs", "1", **servers.AWS)
    wait_until(lambda: store.objects("killed") > 2, 60, "the first files")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left = store.objects("killed")
    trained.run("dvc", "push", **servers.AWS)
    assert 0 < left < store.objects("killed"), "the push was over before it was killed"
    assert pulled(trained, tmp_path / "clone").metrics() == trained.metrics()


def test_two_push_at_once(trained: Project, store: Store, tmp_path: Path) -> None:
    """Two clones, one of which has trained another seed, push at the same time. The results of both can be pulled."""
    store.serve(trained, "both")
    other = clone(trained, tmp_path / "other")
    other.run("cp", "-r", trained.root / ".dvc/cache", other.root / ".dvc/cache")
    other.run("dvc", "checkout")
    other.params(lambda p: p["seeds"].append(9))
    other.run("dvc", "repro")
    other.commit()
    assert len(other.trained()) == 8
    pushes = [one.start("dvc", "push", **servers.AWS) for one in (trained, other)]
    assert [push.wait(timeout=120) for push in pushes] == [0, 0]
    for one, name in ((trained, "first"), (other, "second")):
        assert pulled(one, tmp_path / name).metrics() == one.metrics()
