"""From the files that a person edits to runs: layers, sources, run ids."""

import copy
import dataclasses
import json
from typing import Any

import pytest
import yaml
from small_papers import FULL, ROOT, TABLE, Files, cell, ids, run_of

from fedrepro.config import grid
from fedrepro.config.grid import plan
from fedrepro.config.layers import REPORTED, SETTINGS
from fedrepro.config.project import load_project
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.typed import plain


def test_settings_by_layer_and_their_sources(files: Files) -> None:
    """Later layers win: protocol, data set, table, column, scale, params.yaml. Each value records its source."""
    full = files.plan(FULL)
    assert run_of(full, "fedavg", "fashion_mnist")["config"]["client_lr"] == 0.08  # protocol
    assert run_of(full, "fedavg", "mnist")["config"]["client_lr"] == 0.01  # data set
    assert run_of(full, "fedavg")["config"]["local_epochs"] == 2  # table
    assert run_of(full, "fedavg")["config"]["dataset"] == "mnist"  # column
    files.table["columns"][0]["setting"]["local_epochs"] = 7
    assert run_of(files.plan(FULL), "fedavg")["config"]["local_epochs"] == 7  # column over table
    demo = files.plan({"scale": "demo"})
    assert (run_of(demo, "fedavg")["config"]["dataset"], run_of(demo, "fedavg")["config"]["rounds"]) == ("digits", 10)  # scale
    edited = files.plan({"scale": "demo", "settings": {"rounds": 3, "client_lr": 1}})
    config, sources = run_of(edited, "fedavg")["config"], run_of(edited, "fedavg")["sources"]
    assert (config["rounds"], config["client_lr"]) == (3, 1.0)  # params.yaml
    assert type(config["client_lr"]) is float
    assert (sources["rounds"], sources["dataset"], sources["clients"], sources["model"]) == (
        "params.yaml",
        "scale",
        "paper",
        "Table 1",
    )


def test_a_tables_name_is_not_the_source_of_what_it_does_not_print(files: Files) -> None:
    """`sources` of a table names the source of values that its columns set. A key that no column sets is refused."""
    files.table["sources"] = {"dataset": "our choice"}
    sources = run_of(files.plan(FULL), "fedavg")["sources"]
    assert sources["dataset"] == "our choice"
    files.table["sources"] = {"client_momentum": "our choice"}
    with pytest.raises(UserError, match="sources: no column gives client_momentum"):
        files.plan(FULL)


def test_the_papers_data_set_decides_its_layer_whatever_the_scale_puts_in_its_place(files: Files) -> None:
    """Scale demo trains on digits with the learning rate that the paper gives for the column's data set. The same holds if the
    table's base names the data set."""
    assert run_of(files.plan({"scale": "demo"}), "fedavg")["config"]["client_lr"] == 0.01
    files.table["columns"] = files.table["columns"][:1]
    del files.table["columns"][0]["setting"]["dataset"]
    files.table["base"]["dataset"] = {"value": "mnist", "source": "Table 1"}
    made = files.plan(FULL)
    assert run_of(made, "fedavg")["config"]["client_lr"] == 0.01
    assert "server_lr=0.002" in run_of(made, "fedlaw")["method"]


def test_arguments_by_layer(files: Files) -> None:
    """Later layers win: paper, paper by data set, paper by model, scale, params.yaml, the table's own text. null keeps the
    value of the layers below."""

    def server(params: dict[str, Any], column: str = "mnist") -> str:
        method = run_of(files.plan(params), "fedlaw", column)["method"]
        return method.partition("fedlaw(")[2].partition(", halve")[0]

    assert server(FULL, "fashion_mnist") == "server_lr=0.001, server_epochs=4"
    assert server(FULL) == "server_lr=0.002, server_epochs=4"
    assert server({"scale": "demo"}) == "server_lr=0.002, server_epochs=2"
    edit = {"some": {"fedlaw": {"server_lr": 0.5, "server_epochs": None}}}
    assert server({"scale": "demo", "methods": edit}) == "server_lr=0.5, server_epochs=2"
    assert server({**FULL, "methods": edit}) == "server_lr=0.5, server_epochs=4"
    files.paper["methods_by_model"] = {"mlp": {"fedlaw": {"server_lr": {"value": 0.003, "source": "x"}}}}
    assert server(FULL) == "server_lr=0.003, server_epochs=4"
    assert server({**FULL, "settings": {"model": "two_nn"}}) == "server_lr=0.003, server_epochs=4"  # by the column's own model
    files.table["rows"][2]["method"] = "fedlaw(server_lr=0.9)"
    assert server({**FULL, "methods": edit}) == "server_lr=0.9, server_epochs=4"


def test_a_scale_may_multiply(files: Files) -> None:
    """200 rounds times 0.1 are 20, and at least 1 round remains."""
    assert run_of(files.plan({"scale": "short"}), "fedavg")["config"]["rounds"] == 20
    files.scales["short"]["settings"]["rounds"]["times"] = 0.001
    assert run_of(files.plan({"scale": "short"}), "fedavg")["config"]["rounds"] == 1


def test_columns_may_become_one_run_by_an_edit(files: Files) -> None:
    """The run is asked for once. Columns that a table or scale makes equal are a mistake (test_config_mistakes)."""
    files.table["columns"][1]["setting"] = files.table["columns"][0]["setting"] | {"local_epochs": 9}
    made = files.plan({**FULL, "settings": {"local_epochs": 1}})
    assert ids(made)["fedavg", "mnist"] == ids(made)["fedavg", "fashion_mnist"]
    assert len(made["seeds_by_run"]) == len({run_id for (_, column), run_id in ids(made).items() if column == "mnist"})


def test_what_a_plan_says_of_itself(files: Files) -> None:
    """A plan has scale, seeds, comparability, printed numbers beside runs, and the reason for each cell without a run."""
    made = files.plan({**FULL, "seeds": [3, 5]})
    assert (made["paper"], made["table"], made["scale"], made["seeds"], made["comparable"]) == (
        "some",
        "table1",
        "full",
        [3, 5],
        True,
    )
    assert len(made["cells"]) == 8
    assert (cell(made, "fedlaw", "mnist")["printed"], cell(made, "fedlaw", "mnist")["reason"]) == (52.0, None)
    dyn = cell(made, "feddyn", "mnist")
    assert (dyn["printed"], dyn["run_id"], dyn["reason"]) == (53.0, None, "not available yet")
    files.table["rows"].insert(1, {"key": "mine", "label": "Mine", "method": "fedprox(mu=0.9)"})  # a row that no paper prints
    own = files.plan(FULL)
    assert (cell(own, "mine", "mnist")["printed"], own["comparable"]) == (None, True)
    assert [row["key"] for row in own["rows"] if not row["printed"]] == ["mine"]
    demo = files.plan({"scale": "demo"})
    assert [column["key"] for column in demo["columns"]] == ["mnist"]
    assert not demo["comparable"]


OTHER = {
    "clients": 19,
    "participation": 0.5,
    "local_validation": 0.2,
    "proxy_per_class": 9,
    "proxy_batch_size": 64,
    "rounds": 199,
    "local_epochs": 4,
    "batch_size": 64,
    "client_lr": 0.09,
    "client_lr_decay": 0.98,
    "client_momentum": 0.8,
    "keep_client_momentum": True,
    "normalise": "centred",
    "weight_decay": 1e-4,
    "dataset": "fashion_mnist",
    "model": "lenet",
    "partition": "dirichlet_per_class(alpha=2)",
    "products": "bf16",
    "cohorts": "fixed",
    "schedule": "cosine",
    "epochs": "fewer(every=3)",
    "evaluate_every": 2,
    "evaluate_proxy": True,
    "evaluate_train": True,
    "local_test": 0.5,
    "corrupted_clients": 0.25,
    "proxy": "long_tailed(ratio=10)",
    "proxy_sampling": "balanced",
    "augment": "crop(padding=2)+flip",
}
# Settings without which the tried setting changes nothing.
BESIDE = {"cohorts": {"participation": 0.5}}


@pytest.mark.parametrize("key", OTHER)
def test_every_setting_decides_the_run(key: str, files: Files) -> None:
    """Another value gives another run_id in every row."""
    beside = BESIDE.get(key, {})
    before, after = (ids(files.plan({**FULL, "settings": settings})) for settings in (beside, {**beside, key: OTHER[key]}))
    assert all(before[place] != after[place] for place in before if place[1] == "mnist")


def test_a_cohort_of_everybody_is_the_same_run_fixed_or_drawn(files: Files) -> None:
    settings = ({"participation": 1.0, "cohorts": cohorts} for cohorts in ("drawn", "fixed"))
    drawn, fixed = (ids(files.plan({**FULL, "settings": one})) for one in settings)
    assert drawn == fixed


def test_a_rule_whose_messages_must_all_arrive_is_planned_with_no_late_cohorts(files: Files) -> None:
    """SCAFFOLD's clients send changes of their control variates, and the server adds them up."""
    files.table["rows"][0]["method"] = "scaffold"
    with pytest.raises(UserError, match=r"params.yaml: settings.cohorts = 'late': clients of scaffold send what changed"):
        files.plan({**FULL, "settings": {"participation": 0.5, "cohorts": "late"}})


def test_every_setting_is_tried_above() -> None:
    """Every setting has a value in OTHER, so a new setting needs a line there."""
    assert set(OTHER) == set(SETTINGS) - set(REPORTED)


def test_the_registry_entry_decides_the_run(files: Files) -> None:
    """Another checksum of the data gives another run_id. Another title does not."""
    before = ids(files.plan(FULL))
    registry = files.root / "data" / "registry.yaml"
    files_of = yaml.safe_load(registry.read_text())["mnist"]["files"]
    files_of[0]["unpacked_md5"] = "0" * 32
    for change, same in (({"title": "x"}, True), ({"channel_mean": [0.5]}, True), ({"files": files_of}, False)):
        content = yaml.safe_load((ROOT / "data" / "registry.yaml").read_text())
        content["mnist"] |= change
        registry.write_text(yaml.safe_dump(content))
        loaded = load_project(files.root, dict(FULL))
        assert (ids(plain(plan(loaded, "some", "table1", "full")))["fedavg", "mnist"] == before["fedavg", "mnist"]) == same


def test_statistics_decide_only_the_runs_that_standardise_by_them(files: Files) -> None:
    """normalise = standard puts the registry's mean and deviation into the config, and so into the run_id and the scaling of
    inputs."""
    table = files.table
    table["columns"] = table["columns"][:1]  # the other column's data set has no statistics
    standard = {**FULL, "settings": {"normalise": "standard"}}
    before = files.plan(standard)
    config = before["runs"][ids(before)["fedavg", "mnist"]]["config"]
    assert config["channel_statistics"] == [[0.1307], [0.3081]]
    assert RunSpec(**json.loads(json.dumps(config))).channel_scale == ((0.1307,), (0.3081,))
    registry = files.root / "data" / "registry.yaml"
    content = yaml.safe_load(registry.read_text())
    content["mnist"]["channel_mean"] = [0.5]
    registry.write_text(yaml.safe_dump(content))
    after = plain(plan(load_project(files.root, standard), "some", "table1", "full"))
    assert ids(after)["fedavg", "mnist"] != ids(before)["fedavg", "mnist"]
    unit = files.plan(FULL)["runs"]
    assert all("channel_statistics" not in run["config"] for run in unit.values())


@pytest.mark.parametrize(
    "change",
    [{"seeds": [1]}, {"tables": ["made/up"]}, {"device": "cpu"}, {"settings": {"rounds": 200, "client_momentum": 0.9}}],
)
def test_what_does_not_decide_a_result_leaves_the_ids_alone(change: dict[str, Any], files: Files) -> None:
    """Seeds, tables and device do not change run ids. Neither does a setting that repeats the value in use."""
    assert ids(files.plan({**FULL, **change})) == ids(files.plan(FULL))


def test_how_a_value_is_written_does_not_matter(files: Files) -> None:
    """1 and 1.0, alpha=1 and alpha=1.0, or a default written out give the same run."""
    before = ids(files.plan(FULL))
    files.paper["protocol"]["participation"]["value"] = 1
    files.table["columns"][0]["setting"]["partition"] = "dirichlet_per_class( alpha = 1.0 )"
    files.table["rows"][0]["method"] = "mean+local_sgd+server_sgd(server_lr=1)"
    files.table["source"] = files.table["columns"][0]["label"] = "renamed"
    assert ids(files.plan(FULL)) == before


def test_an_edit_of_one_method_touches_only_its_runs(files: Files) -> None:
    """methods.some.fedprox.mu changes only the FedProx row."""
    before, after = ids(files.plan(FULL)), ids(files.plan({**FULL, "methods": {"some": {"fedprox": {"mu": 0.5}}}}))
    assert {place[0] for place in before if before[place] != after[place]} == {"fedprox"}
    assert {place[0] for place in before if before[place] == after[place]} == {"fedavg", "fedlaw"}


def test_tables_that_share_a_cell_share_the_run(files: Files) -> None:
    """A second table with one row in common has the same run ids, so its runs train once."""
    files.more["table2"] = copy.deepcopy(TABLE) | {"title": "Another", "source": "Table 2"}
    files.more["table2"]["rows"] = files.more["table2"]["rows"][:1]
    assert set(ids(files.plan(FULL, "table2")).values()) < set(ids(files.plan(FULL)).values())


def test_ids_are_readable_and_fit_for_file_names(files: Files) -> None:
    """An id has data set, model, partition, method and hash. A default part with another argument is named too."""
    files.table["rows"][0]["method"] = "server_sgd(server_lr=0.5)"
    made = ids(files.plan(FULL))
    assert made["fedprox", "mnist"].startswith("mnist-mlp-dirichlet_per_class-1-fedprox-")
    assert made["fedavg", "mnist"].startswith("mnist-mlp-dirichlet_per_class-1-server_sgd-")
    assert len(set(made.values())) == len(made)


def test_artifacts_are_shared_as_far_as_they_can_be(files: Files) -> None:
    """All methods of a column share partition, cohorts, proxy set and initial model. Another column shares only the inputs that
    fit it."""
    made = files.plan(FULL)
    assert run_of(made, "fedavg")["inputs"] == run_of(made, "fedlaw")["inputs"]
    mnist, fashion = (run_of(made, "fedavg", column)["inputs"] for column in ("mnist", "fashion_mnist"))
    assert {kind for kind in mnist if mnist[kind] == fashion[kind]} == {"participation", "init"}


def test_a_later_setting_at_its_default_keeps_the_names_of_older_results(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new RunSpec field with a default does not rename runs that keep the default. Another value gives another run_id."""
    spec = RunSpec(**next(iter(files.plan(FULL)["runs"].values()))["config"])
    name = grid.run_id(spec, compose(spec.method))
    later = dataclasses.make_dataclass("Later", [("later", float, 1.0)], bases=(RunSpec,), frozen=True, kw_only=True)
    monkeypatch.setattr(grid, "RunSpec", later)
    assert grid.run_id(later(**spec.as_dict()), compose(spec.method)) == name
    assert grid.run_id(later(**spec.as_dict(), later=2.0), compose(spec.method)) != name


def test_a_printed_number_has_the_unit_of_its_cell(files: Files) -> None:
    """A row's metric wins over its column's."""
    files.table["columns"][0]["metric"] = {"name": "test_accuracy", "unit": "percent", "description": "x"}
    files.table["rows"][1]["metric"] = {"name": "test_loss", "unit": "loss", "description": "x", "better": "lower"}
    with pytest.raises(UserError, match=r"row 'fedprox', column 'mnist': is in percent, and the cell shows loss"):
        files.plan(FULL)
