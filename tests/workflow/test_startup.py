"""Start-up time matters: a demo has dozens of training processes, and each import of a large library takes seconds."""

import pytest

from tests.workflow.conftest import Project, copy_of

SLOW = ("torch._dynamo", "torchvision", "mlflow", "matplotlib", "sklearn", "scipy", "pandas", "dvc", "snakemake")
LOOK = "import sys; from fedrepro.cli import main; code = main(sys.argv[1:]); print(code, *sys.modules)"
DRAW = "import sys; from fedrepro.cli import main; codes = [main(['draw', one, '--seeds', '77']) for one in sys.argv[1:]]; "
DRAW += "print(codes); print(*sys.modules)"


@pytest.fixture(scope="module")
def project(chain: tuple[Project, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with its table and all inputs of its runs."""
    project = copy_of(chain[0], tmp_path_factory.mktemp("startup") / "project")
    command = ("python", "-X", "importtime", "-m", "snakemake", "--cores", "1", "--dry-run", "--quiet", "all")
    (project.root / "imports").write_text(project.run(*command).stderr)  # this also writes the configuration of every run
    return project


def test_a_training_process_imports_no_large_library_but_torch(project: Project) -> None:
    """A run as the workflow starts it imports none of the slow modules, nor the schema library."""
    project.run("rm", "-rf", "results/runs")
    (configuration,) = (project.root / "results/configs").glob("*-0.1-fedlaw-*.json")
    how = {"FEDREPRO_ARITHMETIC": "portable"}  # the workflow reads it from params.yaml once
    done = project.run("python", "-c", LOOK, "run", configuration, "--seeds", "8", "--device", "cpu", **how)
    code, *modules = done.stdout.split()
    assert code == "0", done.stderr
    assert "torch" in modules
    assert not [name for name in (*SLOW, "pydantic", "yaml") if name in modules]


def test_drawing_needs_no_torch(project: Project) -> None:
    """Artifacts that need only labels are drawn without torch. Initial models need it."""
    kinds = (project.root / "results/configs" / kind for kind in ("participation", "partitions", "proxy"))
    definitions = [next(folder.glob("*.json")) for folder in kinds]
    done = project.run("python", "-c", DRAW, *definitions, FEDREPRO_ARITHMETIC="portable")
    codes, modules = done.stdout.splitlines()[-2:]
    assert codes == "[0, 0, 0]", done.stderr
    assert "torch" not in modules.split()


def test_the_command_line_loads_next_to_nothing(project: Project) -> None:
    """Neither the command line nor jobs that only read receipts import a slow library."""
    look = "import sys; import fedrepro.cli, fedrepro.engine.records; print(*sys.modules)"
    modules = project.run("python", "-c", look).stdout.split()
    assert not {"torch", "numpy", "pyarrow", "pydantic", "yaml", "asyncio", "multiprocessing"} & set(modules)


def test_the_workflow_process_imports_no_large_library(project: Project) -> None:
    """Snakemake's process itself plans the requested table and checks the finished jobs."""
    lines = (project.root / "imports").read_text().splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert {"fedrepro.workflow", "fedrepro.config.grid"} <= imported
    assert not imported & {"torch", "mlflow", "matplotlib", "scipy", "pandas", "pyarrow"}
