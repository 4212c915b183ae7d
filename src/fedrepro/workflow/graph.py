"""What the Snakefile asks: which files a target needs, and what each job is told.

A target is planned when it is asked for, and nothing else is. `place` is what stands before a report's name below reports/:
`full/fedgh/` with the paper's own settings at that scale, `fedgh/` with params.yaml's, and nothing for FedLAW's.
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml
from snakemake.utils import update_config

from fedrepro import arithmetic
from fedrepro.choices import PUBLISHED, require_known
from fedrepro.config.grid import plan
from fedrepro.config.ignored import require_effect, unused_seeds
from fedrepro.config.places import is_figure, paper_and_scale, report_folder, words_of
from fedrepro.config.plan import Plan, Run
from fedrepro.config.project import Project, load_project
from fedrepro.config.words import check_claims
from fedrepro.cost import needs
from fedrepro.cost.rates import Rates
from fedrepro.engine import cluster, environment, measurements, receipts
from fedrepro.engine.artifacts import FOLDERS, drawn
from fedrepro.errors import UserError
from fedrepro.files import FLOAT, canonical_hash, content_of, read_json, sha256_file
from fedrepro.store import Store, is_published, rendered_folders
from fedrepro.workflow import session
from fedrepro.workflow.jobs import CONFIGS, Find, forget_unsynced, jobs, write_configs, write_plan


class Workflow:
    """The project of params.yaml, seen as files."""

    def __init__(self, project: Project, workflow: Any) -> None:
        self.project, self.store, self.made, self.workflow = project, Store.of(), {}, workflow
        self.tables: list[tuple[str, str]] = []  # those of params.yaml: place, name
        for paper, _, table in (name.partition("/") for name in project.params.tables):
            project.table(paper, table)  # which says what is wrong with it
            self.tables.append((f"{report_folder(paper, None)}/".removeprefix("reports/"), table))

    @classmethod
    def load(cls, params: dict[str, Any], workflow: Any) -> "Workflow":
        """Of Snakemake's `workflow` and its `params`, params.yaml with --config. A mistake is one line and exit code 2."""
        with session.one_line():
            if workflow.resource_settings.cores == 0:
                raise UserError("--cores 0: no job could start; give 1 or more, or -n for what would run")
            update_config(params, _each(_yaml, workflow.config_settings.config))
            # 1e-3 is a number, which Snakemake's reader takes for text.
            params |= _each(lambda text: float(text) if FLOAT.match(text) else text, params)
            session.prepare(arithmetic.chosen(params.get("arithmetic")))
            if workflow.is_main_process:
                session.claim()
                forget_unsynced()
            with _naming(workflow.config_settings.config):
                return cls(load_project(Path(), params), workflow)

    @cached_property
    def device(self) -> str:
        """What a training is told; see `device_for_jobs`. Known once Snakemake makes its graph."""
        with session.one_line():
            return cluster.device_for_jobs(self.project.params.device, cluster.elsewhere(self.workflow), self.workflow.dryrun)

    @cached_property
    def rates(self) -> Rates:
        """What trainings take; on this processor, unless jobs run on other machines."""
        return Rates(Path(), self.project.registry, None if self.workflow.non_local_exec else environment._processor())

    @property
    def workers(self) -> int:
        """The processes of a training."""
        return self.project.params.workers if self.device == "cpu" else 1

    def needs(self, run_id: str, seeds: str) -> needs.Needs:
        """What a job on another machine asks for at its first attempt; nothing where jobs run here."""
        if not self.workflow.non_local_exec:
            return needs.Needs()
        config = _told(run_id)["config"]
        return needs.of(self.rates, config, self.device, len(seeds.split("-")), self.workers)

    def foreseen(self, choices: Iterable[tuple[str, str]]) -> dict[str, dict[int, None]]:
        """run_id -> the seeds that these tables will ask for once their candidates are chosen.

        Where trials are missing, the first candidate counts as the chosen one.
        """
        from fedrepro.exhibits.exhibit import Exhibit  # here, since few workflows have a choice to make

        exhibits = [Exhibit.of(self.plan(*place), self.store) for place in choices]
        return {run_id: dict.fromkeys(one.plan.seeds) for one in exhibits for run_id in one.following}

    def plan(self, place: str, table: str, alone: bool = True) -> Plan:
        """The plan of one table, which is written to results/plans with what its jobs need to know of its runs.

        One that is unknown, or has a mistake in it, ends the process as `load` does; asked for `alone`, an edit of params.yaml
        that changes nothing in it does, too.
        """
        if (place, table) not in self.made:
            with session.one_line():
                paper, scale = paper_and_scale(place)
                project = self.project.as_published(scale) if scale else self.project
                made = plan(project, paper, table, scale or project.params.scale)
                require_effect(project, [made] if alone else [])
                if alone and (line := unused_seeds(project, made)) and self.workflow.is_main_process:
                    print(f"fedrepro: {line}", file=sys.stderr, flush=True)
                write_plan(place, made)
                write_configs(project, made)
            self.made[place, table] = made
        return self.made[place, table]

    def plan_file(self, place: str, table: str) -> str:
        """Where that plan is; it is there once this is asked."""
        return str(write_plan(place, self.plan(place, table)))

    def evidence(self, place: str, table: str, checkpoints: Any) -> list[str]:
        """What one report is rendered from; of a tuned table, once Snakemake's `checkpoints` have its choice."""
        made = self.plan(place, table)
        asked: dict[str, Any] = made.seeds_by_run  # type: ignore[assignment]
        if made.candidates:
            asked = read_json(Path(checkpoints.choice.get(place=place, table=table).output[0]))["seeds_by_run"]
        called = dict.fromkeys((cell.run_id or "", cell.diagnostic) for cell in made.planned)
        measured = [path for run_id, call in called if call for path in self._measured(made, run_id, call)]
        return [path for run_id, seeds in asked.items() for path in self.results(made.runs[run_id], seeds)] + measured

    def trials(self, place: str, table: str) -> list[str]:
        """The evidence that the candidates of a tuned table are chosen by."""
        made = self.plan(place, table)
        tried = dict.fromkeys((one.trial.run_id, one.trial.seeds) for one in made.candidates)
        return [path for run_id, seeds in tried for path in self.results(made.runs[run_id], seeds)]

    def results(self, run: Run, seeds: Iterable[int]) -> list[str]:
        """Published evidence of these seeds, a source, and the jobs of those that are missing or that other code made."""

        def fresh(seed: int) -> Path | None:
            return find(seed) if receipts.fresh(Path(), run.run_id, seed, run.config) else None

        find = partial(self.store.find, run.run_id)
        return self._public(receipts.RUNS / run.run_id, seeds, find, fresh)

    def published(self, place: str, tables: Sequence[str] = ()) -> str:
        """What the published files hold that these reports, or all of the paper, may read: git or a backup may bring another
        content with an older time. Told from the plans alone, since of a parameter that is made from a job's inputs Snakemake
        forgets the value."""
        names = tables or self.project.tables_of(paper_and_scale(place)[0])
        plans = [self.plan(place, table, alone=bool(tables)) for table in names]
        asked = [(run, seed) for made in plans for run in made.runs.values() for seed in made.seeds]
        files = {self.store.find(run.run_id, seed) for run, seed in asked}
        with session.one_line():
            for run, seed in asked:
                files |= {self.store.measured(run.run_id, call, seed, rounds) for call, rounds in run.measures.items()}
        return content_of(path for path in files if path and is_published(path))

    def _measured(self, made: Plan, run_id: str, call: str) -> list[str]:
        """What a diagnostic leaves: published, or the jobs that measure it."""
        find = partial(self.store.measured, run_id, call, rounds=made.runs[run_id].measures[call])
        with session.one_line():
            return self._public(measurements.DIAGNOSTICS / run_id / measurements.folder(call), made.seeds, find, find)

    def _public(self, folder: Path, seeds: Iterable[int], find: Find, own: Find) -> list[str]:
        """What is published of these seeds, and the jobs of the others; `own` finds what they have made."""
        public = {seed: str(path) for seed in seeds if (path := find(seed)) and is_published(path)}
        return [*public.values(), *self._jobs(folder, [seed for seed in seeds if seed not in public], own)]

    def _jobs(self, folder: Path, seeds: Sequence[int], find: Find, force: bool = True) -> list[str]:
        """With `force` those that lack results: Snakemake does not make a missing file again below a report that is there."""
        found = jobs(folder, seeds, find, look=self.workflow.remote_exec)
        if force and not self.workflow.remote_exec:
            self.workflow.dag.forcefiles.update(marker for marker in found if not Path(marker).exists())
        return found

    def measures(self, run_id: str, folder: str) -> tuple[str, list[int]]:
        """The diagnostic behind the name of its folder, and the rounds that tables read of it."""
        known = _told(run_id)["measures"]
        return next(one for one in known.items() if measurements.folder(one[0]) == folder)

    def inputs_of(self, run_id: str, seeds: Sequence[int]) -> list[str]:
        """All that one run reads for these seeds."""
        inputs = _told(run_id)["inputs"]
        drawn = [path for kind in FOLDERS for path in self.drawn(kind, inputs[kind], seeds)]
        return [f"{inputs['arrays']}/manifest.json", *drawn, *self._ahead(run_id, seeds)]

    def _ahead(self, run_id: str, seeds: Sequence[int]) -> list[str]:
        """The jobs of the run that trains the rounds which this one shares with others of its plan, unless it is published."""
        for made in self.made.values():
            if run_id in made.runs and (first := made.runs[run_id].ahead) in made.seeds_by_run:
                found, wanted = self.results(made.runs[first], made.seeds_by_run[first]), {*map(str, seeds)}
                return [path for path in found if "/jobs/" in path and wanted & {*Path(path).name.split("-")}]
        return []

    def drawn(self, kind: str, artifact: str, seeds: Sequence[int]) -> list[str]:
        """The jobs that draw an artifact for these seeds."""
        return self._jobs(FOLDERS[kind] / artifact, seeds, lambda seed: drawn(kind, artifact, seed), force=False)

    def native(self, drawn: str, artifact: str) -> str:
        """The arrays whose labels an artifact is drawn from."""
        return _told(f"{drawn}/{artifact}")["native"]

    def reports(self, table: str = "md", figure: str = "svg") -> list[str]:
        """Of params.yaml's tables and figures under their short names, with these endings; "" leaves them out."""
        each = ((place, name, figure if is_figure(name) else table) for place, name in self.tables)
        return [f"reports/{place}{name}.{ending}" for place, name, ending in each if ending]

    def trained(self, checkpoints: Any) -> list[str]:
        """What params.yaml's tables need of trainings."""
        return list(dict.fromkeys(path for place in self.tables for path in self.evidence(*place, checkpoints)))

    def inputs(self, drawn: bool = True) -> list[str]:
        """All that is drawn for the runs that params.yaml's tables may ask for; or else the data sets, at the native shape and
        the model's."""
        plans = [self.plan(*place) for place in self.tables]
        runs = [(run, made.seeds) for made in plans for run in made.runs.values()]
        if not drawn:
            sets = {run.inputs["partition"]: run.inputs["arrays"] for run, _ in runs}
            found = [(f"{arrays}/manifest.json", self.native("partitions", drawn)) for drawn, arrays in sets.items()]
        else:
            found = [self.drawn(kind, run.inputs[kind], seeds) for run, seeds in runs for kind in FOLDERS]
        return list(dict.fromkeys(path for paths in found for path in paths))

    def page(self, place: str) -> dict[str, list[str]]:
        """What a paper's page is rendered from: plans of all tables and figures, evidence, and what is said beside the numbers.

        Under a short name it is the reports of all tables, with all that they train. A page below a scale never trains: it has
        the evidence that is there when the workflow starts. Mistaken claims end the process as `load` does.
        """
        paper, scale = paper_and_scale(place)
        with session.one_line():
            require_known(f"reports/{place}index.html", "paper", paper, self.project.papers_with_tables)
        tables = self.project.tables_of(paper)
        plans = [self.plan(place, table, alone=False) for table in tables]
        with session.one_line():
            require_effect(self.project, [] if scale else plans)
            check_claims(self.project, paper)
        asked = dict.fromkeys((run_id, seed) for made in plans for run_id in made.runs for seed in made.seeds)
        there = [str(path) for run_id, seed in asked if (path := self.store.find(run_id, seed))] if scale else []
        return {
            "evidence": there if scale else [f"reports/{place}{table}.json" for table in tables],
            "plans": [str(write_plan(place, made)) for made in plans],
            "words": [str(path) for path in words_of(paper) if path.exists()],
        }

    def rendered(self, place: str) -> str:
        """Changes whenever the report of one of the paper's tables does; a page links those that say the same as itself.

        No input of the page: then asking for the page would render, and track, every table anew.
        """
        paths = [Path(f"reports/{place}{table}.json") for table in self.project.tables_of(paper_and_scale(place)[0])]
        return canonical_hash([sha256_file(path) if path.exists() else None for path in paths])

    def pages(self, scales: Sequence[str] = ("demo", *PUBLISHED)) -> list[str]:
        """The pages of these scales that there is something to show on."""
        return [f"{folder}/index.json" for folder in rendered_folders(self.project.papers_with_tables, scales)]


@contextlib.contextmanager
def _naming(given: Mapping[str, Any]) -> Iterator[None]:
    """What is wrong with params.yaml may be wrong with what --config has put in its place."""
    try:
        yield
    except UserError as error:
        if given and str(error).startswith("params.yaml: "):
            raise UserError(f"params.yaml with --config {' '.join(given)}{str(error).removeprefix('params.yaml')}") from error
        raise


def _told(name: str) -> Any:
    """What a job is told of the run or the artifact of this name. One that is unknown ends the process as `load` does."""
    path = CONFIGS / f"{name}.json"
    with session.one_line():
        if not path.exists():
            raise UserError(f"{path}: no such file: no report that was asked for here needs {name}; ask for a report")
        return read_json(path)


def _each(read: Callable[[str], Any], value: Any) -> Any:
    """The value with `read` of every text in it."""
    if isinstance(value, dict):
        return {key: _each(read, one) for key, one in value.items()}
    if isinstance(value, list):
        return [_each(read, one) for one in value]
    return read(value) if isinstance(value, str) else value


def _yaml(text: str) -> Any:
    """A value of --config as params.yaml would have it: Snakemake leaves what is inside lists and mappings as text."""
    with contextlib.suppress(yaml.YAMLError):  # what is none says so where it is read
        return yaml.safe_load(text)
    return text
