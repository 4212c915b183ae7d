"""Tables by YAML alone: columns as rounds of one run, rounds to a target, axes, rows and columns exchanged."""

from pathlib import Path
from typing import Any

import pytest
from small_papers import FULL, Files, cell
from small_table import make_receipt

from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.exhibits.render import render
from fedrepro.files import read_json, write_json
from fedrepro.store import Store

NAMED = {"key": "a", "label": "a", "demo": True}
ROUNDS = {"name": "test_accuracy", "unit": "rounds", "description": "rounds to 64 %", "better": "lower"}


def rendered(files: Files, tmp_path: Path, curve: list[float] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan and the report of the table at scale full. Every run has the same curve at seed 8."""
    made, folder = files.plan(FULL), tmp_path / "reports/full/some"
    write_json(tmp_path / "plan.json", made)
    for run in made["runs"].values():
        receipt = make_receipt(run, 8)
        receipt["curves"]["test_accuracy"] = curve or receipt["curves"]["test_accuracy"]
        write_json(folder / "evidence" / run["run_id"] / "seed8.json", seal(receipt))
    render(tmp_path / "plan.json", Store((folder / "evidence",)), folder / "table1")
    return made, read_json(folder / "table1.json")


def column(files: Files, **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in files.table["columns"][0].items() if key != "published"} | changes


def values(document: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(one["row"], one["column"]): one["mean"] for one in document["cells"]}


def test_columns_are_rounds_of_one_run(files: Files, tmp_path: Path) -> None:
    """One run for each row is read three times."""
    read = {"at": "at(50)", "around": "mean(3, 5)", "best": "best()"}
    files.table |= {"rows": files.table["rows"][:1], "published": None}
    files.table["columns"] = [column(files, key=key, label=key, read=text) for key, text in read.items()]
    files.paper["protocol"]["rounds"]["value"] = 100
    curve = [float(i) for i in range(1, 91)] + [30.0] * 10
    made, document = rendered(files, tmp_path, curve)
    assert len(made["runs"]) == 1
    assert values(document) == {("fedavg", "at"): 50.0, ("fedavg", "around"): 4.0, ("fedavg", "best"): 90.0}


def test_a_table_of_rounds_to_a_target(files: Files, tmp_path: Path) -> None:
    """The fewest rounds are best. A row that never reaches the target has no number, and the page says "not reached" instead of
    "diverged" for it."""
    files.table |= {"rows": files.table["rows"][:2], "published": None, "metric": ROUNDS}
    files.table["columns"] = [column(files, read="first_reaching(64)")]
    _, document = rendered(files, tmp_path, [50.0, 63.9, 64.0, 80.0])
    assert set(values(document).values()) == {3.0}
    _, document = rendered(files, tmp_path, [50.0, 63.9])
    assert {(one["mean"], one["reason"]) for one in document["cells"]} == {
        (None, "1 of 1 seeds did not reach the target: 8; 2 of 3 seeds not run yet: 9, 10")
    }
    page = (tmp_path / "reports/full/some/table1.md").read_text()
    assert "not reached" in page
    assert "| diverged" not in page


def test_axes_stand_for_every_combination(files: Files) -> None:
    """Axes join keys and labels and merge settings and printed names. This table gives the same runs as the long form."""
    long = files.plan(FULL)
    first, second = files.table["columns"]
    top = {"name": "test_top3_accuracy", "unit": "percent", "description": "top-3"}
    kept = ("key", "demo", "setting", "published")
    data = [{key: one[key] for key in kept} | {"group": one["key"]} for one in (first, second)]
    tops = [{"key": f"top{k}", "label": f"top-{k}", "published": {"top": str(k)}} for k in (1, 3)]
    files.table["columns"] = {"axes": [data, [tops[0], tops[1] | {"metric": top}]]}
    lines = [(line, k) for line in files.numbers.splitlines()[1:] for k in (1, 3)]
    files.numbers = "data,method,value,unit,note,top\n" + "".join(f"{line},{k}\n" for line, k in lines)
    short = files.plan(FULL)
    assert [one["key"] for one in short["columns"]] == ["mnist-top1", "mnist-top3", "fashion_mnist-top1", "fashion_mnist-top3"]
    assert [one["metric"]["name"] for one in short["columns"]][:2] == ["test_accuracy", "test_top3_accuracy"]
    assert short["runs"] == long["runs"]
    assert cell(short, "fedavg", "mnist-top1")["run_id"] == cell(short, "fedavg", "mnist-top3")["run_id"]
    assert cell(short, "fedprox", "fashion_mnist-top1")["printed"] == cell(long, "fedprox", "fashion_mnist")["printed"] == 51


def test_names_in_print_are_joined_like_methods(files: Files) -> None:
    """Two words join to the method's printed name, as in fedavg+gh."""
    bases = [{"key": name, "label": name, "method": name, "published": name} for name in ("fedavg", "fedprox")]
    more = [{"key": key, "label": key, "method": method, "published": key} for key, method in (("gh", "gh"), ("m", "fedavgm"))]
    files.table["rows"] = {"axes": [bases, more]}
    pairs = [f"{base['key']}+{one['key']}" for base in bases for one in more]
    files.numbers = "data,method,value,note\n" + "".join(
        f"{data},{pair},{i},\n" for data in ("mnist", "fashion_mnist") for i, pair in enumerate(pairs, 40)
    )
    made = files.plan(FULL)
    assert [cell(made, pair.replace("+", "-"), "mnist")["printed"] for pair in pairs] == [40, 41, 42, 43]
    assert [row["name"] for row in made["rows"]] == pairs


def test_an_axis_adds_a_part_to_every_method(files: Files) -> None:
    """FedAvg and FedProx, each without and with GH: key, label, method and printed name have the added part. `{}` adds
    nothing."""
    bases = [{"key": name, "label": label, "method": name} for name, label in (("fedavg", "FedAvg"), ("fedprox", "FedProx"))]
    files.table["rows"] = {"axes": [bases, [{}, {"key": "+gh", "label": "+ GH", "method": "gh"}]]}
    names = ["fedavg", "fedavg+gh", "fedprox", "fedprox+gh"]
    files.numbers = "data,method,value,note\n" + "".join(
        f"{data},{name},{i},\n" for data in ("mnist", "fashion_mnist") for i, name in enumerate(names, 40)
    )
    made = files.plan(FULL)
    assert [row["label"] for row in made["rows"]] == ["FedAvg", "FedAvg + GH", "FedProx", "FedProx + GH"]
    assert [cell(made, name, "mnist")["printed"] for name in names] == [40, 41, 42, 43]
    parts = {name: made["runs"][cell(made, name, "mnist")["run_id"]]["method"].count("gh(") for name in names}
    assert parts == {"fedavg": 0, "fedavg+gh": 1, "fedprox": 0, "fedprox+gh": 1}


def test_a_column_adds_to_the_name_in_print(files: Files) -> None:
    """Two columns of one method: the row's printed name is fedavg, the column adds +gh, and the CSV's method is fedavg+gh."""
    files.table["rows"] = [{"key": "fedavg", "label": "FedAvg", "method": "fedavg", "published": "fedavg"}]
    setting, data = files.table["columns"][0]["setting"], files.table["columns"][0]["published"]
    files.table["columns"] = [
        {"key": "plain", "label": "plain", "demo": True, "setting": setting, "published": data},
        {"key": "gh", "label": "GH", "demo": True, "setting": setting, "method": "gh", "published": {"method": "+gh", **data}},
    ]
    files.numbers = "data,method,value,note\nmnist,fedavg,40,\nmnist,fedavg+gh,41,\n"
    made = files.plan(FULL)
    assert [cell(made, "fedavg", key)["printed"] for key in ("plain", "gh")] == [40, 41]


def test_a_word_in_print_beside_other_keys_is_the_method(files: Files) -> None:
    """Rows combine method and data set, and the columns have no printed name. A word beside {data: ...} is the method."""
    methods = [{"key": name, "label": name, "method": name, "published": name} for name in ("fedavg", "fedprox")]
    data = [{"key": one["key"], "label": one["key"], "published": one["published"]} for one in files.table["columns"]]
    for axis, setting in zip(data, (one["setting"] for one in files.table["columns"]), strict=True):
        axis["setting"] = {"dataset": setting["dataset"]}
    files.table["columns"] = [{"key": "mlp", "label": "MLP", "demo": True, "published": {}}]
    files.table["columns"][0]["setting"] = {"model": "mlp", "partition": "iid"}
    for axes in ([methods, data], [data, methods]):
        files.table["rows"] = {"axes": axes}
        made = files.plan(FULL)
        found = {frozenset(one["row"].split("-")): one["printed"] for one in made["cells"]}
        assert found[frozenset(("fedprox", "mnist"))] == 51
        assert found[frozenset(("fedavg", "fashion_mnist"))] == 50


def test_methods_may_stand_in_the_columns(files: Files) -> None:
    """With rows and columns exchanged, the cells have the same runs and printed numbers."""
    before = files.plan(FULL)
    rows, columns = files.table["rows"], files.table["columns"]
    files.table["rows"] = [{key: value for key, value in one.items() if key != "demo"} for one in columns]
    files.table["columns"] = [{**one, "demo": True} for one in rows]
    after = files.plan(FULL)
    found = {(one["column"], one["row"]): (one["run_id"], one["printed"]) for one in after["cells"]}
    assert found == {(one["row"], one["column"]): (one["run_id"], one["printed"]) for one in before["cells"]}


def test_parts_of_both_axes_make_a_method(files: Files) -> None:
    """FedAvg and FedProx, each without and with a fixed gamma, are four runs."""
    gammas = [{"key": "plain", "label": "plain", "group": "γ", "demo": True}, {"key": "shrunk", "label": "0.9", "group": "γ"}]
    gammas[1]["method"] = "fixed_gamma(gamma=0.9)"
    files.table |= {
        "rows": files.table["rows"][:2],
        "published": None,
        "base": {key: {"value": value, "source": "ours"} for key, value in files.table["columns"][0]["setting"].items()},
    }
    files.table["columns"] = gammas
    made = files.plan(FULL)
    assert len(made["runs"]) == 4
    assert "fixed_gamma(gamma=0.9)" in made["runs"][cell(made, "fedprox", "shrunk")["run_id"]]["method"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"axis": []}, ["columns", "`axes:`"]),
        ({"axes": []}, ["columns", "`axes:`"]),
        ({"axes": [1, 2]}, ["columns", "`axes:`"]),
        ({"axes": [[]]}, ["columns", "`axes:`"]),
        ([{"key": "a,b", "label": "a", "demo": True}], ["columns", "key 'a,b': write a word without a comma"]),
        ([{"key": "", "label": "a", "demo": True}], ["columns", "key '': write a word"]),
        ([{"key": "a\nb", "label": "a", "demo": True}], ["columns", "key 'a\\nb': write a word"]),
        ({"axes": [[{"key": "a", "label": "a"}], ["b"]]}, ["an entry of an axis", "'b'"]),
        ({"axes": [[{"key": "a", "label": "a", "read": "best()"}], [{"key": "b", "read": "last(1)"}]]}, ["two axes give read"]),
        ({"axes": [[NAMED | {"published": {"method": "a"}}], [NAMED | {"published": "b"}]]}, ["two axes give published"]),
        ({"axes": [[NAMED | {"published": {"data": "a"}}], [NAMED | {"published": {"data": "b"}}]]}, ["give published", "'a'"]),
        ([{"key": "a", "label": "a", "demo": True, "read": "lats(1)"}], ["columns: entry 1 (a): read", "'last'"]),
        ([{"key": "a", "label": "a", "demo": True, "read": "at(999)"}], ["a: read", "200 rounds"]),
        ([{"key": "a", "label": "a", "demo": True, "read": "last(201)"}], ["a: read", "200 rounds"]),
        ([{"key": "a", "label": "a", "demo": True, "read": "at(201)"}], ["a: read", "200 rounds"]),
        ([{"key": "a", "label": "a", "demo": True, "read": "mean(150, 900)"}], ["a: read", "200 rounds"]),
    ],
)
def test_mistakes_are_named(files: Files, columns: Any, words: list[str]) -> None:
    files.table |= {"columns": columns, "published": None}
    files.table["base"] = {
        key: {"value": value, "source": "ours"}
        for key, value in {"dataset": "mnist", "model": "mlp", "partition": "iid"}.items()
    }
    with pytest.raises(UserError) as caught:
        files.plan(FULL)
    assert all(word in str(caught.value) for word in words), str(caught.value)
