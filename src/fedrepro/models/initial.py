"""Initial models: drawn once per (architecture, seed), saved, and the same for every method."""

import math
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from fedrepro import rng
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, sha256_file, write_atomic, write_json
from fedrepro.lazy import torch
from fedrepro.models import Model, build
from fedrepro.models.names import MODELS
from fedrepro.registry import require
from fedrepro.tree import Tree

FOLDER = Path("data/init")


def definition(model: str, input_shape: tuple[int, ...], classes: int) -> dict:
    """Everything that decides an initial model, except the seed. UserError unless there is at least one class."""
    require(classes >= 1, "classes", classes, "must be at least 1")
    return {"model": model, "input_shape": list(input_shape), "classes": classes, "scheme": scheme(model)}


def scheme(model: str) -> str:
    """The name of the rule that `draw` uses for the model's weights."""
    return "uniform_fan_in+normal_embedding" if model in MODELS and MODELS[model].reads == "text" else "uniform_fan_in"


def artifact_id(definition: dict) -> str:
    """A readable name with a short hash of the definition."""
    shape = "x".join(map(str, definition["input_shape"]))
    return f"{definition['model']}-{shape}-c{definition['classes']}-{canonical_hash(definition, 6)}"


def draw(model: Model, seed: int) -> Tree:
    """Draws weights and biases of a layer uniformly in +-1/sqrt(fan_in): the default of torch's Linear and Conv2d, which the
    authors' code of FedLAW and FedIMA keeps (except for FedIMA's ResNet18, E-D17).

    BatchNorm starts at weight 1 and bias 0. Embeddings and LSTM layers start as in torch: standard normal, and uniform in
    +-1/sqrt(hidden). (With an embedding as small as other weights, shakespeare_lstm learns only how often each character occurs
    in 400 steps at a rate of 1.5, measured; with this one it learns more than that after 100.)

    NumPy draws from a named stream, so the result does not depend on torch's global generator or version.
    """
    generator = rng.stream(seed, f"init/{model.name}")
    fan_in = {
        n.rsplit(".", 1)[0]: math.prod(s[1:])
        for n, s in zip(model.layout.names, model.layout.shapes, strict=True)
        if len(s) > 1
    }
    tensors = {}
    for name, shape in zip(model.layout.names, model.layout.shapes, strict=True):
        layer, kind = name.rsplit(".", 1)
        if layer not in fan_in:  # a normalisation
            tensors[name] = torch.full(shape, float(kind == "weight"))
            continue
        if layer == "embedding":
            tensors[name] = torch.from_numpy(generator.standard_normal(shape).astype(np.float32))
            continue
        bound = 1 / math.sqrt(fan_in[layer])
        tensors[name] = torch.from_numpy(generator.uniform(-bound, bound, shape).astype(np.float32))
    return Tree.from_tensors(tensors)


def create(definition: dict, seed: int, root: Path) -> Path:
    """Draws and saves an initial model with its manifest; returns the path of the weights."""
    from safetensors.torch import save

    require(seed >= 0, "seed", seed, "must be at least 0")
    model = build(definition["model"], tuple(definition["input_shape"]), definition["classes"])
    params = draw(model, seed)
    folder = Path(root) / FOLDER / artifact_id(definition)
    content = save({name: tensor.contiguous() for name, tensor in params.items()})
    path = write_atomic(folder / f"seed{seed}.safetensors", lambda temporary: temporary.write_bytes(content))
    weights_info = {"parameters": model.parameters, "sha256": sha256_file(path)}
    write_json(
        path.with_suffix(".json"), {"schema": 1, "id": folder.name, "definition": definition, "seed": seed} | weights_info
    )
    return path


def load(root: Path, artifact: str, seed: int, model: Model) -> tuple[Tree, str]:
    """The saved initial weights and their sha256. UserError if they are missing, damaged or of another architecture."""
    from safetensors.torch import load_file

    path = Path(root) / FOLDER / artifact / f"seed{seed}.safetensors"
    manifest = read_json(path.with_suffix(".json"))
    manifest_matches = isinstance(manifest, dict) and (manifest.get("id"), manifest.get("seed")) == (artifact, seed)
    expected_sha256 = str(manifest["sha256"]) if manifest_matches and "sha256" in manifest else ""
    advice = f"delete {path.parent} and run the same command again"
    if not path.exists() or sha256_file(path) != expected_sha256:
        raise UserError(f"{path}: its sha256 is not the one in its manifest; {advice}")
    try:
        tensors = load_file(path)
        params = Tree.from_tensors({name: tensors[name] for name in model.layout.names})
    except (SafetensorError, KeyError) as error:
        raise UserError(f"{path}: not the weights of {model.name} ({error}); {advice}") from error
    if params.layout != model.layout:
        raise UserError(f"{path}: weights of another shape than {model.name} has for this run; {advice}")
    return params, expected_sha256
