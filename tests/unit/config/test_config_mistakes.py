"""A mistake in a file is one line that says where and what."""

import re
from typing import Any

import pytest
from small_papers import FULL, Files, stand_in

from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.errors import UserError
from tests.helpers.one_line import one_line


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
    "endless seed": (param({"seeds": [10**20]}), ["params.yaml: seeds: entry 1 = 1"]),
    "truth as a seed": (param({"seeds": [True]}), ["params.yaml: seeds: entry 1 = True", "integer"]),
    "text as a seed": (param({"seeds": ["8"]}), ["params.yaml: seeds: entry 1 = '8'", "integer"]),
    "negative seed": (param({"seeds": [8, -1]}), ["params.yaml: seeds: entry 2 = -1"]),
    "setting": (param({"settings": {"round": 5}}), ["params.yaml: settings", "'round'", "'rounds'"]),
    "setting's type": (param({"settings": {"rounds": "five"}}), ["params.yaml: settings.rounds", "'five'", "whole number"]),
    "rounds to report": (param({"settings": {"average_last": 0}}), ["params.yaml: settings.average_last", "= 0", "at least 1"]),
    "budget's scale": (
        edit(lambda f: f.table.update(budget={"shrot": {"note": "x"}})),
        ["tables/table1.yaml: budget", "'shrot'", "'short'"],
    ),
    "budget without a note": (
        edit(lambda f: f.table.update(budget={"short": {"rounds": 1}})),
        ["budget.short: key 'note' is missing"],
    ),
    "budget's row": (
        edit(lambda f: f.table.update(budget={"short": {"note": "x", "rows": ["fedavgg"]}})),
        ["tables/table1.yaml", "budget of the table", "'fedavgg'", "'fedavg'"],
    ),
    "column's budget alone": (
        edit(lambda f: COLUMN(f).update(budget={"short": {"rounds": 1}})),
        ["tables/table1.yaml", "column mnist has a budget at scale short", "the table has none"],
    ),
    "no demo column": (edit(lambda f: COLUMN(f).update(demo=False)), ["tables/table1.yaml", "demo: true"]),
    "stand-in unsaid": (
        edit(lambda f: (stand_in(f), f.table.pop("stand_in"))),
        ["tables/table1.yaml: mnist: dataset = 'digits'", "stand_in"],
    ),
    "stand-in unknown": (edit(lambda f: f.paper.update(stand_ins={"digitz": "mnist"})), ["paper.yaml: stand_ins", "'digitz'"]),
    "data set of a paper": (
        edit(lambda f: f.paper.update(datasets={"minst": {"rounds": {"value": 5, "source": "x"}}})),
        ["paper.yaml: datasets", "'minst'", "'mnist'"],
    ),
    "data set of a paper's methods": (
        edit(lambda f: f.paper.update(methods_by_dataset={"minst": {"fedprox": {"mu": {"value": 0.1, "source": "x"}}}})),
        ["paper.yaml: methods_by_dataset", "'minst'", "'mnist'"],
    ),
    "model of a paper's methods": (
        edit(lambda f: f.paper.update(methods_by_model={"mpl": {"fedprox": {"mu": {"value": 0.1, "source": "x"}}}})),
        ["paper.yaml: methods_by_model", "'mpl'", "'mlp'"],
    ),
    "setting of a scale": (
        edit(lambda f: f.scales["short"].setdefault("settings", {}).update(average_lst=1)),
        ["scales.yaml: short: settings", "'average_lst'", "'average_last'"],
    ),
    "no statistics": (
        param({"settings": {"dataset": "fashion_mnist", "normalise": "standard"}}),
        ["params.yaml: settings.normalise = 'standard'", "channel_mean", "fashion_mnist"],
    ),
    "one image a batch with BatchNorm": (
        param({"settings": {"model": "resnet8", "batch_size": 1}}),
        ["params.yaml: settings.batch_size = 1", "resnet8", "at least 2"],
    ),
    "data set": (param({"settings": {"dataset": "minst"}}), ["params.yaml: settings.dataset", "'minst'", "'mnist'"]),
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
        ["tables/table1.yaml: at scale full", "mnist and fashion_mnist are the same run", "papers/scales.yaml"],
    ),
    "unit of a second reading": (
        edit(lambda f: f.table.update(tune={"client_lr": [0.1, 0.2], "also": {"name": "test_loss", "unit": "los"}})),
        ["tables/table1.yaml: tune.also.unit = 'los'", "unknown unit 'los'", "'loss'"],
    ),
    "a second reading of another kind": (
        edit(lambda f: f.table.update(tune={"client_lr": [0.1, 0.2], "also": "test_loss"})),
        ["tables/table1.yaml", "tune: also = 'test_loss'", "not of the kind of test_accuracy", "better: lower, unit: loss"],
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
    "infinite argument": (
        param({"methods": {"some": {"fedprox": {"mu": float("inf")}}}}),
        ["params.yaml: methods.some", "mu", "finite"],
    ),
    "methods not a mapping": (param({"methods": {"some": {"fedprox": 1}}}), ["params.yaml: methods.some.fedprox = 1"]),
    "table's key renamed": (
        edit(lambda f: f.table.update(colums=f.table.pop("columns"))),
        ["tables/table1.yaml", "'colums'", "'columns'"],
    ),
    "row's key": (edit(lambda f: ROW(f).update(metod="x")), ["tables/table1.yaml: rows: entry 2 (", "'metod'", "'method'"]),
    "row twice": (edit(lambda f: ROW(f).update(key="fedavg")), ["tables/table1.yaml: rows", "'fedavg' is used twice"]),
    "row with another's label": (
        edit(lambda f: ROW(f).update(label=f.table["rows"][0]["label"])),
        ["tables/table1.yaml: rows", "fedavg and fedprox have one label", "give each its own"],
    ),
    "no row": (edit(lambda f: f.table.update(rows=[])), ["tables/table1.yaml: rows = []: must be longer"]),
    "row without method": (edit(lambda f: ROW(f).pop("method")), ["tables/table1.yaml: row fedprox", "method", "pending"]),
    "row's method": (
        edit(lambda f: ROW(f).update(method="fedporx")),
        ["tables/table1.yaml: rows: fedprox: method", "'fedporx'", "'fedprox'"],
    ),
    "column's setting": (edit(lambda f: COLUMN(f)["setting"].update(rouns=1)), ["tables/table1.yaml", "'rouns'", "'rounds'"]),
    "published column": (
        edit(lambda f: COLUMN(f).update(published={"data": "mist"})),
        ["numbers.csv", "no printed number for column 'mnist'", "published"],
    ),
    "value that is no number": (
        edit(lambda f: setattr(f, "numbers", f.numbers.replace(f.numbers.splitlines()[1].split(",")[2], "91.30%", 1))),
        ["numbers.csv: value = '91.30%' of row", "is no number", "91.30"],
    ),
    "comma in a number": (
        edit(lambda f: setattr(f, "numbers", f.numbers.replace("50,percent", "50,30,percent", 1))),
        ["numbers.csv: value = '50' of row", "is no number", "with a point"],
    ),
    "number that is not finite": (
        edit(lambda f: setattr(f, "numbers", f.numbers.replace("50,percent", "nan,percent", 1))),
        ["numbers.csv: value = 'nan' of row", "is no number"],
    ),
    "percentage above 100": (
        edit(lambda f: setattr(f, "numbers", f.numbers.replace("50,percent", "917.5,percent", 1))),
        ["numbers.csv: value = '917.5' of row", "is no percentage"],
    ),
    "column of the file misspelt": (
        edit(lambda f: setattr(f, "numbers", f.numbers.replace("data,", "dtaa,", 1))),
        ["numbers.csv: no printed number for column 'mnist'", "unknown column 'data'; did you mean 'dtaa'?"],
    ),
    "number in another unit": (
        edit(lambda f: setattr(f, "numbers", f.numbers.replace("50,percent", "0.50,fraction", 1))),
        ["numbers.csv: value = '0.50' of row", "is in fraction, and the cell shows percent"],
    ),
    "column of the file renamed": (
        edit(lambda f: setattr(f, "numbers", f.numbers.replace("value", "vale", 1))),
        ["numbers.csv: has no column 'value'", "vale"],
    ),
    "one number for two cells": (
        edit(lambda f: ROW(f).update(published="fedavg")),
        ["numbers.csv: one number for row 'fedavg'", "and for row 'fedprox'", "`published` of its own"],
    ),
    "one number for two cells, beside another reading of the paper": (
        edit(
            lambda f: f.table["rows"].extend(
                [ROW(f) | {"key": "x", "variant": "x"}, ROW(f) | {"key": "y", "label": "y", "published": "fedprox"}]
            )
        ),
        ["numbers.csv: one number for row 'fedprox'", "and for row 'y'", "`published` of its own"],
    ),
    "one number for two cells of one other reading": (
        edit(
            lambda f: f.table["rows"].extend(
                ROW(f) | {"key": key, "label": key, "variant": "x", "published": "fedprox"} for key in ("x", "y")
            )
        ),
        ["numbers.csv: one number for row 'x'", "and for row 'y'", "`published` of its own"],
    ),
    "budget of a row": (
        edit(lambda f: ROW(f).update(budget={"full": {"rounds": 3}})),
        ["tables/table1.yaml: row fedprox: budget has no effect on a row"],
    ),
    "demo of a row": (edit(lambda f: ROW(f).update(demo=True)), ["row fedprox: demo has no effect on a row"]),
    "replace of a column": (
        edit(lambda f: COLUMN(f).update(replace={"rounds": {"200": 3}})),
        ["column mnist: replace has no effect on a column"],
    ),
    "companion with a row's key": (
        edit(lambda f: f.table.update(companions=[{"key": "fedavg", "label": "x", "method": "fedprox"}])),
        ["tables/table1.yaml", "companion fedavg: another row has this key"],
    ),
    "ambiguous column": (edit(lambda f: COLUMN(f).update(published={"note": ""})), ["numbers.csv", "two numbers", "'mnist'"]),
    "row like a printed one": (
        edit(lambda f: f.table["rows"][1].update(key="fedporx")),
        ["numbers.csv", "'fedporx'", "'fedprox'"],
    ),
    "row under a name that is not printed": (
        edit(lambda f: f.table["rows"][1].update(published="prox")),
        ["numbers.csv", "no printed number for row 'fedprox'"],
    ),
    "cell that is not printed": (
        edit(
            lambda f: setattr(f, "numbers", "\n".join(line for line in f.numbers.splitlines() if line[:13] != "mnist,fedprox"))
        ),
        ["numbers.csv", "row 'fedprox', column 'mnist'"],
    ),
    "numbers of no file": (edit(lambda f: f.table.pop("published")), ["table1.yaml", "column mnist", "`published`"]),
    "paper's key": (edit(lambda f: f.paper.update(protocl={})), ["paper.yaml", "'protocl'", "'protocol'"]),
    "paper's value": (edit(lambda f: f.paper["protocol"].update(rounds=5)), ["paper.yaml: protocol.rounds"]),
    "paper's value that a scale hides": (
        edit(lambda f: f.paper["protocol"]["rounds"].update(value=-5)),
        ["papers/some/paper.yaml: protocol.rounds = -5: must be at least 1"],
    ),
    "base's value": (
        edit(lambda f: f.table["base"].update(dataset={"value": 5, "source": "x"})),
        ["papers/some/tables/table1.yaml: base.dataset: 5 is not a word"],
    ),
    "column's value": (
        edit(lambda f: COLUMN(f)["setting"].update(rounds="5")),
        ["papers/some/tables/table1.yaml: mnist: rounds: '5' is not a whole number"],
    ),
    "budget's setting": (
        edit(lambda f: f.table.update(budget={"short": {"note": "x", "settings": {"rouns": 1}}})),
        ["papers/some/tables/table1.yaml: budget.short.settings: unknown setting 'rouns'; did you mean 'rounds'?"],
    ),
    "missing value": (edit(lambda f: f.paper["protocol"].pop("rounds")), ["'rounds'", "paper.yaml"]),
    "paper's method": (edit(lambda f: f.paper["methods"].update(fedlav={})), ["paper.yaml: methods", "'fedlav'", "'fedlaw'"]),
    "scale's key": (edit(lambda f: f.scales["full"].update(setings={})), ["scales.yaml: full", "'setings'", "'settings'"]),
    "scale's setting": (edit(lambda f: f.scales["full"].update(settings={"rouns": 1})), ["scale", "'rouns'", "'rounds'"]),
    "scale's method": (
        edit(lambda f: f.scales["full"].update(methods={"fedlav": {}})),
        ["scales.yaml: full: methods", "'fedlav'", "'fedlaw'"],
    ),
    "truth as a number of workers": (param({"workers": True}), ["params.yaml: workers = True", "integer"]),
    "text as a round to keep": (
        edit(lambda f: f.table.update(keep=["5"])),
        ["tables/table1.yaml: keep: entry 1 = '5'", "integer"],
    ),
    "number as a key": (param({"settings": {5: 5}}), ["params.yaml: settings: key 5: must be a word; put it in quotes"]),
    "no seed": (param({"seeds": []}), ["params.yaml: seeds = []: must be longer"]),
    "a seed without a list": (param({"seeds": 8}), ["params.yaml: seeds = 8: must be a list, in brackets: [first, second]"]),
    "setting not a scalar": (param({"settings": {"rounds": [5]}}), ["params.yaml: settings.rounds = [5]", "number"]),
    "budget's rounds": (
        edit(lambda f: f.table.update(budget={"short": {"note": "x", "rounds": 0}})),
        ["tables/table1.yaml: budget.short.rounds = 0"],
    ),
    "number in a remark that nothing fills": (
        edit(lambda f: f.table.update(remarks={"full": ["It ends at {mean:fedavg/mnist}.", "It ends at 85.2."]})),
        ["tables/table1.yaml: remarks.full: entry 2 = 'It ends at 85.2.': in it: '85.2' is a number that nothing fills"],
    ),
    "remark of a budget that compares": (
        edit(lambda f: f.table.update(budget={"full": {"note": "x", "remarks": ["FedAvg is ahead."]}})),
        ["tables/table1.yaml: budget.full.remarks: entry 1 = 'FedAvg is ahead.': in it: 'ahead' compares"],
    ),
    "published file": (edit(lambda f: f.table.update(published="nope.csv")), ["nope.csv", "no such file"]),
    "scale's argument": (
        edit(lambda f: f.scales["full"].update(methods={"fedlaw": {"epochs": 1}})),
        ["scales.yaml: full: methods", "'epochs'", "server_epochs"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_that_says_where_and_what(mistake: str, files: Files) -> None:
    """The line has file, key, value, and the nearest name or the bound."""
    change, words = MISTAKES[mistake]
    params = change(files)
    with pytest.raises(UserError) as caught:
        files.plan(params)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("some/tabel1", "unknown table 'some/tabel1'; did you mean 'some/table1'?"),
        ("some/table1/", "unknown table 'some/table1/'; did you mean 'some/table1'?"),
        ("sone/table1", "unknown table 'sone/table1'; did you mean 'some/table1'?"),
        ("table1", "unknown table 'table1'; write some/table1;"),
        ("some/", "unknown table 'some'; that is a paper; write some/table1, or another"),
    ],
)
def test_an_unknown_table_is_named(table: str, words: str, files: Files) -> None:
    """The line names the existing table, even if the paper is misspelt."""
    files.more["table2"] = files.table
    files.write()
    paper, _, name = table.partition("/")
    with pytest.raises(UserError, match=f"^{re.escape(words)}"):
        plan(load_project(files.root, dict(FULL)), paper, name, "full")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("seeds: [8", "line 1"),
        ("\xff", "YAML"),
        (None, "no such file"),
        ("- 8", "params.yaml: the whole file: must be a mapping"),
        ("", "is empty"),
    ],
)
def test_a_params_file_that_cannot_be_read(content: str | None, says: str, files: Files) -> None:
    """One line has the file's name, and the line number if there is one."""
    files.write()
    if content is not None:
        (files.root / "params.yaml").write_bytes(content.encode("latin-1"))
    with one_line(says) as caught:
        load_project(files.root)
    assert "params.yaml" in str(caught.value)


@pytest.mark.parametrize("methods", [{"fedprox": {"mu": None}}, {"fedprox": {"mu": 0.5}}])
def test_columns_that_the_table_makes_alike_are_refused_whatever_else_is_edited(files: Files, methods: dict[str, Any]) -> None:
    """This holds with nulls in params.yaml and with an edit of another row. Only columns that params.yaml itself makes equal
    are accepted."""
    files.table["columns"][1]["setting"]["dataset"] = "mnist"
    with pytest.raises(UserError, match="mnist and fashion_mnist are the same run"):
        files.plan(FULL | {"methods": {"some": methods}})
    files.table["columns"][1]["setting"]["dataset"] = "fashion_mnist"
    made = files.plan(FULL | {"settings": {"dataset": "mnist", "client_lr": 0.05}})
    assert len({cell["run_id"] for cell in made["cells"] if cell["row"] == "fedavg"}) == 1


def test_an_empty_section_of_params_yaml_changes_nothing(files: Files) -> None:
    assert files.plan(FULL | {"settings": None, "methods": None}) == files.plan(FULL)


def test_a_table_with_a_name_that_snakemake_does_not_know_is_refused(files: Files) -> None:
    """The rules find reports by their names."""
    files.write()
    project = load_project(files.root, FULL)
    path = next(files.root.glob("papers/*/tables/table1.yaml"))
    path.rename(path.with_name("ablation.yaml"))
    with pytest.raises(UserError, match=r"tables/ablation.yaml: rename it to table or figure and a number, table30.yaml"):
        project.table(path.parts[-3], "ablation")
