"""All that the workflow knows of a project, made once: it follows from params.yaml, the papers, the registry and our sources.

Composing methods imports torch, so the plans are made by `fedrepro plans` in a separate process and kept in a file; the
workflow's process only reads that file, for as long as nothing that decides its content has changed.
"""

import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fedrepro
from fedrepro import forkclient
from fedrepro.config import scales
from fedrepro.errors import UserError
from fedrepro.files import write_text

CACHE = Path(".snakemake/fedrepro-plans.json")


@dataclass(frozen=True)
class Plans:
    """Plain JSON values."""

    scale: str
    seeds: list[int]  # of params.yaml
    tables: list[str]  # of params.yaml, as paper/table
    device: str  # as params.yaml has it: auto, cpu or cuda
    workers: int  # of params.yaml
    # scale/paper/table -> plan; params.yaml's own scale and tables come first. One with a mistake in it is left out.
    # Of the scales that are published, all with the papers' settings; and params.yaml's scale as edited-<scale>/paper/table too
    # where it has other settings.
    tables_at_scale: dict[str, dict[str, Any]]
    published_seeds: dict[str, list[int]]  # of the scales that are published
    edited: list[str]  # scale/paper, published, of which params.yaml would change some table
    mistakes: dict[str, str]  # paper -> what is wrong with its claims, where something is: its pages are not made
    arrays: dict[str, list[str]]  # run_id -> manifests of its data set, at the native shape and the model's
    drawn: dict[str, list[str]]  # run_id -> the folders of its partition, cohorts, proxy split and initial model
    # kind/artifact -> what it is drawn from, and `native`, the manifest of the arrays whose labels it is drawn from
    definitions: dict[str, dict[str, Any]]

    def require_claims(self, paper: str) -> None:
        """UserError for a paper whose claims have a mistake."""
        if paper in self.mistakes:
            raise UserError(self.mistakes[paper])


def load(params: dict[str, Any]) -> Plans:
    """The plans of the project in this folder, kept or new; `params` is the content of params.yaml.

    UserError for a mistake in params.yaml, in a table that it names, or in the scales or the registry.
    """
    try:
        content = json.dumps(params)
    except TypeError:  # a date, say: `make` names the key and what is wrong with it
        return make(params)
    wanted = key(json.loads(content))
    found = _kept(wanted)
    if found is None:
        # Writes the file. It has said what is wrong when it ends with a user's mistake.
        command = [Path(sys.executable).with_name("fedrepro"), "plans", "--params", content, "--out", str(CACHE)]
        silent = {name: value for name, value in os.environ.items() if name != "FEDREPRO_ERRORS"}  # no job, nothing to repeat
        forkclient.start()  # loads what is imported there anyway; jobs find it loaded
        with suppress(OSError):
            done = subprocess.run(command, env=silent)
            if done.returncode == UserError.exit_code:
                os._exit(done.returncode)
            found = _kept(wanted)
    return found or make(params)


def save(params: dict[str, Any], path: Path) -> None:
    """Makes the plans and writes them where `load` finds them."""
    before = key(params)
    write_text(path, json.dumps({"key": before, "plans": asdict(make(params))}))


def make(params: dict[str, Any]) -> Plans:
    """The plans of the project in this folder. UserError as `load`. Imports torch."""
    from fedrepro.config.project import load_project
    from fedrepro.data.arrays import MANIFEST, arrays_folder
    from fedrepro.engine.artifacts import FOLDERS, definitions
    from fedrepro.engine.spec import RunSpec

    project = load_project(Path(), params)
    chosen = project.params
    every_table = list(dict.fromkeys([*chosen.tables, *project.table_names()]))
    asked = {(chosen.scale, name) for name in chosen.tables}
    published = {name: scale.published_seeds for name, scale in project.scales.items() if scale.published_seeds}
    made: dict[str, dict[str, Any]] = {}
    for scale in dict.fromkeys([chosen.scale, *project.scales]):
        made |= _plans(project.as_published(scale), scale, every_table, asked)
    changed = {scale: _plans(project, scales.edited(scale), every_table, asked) for scale in published}
    edited = _edited(made, changed)
    for name, found in changed.get(chosen.scale, {}).items():
        if f"{chosen.scale}/{found['paper']}" in edited:
            made[name] = found
    runs = {run_id: run for found in made.values() for run_id, run in found["runs"].items()}
    arrays, drawn, artifacts = {}, {}, {}
    for run_id, run in runs.items():
        spec = RunSpec(**run["config"])
        entry = project.registry[spec.dataset]
        shapes = (entry.native_shape, spec.input_shape)
        arrays[run_id] = [str(arrays_folder(Path(), spec.dataset, shape) / MANIFEST) for shape in shapes]
        drawn[run_id] = [f"{FOLDERS[kind]}/{run['inputs'][kind]}" for kind in FOLDERS]
        for kind, definition in definitions(spec, entry).items():
            artifacts[f"{kind}/{run['inputs'][kind]}"] = definition | {"native": arrays[run_id][0]}
    own = (chosen.scale, chosen.seeds, chosen.tables, chosen.device, chosen.workers)
    return Plans(*own, made, published, edited, _mistakes(project), arrays, drawn, artifacts)


def _mistakes(project: Any) -> dict[str, str]:
    from fedrepro.config.named import check_claims

    found = {}
    for paper in dict.fromkeys(name.partition("/")[0] for name in project.table_names()):
        try:
            check_claims(project, paper)
        except UserError as error:
            found[paper] = str(error)
    return found


def _plans(project: Any, scale: str, tables: list[str], asked: set[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """scale/paper/table -> plan. UserError for a mistake in one of `asked`; others with a mistake are left out."""
    from fedrepro.config.grid import plan

    found = {}
    for name in tables:
        paper, _, table = name.partition("/")
        try:
            found[f"{scale}/{name}"] = plan(project, paper, table, scale)
        except UserError:
            if (scales.plain(scale), name) in asked:
                raise
    return found


def _edited(made: dict[str, dict[str, Any]], changed: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """scale/paper where a plan with params.yaml's values is not the published one."""
    found = {}
    for scale, plans in changed.items():
        for name, own in plans.items():
            if own | {"scale": scale} != made.get(scales.plain(name)):
                found[f"{scale}/{own['paper']}"] = None
    return list(found)


def key(params: dict[str, Any]) -> str:
    """A hash of everything that decides the plans."""
    package = Path(fedrepro.__file__).parent
    files = [*package.rglob("*.py"), Path("data/registry.yaml"), *(p for p in Path("papers").rglob("*") if p.is_file())]
    digest = hashlib.sha256(repr([params, sys.version]).encode())
    for path in sorted(files):
        with suppress(OSError):  # one that is missing or unreadable is a mistake that `make` names
            content = path.read_bytes()
            digest.update(f"{path} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _kept(wanted: str) -> Plans | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(CACHE.read_text())
        if content["key"] == wanted:
            return Plans(**content["plans"])
    return None
