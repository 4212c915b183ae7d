"""fedrepro data | partition | participation | proxy | init: what is drawn once and saved. Each prints the file it wrote."""

import os
from argparse import Namespace
from pathlib import Path

from fedrepro.errors import UserError

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
    print(partition.create(definition, options.seed, ROOT))


def participation(options: Namespace) -> None:
    from fedrepro.data import participation

    definition = participation.definition(options.clients, options.ratio, options.rounds)
    print(participation.create(definition, options.seed, ROOT))


def proxy(options: Namespace) -> None:
    from fedrepro.data import proxy
    from fedrepro.data.registry import load_registry

    print(proxy.create(proxy.definition(load_registry()[options.dataset], options.per_class), options.seed, ROOT))


def init(options: Namespace) -> None:
    from fedrepro.models import initial
    from fedrepro.models.names import MODELS
    from fedrepro.registry import unknown

    if options.model not in MODELS:
        raise UserError(unknown("model", options.model, sorted(MODELS)))
    print(initial.create(initial.definition(options.model, MODELS[options.model], options.classes), options.seed, ROOT))


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.split("x")
    if len(parts) != 3 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise UserError(f"--shape {text}: write channels x height x width, for example 1x28x28")
    channels, height, width = map(int, parts)
    return channels, height, width
