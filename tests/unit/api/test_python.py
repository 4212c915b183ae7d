"""What `import fedrepro` offers: evidence as data frames, training on tensors, methods and partitions by name; and
docs/python.md."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
import real_papers
import torch
from bare import python
from torch import nn

import fedrepro
from fedrepro.api import training
from fedrepro.api.training import Trained
from fedrepro.cli import main
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.data import digits
from fedrepro.data.registry import REGISTRY, load_registry
from fedrepro.engine.task import as_batch
from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.methods.compose import compose
from tests.helpers.one_line import one_line

ROOT = Path(__file__).parents[3]


def test_importing_fedrepro_loads_nothing_heavy_and_names_what_there_is() -> None:
    """The import loads neither NumPy nor torch nor pandas. dir() lists the names, each name resolves, and any other name raises
    AttributeError."""
    code = "import sys, fedrepro; print(*sorted({n.partition('.')[0] for n in sys.modules})); print(*dir(fedrepro))"
    loaded, listed = (line.split() for line in python(code).splitlines())
    assert not {"numpy", "torch", "pandas", "pydantic", "yaml"} & set(loaded)
    assert set(fedrepro.__all__) <= set(listed)
    assert all(callable(getattr(fedrepro, name)) for name in fedrepro.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = fedrepro.lode  # pyright: ignore[reportAttributeAccessIssue]


# --- results -------------------------------------------------------------------------------------------------------------


def test_a_published_table_as_a_frame() -> None:
    """The frame has every cell of FedGH's Table 2 with its seeds and rounds. Its numbers equal those of the evidence."""
    frame = fedrepro.load("fedgh/table2", scale="full", root=ROOT)
    made = plan(load_project(ROOT).as_published("full"), "fedgh", "table2", "full")
    assert {*zip(frame.row, frame.column, strict=True)} == {(c.row, c.column) for c in made.cells}
    assert {*frame.source} == {"published"}
    cell = next(c for c in made.planned if c.row == "fedavg+gh")
    own = frame[(frame.row == cell.row) & (frame.column == cell.column) & (frame.metric == "test_accuracy")]
    assert sorted({*own.seed}) == [8, 9, 10]
    for seed in (8, 9, 10):
        (path,) = (ROOT / f"reports/full/fedgh/evidence/{cell.run_id}").glob(f"seed{seed}.json")
        curve = own[own.seed == seed].sort_values("round")
        assert curve.value.tolist() == read_json(path)["curves"]["test_accuracy"]
        assert curve["round"].tolist() == list(range(1, 51))


def test_runs_are_chosen_by_name_and_setting() -> None:
    """A query can name parts of a method, with or without arguments, FedAvg alone, and settings that the evidence leaves at a
    default."""
    gh = fedrepro.runs("mnist-two_nn", root=ROOT, method="gh")
    assert len(gh)
    assert all(re.search(r"(^|\+)gh\b", label) for label in {*gh.method})
    plain = fedrepro.runs(root=ROOT, dataset="mnist", method="fedavg", cohorts="drawn")
    assert len(plain)
    assert not any(re.search(r"(^|\+)gh\b", label) for label in {*plain.method})
    some = fedrepro.runs(root=ROOT, method="fedprox(mu=0.1)")
    every = fedrepro.runs(root=ROOT, method="fedprox")
    assert 0 < some.run_id.nunique() < every.run_id.nunique()
    assert fedrepro.runs("no such run", root=ROOT).empty
    beta = [fedrepro.runs(root=ROOT, partition=f"dirichlet_per_client({text})") for text in ("beta=1", "beta=1.0")]
    assert len(beta[0]) == len(beta[1]) > 0
    frame = fedrepro.runs("mnist-two_nn-dirichlet_per_client", root=ROOT)
    told = [name for name in frame.columns if name not in ("run_id", "source", "seed", "round", "metric", "value")]
    assert {"clients", "participation", "normalise"} <= {*told}  # settings that differ, with defaults
    assert frame.astype(dict.fromkeys(told, str)).groupby(told, dropna=False).run_id.nunique().max() == 1
    assert {*frame[frame.run_id == frame.run_id.iloc[0]].clients} == {20}
    cropped = [fedrepro.runs("cifar10-", root=ROOT, augment=text) for text in ("crop+flip", "crop(padding=4)+flip")]
    assert len(cropped[0]) == len(cropped[1]) > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fedrepro.load("fedgh/tabel2", root=ROOT), ["'fedgh/tabel2'", "'fedgh/table2'"]),
        (lambda: fedrepro.load("fedgh/table2", scale="ful", root=ROOT), ["load: unknown scale 'ful'", "'full'"]),
        (lambda: fedrepro.load("table4", root=ROOT), ["load: ", "write elastic/table4 or fedgh/table4"]),
        (lambda: fedrepro.load("fedgh/table4", root=ROOT), ["fedgh/table4: no evidence at scale full", "snakemake"]),
        (lambda: fedrepro.runs("fedgh/table2", root=ROOT), ["runs('fedgh/table2')", "fedrepro.load('fedgh/table2')"]),
        (lambda: fedrepro.runs(datset="mnist", root=ROOT), ["datset", "'dataset'"]),
        (
            lambda: fedrepro.load("fedgh/table4", scale=None, root=ROOT),
            ["fedgh/table4: no evidence at scale demo", "snakemake"],
        ),
        (lambda: fedrepro.runs(clients="20", root=ROOT), ["clients", "'20'", "whole number"]),
        (lambda: fedrepro.runs(method="fedporx", root=ROOT), ["'fedporx'", "'fedprox'"]),
        (lambda: fedrepro.runs(3, root=ROOT), ["runs: pattern = 3", "text"]),  # pyright: ignore[reportArgumentType]
    ],
)
def test_mistakes_in_a_question_are_one_line(call: Any, words: list[str]) -> None:
    """A mistake in a query raises a UserError of one line. It names the nearest valid name where there is one."""
    with one_line() as error:
        call()
    assert all(word in str(error.value) for word in words), error.value


# --- trainings -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained_by_hand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the command line trained FedLAW for two rounds, with a proxy set and held-out samples."""
    root = tmp_path_factory.mktemp("by_hand")
    command = ["run", "fedlaw/table3", "--rows", "fedlaw", "--columns", "fashion_mnist-mlp-0.1"]
    with pytest.MonkeyPatch.context() as patch:
        real_papers.enter(root, patch, "seeds: [8]\nsettings: {rounds: 2, clients: 4, participation: 0.5}\n", "fedlaw")
        assert main(command) == 0
    return root


def test_a_tables_run_comes_out_of_train_to_the_bit(trained_by_hand: Path) -> None:
    """train() with the arrays, settings and seed of the command line's run reproduces every metric of every round bit for bit,
    from uint8 pixels and from float pixels."""
    (receipt,) = (read_json(path) for path in trained_by_hand.glob("results/runs/*/seed8.json"))
    folder = trained_by_hand / "data/arrays/digits/1x28x28"
    train, test = ((np.load(folder / f"{s}_images.npy"), np.load(folder / f"{s}_labels.npy")) for s in ("train", "test"))
    config = dict(receipt["config"])
    for key in ("dataset", "dataset_sha", "input_shape", "classes"):
        del config[key]
    floats = tuple((torch.from_numpy(x).float() / 255, y) for x, y in (train, test))
    for data in ((train, test), floats):
        found = fedrepro.train(config["method"], data, seed=8, **{k: v for k, v in config.items() if k != "method"})
        for metric, values in receipt["curves"].items():
            if metric != "round":
                assert found.curves[found.curves.metric == metric].value.tolist() == values, metric
        assert found.method == config["method"]
    for frame in (fedrepro.runs(root=trained_by_hand), fedrepro.load("fedlaw/table3", None, root=trained_by_hand)):
        assert {*frame.source} == {"local"}
        assert frame[frame.metric == "test_loss"].value.tolist() == receipt["curves"]["test_loss"]


def toy(samples: int = 300) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Two classes of 12-dimensional points. The sign of the sum of the first two numbers is the class. Three quarters are
    training data."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(samples, 12)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    cut = samples * 3 // 4
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def accuracy(found: Trained) -> list[float]:
    return found.curves[found.curves.metric == "test_accuracy"].value.tolist()


def test_clients_as_positions_are_those_of_the_scheme() -> None:
    """train() gives the same curves for a given partition and for the scheme that drew it, and for a method and its name.
    Another seed gives other curves."""
    data, scheme = toy(), "dirichlet_per_client(beta=0.5)"
    parts = fedrepro.partition(scheme, data[0][1], clients=5, seed=8)
    assert [len(part) for part in parts] == [45] * 5
    how = {"model": "logistic", "rounds": 3}
    given = fedrepro.train("fedprox(mu=0.1)+gh", data, clients=parts, **how)
    drawn = fedrepro.train(fedrepro.compose("fedprox(mu=0.1)+gh"), data, clients=5, partition=scheme, **how)
    assert given.curves.equals(drawn.curves)
    other = fedrepro.train("fedprox(mu=0.1)+gh", data, clients=5, partition=scheme, seed=9, **how)
    assert not other.curves.value.equals(drawn.curves.value)
    assert str(fedrepro.compose("gh")) == str(compose("gh"))


def test_pixels_are_standardised_by_the_training_set() -> None:
    """Channel 0 has 0 and 255 in equal parts: mean 0.5, standard deviation 0.5. Channel 1 has three times as many 51 as 255:
    mean 0.4, standard deviation sqrt(0.75 * 0.2^2 + 0.25 * 0.6^2) = 0.3464. These numbers scale the test pixels and new ones
    too."""
    x = np.zeros((8, 2, 2, 2), np.uint8)
    x[:, 0, 0], x[:, 1] = 255, 51
    x[:2, 1] = 255
    y = np.array([0, 1] * 4)
    test = np.full((2, 2, 2, 2), 255, np.uint8)
    how = {"clients": 2, "rounds": 2, "model": "logistic", "seed": 3}
    found = fedrepro.train("fedavg", ((x, y), (test, y[:2])), normalise="standard", **how)
    mean, deviation = (np.array(each).reshape(2, 1, 1) for each in ((0.5, 0.4), (0.5, 0.3464)))
    assert np.allclose(found.inputs(torch.from_numpy(test)).numpy(), (1.0 - mean) / deviation)
    scaled = [found.inputs(torch.from_numpy(each)) for each in (x, test)]
    floats = ((scaled[0], y), (scaled[1], y[:2]))
    for text in ("standard", "unit"):  # float x is not scaled again
        assert fedrepro.train("fedavg", floats, normalise=text, **how).curves.equals(found.curves)
    with pytest.raises(
        UserError, match=r"^train\(normalise='standard'\): the deviation of channel 0 = 0.0: .*normalise='unit'$"
    ):
        fedrepro.train("fedavg", ((test, y[:2]), (test, y[:2])), normalise="standard", **how)


def test_a_data_sets_statistics_are_those_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits at their native 8 by 8 are standardised by the registry's mean and deviation, as in a table's run."""
    entry = load_registry(ROOT / REGISTRY)["digits"]
    source = digits.read(entry, None)  # type: ignore[arg-type]
    data = ((source.train_images, source.train_labels), (source.test_images, source.test_labels))
    used: list[Any] = []
    monkeypatch.setattr(training, "as_batch", lambda x, y, *scale: used.append(scale[:2]) or as_batch(x, y, *scale))
    fedrepro.train("fedavg", data, clients=2, rounds=1, normalise="standard")
    assert {*used} == {(entry.channel_mean, entry.channel_std)}


def test_numpys_numbers_arrays_and_data_frames_serve_as_well() -> None:
    """NumPy scalars and pandas frames give the same curves as Python numbers and NumPy arrays."""
    (x, y), (test_x, test_y) = data = toy()
    plain = fedrepro.train("fedavg", data, clients=4, rounds=2, client_lr=0.5, seed=3)
    frames = ((pd.DataFrame(x), pd.Series(y)), (pd.DataFrame(test_x), pd.Series(test_y)))
    how = {"rounds": np.int64(2), "client_lr": np.float64(0.5), "seed": np.int64(3)}
    other = fedrepro.train("fedavg", frames, clients=np.int64(4), **how)
    assert other.curves.equals(plain.curves)
    assert torch.equal(other.predict(frames[1][0]), plain.predict(test_x))
    assert np.array_equal(fedrepro.partition("iid", y, np.int64(3))[0], fedrepro.partition("iid", y, 3)[0])


def test_not_every_character_of_an_alphabet_occurs() -> None:
    """Text windows that contain only the even numbers up to 8 give nine classes."""
    generator = np.random.default_rng(0)
    text = 2 * generator.integers(0, 5, size=(60, 9))
    text[0, 0] = 8
    data = ((text[:40, :-1], text[:40, -1]), (text[40:, :-1], text[40:, -1]))
    found = fedrepro.train("fedavg", data, model="char_lstm", clients=2, rounds=1)
    assert found.model.classes == 9


def test_a_class_without_a_sample_is_meant_if_it_is_said() -> None:
    """Labels from 1 are accepted if the caller names the number of classes."""
    (x, y), (test_x, test_y) = toy()
    found = fedrepro.train("fedavg", ((x, y + 1), (test_x, test_y + 1)), clients=3, rounds=1, classes=3)
    assert found.predict(test_x).shape == (75, 3)
    assert len(fedrepro.partition("iid", y + 1, 3, classes=4)) == 3


class Small(nn.Module):
    """A network with BatchNorm, dropout and a constant buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm, self.last = nn.Linear(12, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)
        self.drop = nn.Dropout(0.2)
        self.register_buffer("shift", torch.full((8,), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(self.norm(self.inner(x) + self.shift).relu()))


def test_a_module_of_ones_own() -> None:
    """Training starts from the module's weights, leaves the module unchanged, is repeatable, and predicts as the module does
    with the trained state dict."""
    torch.manual_seed(0)
    module, data = Small(), toy()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    how = {"model": module, "clients": 5, "rounds": 12, "client_lr": 0.2, "batch_size": 16}
    first, again = fedrepro.train("gh", data, **how), fedrepro.train("gh", data, **how)
    assert first.curves.equals(again.curves)
    assert accuracy(first)[-1] > 80
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    module.load_state_dict(first.weights, strict=False)
    x, y = data[1]
    torch.testing.assert_close(module.eval()(torch.from_numpy(x)), first.predict(x), rtol=0, atol=1e-6)
    assert float((first.predict(x).argmax(1).numpy() == y).mean()) * 100 == pytest.approx(accuracy(first)[-1])


class RandomLayers(nn.Module):
    """Dropout that torch draws inside of a layer or a function."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.last = nn.LSTM(1, 4, num_layers=2, dropout=0.5, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(nn.functional.dropout(self.lstm(x[..., None])[0][:, -1], 0.5, self.training))


def test_random_numbers_of_ones_own_module_follow_the_seed() -> None:
    """A second call gives the same curves, another seed gives others, and the caller's generator is left as it was."""
    how = {"model": RandomLayers(), "clients": [range(50), range(50, 100)], "rounds": 2}
    before = torch.get_rng_state()
    first, again, other = (fedrepro.train("fedavg", toy(), seed=seed, **how).curves for seed in (8, 8, 2**70))
    assert first.equals(again)
    assert not first.value.equals(other.value)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_modules_round_is_that_of_the_model_by_name() -> None:
    """Logistic regression as a module, started from the same weights, gives the curves of the model `logistic` up to
    rounding."""
    data = toy()
    named = fedrepro.train("fedavg", data, model="logistic", clients=4, rounds=1, client_lr=1e-30)
    module = nn.Linear(12, 2)
    module.load_state_dict({key.removeprefix("fc1."): value for key, value in named.weights.items()})
    how = {"clients": 4, "rounds": 4, "client_momentum": 0.9}
    one, other = (fedrepro.train("fedprox(mu=0.1)", data, model=model, **how) for model in ("logistic", module))
    assert np.allclose(one.curves.value, other.curves.value, rtol=1e-5)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(12, 12)
        self.other = self.one

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.one(x))


def shifted(data: Any) -> Any:
    (x, y), (test_x, test_y) = data
    return (x, y + 1), (test_x, test_y + 1)


def with_nan(x: np.ndarray) -> np.ndarray:
    """The samples with one number missing."""
    x = x.copy()
    x[3, 2] = np.nan
    return x


TRAIN_MISTAKES = {
    "setting": (lambda d: fedrepro.train("fedavg", d, rouns=3), ["rouns", "'rounds'"]),
    "type": (lambda d: fedrepro.train("fedavg", d, rounds=2.5), ["rounds", "2.5", "whole number"]),
    "method": (lambda d: fedrepro.train("fedporx", d), ["'fedporx'", "'fedprox'"]),
    "model": (lambda d: fedrepro.train("fedavg", d, model="lennet"), ["'lennet'", "'lenet'"]),
    "model's type": (
        lambda d: fedrepro.train("fedavg", d, model=["mlp"]),  # pyright: ignore[reportArgumentType]
        ["model = ['mlp']", "list models"],
    ),
    "model's class": (
        lambda d: fedrepro.train("fedavg", d, model=nn.Linear),  # pyright: ignore[reportArgumentType]
        ["Linear", "not its class"],
    ),
    "products": (lambda d: fedrepro.train("fedavg", d, model=Small(), products="bf16"), ["products = 'bf16'", "float32"]),
    "detector": (lambda d: fedrepro.train("fedavg", d, model="grid_detector"), ["grid_detector", "boxes"]),
    "scheme": (lambda d: fedrepro.train("fedavg", d, partition="idd"), ["'idd'", "'iid'"]),
    "scheme's type": (
        lambda d: fedrepro.train("fedavg", d, partition=5),  # pyright: ignore[reportArgumentType]
        ["partition = 5", "as text"],
    ),
    "argument": (lambda d: fedrepro.partition("dirichlet_per_client(alpha=1)", d[0][1]), ["'alpha'", "beta"]),
    "proxy": (lambda d: fedrepro.train("fedlaw", d, clients=3), ["proxy_per_class"]),
    "twice": (lambda d: fedrepro.train("fedavg", d, clients=[[1, 2], [2]]), ["position = 2", "twice"]),
    "no samples": (lambda d: fedrepro.train("fedavg", d, clients=[[], []]), ["clients = 2", "no client has a sample"]),
    "pixels and floats": (
        lambda d: fedrepro.train("fedavg", (d[0], ((d[1][0] * 255).astype(np.uint8), d[1][1]))),
        ["float32", "uint8", "both"],
    ),
    "outside": (lambda d: fedrepro.train("fedavg", d, clients=[[1], [225]]), ["position = 225", "225 samples"]),
    "before": (lambda d: fedrepro.train("fedavg", d, clients=[[1], [-1]]), ["position = -1", "225 samples"]),
    "data": (lambda d: fedrepro.train("fedavg", d[0]), ["x"]),
    "lengths": (lambda d: fedrepro.train("fedavg", ((d[0][0], d[0][1][:9]), d[1])), ["training", "(225, 12)", "9 y"]),
    "labels": (lambda d: fedrepro.train("fedavg", ((d[0][0], d[0][1] * 0.5), d[1])), ["labels", "float64"]),
    "no labels": (lambda d: fedrepro.train("fedavg", ((d[0][0], None), d[1])), ["training labels = ()", "must be [N]"]),
    "a negative label": (lambda d: fedrepro.partition("iid", [0, 1, -1], 1), ["labels = -1", "at least 0"]),
    "ragged labels": (lambda d: fedrepro.partition("iid", [[1], [1, 2]], 1), ["labels", "list", "whole numbers [N]"]),
    "a huge label": (
        lambda d: fedrepro.partition("iid", [0, 1, 10**12], 1),
        ["no sample has label 2, 3, 4, 5, 6, ...;", "classes=1000000000001"],
    ),
    "ragged clients": (lambda d: fedrepro.train("fedavg", d, clients=[[0, [1, 2]]]), ["positions of client 0", "list"]),
    "features": (
        lambda d: fedrepro.train("elastic(of=features)", d, model=Small(), clients=3, rounds=1, local_validation=0.3),
        ["Small", "features"],
    ),
    "classes": (lambda d: fedrepro.train("fedavg", d, classes=1), ["classes = 1", "by the labels"]),
    "seed": (lambda d: fedrepro.train("fedavg", d, seed=1.5), ["seed = 1.5", "whole number"]),
    "below 0": (lambda d: fedrepro.train("fedavg", d, seed=-1), ["seed = -1"]),
    "engine": (lambda d: fedrepro.train("fedavg", d, engine="fast"), ["engine = 'fast'", "vectorised"]),
    "device": (lambda d: fedrepro.train("fedavg", d, device="gpu"), ["device = 'gpu'", "cuda"]),
    "groups": (lambda d: fedrepro.train("fedavg", d, partition="by_group"), ["by_group", "reads groups"]),
    "no groups": (lambda d: fedrepro.partition("by_group", d[0][1]), ["by_group", "groups=[...]"]),
    "no clients": (lambda d: fedrepro.partition("iid", d[0][1], clients=0), ["clients = 0", "from 1 up"]),
    "tied": (lambda d: fedrepro.train("fedavg", d, model=Tied()), ["Tied", "untie"]),
    "no weights": (lambda d: fedrepro.train("fedavg", d, model=nn.ReLU()), ["ReLU", "no weights"]),
    "frozen": (
        lambda d: fedrepro.train("fedavg", d, model=nn.Sequential(nn.Linear(12, 4).requires_grad_(False), nn.Linear(4, 2))),
        ["0.weight is frozen", "unfreeze"],
    ),
    "no momentum": (
        lambda d: fedrepro.train("fedavg", d, model=nn.Sequential(nn.Linear(12, 2), nn.BatchNorm1d(2, momentum=None))),
        ["Sequential", "BatchNorm(momentum=None)"],
    ),
    "too few outputs": (lambda d: fedrepro.train("fedavg", d, model=nn.Linear(12, 1)), ["Linear", "(2, 1)", "(2, 2)"]),
    "too many outputs": (lambda d: fedrepro.train("fedavg", d, model=nn.Linear(12, 3)), ["(2, 3)", "classes=3"]),
    "other inputs": (lambda d: fedrepro.train("fedavg", d, model=nn.Linear(5, 2)), ["cannot read x of shape (2, 12)"]),
    "labels from 1": (lambda d: fedrepro.train("fedavg", shifted(d)), ["no sample has label 0", "classes=3"]),
    "partition's labels": (lambda d: fedrepro.partition("iid", d[0][1] * 3), ["no sample has label 1, 2", "classes=4"]),
    "partition's classes": (lambda d: fedrepro.partition("iid", d[0][1], classes=1), ["classes = 1", "at least 2"]),
    "classes 0": (lambda d: fedrepro.partition("iid", d[0][1], classes=0), ["classes = 0", "from 1 up"]),
    "groups' length": (lambda d: fedrepro.partition("by_group", d[0][1], 3, groups=[0, 1, 2]), ["groups = 3", "225 labels"]),
    "clients as text": (lambda d: fedrepro.train("fedavg", d, clients="5"), ["clients = '5'", "whole number"]),
    "clients as a dict": (lambda d: fedrepro.train("fedavg", d, clients={0: [0, 1]}), ["clients = {0: [0, 1]}"]),
    "clients as a float": (lambda d: fedrepro.train("fedavg", d, clients=5.0), ["clients = 5.0"]),
    "fractions": (lambda d: fedrepro.train("fedavg", d, clients=[[0.5, 1.7]]), ["positions of client 0", "float64"]),
    "a mask": (lambda d: fedrepro.train("fedavg", d, clients=[d[0][1] > 0]), ["positions of client 0", "bool"]),
    "two partitions": (lambda d: fedrepro.train("fedavg", d, clients=[[0], [1]], partition="iid"), ["number of clients"]),
    "text on pixels": (lambda d: fedrepro.train("fedavg", d, model="char_lstm"), ["float32", "windows of whole numbers"]),
    "not finite": (lambda d: fedrepro.train("fedavg", ((d[0][0] * np.nan, d[0][1]), d[1])), ["training x", "not finite"]),
    "one number": (lambda d: fedrepro.train("fedavg", ((with_nan(d[0][0]), d[0][1]), d[1])), ["training x", "not finite"]),
    "ragged": (lambda d: fedrepro.train("fedavg", (([[1.0], [1.0, 2.0]], [0, 1]), d[1])), ["training x", "not an array"]),
    "no method": (lambda d: fedrepro.train(None, d), ["compose(None)", "as text"]),  # pyright: ignore[reportArgumentType]
    "no scheme": (lambda d: fedrepro.partition(None, d[0][1]), ["partition(None)"]),  # pyright: ignore[reportArgumentType]
    "predicts another width": (lambda d: fedrepro.train("fedavg", d, rounds=1).predict(d[1][0][:, :5]), ["(75, 5)", "12"]),
    "predicts whole numbers": (
        lambda d: fedrepro.train("fedavg", d, rounds=1).predict(d[1][0].astype(int)),
        ["x of type torch.int64"],
    ),
    "predicts one sample": (lambda d: fedrepro.train("fedavg", d, rounds=1).predict(d[1][0][0]), ["(12,)", "[N, "]),
    "outside of a project": (lambda d: fedrepro.runs(root="/nowhere"), ["params.yaml", "root folder"]),
}


@pytest.mark.parametrize("name", TRAIN_MISTAKES)
def test_a_mistake_in_a_training_is_one_line(name: str) -> None:
    """The message is one line. It names what is wrong, and the nearest name where there is one."""
    call, words = TRAIN_MISTAKES[name]
    with one_line() as error:
        call(toy())
    assert all(word in str(error.value) for word in words), error.value


# --- the page and the notebook -------------------------------------------------------------------------------------------


def test_the_page_runs_as_it_is_printed() -> None:
    """Each block of docs/python.md runs by itself in the project's root. The table of functions lists every public name."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    said = python(f"for block in {blocks!r}: exec(block, {{'__name__': '__main__'}}); print('---')").split("---\n")
    assert "alpha0.1-top1" in said[0]
    found = re.findall(r"^(.+): ([\d.]+) %$", said[1], flags=re.MULTILINE)
    assert [name for name, _ in found] == ["fedavg", "fedprox(mu=0.1)+gh"]
    assert all(float(value) > 50 for _, value in found)
    listed = re.findall(r"^\| `fedrepro\.(\w+)\(", (ROOT / "docs/python.md").read_text(), flags=re.MULTILINE)
    assert {*listed} == {*fedrepro.__all__}


def test_the_notebook_runs(tmp_path: Path) -> None:
    """The notebook is valid and has no stored outputs. Its cells run in order in the notebook's folder and draw pictures."""
    path = ROOT / "docs/fedrepro.ipynb"
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells)
    code = "import json, sys, matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as plt; known = {}; drawn = []\n"
    code += "for cell in json.load(open(sys.argv[1])):\n    exec(compile(cell, 'cell', 'exec'), known)\n"
    code += "    drawn.append(bool(plt.get_fignums())); plt.close('all')\n"
    code += "print(json.dumps([drawn, known['predicted'].tolist(), [*known['trained']]]))"
    (tmp_path / "cells.json").write_text(json.dumps([cell.source for cell in cells]))
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "cells.json")], cwd=path.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    drawn, predicted, methods = json.loads(done.stdout)
    assert sum(drawn) == 3
    assert len(predicted) == 597
    assert methods == ["fedavg", "gh", "fedprox(mu=0.1)+gh"]
