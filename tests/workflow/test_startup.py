"""Start-up counts: there are dozens of training processes in a demo, and each import of a large library costs seconds."""

import pytest

from tests.workflow.conftest import Project, make_project

SLOW = ("torch._dynamo", "torchvision", "mlflow", "matplotlib", "sklearn", "scipy", "dvc", "snakemake")
SELECTION = ("--rows", "fedlaw", "--columns", "fashion_mnist-mlp-0.1", "--seeds", "8")
LOOK = "import sys; from fedrepro.cli import main; code = main(sys.argv[1:]); print(code, *sys.modules)"
# A server whose forks tell what they have loaded, and one job for it; the job holds the pipe that keeps the server alive.
LOOK_FORKED = """
import argparse, os, socket, subprocess, sys
from fedrepro import cli
from fedrepro.cli import forkserver
run = cli.main
cli.main = lambda arguments: print(run(arguments), *sys.modules)
listener = socket.socket(socket.AF_UNIX)
listener.bind("socket")
listener.listen()
alive, end = os.pipe()
environment = os.environ | {"FEDREPRO_FORKSERVER": "socket"}
job = subprocess.Popen(["fedrepro", *sys.argv[1:]], pass_fds=[end], env=environment)
os.close(end)
forkserver.forkserver(argparse.Namespace(listener=listener.detach(), alive=alive))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With all that one run reads, and its configuration."""
    project = make_project(tmp_path_factory.mktemp("startup") / "project")
    project.run("fedrepro", "run", "fedlaw/table3", *SELECTION)
    project.run("snakemake", "--cores", "1", "--dry-run", "--quiet", "all")  # which writes the configuration of every run
    return project


@pytest.mark.parametrize("look", [LOOK, LOOK_FORKED], ids=["alone", "forked"])
def test_a_training_process_imports_no_large_library_but_torch(look: str, project: Project) -> None:
    """A run as the workflow starts it loads none of the slow modules, nor the schema library."""
    project.run("rm", "-rf", "results/runs", "socket")
    (configuration,) = (project.root / "results/configs").glob("*-0.1-fedlaw-*.json")
    how = {"FEDREPRO_ARITHMETIC": "portable"}  # read from params.yaml by the workflow, once
    done = project.run("python", "-c", look, "run", configuration, "--seeds", "8", "--device", "cpu", **how)
    code, *modules = done.stdout.split()
    assert code == "0", done.stderr
    assert "torch" in modules
    assert not [name for name in (*SLOW, "pydantic", "yaml") if name in modules]


def test_a_job_that_is_forked_loads_next_to_nothing_itself(project: Project) -> None:
    """The command line has none of the libraries that take their time, nor have jobs that only read receipts."""
    look = "import sys; import fedrepro.cli, fedrepro.forkclient, fedrepro.engine.records; print(*sys.modules)"
    modules = project.run("python", "-c", look).stdout.split()
    assert not {"torch", "numpy", "pyarrow", "pydantic", "yaml", "asyncio", "multiprocessing"} & set(modules)


def test_the_workflow_process_plans_without_torch(project: Project) -> None:
    """It plans the table that is asked for in itself."""
    done = project.run("python", "-X", "importtime", "-m", "snakemake", "--cores", "1", "--dry-run", "--quiet", "all")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert {"fedrepro.workflow", "fedrepro.config.grid"} <= imported
    assert not imported & {"torch", "mlflow", "matplotlib", "scipy", "pyarrow"}
