"""A table with a tuned row, from its file to the report: every candidate trains at one seed, the chosen one at the others."""

import json
import os
import signal
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tests.workflow.conftest import Project, new_trainings, to_copy, wait_for

TABLE = "reports/table91.md"


def tuned_table(project: Project, **tune: Any) -> dict[str, Any]:
    """A table for `project` at seeds 8 and 9, whose only cell is tuned and read twice."""
    project.params(lambda params: params.update(seeds=[8, 9], tables=["fedlaw/table91"]))
    content, column = to_copy(project)
    row = {"key": "tuned", "label": "tuned", "method": "fedavg", "tune": tune | {"seeds": [8], "also": "proxy_accuracy"}}
    base = {"evaluate_proxy": {"value": True, "source": "ours"}}
    return content | {"base": base, "rows": [row], "companions": [], "columns": [column], "source": "ours"}


def write(project: Project, content: dict[str, Any]) -> None:
    (project.root / "papers/fedlaw/tables/table91.yaml").write_text(yaml.safe_dump(content))


def test_the_chosen_candidate_alone_trains_at_the_other_seeds(drawn: Project) -> None:
    """One candidate cannot learn. A second call trains nothing, and another grid trains only its new candidates."""
    project = drawn
    content = tuned_table(project, client_lr=[1e-6, 0.08])
    write(project, content)
    project.run("snakemake", "--cores", "2", TABLE)
    document = json.loads(Path(project.root, TABLE).with_suffix(".json").read_text())
    (lost, chosen), (cell,) = document["candidates"], document["cells"]
    assert (lost["chosen"], chosen["chosen"]) == (lost["second_chosen"], chosen["second_chosen"]) == (False, True)
    assert chosen["ahead"] > 5
    assert chosen["worth"] == 0
    assert (project.root / "reports/figures/candidates/table91.svg").exists()
    assert cell["run_id"] == chosen["run_id"]
    assert list(cell["per_seed"]) == ["8", "9"]
    before = project.trained()
    assert sorted(before) == sorted([f"{lost['run_id']}/seed8", *cell["runs"]])

    again = project.run("snakemake", "--cores", "2", TABLE)
    assert "Nothing to be done" in again.stdout + again.stderr
    content["rows"][0]["tune"]["client_lr"] = [1e-6, 0.08, 1e-5]
    write(project, content)
    project.run("snakemake", "--cores", "2", "runs", TABLE)
    assert len(new_trainings(before, project.trained())) == 1


def test_a_cell_whose_candidates_all_diverge_is_told(drawn: Project) -> None:
    """Both candidates diverge, and no training at the other seed follows. The exit code is 0, since divergence is a result."""
    write(drawn, tuned_table(drawn, client_lr=[1e30, 1e31]))
    done = drawn.run("fedrepro", "run", "fedlaw/table91")
    assert len(drawn.trained()) == 2
    assert ": all 2 candidates diverged, or never reached the target" in done.stdout


def test_killed_between_its_trials_it_goes_on_where_it_was(drawn: Project) -> None:
    """The first candidate diverges, and SIGKILL ends the second while it trains. The same command trains no finished trial
    again, continues from the checkpoint, and then trains the chosen candidate at the other seed."""
    project = drawn
    write(project, tuned_table(project, client_lr=[1e30, 0.08]))
    command = ("fedrepro", "run", "fedlaw/table91", "--set", "rounds=60")
    runs, begun = project.root / "results/runs", project.root / "results/checkpoints"
    running = project.start(*command, "--checkpoint-seconds", "0")
    wait_for(lambda: project.trained() and any(begun.glob("*/seed8.pt")), running)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    killed_at = datetime.now().astimezone()
    before = project.trained()
    (diverged,) = before
    done = project.run(*command)
    assert len(project.trained()) == 3
    assert project.trained()[diverged] == before[diverged]
    receipts = {
        path.stem: json.loads(path.read_text()) for path in runs.glob("*/seed*.json") if path.parent.name not in diverged
    }
    assert datetime.fromisoformat(receipts["seed8"]["cost"]["started_at"]) < killed_at
    assert {*receipts} == {"seed8", "seed9"}
    assert len(receipts["seed8"]["curves"]["proxy_accuracy"]) == 60
    assert "over seeds 8, 9" in done.stdout
