"""A sweep as files: rows for methods and their arguments, columns for settings, its name, mistakes, and what its runs share."""

from pathlib import Path

import pytest
import real_papers
import yaml

from fedrepro.cli import main
from fedrepro.cli.sweep import over
from fedrepro.config.by_hand import Request
from fedrepro.config.grid import plan
from fedrepro.config.plan import Plan
from fedrepro.config.project import load_project
from fedrepro.config.sweep import files
from fedrepro.errors import UserError

ROOT = Path(__file__).parents[3]
OVER = {"alpha": (0.1, 0.5, 1), "fedprox.mu": (0.001, 0.1)}  # as in the issue
GIVEN = {"partition": "dirichlet_per_class(alpha=1)", "dataset": "mnist", "model": "two_nn"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the real papers, as the current folder."""
    return real_papers.enter(tmp_path, monkeypatch, "scale: demo\nseeds: [8, 9]\nsettings: {rounds: 2}\n")


def written(root: Path, wanted: Request, name: str | None = None) -> tuple[str, Plan]:
    """Writes the sweep's files into sweeps/. Returns its name as a paper, and its plan."""
    called, found = files(load_project(root, {}), wanted, name, "fedrepro sweep ...")
    for path, text in found.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    loaded = load_project(root)
    assert {f"{called}/table1", f"{called}/figure1"} <= {*loaded.table_names()}
    made = plan(loaded.as_published("full"), called, "table1", "full")
    assert [*plan(loaded.as_published("full"), called, "figure1", "full").runs] == [*made.runs]
    return called, made


def test_every_combination_is_a_cell(project: Path) -> None:
    """Rows vary the method's argument, columns the scheme's. Other settings are FedLAW's and not params.yaml's."""
    called, made = written(project, Request(("fedprox+gh",), GIVEN, "fedlaw/table3", OVER, (8, 9)), "mine")
    assert called == "sweep_mine"
    assert [row.label for row in made.rows] == ["fedprox(mu=0.001)+gh", "fedprox(mu=0.1)+gh"]
    assert [column.label for column in made.columns] == ["alpha = 0.1", "alpha = 0.5", "alpha = 1"]
    assert len(made.runs) == len(made.planned) == 6
    assert made.seeds == (8, 9)
    assert {run.config["rounds"] for run in made.runs.values()} == {200}
    values = {(run.config["partition"], "mu=0.1," in run.method) for run in made.runs.values()}
    assert values == {(f"dirichlet_per_class(alpha={a})", big) for a in ("0.1", "0.5", "1.0") for big in (True, False)}
    assert all("steps=plain" in run.method for run in made.runs.values())  # FedLAW's value for FedProx


def test_candidates_share_what_is_drawn(project: Path) -> None:
    """Each alpha has one partition. Cohorts, proxy split and initial model are the same for all runs."""
    _, made = written(project, Request(("fedprox+gh", "fedavg"), GIVEN, "fedlaw/table3", OVER, (8,)))
    drawn = {kind: {run.inputs[kind] for run in made.runs.values()} for kind in ("partition", "participation", "proxy", "init")}
    assert {kind: len(ids) for kind, ids in drawn.items()} == {"partition": 3, "participation": 1, "proxy": 1, "init": 1}
    assert len(made.runs) == 9  # FedAvg has no mu, so it has one run for each alpha


def test_a_run_of_a_table_is_the_tables_run(project: Path) -> None:
    """A sweep reuses the run_id of a table's run, so a run with evidence does not train again."""
    whole = plan(load_project(ROOT, {}).as_published("full"), "fedgh", "table2", "full")
    given = {"partition": "dirichlet_per_client(beta=1)"}
    _, made = written(project, Request(("gh", "fedavg"), given, "fedgh/table2", {"beta": (0.1, 10, 0.3)}, (8,)))
    assert len(made.runs) == 6
    assert len(made.runs.keys() & whole.runs.keys()) == 4


def test_settings_and_models_too(project: Path) -> None:
    """A sweep can vary settings. A detector has its own metric."""
    _, made = written(project, Request(("fedavg",), {}, None, {"clients": (5, 10), "client_lr": (0.1, 0.01)}, (8,)))
    assert {(run.config["clients"], run.config["client_lr"]) for run in made.runs.values()} == {
        (clients, rate) for clients in (5, 10) for rate in (0.1, 0.01)
    }
    given = {"dataset": "synthetic_faces", "model": "grid_detector"}
    _, made = written(project, Request(("fedavg",), given, None, {"clients": (5, 10)}, (8,)))
    assert {column.metric.name for column in made.columns} == {"test_map50"}


def test_a_name_follows_from_the_content(project: Path) -> None:
    """The same sweep has the same name, and another value gives another name. The files are plain YAML and name the command
    that wrote them."""
    wanted = Request(("fedprox+gh",), GIVEN, None, OVER, (8,))
    loaded = load_project(ROOT, {})
    names = [files(loaded, one, None)[0] for one in (wanted, wanted, Request(("fedprox+gh",), GIVEN, None, OVER, (9,)))]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("sweep_fedprox_gh_alpha_mu_")
    _, found = files(loaded, wanted, "mine", "fedrepro sweep --method fedprox+gh")
    assert [*map(str, found)] == [f"sweeps/mine/{path}.yaml" for path in ("paper", "tables/table1", "figures/figure1")]
    for text in found.values():
        assert text.startswith("# Written by: fedrepro sweep --method fedprox+gh\n")
        assert "&id" not in text
        assert yaml.safe_load(text)


def test_values_are_read_as_they_are_written() -> None:
    """Values may be numbers, also with exponents, words, and calls with commas of their own."""
    shards = "shards(per_client=2, distinct_labels=true)"
    found = over(["client_lr=1e-2,0.1", f"partition={shards},iid", "fedprox.mu=1", "alpha=1,2"])
    assert found == {"client_lr": (0.01, 0.1), "partition": (shards, "iid"), "fedprox.mu": (1.0,), "alpha": (1, 2)}
    for item in ("alpha", "alpha=0.1,"):
        with pytest.raises(UserError, match=rf"--over {item}: write key=value,value"):
            over([item])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--over rounds=1", "sweep: --method is missing"),
        ("--method fedavg --over rounds=x", "--over rounds: 'x' is not a whole number"),
        ("--method fedavg --over rounds=5,010", "--over rounds=5,010: 010: write the number in decimal digits"),
        ("--method fedavg --over clients=0,2", "--over clients: clients = 0: must be at least 1"),
        ("--method fedavg --over rounds=1,2 --rounds 3", "--over rounds: has one value already"),
        ("--method fedprox(mu=0.5) --over fedprox.mu=0.1,0.2", "--over fedprox.mu: has one value already; leave either out"),
        ("--method fedavg --partition shards(per_client=2) --over per_client=3,4", "--over per_client: has one value already"),
        (
            "--method fedavg --partition dirichlet_per_class",
            "error: --partition: dirichlet_per_class: argument 'alpha' is missing",
        ),
        (
            "--method fedavg --over partition=dirichlet_per_class(alpha=1),iid alpha=0.1,0.5",
            "--over alpha: has one value already; leave either out",
        ),
        (
            "--method fedavg --partition iid --over alpha=0.1",
            "--over alpha: unknown setting 'alpha'; Known as an argument of the partition scheme dirichlet_balanced,",
        ),
        ("--method fedavg --partition iid --over alpha=0.1", "; the partition here is iid"),
        ("--method fedavg --over client_lr=0.1,0.10", "--over client_lr=0.1,0.10: 0.1 is given twice"),
        ("--method fedavg --over lr=0.1,0.2", "'lr'; did you mean 'client_lr'?"),
        ("--method fedavg --over rounds=1 rounds=2", "--over rounds=2: rounds is given twice"),
        ("--method fedavg --over fedprox.mu=1", "--over fedprox.mu: none of the methods has the part 'fedprox'"),
        ("--method fedprox --over fedprox.mu=-1", "--over fedprox.mu: fedprox: mu = -1.0: must be at least 0"),
        ("--method fedavg --partition shards(per_client=2) --over per_clent=1", "did you mean 'per_client'?"),
        (
            "--method fedavg --dataset mnist --model two_nn --over partition=iid,iid()",
            "are the same run here; leave one of the",
        ),
        ("--method fedavg --over rounds=1 --name A-b", "--name A-b: take lower-case letters, digits and _"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(
    arguments: str, words: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *arguments.split()]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
    assert not (project / "sweeps").exists()


def test_a_name_that_is_taken(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another sweep under a taken name is refused. A dry run prints what would train and writes nothing."""
    written(project, Request(("fedavg",), {"rounds": 1}, None, {"clients": (5,)}, (8,)), "mine")
    before = {path: path.read_bytes() for path in project.rglob("*.yaml")}
    command = ["sweep", "--method", "fedavg", "--rounds", "1", "--over", "clients=5,10", "--seeds", "8", "--dry-run"]
    assert main([*command, "--name", "mine"]) == 2
    err = capsys.readouterr().err
    assert "sweeps/mine/tables/table1.yaml: is of another sweep, or was edited since; `snakemake --cores 2 reports/full/" in err
    assert "sweep_mine/table1.md` runs it as it stands; or give another --name, or delete sweeps/mine" in err
    assert main(command) == 0
    assert "2 runs to train with 2 seeds in all" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in project.rglob("*.yaml")} == before


def test_a_swept_argument_decides_the_partition(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line on settings that were not given leaves the partition out: the table's has another alpha."""
    command = ["sweep", "--method", "fedavg", "--over", "alpha=0.1,0.5", "--like", "fedlaw/table3/fashion_mnist-mlp-100"]
    assert main([*command, "--dry-run"]) == 0
    line = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("not given; as fedlaw/table3"))
    assert "model mlp, clients 20," in line
    assert "partition" not in line


def test_an_edited_file_runs_as_it_stands(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file keeps its own settings at any scale of params.yaml. An error in the file names the file."""
    (project / "params.yaml").write_text("scale: demo\nseeds: [8]\n")
    written(project, Request(("fedavg",), {"rounds": 3}, None, {"clients": (5,)}, (8,)), "mine")
    path = project / "sweeps/mine/tables/table1.yaml"
    command = ["run", "sweep_mine/table1", "--dry-run"]
    assert main(command) == 0
    assert ", rounds 3" in capsys.readouterr().out.splitlines()[0]
    text = path.read_text()
    for old, new, words in (
        ("rounds: 3", "rounds: 0", "rounds = 0: must be at least 1"),
        ("method: fedavg", "method: fedprox(mu=)", "'fedprox(mu=)' is not of the form"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        assert main(command) == 2
        err = capsys.readouterr().err
        assert "sweeps/mine/tables/table1.yaml: " in err
        assert words in err
        assert "--" not in err
