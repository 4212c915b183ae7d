"""The output of a workflow run: about one line per step, the failing job's log, and log files for everything else."""

from tests.workflow.conftest import Project


def test_a_line_a_step(chain: tuple[Project, list[str]]) -> None:
    """Six trainings and their other jobs print a line per step. Snakemake's log file has every job."""
    project, lines = chain
    assert len(lines) < 35, "\n".join(lines)
    assert max(map(len, lines)) < 250
    assert sum(" steps: train digits-" in line for line in lines) == 6
    assert sum("% in the last round, 2 rounds in" in line for line in lines) == 6
    assert any("5 of 6 runs, one in " in line for line in lines)
    assert any(line.endswith(" steps: reports/table3.md") for line in lines)
    log = min((project.root / ".snakemake/log").glob("*.log"))
    assert "MLflow: table3" in log.read_text()
    assert len(log.read_text().splitlines()) > 3 * len(lines)
    assert "seed 8 trained" in next((project.root / "logs/train").glob("*-8.log")).read_text()


def test_the_failing_jobs_log_and_its_error_last(made: Project) -> None:
    """There are more clients than samples, so the partition cannot be drawn. The output shows the job's log and the path of the
    full one, and repeats its line with both numbers at the end."""
    made.params(lambda p: p["settings"].update(clients=5000))
    done = made.run("snakemake", "--cores", "2", "reports/table3.md", ok=False)
    assert done.returncode == 1
    assert "clients = 5000" in done.stderr.strip().splitlines()[-1]
    assert "1297" in done.stderr.strip().splitlines()[-1]
    lines = done.stderr.splitlines()
    place = next(i for i, line in enumerate(lines) if "FAILED: partitions digits-" in line)
    assert "logs/draw/partitions-" in lines[place + 1]
    assert lines[place + 2].startswith("    | fedrepro: error: clients = 5000: more clients than")
    assert lines[place + 3].startswith("    command: fedrepro draw results/configs/partitions/digits-")
    assert any(line.startswith("Complete log(s): ") for line in lines)
    assert not any("RuleException" in line or "no backup found" in line for line in lines)
