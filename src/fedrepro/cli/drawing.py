"""fedrepro data | draw | partition | participation | proxy | init: what is drawn once and saved; prints the files."""

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import read_json

ROOT = Path()


def data(options: Namespace) -> None:
    from fedrepro.data.prepare import prepare
    from fedrepro.data.registry import load_registry

    entry = load_registry()[options.dataset]
    mirror = options.mirror or os.environ.get("FEDREPRO_MIRROR") or None
    print(prepare(options.dataset, _shape(options.shape) if options.shape else entry.native_shape, ROOT, mirror))


def partition(options: Namespace) -> None:
    from fedrepro.data import partition
    from fedrepro.data.registry import load_registry

    entry = load_registry()[options.dataset]
    definition = partition.definition(entry, options.scheme, options.clients, options.local_validation)
    print(*draw_seeds("partition", definition, options.seeds), sep="\n")


def participation(options: Namespace) -> None:
    from fedrepro.data import participation

    definition = participation.definition(options.clients, options.ratio, options.rounds, options.cohorts)
    print(*draw_seeds("participation", definition, options.seeds), sep="\n")


def proxy(options: Namespace) -> None:
    from fedrepro.data import proxy
    from fedrepro.data.registry import load_registry

    definition = proxy.definition(load_registry()[options.dataset], options.per_class, options.kind)
    print(*draw_seeds("proxy", definition, options.seeds), sep="\n")


def init(options: Namespace) -> None:
    from fedrepro.models import initial
    from fedrepro.models.names import MODELS
    from fedrepro.registry import unknown

    if options.model not in MODELS:
        raise UserError(unknown("model", options.model, sorted(MODELS)))
    definition = initial.definition(options.model, MODELS[options.model].input_shape, options.classes)
    print(*draw_seeds("init", definition, options.seeds), sep="\n")


def draw(options: Namespace) -> None:
    """What a file of results/configs defines."""
    from fedrepro.engine.artifacts import MODULES

    content = read_json(options.definition)
    of_kind = isinstance(content, dict) and content.get("kind") in [*MODULES]
    if not of_kind or not isinstance(content.get("definition"), dict):
        raise UserError(f"{options.definition}: defines nothing that is drawn; snakemake writes such files to results/configs")
    print(*draw_seeds(content["kind"], content["definition"], options.seeds), sep="\n")


def draw_seeds(kind: str, definition: dict[str, Any], seeds: list[int], root: Path = ROOT) -> list[Path]:
    """Draws the seeds that are not there, or not complete: what was drawn once is not drawn again, but
    for partitions of other code. Returns all manifests."""
    from fedrepro.engine.artifacts import FOLDERS, MODULES, drawn

    artifact = MODULES[kind].artifact_id(definition)
    for seed in seeds:
        if drawn(kind, artifact, seed, root) is None:
            MODULES[kind].create(definition, seed, root)
        elif kind == "partition":
            MODULES[kind].renew(root, artifact, seed)
    return [root / FOLDERS[kind] / artifact / f"seed{seed}.json" for seed in seeds]


def _shape(text: str) -> tuple[int, ...]:
    parts = text.split("x")
    if len(parts) not in (1, 3) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UserError(
            f"--shape {text}: write channels x height x width, for example 1x28x28, or for text the length of its windows, 80"
        )
    return tuple(map(int, parts))
