"""What a person sees of a run of the workflow: about a line a step, the failing job's log, nothing else hidden for good."""

from tests.workflow.conftest import Project


def test_a_line_a_step(chain: tuple[Project, list[str]]) -> None:
    """Six trainings with all that goes with them; the log file of Snakemake has every job."""
    project, lines = chain
    assert len(lines) < 35, "\n".join(lines)
    assert max(map(len, lines)) < 250
    assert sum(" steps: train digits-" in line for line in lines) == 6
    assert sum("% in the last round, 2 rounds in" in line for line in lines) == 6
    assert any("5 of 6 trainings, one in " in line for line in lines)
    assert any(line.endswith(" steps: reports/table3.md") for line in lines)
    log = min((project.root / ".snakemake/log").glob("*.log"))
    assert "MLflow: table3" in log.read_text()
    assert len(log.read_text().splitlines()) > 3 * len(lines)
    assert "seed 8 trained" in next((project.root / "logs/train").glob("*-8.log")).read_text()


def test_the_failing_jobs_log_and_its_error_last(made: Project) -> None:
    """More clients than samples: the partition cannot be drawn. The job's log is shown, where the whole one lies, and its line
    with both numbers once more at the end."""
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
