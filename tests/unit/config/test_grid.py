"""From the files a person edits to runs: layers, sources, run ids, and the real Table 3."""

import copy
import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedrepro.config import grid, project
from fedrepro.config.grid import plan
from fedrepro.config.layers import REPORTED, SETTINGS
from fedrepro.config.project import load_project
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose

ROOT = Path(__file__).parents[3]
SERVER = {"server_lr": 0.001, "server_epochs": 4}


def sourced(**values: Any) -> dict[str, dict[str, Any]]:
    return {key: {"value": value, "source": "paper"} for key, value in values.items()}


# A paper in which every layer says something about the same values. Two data sets, three rows, two columns.
PAPER = {
    "name": "A",
    "title": "A paper",
    "authors": "Somebody",
    "venue": "Nowhere 2020",
    "url": "none",
    "protocol": sourced(
        clients=20,
        participation=1.0,
        local_validation=0.3,
        proxy_per_class=10,
        proxy_batch_size=128,
        rounds=200,
        local_epochs=3,
        batch_size=128,
        client_lr=0.08,
        client_lr_decay=0.99,
        client_momentum=0.9,
        keep_client_momentum=False,
        normalise="unit",
        weight_decay=5e-4,
        average_last=10,
    ),
    "datasets": {"mnist": sourced(client_lr=0.01)},
    "methods": {"fedprox": sourced(mu=0.001), "fedlaw": sourced(**SERVER)},
    "methods_by_dataset": {"mnist": {"fedlaw": sourced(server_lr=0.002)}},
}
SCALES = {
    "demo": {
        "note": "small",
        "only_demo_columns": True,
        "settings": {"dataset": "digits", "rounds": 10},
        "methods": {"fedlaw": {"server_epochs": 2}},
    },
    "short": {"note": "a tenth", "settings": {"rounds": {"times": 0.1}}},
    "full": {"note": "all", "comparable": True},
}
TABLE = {
    "title": "A table",
    "source": "Table 1",
    "published": "numbers.csv",
    "metric": {"name": "test_accuracy", "unit": "percent", "description": "top-1"},
    "base": {"local_epochs": {"value": 2, "source": "Table 1"}},
    "rows": [
        {"key": "fedavg", "label": "FedAvg", "method": "fedavg"},
        {"key": "fedprox", "label": "FedProx", "method": "fedprox"},
        {"key": "fedlaw", "label": "FedLAW", "method": "fedlaw"},
        {"key": "feddyn", "label": "FedDyn", "pending": "not available yet"},
    ],
    "columns": [
        {
            "key": dataset,
            "label": dataset,
            "group": "g",
            "demo": dataset == "mnist",
            "published": {"data": dataset},
            "setting": {"dataset": dataset, "model": "mlp", "partition": "dirichlet_per_class(alpha=1)"},
        }
        for dataset in ("mnist", "fashion_mnist")
    ],
}
NUMBERS = "data,method,value,note\n" + "".join(
    f"{data},{method},{50 + i},\n"
    for data in ("mnist", "fashion_mnist")
    for i, method in enumerate(("fedavg", "fedprox", "fedlaw", "feddyn"))
)
FULL = {"scale": "full"}


class Files:
    """The files of a small project; change the dictionaries, then `plan`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paper, self.scales, self.table, self.numbers = *map(copy.deepcopy, (PAPER, SCALES, TABLE)), NUMBERS
        self.more: dict[str, Any] = {}

    def write(self) -> None:
        folder = self.root / "papers" / "some"
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        (folder / "published").mkdir(exist_ok=True)
        (self.root / "data").mkdir(exist_ok=True)
        shutil.copy(ROOT / "data" / "registry.yaml", self.root / "data")
        for path, content in {
            folder / "paper.yaml": self.paper,
            self.root / "papers" / "scales.yaml": self.scales,
            folder / "tables" / "table1.yaml": self.table,
            **{folder / "tables" / f"{name}.yaml": table for name, table in self.more.items()},
        }.items():
            path.write_text(yaml.safe_dump(content))
        (folder / "published" / "numbers.csv").write_text(self.numbers)

    def plan(self, params: dict[str, Any], table: str = "table1") -> dict[str, Any]:
        """The plan at the scale of `params`."""
        self.write()
        project._read_cached.cache_clear()  # it goes by the files' times, and these are rewritten within one tick of the clock
        loaded = load_project(self.root, copy.deepcopy(params))
        return plan(loaded, "some", table, loaded.params.scale)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def cell(made: dict[str, Any], row: str, column: str) -> dict[str, Any]:
    return next(c for c in made["cells"] if (c["row"], c["column"]) == (row, column))


def run_of(made: dict[str, Any], row: str, column: str = "mnist") -> dict[str, Any]:
    return made["runs"][cell(made, row, column)["run_id"]]


def ids(made: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(c["row"], c["column"]): c["run_id"] for c in made["cells"] if c["run_id"]}


# --- layers --------------------------------------------------------------------------------------------------------------


def test_settings_by_layer_and_their_sources(files: Files) -> None:
    """protocol < data set < table < column < scale < params.yaml; each value says where it comes from."""
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


def test_the_papers_data_set_decides_its_layer_whatever_the_scale_puts_in_its_place(files: Files) -> None:
    """Demo trains digits, with the learning rate that the paper gives the column's own data set; also when the data set is in
    the table's base instead of the column."""
    assert run_of(files.plan({"scale": "demo"}), "fedavg")["config"]["client_lr"] == 0.01
    files.table["columns"] = files.table["columns"][:1]
    del files.table["columns"][0]["setting"]["dataset"]
    files.table["base"]["dataset"] = {"value": "mnist", "source": "Table 1"}
    made = files.plan(FULL)
    assert run_of(made, "fedavg")["config"]["client_lr"] == 0.01
    assert "server_lr=0.002" in run_of(made, "fedlaw")["method"]


def test_arguments_by_layer(files: Files) -> None:
    """paper < paper by data set < scale < params.yaml < written in the table; null keeps what the layers below say."""

    def server(params: dict[str, Any], column: str = "mnist") -> str:
        method = run_of(files.plan(params), "fedlaw", column)["method"]
        return method.partition("fedlaw(")[2].partition(", halve")[0]

    assert server(FULL, "fashion_mnist") == "server_lr=0.001, server_epochs=4"
    assert server(FULL) == "server_lr=0.002, server_epochs=4"
    assert server({"scale": "demo"}) == "server_lr=0.002, server_epochs=2"
    edit = {"some": {"fedlaw": {"server_lr": 0.5, "server_epochs": None}}}
    assert server({"scale": "demo", "methods": edit}) == "server_lr=0.5, server_epochs=2"
    assert server({**FULL, "methods": edit}) == "server_lr=0.5, server_epochs=4"
    files.table["rows"][2]["method"] = "fedlaw(server_lr=0.9)"
    assert server({**FULL, "methods": edit}) == "server_lr=0.9, server_epochs=4"


def test_a_scale_may_multiply(files: Files) -> None:
    """200 rounds times 0.1 are 20; at least 1 remains."""
    assert run_of(files.plan({"scale": "short"}), "fedavg")["config"]["rounds"] == 20
    files.scales["short"]["settings"]["rounds"]["times"] = 0.001
    assert run_of(files.plan({"scale": "short"}), "fedavg")["config"]["rounds"] == 1


def test_what_a_plan_says_of_itself(files: Files) -> None:
    """Scale, seeds, comparability, printed numbers beside runs, and the reason where there is no run."""
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
    demo = files.plan({"scale": "demo"})
    assert [column["key"] for column in demo["columns"]] == ["mnist"]
    assert not demo["comparable"]


# --- run ids -------------------------------------------------------------------------------------------------------------

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
}


@pytest.mark.parametrize("key", OTHER)
def test_every_setting_decides_the_run(key: str, files: Files) -> None:
    """Another value, another run id, in every row."""
    before, after = ids(files.plan(FULL)), ids(files.plan({**FULL, "settings": {key: OTHER[key]}}))
    assert all(before[place] != after[place] for place in before if place[1] == "mnist")


def test_every_setting_is_tried_above() -> None:
    """A new setting adds its line."""
    assert set(OTHER) == set(SETTINGS) - set(REPORTED)


def test_the_registry_entry_decides_the_run(files: Files) -> None:
    """Another checksum of the data is another run; another title is not."""
    before = ids(files.plan(FULL))
    registry = files.root / "data" / "registry.yaml"
    files_of = yaml.safe_load(registry.read_text())["mnist"]["files"]
    files_of[0]["unpacked_md5"] = "0" * 32
    for change, same in (({"title": "x"}, True), ({"channel_mean": [0.5]}, True), ({"files": files_of}, False)):
        content = yaml.safe_load((ROOT / "data" / "registry.yaml").read_text())
        content["mnist"] |= change
        registry.write_text(yaml.safe_dump(content))
        loaded = load_project(files.root, dict(FULL))
        assert (ids(plan(loaded, "some", "table1", "full"))["fedavg", "mnist"] == before["fedavg", "mnist"]) == same


@pytest.mark.parametrize(
    "change",
    [{"seeds": [1]}, {"tables": ["made/up"]}, {"device": "cpu"}, {"settings": {"rounds": 200, "client_momentum": 0.9}}],
)
def test_what_does_not_decide_a_result_leaves_the_ids_alone(change: dict[str, Any], files: Files) -> None:
    """Seeds, tables, device; and writing a value out that is the same anyway."""
    assert ids(files.plan({**FULL, **change})) == ids(files.plan(FULL))


def test_how_a_value_is_written_does_not_matter(files: Files) -> None:
    """1 and 1.0, alpha=1 and alpha=1.0, a default written out: the same run."""
    before = ids(files.plan(FULL))
    files.paper["protocol"]["participation"]["value"] = 1
    files.table["columns"][0]["setting"]["partition"] = "dirichlet_per_class( alpha = 1.0 )"
    files.table["rows"][0]["method"] = "mean+local_sgd+server_sgd(server_lr=1)"
    files.table["source"] = files.table["columns"][0]["label"] = "renamed"
    assert ids(files.plan(FULL)) == before


def test_an_edit_of_one_method_touches_only_its_runs(files: Files) -> None:
    """methods.some.fedprox.mu changes the FedProx row and nothing else; another paper's section nothing at all."""
    before, after = ids(files.plan(FULL)), ids(files.plan({**FULL, "methods": {"some": {"fedprox": {"mu": 0.5}}}}))
    assert {place[0] for place in before if before[place] != after[place]} == {"fedprox"}
    assert {place[0] for place in before if before[place] == after[place]} == {"fedavg", "fedlaw"}


def test_tables_that_share_a_cell_share_the_run(files: Files) -> None:
    """A second table with one row and one column in common: one id, so one training."""
    files.more["table2"] = copy.deepcopy(TABLE) | {"title": "Another", "source": "Table 2"}
    files.more["table2"]["rows"] = files.more["table2"]["rows"][:1]
    assert set(ids(files.plan(FULL, "table2")).values()) < set(ids(files.plan(FULL)).values())


def test_ids_are_readable_and_fit_for_file_names(files: Files) -> None:
    """Data set, model, partition, method, hash; a default part with another argument is named too."""
    files.table["rows"][0]["method"] = "server_sgd(server_lr=0.5)"
    made = ids(files.plan(FULL))
    assert made["fedprox", "mnist"].startswith("mnist-mlp-dirichlet_per_class-1-fedprox-")
    assert made["fedavg", "mnist"].startswith("mnist-mlp-dirichlet_per_class-1-server_sgd-")
    assert len(set(made.values())) == len(made)


def test_artifacts_are_shared_as_far_as_they_can_be(files: Files) -> None:
    """All methods of a column read the same partition, cohorts, proxy set and initial model; another column what fits it."""
    made = files.plan(FULL)
    assert run_of(made, "fedavg")["inputs"] == run_of(made, "fedlaw")["inputs"]
    mnist, fashion = (run_of(made, "fedavg", column)["inputs"] for column in ("mnist", "fashion_mnist"))
    assert {kind for kind in mnist if mnist[kind] == fashion[kind]} == {"participation", "init"}


# --- the real Table 3 ----------------------------------------------------------------------------------------------------

# Typed off the paper's Table 3, columns F-MLP 100, F-LeNet 100, F-MLP .1, F-LeNet .1, C10-CNN 100, C10-RN 100, C10-CNN .1, ...
TABLE3 = {
    "fedavg": [89.29, 90.54, 85.11, 88.08, 65.78, 74.57, 60.13, 46.04, 25.74, 27.49, 27.74, 24.92],
    "fedprox": [87.68, 89.77, 84.33, 87.01, 67.66, 68.51, 60.48, 48.84, 9.49, 27.15, 12.52, 23.73],
    "feddyn": [88.47, 89.92, 77.68, 72.68, 66.1, 76.62, 41.53, 35.77, 24.44, 32.18, 22.67, 29.00],
    "feddf": [86.16, 89.09, 78.48, 85.90, 69.60, 77.36, 57.38, 54.09, 28.52, 27.42, 24.52, 23.10],
    "fedbe": [86.22, 89.14, 79.12, 85.96, 69.88, 77.94, 59.84, 52.86, 28.38, 27.73, 25.41, 23.74],
    "server_ft": [89.09, 90.56, 85.71, 88.10, 66.83, 74.73, 60.43, 47.59, 25.37, 26.14, 24.33, 23.03],
    "fedlaw": [88.51, 90.66, 86.30, 88.26, 70.17, 80.46, 62.46, 52.83, 32.51, 33.17, 32.30, 24.84],
    "fedlaw_swa": [88.27, 90.51, 86.89, 88.18, 69.9, 79.55, 62.12, 57.08, 32.39, 33.17, 32.27, 25.31],
}
COLUMNS = [
    f"{data}-{model}-{alpha}"
    for data, models in (
        ("fashion_mnist", ("mlp", "lenet")),
        ("cifar10", ("simple_cnn", "resnet20")),
        ("cifar100", ("simple_cnn", "resnet20")),
    )
    for alpha in ("100", "0.1")
    for model in models
]


@pytest.fixture(scope="module")
def table3() -> dict[str, dict[str, Any]]:
    """Table 3 of FedLAW at the three scales, without the user's params.yaml."""
    return {scale: plan(load_project(ROOT, {}), "fedlaw", "table3", scale) for scale in ("demo", "short", "full")}


def test_all_96_printed_numbers_are_in_their_cells(table3: dict[str, dict[str, Any]]) -> None:
    """By row and column, as printed."""
    found = {(c["row"], c["column"]): c["printed"] for c in table3["full"]["cells"]}
    assert len(COLUMNS) == len(set(COLUMNS)) == 12
    assert found == {
        (row, column): value for row, values in TABLE3.items() for column, value in zip(COLUMNS, values, strict=True)
    }


def test_a_cells_run_is_what_its_column_says(table3: dict[str, dict[str, Any]]) -> None:
    """Data set, model and alpha of the run against the column's key; every method of the table is the row's."""
    runs = 0
    for cell in table3["full"]["cells"]:
        if cell["run_id"]:
            run = table3["full"]["runs"][cell["run_id"]]
            config, (data, model, alpha) = run["config"], cell["column"].rsplit("-", 2)
            expected = (data, model, f"dirichlet_per_class(alpha={float(alpha)})", cell["row"])
            assert (config["dataset"], config["model"], config["partition"], run["method_label"]) == expected
            runs += 1
    assert runs == 96


def test_the_protocol_of_table_3(table3: dict[str, dict[str, Any]]) -> None:
    """FedLAW's protocol at scale full; a tenth of the rounds at scale short; digits at scale demo, with the companion rows."""
    full, short, demo = (next(iter(table3[scale]["runs"].values()))["config"] for scale in ("full", "short", "demo"))
    expected = {
        "clients": 20,
        "participation": 1.0,
        "local_validation": 0.3,
        "proxy_per_class": 10,
        "proxy_batch_size": 128,
        "rounds": 200,
        "local_epochs": 3,
        "batch_size": 128,
        "client_lr": 0.08,
        "client_lr_decay": 0.99,
        "client_momentum": 0.9,
        "keep_client_momentum": True,
        "normalise": "unit",
        "weight_decay": 5e-4,
        "classes": 10,
        "input_shape": [1, 28, 28],
    }
    assert {key: full[key] for key in expected} == expected
    assert {key for key in full if short[key] != full[key]} == {"rounds"}
    assert short["rounds"] == 20
    assert demo["dataset"] == "digits"
    law = next(run for run in table3["full"]["runs"].values() if run["method_label"] == "fedlaw")
    assert "fedlaw(server_lr=0.005, server_epochs=100, halve_every=20, beta1=0.5, beta2=0.999)" in law["method"]
    assert [row["key"] for row in table3["demo"]["rows"] if not row["printed"]] == [
        "fixed_gamma",
        "adaptive_gws",
        "attentive_law",
    ]
    assert all(row["printed"] for row in table3["full"]["rows"])
    assert (table3["full"]["comparable"], table3["short"]["comparable"], table3["demo"]["comparable"]) == (True, False, False)


# --- mistakes ------------------------------------------------------------------------------------------------------------


def param(change: dict[str, Any]):
    return lambda files: FULL | change


def edit(change):
    def apply(files: Files) -> dict[str, Any]:
        change(files)
        return FULL

    return apply


COLUMN, ROW = (lambda f: f.table["columns"][0]), (lambda f: f.table["rows"][1])
MISTAKES = {
    "key": (param({"seedz": [8]}), ["params.yaml", "unknown key 'seedz'", "'seeds'"]),
    "scale": (param({"scale": "ful"}), ["params.yaml", "scale", "'ful'", "'full'"]),
    "device": (param({"device": "gpu"}), ["params.yaml: device = 'gpu'", "cuda"]),
    "seed twice": (param({"seeds": [8, 8]}), ["params.yaml: seeds", "twice"]),
    "negative seed": (param({"seeds": [8, -1]}), ["params.yaml: seeds.1 = -1"]),
    "no seed": (param({"seeds": []}), ["params.yaml: seeds = []"]),
    "seeds not a list": (param({"seeds": 8}), ["params.yaml: seeds = 8", "list"]),
    "seed not whole": (param({"seeds": [8.5]}), ["params.yaml: seeds.0 = 8.5"]),
    "setting": (param({"settings": {"round": 5}}), ["params.yaml: settings", "'round'", "'rounds'"]),
    "setting's type": (param({"settings": {"rounds": "five"}}), ["params.yaml: settings.rounds", "'five'", "whole number"]),
    "half a round": (param({"settings": {"rounds": 2.5}}), ["params.yaml: settings.rounds", "2.5", "whole number"]),
    "setting not a scalar": (param({"settings": {"rounds": [5]}}), ["params.yaml: settings.rounds = [5]", "number"]),
    "setting's range": (param({"settings": {"rounds": 0}}), ["params.yaml: settings.rounds", "rounds = 0", "at least 1"]),
    "participation": (param({"settings": {"participation": 1.5}}), ["params.yaml: settings.participation", "1.5", "at most 1"]),
    "data set": (param({"settings": {"dataset": "minst"}}), ["params.yaml: settings.dataset", "'minst'", "'mnist'"]),
    "model": (param({"settings": {"model": "lennet"}}), ["params.yaml: settings.model", "'lennet'", "'lenet'"]),
    "alpha": (
        param({"settings": {"partition": "dirichlet_per_class(alpha=0)"}}),
        ["params.yaml: settings.partition", "alpha", "0"],
    ),
    "scheme": (
        param({"settings": {"partition": "dirichlet"}}),
        ["params.yaml: settings.partition", "'dirichlet'", "dirichlet_per_class"],
    ),
    "twin columns": (
        edit(lambda f: f.table["columns"][1]["setting"].update(dataset="mnist")),
        ["tables/table1.yaml: at scale full", "mnist and fashion_mnist are the same run", "params.yaml: settings"],
    ),
    "no proxy set": (param({"settings": {"proxy_per_class": 0}}), ["params.yaml: settings.proxy_per_class", "FedLAW"]),
    "paper": (param({"methods": {"sone": {}}}), ["params.yaml: methods", "'sone'", "'some'"]),
    "method": (param({"methods": {"some": {"fedporx": {}}}}), ["params.yaml: methods.some", "'fedporx'", "'fedprox'"]),
    "argument": (param({"methods": {"some": {"fedprox": {"nu": 1}}}}), ["params.yaml: methods.some", "'nu'", "mu"]),
    "null argument": (param({"methods": {"some": {"fedprox": {"nu": None}}}}), ["params.yaml: methods.some", "'nu'", "mu"]),
    "argument's type": (
        param({"methods": {"some": {"fedprox": {"mu": "x"}}}}),
        ["params.yaml: methods.some: fedprox(mu=...)", "'x'"],
    ),
    "argument's range": (
        param({"methods": {"some": {"fedprox": {"mu": -1}}}}),
        ["params.yaml: methods.some: fedprox: mu = -1", "at least 0"],
    ),
    "infinite argument": (
        param({"methods": {"some": {"fedprox": {"mu": float("inf")}}}}),
        ["params.yaml: methods.some", "mu", "finite"],
    ),
    "methods not a mapping": (param({"methods": {"some": {"fedprox": 1}}}), ["params.yaml: methods.some.fedprox = 1"]),
    "table's key": (edit(lambda f: f.table.update(colums=[])), ["tables/table1.yaml", "'colums'", "'columns'"]),
    "table's key renamed": (
        edit(lambda f: f.table.update(colums=f.table.pop("columns"))),
        ["tables/table1.yaml", "'colums'", "'columns'"],
    ),
    "row's key": (edit(lambda f: ROW(f).update(metod="x")), ["tables/table1.yaml: rows.1", "'metod'", "'method'"]),
    "row twice": (edit(lambda f: ROW(f).update(key="fedavg")), ["tables/table1.yaml: rows", "'fedavg' is used twice"]),
    "row without method": (edit(lambda f: ROW(f).pop("method")), ["tables/table1.yaml: rows.1", "method", "pending"]),
    "row's method": (
        edit(lambda f: ROW(f).update(method="fedporx")),
        ["tables/table1.yaml: rows: fedprox: method", "'fedporx'", "'fedprox'"],
    ),
    "row's argument": (edit(lambda f: ROW(f).update(method="fedprox(nu=1)")), ["tables/table1.yaml: rows: fedprox", "'nu'"]),
    "column's setting": (edit(lambda f: COLUMN(f)["setting"].update(rouns=1)), ["tables/table1.yaml", "'rouns'", "'rounds'"]),
    "column's data set": (
        edit(lambda f: COLUMN(f)["setting"].update(dataset="minst")),
        ["tables/table1.yaml: mnist: dataset", "'minst'"],
    ),
    "column's alpha": (
        edit(lambda f: COLUMN(f)["setting"].update(partition="dirichlet_per_class(alpha=0)")),
        ["tables/table1.yaml: mnist: partition", "alpha", "0"],
    ),
    "published column": (
        edit(lambda f: COLUMN(f).update(published={"data": "mist"})),
        ["numbers.csv", "'fedavg'", "'mnist'", "published"],
    ),
    "ambiguous column": (edit(lambda f: COLUMN(f).update(published={})), ["numbers.csv", "two numbers", "'mnist'"]),
    "published file": (edit(lambda f: f.table.update(published="nope.csv")), ["nope.csv", "no such file"]),
    "paper's key": (edit(lambda f: f.paper.update(protocl={})), ["paper.yaml", "'protocl'", "'protocol'"]),
    "paper's value": (edit(lambda f: f.paper["protocol"].update(rounds=5)), ["paper.yaml: protocol.rounds"]),
    "missing value": (edit(lambda f: f.paper["protocol"].pop("rounds")), ["'rounds'", "paper.yaml"]),
    "paper's method": (edit(lambda f: f.paper["methods"].update(fedlav={})), ["paper.yaml: methods", "'fedlav'", "'fedlaw'"]),
    "scale's key": (edit(lambda f: f.scales["full"].update(setings={})), ["scales.yaml: full", "'setings'", "'settings'"]),
    "scale's setting": (edit(lambda f: f.scales["full"].update(settings={"rouns": 1})), ["scale", "'rouns'", "'rounds'"]),
    "scale's method": (
        edit(lambda f: f.scales["full"].update(methods={"fedlav": {}})),
        ["scales.yaml: full: methods", "'fedlav'", "'fedlaw'"],
    ),
    "scale's argument": (
        edit(lambda f: f.scales["full"].update(methods={"fedlaw": {"epochs": 1}})),
        ["scales.yaml: full: methods", "'epochs'", "server_epochs"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_that_says_where_and_what(mistake: str, files: Files) -> None:
    """File, key and value, and the nearest name or the bound."""
    change, words = MISTAKES[mistake]
    params = change(files)
    with pytest.raises(UserError) as caught:
        files.plan(params)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("table", ["some/tabel1", "sone/table1", "table1", "some/"])
def test_an_unknown_table_is_named(table: str, files: Files) -> None:
    """With what there is, also when the paper is misspelt."""
    files.write()
    paper, _, name = table.partition("/")
    with pytest.raises(UserError, match="some/table1"):
        plan(load_project(files.root, dict(FULL)), paper, name, "full")


@pytest.mark.parametrize(
    ("content", "says"),
    [("seeds: [8", "line 1"), ("\xff", "YAML"), (None, "no such file"), ("- 8", "params.yaml: the whole file")],
)
def test_a_params_file_that_cannot_be_read(content: str | None, says: str, files: Files) -> None:
    """One line with the file's name, and the line number where there is one."""
    files.write()
    if content is not None:
        (files.root / "params.yaml").write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match=says) as caught:
        load_project(files.root)
    assert "params.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_later_setting_at_its_default_keeps_the_names_of_older_results(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that gets a default in RunSpec does not rename the runs that take it; another value of it is another run."""
    spec = RunSpec(**next(iter(files.plan(FULL)["runs"].values()))["config"])
    name = grid.run_id(spec, compose(spec.method))
    later = dataclasses.make_dataclass("Later", [("later", float, 1.0)], bases=(RunSpec,), frozen=True, kw_only=True)
    monkeypatch.setattr(grid, "RunSpec", later)
    assert grid.run_id(later(**spec.as_dict()), compose(spec.method)) == name
    assert grid.run_id(later(**spec.as_dict(), later=2.0), compose(spec.method)) != name
