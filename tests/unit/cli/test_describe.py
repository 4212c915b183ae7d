"""`fedrepro list` lists every name, and `fedrepro describe` explains each of them."""

import dataclasses
import re
from pathlib import Path

import pytest

from fedrepro.cli import describe, main
from fedrepro.config.defaults import MEANINGS, SETTINGS
from fedrepro.config.layers import SETTINGS as ALL
from fedrepro.data.partition import SCHEMES
from fedrepro.data.registry import load_registry
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS
from fedrepro.engine.spec import RunSpec
from fedrepro.methods.parts import PARTS
from fedrepro.models.names import MODELS
from fedrepro.registry import coerce

ROOT = Path(__file__).parents[3]
DATASETS = [*load_registry(ROOT / "data/registry.yaml")]


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixes the terminal width, so the width of the test's terminal does not matter."""
    monkeypatch.setenv("COLUMNS", "120")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "names"),
    {
        "papers": sorted(path.name for path in (ROOT / "papers").glob("*/")),
        "models": [*MODELS],
        "partitions": SCHEMES.names(),
        "datasets": DATASETS,
        "settings": [*ALL],
        "diagnostics": DIAGNOSTICS.names(),
    }.items(),
)
def test_a_list_has_every_name_once(kind: str, names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each name begins a line. Its description stands beside or below it, in lines no longer than the terminal is wide."""
    text = said(capsys, "list", kind)
    first = re.findall(r"^([a-z][\w-]*)(?=[ (]|$)", text, flags=re.MULTILINE)
    assert first == names
    assert max(map(len, text.splitlines())) <= 120


def test_settings_say_type_meaning_default_and_whose_protocol_gives_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The defaults and protocols are those of the files. Every setting has a meaning, and its default has the right type."""
    text = said(capsys, "list", "settings")
    own = re.search(r"^client_lr +(.*)\n +(.*)$", text, flags=re.MULTILINE)
    assert own
    assert own[1] == f"number; {MEANINGS['client_lr']}"
    assert own[2].startswith(f"default {SETTINGS['client_lr']}; papers: elastic ")
    assert "fedlaw 0.08" in own[2]
    assert "true or false; " + MEANINGS["keep_client_momentum"] in text
    assert " ".join(text.split()).endswith(describe.LATER_WINS)
    assert {*MEANINGS} == {*ALL}
    optional = {field.name for field in dataclasses.fields(RunSpec) if field.default is not dataclasses.MISSING}
    assert {*ALL} - optional <= {*SETTINGS}
    for key, value in SETTINGS.items():
        coerce(key, value, ALL[key])


def test_tables_have_their_titles_and_addresses_are_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list has the tables with their titles. An address longer than the terminal is not cut. All other text is wrapped."""
    assert re.search(r"^fedgh/table2 +\w", said(capsys, "list", "tables"), flags=re.MULTILINE)
    monkeypatch.setenv("COLUMNS", "60")
    lines = said(capsys, "list", "methods").splitlines()
    assert all(len(line) <= 60 or len(line.split()) == 1 for line in lines)
    assert any(re.fullmatch(r" +https://arxiv\.org/abs/1812\.06127,?", line) for line in lines)
    assert not any("..." in line for line in lines)


KINDS = {name: PARTS.get(name).slot for name in PARTS.names()} | dict.fromkeys(DIAGNOSTICS.names(), "diagnostic")
KINDS |= dict.fromkeys(MODELS, "model") | dict.fromkeys(DATASETS, "data set")
KINDS |= dict.fromkeys(SCHEMES.names(), "partition scheme")


@pytest.mark.parametrize("name", KINDS)
def test_each_of_them_is_described(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first line names the kind; of a part, its method comes before. More than one line of description follows, of a
    diagnostic with its docstring and arguments."""
    text = said(capsys, "describe", name)
    assert f"\n{name} ({KINDS[name]})\n" in f"\n{text}"
    assert len(text.splitlines()) > 3
    if name in DIAGNOSTICS.names():
        assert " ".join((DIAGNOSTICS.get(name).__doc__ or "").split()) in " ".join(text.split())
        assert all(f"\n  {field.name}: " in text for field in dataclasses.fields(DIAGNOSTICS.get(name)))


def test_a_table_is_described_by_what_rows_and_columns_take(capsys: pytest.CaptureFixture[str]) -> None:
    """The description has the keys with their labels, and the command that makes the table by the paper's protocol."""
    lines = said(capsys, "describe", "fedgh/table2").splitlines()
    assert lines[1] == "  made by: snakemake --cores 8 reports/full/fedgh/table2.md"
    assert lines[2:6] == ["  rows:", "    fedavg     FedAvg", "    fedavg+gh  FedAvg + GH", "  columns:"]
    assert "    iid-top1        iid · top-1" in lines


def test_a_description_has_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    """A model has its number of parameters, a scheme its arguments, a data set its number of samples."""
    assert "  535,818 parameters at 10 classes" in said(capsys, "describe", "two_nn")
    for name in ("two_nn", "mnist"):
        assert said(capsys, "describe", f"{name}()") == said(capsys, "describe", name)
    assert "  min_size: whole number (default 10)" in said(capsys, "describe", "dirichlet_balanced(alpha=1)")
    assert "60,000 to train on, 10,000 to test on" in said(capsys, "describe", "mnist")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fedporx", "unknown method 'fedporx'; did you mean 'fedprox'?"),
        ("lennet", "unknown model 'lennet'; did you mean 'lenet'?"),
        ("fedgh/table9", "unknown table 'fedgh/table9'"),
        ("shrads", "unknown partition scheme 'shrads'; did you mean 'shards'?"),
        ("minst", "unknown data set 'minst'; did you mean 'mnist'?"),
        ("fedprox+zzzzzz", "unknown method 'zzzzzz'; Known: "),
        ("fedprox+resnet20", "resnet20 is a model; describe resnet20 alone"),
        ("mnist(x=1)", "mnist is a data set; describe mnist alone"),
    ],
)
def test_an_unknown_name_is_a_line_with_the_nearest_of_any_kind(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", name]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
