"""Initial models: how they are drawn, saved and checked."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fedrepro.errors import UserError
from fedrepro.models import build, initial
from fedrepro.models.names import MODELS
from tests.helpers.one_line import one_line

DEFINITION = initial.definition("lenet", (1, 8, 8), 3)
MODEL = build("lenet", (1, 8, 8), 3)
NAME = initial.artifact_id(DEFINITION)


def resnet_inputs(layer: str) -> int:
    """Inputs per unit: 9 times the input channels, once for the projections, and 64 features for the last layer."""
    if layer in ("conv", "fc"):
        return {"conv": 27, "fc": 64}[layer]
    stage, block, conv = layer.split(".")
    width = 8 * 2 ** int(stage[-1])
    first = block == "block1" and conv != "conv2" and stage != "stage1"
    return (width // 2 if first else width) * (1 if conv == "conv3" else 9)


# Number of inputs per unit of each layer, for a model of each kind of layer.
INPUTS = {
    "mlp": {"fc1": 784, "fc2": 200, "fc3": 200}.__getitem__,
    "lenet": {"conv1": 25, "conv2": 400, "fc": 1568}.__getitem__,
    "resnet8": resnet_inputs,
    "char_lstm": {"lstm1": 64, "fc": 64}.__getitem__,
    "grid_detector": {"conv1": 27, "conv2": 144, "conv3": 288, "conv4": 576, "conv5": 576, "head": 64}.__getitem__,
}


@pytest.mark.parametrize("name", INPUTS)
def test_drawn_uniformly_within_the_fan_in_bound(name: str) -> None:
    """U(-b, b), b = 1/sqrt(inputs per unit), for weights and biases: values come close to the bound and never exceed it, with
    mean 0 and variance b^2/3 within 5 standard errors. A normalisation starts at weight 1 and bias 0."""
    model = build(name, MODELS[name].input_shape, 10)
    params = initial.draw(model, 8)
    assert params.flat.dtype == torch.float32
    for key, value in params.items():
        layer, kind = key.rsplit(".", 1)
        if layer.split(".")[-1].startswith(("bn", "norm")):
            assert value.eq(1.0 if kind == "weight" else 0.0).all()
            continue
        if layer == "embedding":
            continue  # see below
        bound = INPUTS[name](layer) ** -0.5
        assert value.abs().max() <= bound
        if value.numel() > 300:
            assert value.abs().max() > 0.97 * bound
            n = value.numel()
            assert abs(value.mean()) < 5 * bound / (3 * n) ** 0.5
            # The variance of u^2 is 4/5 of its mean squared.
            assert abs(value.double().var() / (bound**2 / 3) - 1) < 5 * (0.8 / n) ** 0.5


@pytest.mark.parametrize("name", ["char_lstm", "shakespeare_lstm"])
def test_embeddings_are_standard_normal(name: str) -> None:
    """As in torch they have mean 0, variance 1 and a share of 4.55 % beyond two, within 5 standard errors. The scheme has a
    separate name, so a file from another scheme is not reused."""
    value = initial.draw(build(name, (80,), 500), 8)["embedding.weight"].double()
    n = value.numel()
    assert abs(value.mean()) < 5 / n**0.5
    assert abs(value.var() - 1) < 5 * (2 / n) ** 0.5
    assert abs((value.abs() > 2).double().mean() - 0.0455) < 5 * (0.0455 / n) ** 0.5
    schemes = [initial.definition(each, shape, 90)["scheme"] for each, shape in ((name, (80,)), ("mlp", (1, 28, 28)))]
    assert schemes == ["uniform_fan_in+normal_embedding", "uniform_fan_in"]


def test_drawn_from_the_seed_alone() -> None:
    """The same seed gives the same weights, whatever torch's global generator did. Another seed or model gives other
    weights."""
    first = initial.draw(MODEL, 8).flat
    torch.manual_seed(123)
    assert torch.equal(initial.draw(MODEL, 8).flat, first)
    assert not torch.equal(initial.draw(MODEL, 9).flat, first)


def test_saved_and_loaded(tmp_path: Path) -> None:
    """The weights are the same and have the sha256 of the manifest. Drawing again writes the same bytes."""
    path = initial.create(DEFINITION, 8, tmp_path)
    before = path.read_bytes()
    params, sha = initial.load(tmp_path, NAME, 8, MODEL)
    assert torch.equal(params.flat, initial.draw(MODEL, 8).flat)
    assert params.layout == MODEL.layout
    manifest = json.loads(path.with_suffix(".json").read_text())
    assert manifest["sha256"] == sha
    assert (manifest["id"], manifest["seed"], manifest["definition"], manifest["parameters"]) == (
        NAME,
        8,
        DEFINITION,
        416 + 12_832 + 387,
    )
    initial.create(DEFINITION, 8, tmp_path)
    assert path.read_bytes() == before


def test_the_name_says_what_decides(tmp_path: Path) -> None:
    """The name has model, shape and classes, and a hash of them."""
    assert NAME.startswith("lenet-1x8x8-c3-")
    others = [("mlp", (1, 8, 8), 3), ("lenet", (1, 8, 12), 3), ("lenet", (1, 8, 8), 4)]
    assert len({NAME, *(initial.artifact_id(initial.definition(*other)) for other in others)}) == 4


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")


def other_names(path: Path) -> None:
    """Weights of another architecture, with a manifest that fits the bytes."""
    save_file({"w": torch.zeros(3)}, path)
    forge(path)


def other_shape(path: Path) -> None:
    """The right names in another shape."""
    save_file({name: value[:2] for name, value in load_file(path).items()}, path)
    forge(path)


def forge(path: Path) -> None:
    from fedrepro.files import sha256_file

    manifest = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(manifest | {"sha256": sha256_file(path)}))


def another_seed(path: Path) -> None:
    """A valid model of another seed under this one's name."""
    other = initial.create(DEFINITION, 9, path.parents[3])
    for suffix in (".safetensors", ".json"):
        other.with_suffix(suffix).replace(path.with_suffix(suffix))


DAMAGE = [
    (flip, "sha256"),
    (Path.unlink, "sha256"),
    (other_names, "not the weights of lenet"),
    (other_shape, "another shape"),
    (another_seed, "sha256"),
    (lambda p: p.with_suffix(".json").write_text("[]"), "sha256"),
    (lambda p: p.with_suffix(".json").write_text("{"), "not valid JSON"),
    (lambda p: p.with_suffix(".json").unlink(), "no such file"),
]


@pytest.mark.parametrize(("damage", "says"), DAMAGE)
def test_damage_is_one_line_that_names_the_file(damage, says: str, tmp_path: Path) -> None:
    """Training does not begin with any such damage to the file or the manifest."""
    path = initial.create(DEFINITION, 8, tmp_path)
    damage(path)
    with one_line(says) as caught:
        initial.load(tmp_path, NAME, 8, MODEL)
    assert "seed8" in str(caught.value)


@pytest.mark.parametrize(("classes", "seed", "says"), [(0, 8, "classes = 0"), (10, -1, "seed = -1")])
def test_impossible_requests(classes: int, seed: int, says: str, tmp_path: Path) -> None:
    """One line names the value."""
    with pytest.raises(UserError, match=says):
        initial.create(initial.definition("mlp", (1, 8, 8), classes), seed, tmp_path)
