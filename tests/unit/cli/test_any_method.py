"""`fedrepro run --method` without a table, and `--set` on chosen rows and columns of one."""

import json
import re
from pathlib import Path

import pytest
import real_papers

from fedrepro.cli import main, request
from fedrepro.config import by_hand
from fedrepro.config.by_hand import Request, with_values
from fedrepro.config.grid import plan
from fedrepro.config.plan import SCHEMA, Plan
from fedrepro.config.project import load_project
from fedrepro.config.schema import Scalar, Sourced
from fedrepro.errors import UserError
from fedrepro.files import write_json
from fedrepro.methods.compose import compose

ROOT = Path(__file__).parents[3]
# The command of the issue, on embedded data.
COMMAND = [
    *("run", "--method", "fedprox(mu=0.1)+gh", "--dataset", "digits", "--model", "two_nn"),
    *("--partition", "dirichlet_per_client(beta=0.5)", "--rounds", "3", "--seeds", "8,9", "--device", "cpu"),
]


PARAMS = "scale: demo\nseeds: [8]\nsettings: {local_epochs: 2}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the real papers and default parameters, as the current folder."""
    return real_papers.enter(tmp_path, monkeypatch, PARAMS)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    capsys.readouterr()
    assert main([*arguments]) == 0
    return capsys.readouterr()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main([*arguments]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


def receipts(project: Path) -> dict[str, dict]:
    found = [json.loads(path.read_text()) for path in project.glob("results/runs/*/seed*.json")]
    return {f"{one['method_label']}/{one['seed']}": one for one in found}


def made(root: Path, *methods: str, like: str | None = None, **given: object) -> Plan:
    """The plan that a command makes."""
    wanted = Request(methods, dict(given), like)  # type: ignore[arg-type]
    return plan(by_hand.alone(load_project(root, {}), wanted), by_hand.PAPER, by_hand.TABLE, "full")


# --- any method ----------------------------------------------------------------------------------------------------------


def test_any_method_in_any_setting_without_a_table(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command trains both seeds with the given settings, ignores the settings of params.yaml, and lists on one line the
    settings that take their default. A second call keeps every seed."""
    out, err = run(capsys, *COMMAND)
    line = next(line for line in err.splitlines() if line.startswith("not given; "))
    assert line.startswith("not given; by default: clients 10, participation 1, ")
    assert "local_epochs 1" in line
    assert not re.search(r"\b(dataset|model|partition|rounds) ", line)
    assert re.match(r"fedprox\(mu=0\.1\)\+gh, digits two_nn dirichlet_per_client\(beta=0\.5\): .* over seeds 8, 9\n", out)
    found = receipts(project)
    assert {*found} == {"fedprox+gh/8", "fedprox+gh/9"}
    config = found["fedprox+gh/8"]["config"]
    assert config["method"] == str(compose("fedprox(mu=0.1)+gh"))
    assert (config["rounds"], config["local_epochs"], config["clients"]) == (3, 1, 10)
    assert "seed 8 kept, seed 9 kept" in run(capsys, *COMMAND)[1]


def test_a_run_of_no_table_has_one_reading_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run`, `runs` and `compare` read the last round, with no table's settings beside it, also after a table was made. The
    plan of a table without a file is passed over. There is one paper, since `runs` plans every table."""
    project = real_papers.enter(tmp_path, monkeypatch, PARAMS, "fedlaw")
    out, _ = run(capsys, "run", "--method", "fedavg", "fedprox", *COMMAND[3:-3], "100", "--device", "cpu")
    assert "test accuracy in %, the last of 3 rounds" in out
    run(capsys, "new", "paper", "mine")
    gone = {"schema": SCHEMA, "paper": "gone", "table": "table1", "scale": "full"}
    write_json(project / "results/plans/gone/table1.json", gone)
    listed, err = run(capsys, "runs", "--dataset", "digits")
    assert err == ""
    assert listed.startswith("no table: 2 runs, trained here, seed 100\n")
    assert "\ntest accuracy in %, the last of 3 rounds\n" in listed
    assert "(table: " not in listed
    assert re.search(r"\nno table +– +2 +– +– +100 +trained here\n", run(capsys, "runs")[0])
    ids = {path.parent.name for path in project.glob("results/runs/*/seed100.json")}
    assert "\ntest accuracy in %, the last of 3 rounds\n" in run(capsys, "compare", *sorted(ids))[0]


def test_values_by_set_and_several_methods(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--set takes settings and arguments of parts. An argument changes only the methods that contain its part. A part that a
    method has by default counts too."""
    more = ["--set", "client_lr=1e-2", "fedprox.mu=1", "server_sgd.server_lr=0.5", "--seeds", "8", "--rounds", "2"]
    run(capsys, "run", "--method", "fedavg,fedprox(mu=0.1, steps=plain)", *more, "--device", "cpu")
    found = receipts(project)
    assert len(found) == 2
    assert {one["config"]["client_lr"] for one in found.values()} == {0.01}
    wanted = ["server_sgd(server_lr=0.5)", "fedprox(mu=1, steps=plain)+server_sgd(server_lr=0.5)"]
    assert {one["method"] for one in found.values()} == {str(compose(text)) for text in wanted}


@pytest.mark.parametrize(
    ("like", "row", "column"),
    [
        ("fedgh/table2", "fedavg+gh", "alpha0.1-top1"),
        ("fedlaw/table3", "fedlaw", "cifar10-simple_cnn-0.1"),
        ("elastic/table2", "fedavg+elastic", "mnist"),
    ],
)
def test_like_a_table_gives_that_tables_run(like: str, row: str, column: str) -> None:
    """--like takes the table's protocol, the settings for the data set and the arguments of its methods: the run_id is the
    table's."""
    project = load_project(ROOT, {})
    paper, _, table = like.partition("/")
    whole = plan(project.as_published("full"), paper, table, "full")
    cell = next(one for one in whole.planned if one.row.startswith(row) and one.column.startswith(column))
    source = project.table(paper, table)
    method = "+".join(
        entry.method
        for entries, key in ((source.rows, cell.row), (source.columns, cell.column))
        for entry in entries
        if entry.key == key and entry.method
    )
    setting = next(one.setting for one in source.columns if one.key == cell.column)
    assert [*made(ROOT, method, like=like, **setting).runs] == [cell.run_id]
    assert [*made(ROOT, method, like=f"{like}/{cell.column}").runs] == [cell.run_id]


def test_schedules_follow_the_rounds_that_are_given() -> None:
    """A schedule from --like scales with the given rounds, like the schedule of a table with changed rounds. A schedule that
    the command gives is not scaled."""
    late = "constant+stage(start=100, every=50, factor=0.5)"
    project = load_project(ROOT, {})
    paper = project.paper("fedgh")
    own = {key: Sourced(value=value, source="paper") for key, value in {"schedule": late, "rounds": 200}.items()}
    protocol = paper.protocol | own
    table = project.table("fedgh", "table2")
    own = {"fedgh/table2": (paper.model_copy(update={"protocol": protocol}), table.model_copy(update={"base": {}}))}
    changed = type(project)(project.root, project.params, project.scales, project.registry, own=own)
    given = {"dataset": "digits", "model": "mlp", "partition": "iid", "rounds": 20}
    _, whole = by_hand.contents(changed, Request(("fedavg",), given, "fedgh/table2"))
    assert whole["columns"][0]["setting"]["schedule"] == "constant(start=0, value=null)+stage(start=10, every=5, factor=0.5)"
    _, whole = by_hand.contents(changed, Request(("fedavg",), given | {"schedule": "cosine"}, "fedgh/table2"))
    assert whole["columns"][0]["setting"]["schedule"] == "cosine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--method fedporx", "--method: unknown method 'fedporx'; did you mean 'fedprox'?"),
        ("--method fedavg --dataset minst", "--dataset: unknown data set 'minst'; did you mean 'mnist'?"),
        ("--method fedavg --model lennet", "--model: unknown model 'lennet'; did you mean 'lenet'?"),
        ("--method fedavg --partition idd", "--partition: unknown partition scheme 'idd'; did you mean 'iid'?"),
        (
            "--method fedavg --partition dirichlet_per_client(alpha=1)",
            "--partition: dirichlet_per_client: unknown argument 'alpha'",
        ),
        ("--method fedavg --set clinet_lr=1", "--set clinet_lr=1: unknown setting 'clinet_lr'; did you mean 'client_lr'?"),
        ("--method fedavg --set client_lr=x", "--set client_lr: 'x' is not a number"),
        ("--method fedavg --set batch_size=0", "--set batch_size: batch_size = 0: must be at least 1"),
        ("--method fedavg --rounds 3 --set rounds=4", "--set rounds=4: rounds is given twice"),
        ("--method fedavg --set fedprox.mu=1", "--set fedprox.mu: none of the methods has the part 'fedprox'"),
        ("--method fedprox --set fedprox.nu=1", "--set fedprox.nu: fedprox: unknown argument 'nu'"),
        ("--method fedprox --set fedprox.mu=-1", "--set fedprox.mu: fedprox: mu = -1.0: must be at least 0"),
        ("--method fedlaw", "--set proxy_per_class = 0: fedlaw needs a proxy set"),
        ("--method fedavg --dataset tinyshakespeare", "--dataset = 'tinyshakespeare': is text of 80, but mlp reads images"),
        (
            "--method fedavg --like fedlaw/tabel3",
            "--like fedlaw/tabel3: unknown table 'fedlaw/tabel3'; did you mean 'fedlaw/table3'?",
        ),
        ("--method fedavg --like fedlaw/table3/x", "--like fedlaw/table3/x: unknown column 'x'"),
        ("--method fedavg --rows fedavg", "--rows: goes with a table"),
        ("--method fedavg --scale short", "--scale: goes with a table"),
        ("fedlaw/table3 --method fedavg", "run: give either a table or --method"),
        ("fedlaw/table3 --like fedgh/table2", "--like fedgh/table2: goes with --method"),
        ("--dry-run", "run: give either a table or --method, for example fedlaw/table3"),
    ],
)
def test_a_mistake_names_the_option_and_the_nearest_name(
    arguments: str, words: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(capsys, "run", *arguments.split(" "))
    assert not (project / "results").exists()


# --- a table with other values -------------------------------------------------------------------------------------------

TWO = ["--columns", "fashion_mnist-mlp-0.1", "fashion_mnist-mlp-100", "--seeds", "8", "--device", "cpu"]


def test_values_on_chosen_rows_and_columns(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two columns that --set makes the same run train once. An argument changes the row that has the part, and the outcome
    names the changed values."""
    new = ["--set", "partition=shards(per_client=2)", "model=two_nn", "fedprox.mu=1", "rounds=2", "local_epochs=1"]
    out, err = run(capsys, "run", "fedlaw/table3", "--rows", "fedavg,fedprox", *TWO, *new)
    assert err.count("seed 8 trained") == 2
    found = receipts(project)
    assert {*found} == {"fedavg/8", "fedprox/8"}
    assert "fedprox(mu=1.0, " in found["fedprox/8"]["method"]
    assert found["fedprox/8"]["config"]["partition"] == "shards(per_client=2, distinct_labels=false)"
    assert "fedprox.mu 1 (table: 0.001)" in out
    assert "not comparable (scale demo, " in out


def test_an_argument_that_a_row_writes_is_changed_too(project: Path) -> None:
    """--set also changes an argument that the row's method writes out. params.yaml cannot change it."""
    loaded = load_project(project, {})
    made_of = lambda values: plan(  # noqa: E731
        by_hand.narrowed(loaded, "fedgh/table2-steps", None, None, values), "fedgh", "table2-steps", "full"
    )
    written = [row.key for row in loaded.table("fedgh", "table2-steps").rows if "server_lr" in (row.method or "")]
    assert written
    changed = made_of({"server_sgd.server_lr": 0.25})
    for cell in changed.planned:
        assert "server_sgd(server_lr=0.25)" in changed.run(cell).method


def test_an_argument_that_a_row_tunes_is_given_instead(project: Path) -> None:
    """--set of an argument that a cell tunes leaves the other keys to tune, and none where it was the only one."""
    table = project / "papers/igfl/tables/table1.yaml"
    table.write_text(table.read_text().replace("      client_lr: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]\n", ""))
    loaded = load_project(project, {})

    def tried(values: dict[str, Scalar]) -> set[tuple[str, ...]]:
        planned = plan(by_hand.narrowed(loaded, "igfl/table1", ["fedadam"], None, values), "igfl", "table1", "full")
        assert all("tau=0.05" in planned.run(cell).method for cell in planned.planned)
        return {tuple(candidate.values) for candidate in planned.candidates}

    assert tried({"fedadam.tau": 0.05}) == {("fedadam.server_lr",)}
    assert tried({"fedadam.tau": 0.05, "fedadam.server_lr": 0.1}) == set()


def test_a_method_of_ones_own_is_a_row(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A method given as a row takes the paper's arguments for parts whose arguments it leaves out. Commas inside parentheses do
    not split a list."""
    command = ["run", "fedlaw/table3", "--rows", "fedprox(mu=0.5)+gh", "fedavg", *TWO[:2], *TWO[3:]]
    out, _ = run(capsys, *command, "--set", "rounds=2")
    assert out.startswith("fedprox(mu=0.5)+gh, digits mlp ")
    own = receipts(project)["fedprox+gh/8"]
    assert "fedprox(mu=0.5, steps=plain)" in own["method"]  # the paper's value for FedProx in FedLAW
    assert request.split("fedprox(mu=0.5, steps=plain),gh , fedavg") == ["fedprox(mu=0.5, steps=plain)", "gh", "fedavg"]
    assert request.split("by_group(within='shards(per_client=2)'),iid") == ["by_group(within='shards(per_client=2)')", "iid"]


def test_columns_that_the_scale_leaves_out_can_be_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--columns can name a column that scale demo leaves out."""
    out, _ = run(capsys, "run", "fedlaw/table3", "--rows", "fedavg", "--columns", "cifar10-simple_cnn-0.1", "--dry-run")
    assert out.startswith("all have method fedavg, dataset digits, model simple_cnn, partition dirichlet_per_class(alpha=0.1),")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rows", "fedporx"], "fedlaw/table3: unknown row 'fedporx'; did you mean 'fedprox'?"),
        (["--rows", "fedprox+ghh"], "--rows fedprox+ghh: unknown method 'ghh'; did you mean 'gh'?"),
        (
            ["--columns", "fashion_mnist-mlp-0.2"],
            "unknown column 'fashion_mnist-mlp-0.2'; did you mean 'fashion_mnist-mlp-0.1'?",
        ),
        (["--rows", "fedavg", "--set", "fedprox.mu=1"], "fedprox.mu: none of the methods has the part 'fedprox'"),
        (["--set", "fedprx.mu=1"], "--set fedprx.mu: unknown method part 'fedprx'; did you mean 'fedprox'?"),
        (["--rounds", "3", "--set", "partition=idd"], "--set partition: unknown partition scheme 'idd'; did you mean 'iid'?"),
    ],
)
def test_mistakes_on_a_table(arguments: list[str], words: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refused(capsys, "run", "fedlaw/table3", *arguments)


def test_arguments_of_methods() -> None:
    """with_values() sets an argument of a named part, of a part that occurs twice, of a default part and of a recipe. It
    changes nothing where no part fits."""
    assert with_values("fedprox(mu=0.1)+gh", {"fedprox.mu": 1}) == "fedprox(mu=1.0)+gh"
    assert with_values("fixed_gamma+fixed_gamma", {"fixed_gamma.gamma": 0.5}) == "fixed_gamma(gamma=0.5)+fixed_gamma(gamma=0.5)"
    assert with_values("fedavg", {"server_sgd.server_lr": 0.5}) == "server_sgd(server_lr=0.5)"
    assert with_values("igfl", {"attention.kind": "self"}) == "igfl_c+attention(kind=self)"
    assert with_values("fedavg", {"fedprox.mu": 1}) == "fedavg"
    assert with_values("fedavg", {}) == "fedavg"
    with pytest.raises(UserError, match="unknown method part 'fedporx'"):
        with_values("fedavg", {"fedporx.mu": 1})
