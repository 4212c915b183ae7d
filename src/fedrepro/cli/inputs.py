"""Draws the artifacts that a run by hand lacks; under Snakemake its rules do the same."""

import os

from fedrepro.cli.drawing import draw_seeds
from fedrepro.config.plan import Run
from fedrepro.config.project import Project
from fedrepro.data.arrays import MANIFEST, arrays_folder
from fedrepro.data.prepare import prepare
from fedrepro.engine.artifacts import definitions
from fedrepro.engine.spec import RunSpec


def draw_missing(project: Project, run: Run, seeds: list[int]) -> None:
    """Arrays of both shapes, then partition, participation, proxy split and initial model of every seed."""
    spec = RunSpec(**run.config)
    entry = project.registry[spec.dataset]
    for shape in dict.fromkeys([entry.native_shape, spec.input_shape]):
        if not (arrays_folder(project.root, spec.dataset, shape) / MANIFEST).exists():
            prepare(spec.dataset, shape, project.root, os.environ.get("FEDREPRO_MIRROR") or None)
    for kind, definition in definitions(spec, entry).items():
        draw_seeds(kind, definition, seeds, project.root)
