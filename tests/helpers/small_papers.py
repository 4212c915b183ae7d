"""The files of a small paper in which every layer sets some of the same values, and helpers that read a plan."""

import copy
import shutil
from pathlib import Path
from typing import Any

import yaml

from fedrepro.config import project
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.typed import plain

ROOT = Path(__file__).parents[2]
SERVER = {"server_lr": 0.001, "server_epochs": 4}


def sourced(**values: Any) -> dict[str, dict[str, Any]]:
    return {key: {"value": value, "source": "paper"} for key, value in values.items()}


# A paper in which every layer sets some of the same values. It has two data sets, three rows and two columns.
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
NUMBERS = "data,method,value,unit,note\n" + "".join(
    f"{data},{method},{50 + i},percent,\n"
    for data in ("mnist", "fashion_mnist")
    for i, method in enumerate(("fedavg", "fedprox", "fedlaw", "feddyn"))
)
FULL = {"scale": "full"}


class Files:
    """The files of a small project. Change the dictionaries, then call `plan`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paper: dict[str, Any] = copy.deepcopy(PAPER)
        self.scales: dict[str, Any] = copy.deepcopy(SCALES)
        self.table: dict[str, Any] = copy.deepcopy(TABLE)
        self.numbers = NUMBERS
        self.more: dict[str, Any] = {}
        self.figures: dict[str, Any] = {}

    def write(self) -> None:
        folder = self.root / "papers" / "some"
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        for name in ("published", "figures"):
            (folder / name).mkdir(exist_ok=True)
        (self.root / "data").mkdir(exist_ok=True)
        shutil.copy(ROOT / "data" / "registry.yaml", self.root / "data")
        for path, content in {
            folder / "paper.yaml": self.paper,
            self.root / "papers" / "scales.yaml": self.scales,
            folder / "tables" / "table1.yaml": self.table,
            **{folder / "tables" / f"{name}.yaml": table for name, table in self.more.items()},
            **{folder / "figures" / f"{name}.yaml": figure for name, figure in self.figures.items()},
        }.items():
            path.write_text(yaml.safe_dump(content))
        (folder / "published" / "numbers.csv").write_text(self.numbers)

    def plan(self, params: dict[str, Any], table: str = "table1") -> dict[str, Any]:
        """The plan at the scale of `params`, with JSON's types."""
        self.write()
        project._read_cached.cache_clear()  # the cache compares file times, and tests rewrite files within one tick
        loaded = load_project(self.root, copy.deepcopy(params))
        return plain(plan(loaded, "some", table, loaded.params.scale))


def cell(made: dict[str, Any], row: str, column: str) -> dict[str, Any]:
    return next(c for c in made["cells"] if (c["row"], c["column"]) == (row, column))


def run_of(made: dict[str, Any], row: str, column: str = "mnist") -> dict[str, Any]:
    return made["runs"][cell(made, row, column)["run_id"]]


def ids(made: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(c["row"], c["column"]): c["run_id"] for c in made["cells"] if c["run_id"]}


def stand_in(files: Files) -> None:
    """Makes the first column run on a data set that the paper does not use."""
    files.paper["stand_ins"] = {"digits": "mnist"}
    files.table["columns"][0]["setting"]["dataset"] = "digits"
    files.table["stand_in"] = "Digits in the place of MNIST."
