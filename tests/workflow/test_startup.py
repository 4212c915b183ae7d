"""Start-up counts: there are dozens of training processes in a demo, and each import of a large library costs seconds."""

from tests.workflow.conftest import Project

SLOW = ("torch._dynamo", "torchvision", "mlflow", "matplotlib", "sklearn", "scipy", "dvc", "snakemake")


def test_a_training_process_imports_no_large_library_but_torch(project: Project) -> None:
    """A run as the workflow starts it loads none of the slow modules, nor the schema library."""
    selection = ("--rows", "fedlaw", "--columns", "fashion_mnist-mlp-0.1", "--seeds", "8")
    project.run("fedrepro", "run", "fedlaw/table3", *selection)
    project.run("fedrepro", "plan", "fedlaw/table3", "--out", "plan.json")
    look = "import sys; from fedrepro.cli import main; code = main(sys.argv[1:]); print(code, *sys.modules)"
    project.run("rm", "-r", "results/runs")
    done = project.run("python", "-c", look, "run", "plan.json", *selection)
    code, *modules = done.stdout.split()
    assert code == "0"
    assert "torch" in modules
    assert not [name for name in (*SLOW, "pydantic", "yaml") if name in modules]
