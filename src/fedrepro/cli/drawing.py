"""fedrepro data | draw | versioned: prepares arrays and draws partitions, cohorts, proxy splits and initial models once;
prints the files."""

import contextlib
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.console import say
from fedrepro.errors import UserError
from fedrepro.files import content_of, read_json, write_text

if TYPE_CHECKING:
    from fedrepro.config.plan import Run
    from fedrepro.config.project import Project


def data(options: Namespace) -> None:
    """Without --shape also prepares the other shapes again that were made from another entry of the registry."""
    from fedrepro.data.arrays import ARRAYS, MANIFEST
    from fedrepro.data.prepare import prepare
    from fedrepro.data.registry import REGISTRY, load_registry
    from fedrepro.engine.artifacts import prepared

    folder = prepare(options.dataset, _shape(options.shape) if options.shape else None, Path(), options.mirror)
    counts = read_json(folder / MANIFEST)["counts"]
    say(f"{options.dataset}: {counts['train']:,} samples to train on, {counts['test']:,} to test on")
    print(folder)
    entry = load_registry(REGISTRY)[options.dataset]
    for other in sorted((ARRAYS / options.dataset).glob("[!.]*")):
        if not (options.shape or prepared(entry, other)):
            with contextlib.suppress(UserError):  # a shape that today's entry does not have, which no run asks for
                print(prepare(options.dataset, _shape(other.name), Path(), options.mirror))


def draw(options: Namespace) -> None:
    """Draws what a file of results/configs defines."""
    from fedrepro.engine.artifacts import MODULES

    content = read_json(options.definition)
    of_kind = isinstance(content, dict) and content.get("kind") in [*MODULES]
    if not of_kind or not isinstance(content.get("definition"), dict):
        raise UserError(f"{options.definition}: defines nothing that is drawn; snakemake writes such files to results/configs")
    manifests = draw_seeds(content["kind"], content["definition"], options.seeds)
    print(*manifests, sep="\n")
    if options.done:
        write_text(options.done, content_of(manifests))


def draw_seeds(kind: str, definition: dict[str, Any], seeds: list[int], root: Path = Path()) -> list[Path]:
    """Draws the seeds that are missing or incomplete, and renews partitions that other code drew. Returns all manifests."""
    from fedrepro.engine.artifacts import FOLDERS, MODULES, drawn

    artifact = MODULES[kind].artifact_id(definition)
    for seed in seeds:
        if drawn(kind, artifact, seed, root) is None:
            MODULES[kind].create(definition, seed, root)
        elif kind == "partition":
            MODULES[kind].renew(root, artifact, seed)
    return [root / FOLDERS[kind] / artifact / f"seed{seed}.json" for seed in seeds]


def draw_missing(project: "Project", run: "Run", seeds: list[int]) -> None:
    """Draws what a run by hand lacks; under Snakemake its rules do the same. Arrays of both shapes, if they are missing or of
    another entry of the registry, then partition, participation, proxy split and initial model of every seed."""
    from fedrepro.data.arrays import arrays_folder
    from fedrepro.data.prepare import prepare
    from fedrepro.engine.artifacts import definitions, prepared
    from fedrepro.engine.spec import RunSpec

    spec = RunSpec(**run.config)
    entry = project.registry[spec.dataset]
    for shape in dict.fromkeys([entry.native_shape, spec.input_shape]):
        if not prepared(entry, arrays_folder(project.root, spec.dataset, shape)):
            prepare(spec.dataset, shape, project.root)
    for kind, definition in definitions(spec, entry).items():
        draw_seeds(kind, definition, seeds, project.root)


def _shape(text: str) -> tuple[int, ...]:
    parts = text.split("x")
    if len(parts) not in (1, 3) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UserError(
            f"--shape {text}: write channels x height x width, for example 1x28x28, or for text the length of its windows, 80"
        )
    return tuple(map(int, parts))


def versioned(_: Namespace) -> None:
    """Says where the links are that the last step of the DVC stage makes."""
    from fedrepro.versioned import store

    print(store())
