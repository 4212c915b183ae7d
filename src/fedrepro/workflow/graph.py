"""For the Snakefile: the files that a target needs, and the configuration of each job.

Only requested targets are planned. `place` is the path from reports/ to a report's name: `full/fedgh/` with the paper's own
settings at that scale, `fedgh/` with params.yaml's, and nothing for FedLAW's.
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml
from snakemake.io import ancient
from snakemake.utils import update_config

from fedrepro import arithmetic
from fedrepro.choices import PUBLISHED, require_known
from fedrepro.config.candidates import merged_seeds
from fedrepro.config.grid import plan
from fedrepro.config.ignored import require_effect, unused_seeds
from fedrepro.config.places import is_figure, paper_and_scale, report_folder, words_of
from fedrepro.config.plan import CONFIGS, Plan, Run
from fedrepro.config.project import Project, load_project, unknown_table
from fedrepro.config.words import check_claims
from fedrepro.cost import needs
from fedrepro.cost.rates import Rates
from fedrepro.data.arrays import ARRAYS, MANIFEST
from fedrepro.engine import cluster, environment, measurements, receipts
from fedrepro.engine.artifacts import FOLDERS, drawn, prepared
from fedrepro.errors import UserError
from fedrepro.files import FLOAT, canonical_hash, content_of, parse_yaml, read_json, sha256_file
from fedrepro.store import Store, is_published, rendered_folders
from fedrepro.workflow import session
from fedrepro.workflow.jobs import Find, forget_deleted, forget_unsynced, jobs, write_configs, write_plan


class Workflow:
    """The project of params.yaml as files and jobs."""

    def __init__(self, project: Project, workflow: Any) -> None:
        self.project, self.store, self.made, self.workflow = project, Store.of(), {}, workflow
        self.tables: list[tuple[str, str]] = []  # those of params.yaml: place, name
        for name in project.params.tables:
            if name not in project.table_names():
                raise UserError(f"params.yaml: tables: {unknown_table(name, project.table_names())}")
            paper, _, table = name.partition("/")
            project.table(paper, table)  # raises UserError if it has an error
            self.tables.append((f"{report_folder(paper, None)}/".removeprefix("reports/"), table))

    @classmethod
    def load(cls, params: dict[str, Any], workflow: Any) -> "Workflow":
        """Makes it from Snakemake's `workflow` and `params`: params.yaml with --config. A user's error prints one line and
        exits with code 2."""
        with session.one_line():
            if workflow.resource_settings.cores == 0:
                raise UserError("--cores 0: no job could start; give 1 or more, or -n for what would run")
            update_config(params, _map_texts(_yaml, workflow.config_settings.config))
            # 1e-3 is a number, which Snakemake's reader takes for text.
            params |= _map_texts(lambda text: float(text) if FLOAT.match(text) else text, params)
            session.prepare(arithmetic.chosen(params.get("arithmetic")))
            if workflow.is_main_process:
                session.claim()
                forget_unsynced()
            with _naming_config(workflow.config_settings):
                project = load_project(Path(), params)
                if workflow.is_main_process:
                    forget_deleted(project)
                return cls(project, workflow)

    @cached_property
    def device(self) -> str:
        """The device of trainings, see `device_for_jobs`. Snakemake must have begun its graph."""
        with session.one_line():
            return cluster.device_for_jobs(self.project.params.device, cluster.elsewhere(self.workflow), self.workflow.dryrun)

    @cached_property
    def rates(self) -> Rates:
        """The durations of trainings, on this processor unless jobs run on other machines."""
        return Rates(Path(), self.project.registry, None if self.workflow.non_local_exec else environment._processor())

    @property
    def workers(self) -> int:
        """The processes of a training."""
        return self.project.params.workers if self.device == "cpu" else 1

    def needs(self, run_id: str, seeds: str) -> needs.Needs:
        """Returns the memory and time that a job on another machine requests at its first attempt; nothing if jobs run here."""
        if not self.workflow.non_local_exec:
            return needs.Needs()
        config = _job_config(run_id)["config"]
        return needs.of(self.rates, config, self.device, len(seeds.split("-")), self.workers)

    def foreseen(self, choices: Iterable[tuple[str, str]]) -> dict[str, dict[int, None]]:
        """Returns run_id -> the seeds that these tables will ask for once their candidates are chosen.

        Where trials are missing, the first candidate counts as the chosen one.
        """
        from fedrepro.exhibits.exhibit import Exhibit  # imported here: few workflows have tuned tables

        exhibits = [Exhibit.of(self.plan(*place), self.store) for place in choices]
        seeds_by_run = merged_seeds(run_seeds for exhibit in exhibits for run_seeds in exhibit.seeds_by_run.items())
        return {run_id: dict.fromkeys(seeds) for run_id, seeds in seeds_by_run.items()}

    def plan(self, place: str, table: str, alone: bool = True) -> Plan:
        """Returns the plan of one table and writes it to results/plans with what its jobs need to know of its runs.

        An unknown table, or one with an error, ends the process as `load` does. With `alone`, so does an edit of params.yaml
        that has no effect in it.
        """
        if (place, table) not in self.made:
            with session.one_line():
                paper, scale = paper_and_scale(place)
                project = self.project.as_published(scale) if scale else self.project
                table_plan = plan(project, paper, table, scale or project.params.scale)
                require_effect(project, [table_plan] if alone else [])
                if alone and (line := unused_seeds(project, table_plan)) and self.workflow.is_main_process:
                    print(f"fedrepro: {line}", file=sys.stderr, flush=True)
                write_plan(place, table_plan)
                write_configs(project, table_plan)
            self.made[place, table] = table_plan
        return self.made[place, table]

    def plan_file(self, place: str, table: str) -> str:
        """Writes that plan and returns its path."""
        return str(write_plan(place, self.plan(place, table)))

    def evidence(self, place: str, table: str, checkpoints: Any) -> list[str]:
        """Returns the files that a report is rendered from; of a tuned table, once Snakemake's `checkpoints` have its
        choice."""
        table_plan = self.plan(place, table)
        seeds_by_run: dict[str, Any] = table_plan.seeds_by_run  # type: ignore[assignment]
        if table_plan.candidates:
            seeds_by_run = read_json(Path(checkpoints.choice.get(place=place, table=table).output[0]))["seeds_by_run"]
        diagnostics = dict.fromkeys((cell.run_id or "", cell.diagnostic) for cell in table_plan.planned)
        measured = [path for run_id, call in diagnostics if call for path in self._measurements(table_plan, run_id, call)]
        results = [path for run_id, seeds in seeds_by_run.items() for path in self.results(table_plan.runs[run_id], seeds)]
        return results + measured

    def trials(self, place: str, table: str) -> list[str]:
        """Returns the evidence that decides between the candidates of a tuned table."""
        table_plan = self.plan(place, table)
        trials = dict.fromkeys((candidate.trial.run_id, candidate.trial.seeds) for candidate in table_plan.candidates)
        return [path for run_id, seeds in trials for path in self.results(table_plan.runs[run_id], seeds)]

    def results(self, run: Run, seeds: Iterable[int]) -> list[str]:
        """Returns published evidence of these seeds, a source, and the jobs of seeds that are missing or of other code."""

        def fresh(seed: int) -> Path | None:
            return find(seed) if receipts.fresh(Path(), run.run_id, seed, run.config) else None

        find = partial(self.store.find, run.run_id)
        return self._published_and_jobs(receipts.RUNS / run.run_id, seeds, find, fresh)

    def published(self, place: str, tables: Sequence[str] = ()) -> str:
        """Returns a hash of the published files that these reports, or all of the paper, may read: git or a backup may restore
        other content with an older time. It follows from the plans alone, since Snakemake does not store a parameter that is
        made from a job's inputs."""
        names = tables or self.project.tables_of(paper_and_scale(place)[0])
        plans = [self.plan(place, table, alone=bool(tables)) for table in names]
        runs_at_seeds = [(run, seed) for table_plan in plans for run in table_plan.runs.values() for seed in table_plan.seeds]
        files = {self.store.find(run.run_id, seed) for run, seed in runs_at_seeds}
        with session.one_line():
            for run, seed in runs_at_seeds:
                files |= {self.store.measured(run.run_id, call, seed, rounds) for call, rounds in run.measures.items()}
        return content_of(path for path in files if path and is_published(path))

    def _measurements(self, table_plan: Plan, run_id: str, call: str) -> list[str]:
        """Returns the published measurements of a diagnostic, and the jobs that measure the others."""
        find = partial(self.store.measured, run_id, call, rounds=table_plan.runs[run_id].measures[call])
        with session.one_line():
            folder = measurements.DIAGNOSTICS / run_id / measurements.folder(call)
            return self._published_and_jobs(folder, table_plan.seeds, find, find)

    def _published_and_jobs(self, folder: Path, seeds: Iterable[int], find: Find, find_job_result: Find) -> list[str]:
        """Returns what is published of these seeds, and the jobs of the others; `find_job_result` finds the results of jobs."""
        published_paths = {seed: str(path) for seed in seeds if (path := find(seed)) and is_published(path)}
        unpublished = [seed for seed in seeds if seed not in published_paths]
        return [*published_paths.values(), *self._jobs(folder, unpublished, find_job_result)]

    def _jobs(self, folder: Path, seeds: Sequence[int], find: Find, force: bool = True) -> list[str]:
        """Returns the jobs; `force` makes Snakemake run those without results: it would not make a missing file again if the
        report exists."""
        markers = jobs(folder, seeds, find, look=self.workflow.remote_exec)
        if force and not self.workflow.remote_exec:
            self.workflow.dag.forcefiles.update(marker for marker in markers if not Path(marker).exists())
        return markers

    def measures(self, run_id: str, folder: str) -> tuple[str, list[int]]:
        """Returns the diagnostic behind the name of its folder, and the rounds that tables read of it."""
        rounds_by_call = _job_config(run_id)["measures"]
        return next(item for item in rounds_by_call.items() if measurements.folder(item[0]) == folder)

    def settled(self, paths: Iterable[str]) -> list[Any]:
        """Returns inputs as `ancient`. Not if the command forces what makes them (`-R draw`): behind a forced job Snakemake
        drops all jobs that such inputs lead to, also those whose outputs are missing."""
        forced, paths = self.workflow.dag_settings.forcerun, list(paths)
        named = {*forced} if isinstance(forced, set | frozenset) else set()
        return [*paths] if named & {"arrays", "draw", *paths} else [ancient(path) for path in paths]

    def inputs_of(self, run_id: str, seeds: Sequence[int]) -> list[str]:
        """Returns all files that one run reads for these seeds."""
        inputs = _job_config(run_id)["inputs"]
        drawn = [path for kind in FOLDERS for path in self.drawn(kind, inputs[kind], seeds)]
        return [f"{inputs['arrays']}/manifest.json", *drawn, *self._ahead(run_id, seeds)]

    def _ahead(self, run_id: str, seeds: Sequence[int]) -> list[str]:
        """Returns the jobs of the run that trains the shared rounds of this one; [] if published."""
        for table_plan in self.made.values():
            if run_id in table_plan.runs and (first := table_plan.runs[run_id].ahead) in table_plan.seeds_by_run:
                paths, seed_names = self.results(table_plan.runs[first], table_plan.seeds_by_run[first]), {*map(str, seeds)}
                return [path for path in paths if "/jobs/" in path and seed_names & {*Path(path).name.split("-")}]
        return []

    def drawn(self, kind: str, artifact: str, seeds: Sequence[int]) -> list[str]:
        """Returns the jobs that draw an artifact for these seeds."""
        return self._jobs(FOLDERS[kind] / artifact, seeds, lambda seed: drawn(kind, artifact, seed), force=False)

    def native(self, drawn: str, artifact: str) -> str:
        """Returns the arrays whose labels an artifact is drawn from."""
        return _job_config(f"{drawn}/{artifact}")["native"]

    def forget_outdated(self, dataset: str, shape: str) -> list[str]:
        """Deletes the manifest of arrays that were made from another entry of the registry, so that a job that needs them has
        them prepared again. Returns the inputs of that preparation: none. An unknown data set ends the process as `load`
        does."""
        folder = ARRAYS / dataset / shape
        with session.one_line():
            if not self.workflow.remote_exec and not prepared(self.project.registry[dataset], folder):
                (folder / MANIFEST).unlink(missing_ok=True)
        return []

    def reports(self, table: str = "md", figure: str = "svg") -> list[str]:
        """Lists reports of params.yaml's tables and figures under their short names, with these endings; "" leaves them out."""
        reports = ((place, name, figure if is_figure(name) else table) for place, name in self.tables)
        return [f"reports/{place}{name}.{ending}" for place, name, ending in reports if ending]

    def trained(self, checkpoints: Any) -> list[str]:
        """Lists the trainings' files that params.yaml's tables need."""
        return list(dict.fromkeys(path for place in self.tables for path in self.evidence(*place, checkpoints)))

    def inputs(self, drawn: bool = True) -> list[str]:
        """Lists all that is drawn for the runs that params.yaml's tables may ask for; or else the data sets, at the native
        shape and the model's."""
        plans = [self.plan(*place) for place in self.tables]
        runs = [(run, table_plan.seeds) for table_plan in plans for run in table_plan.runs.values()]
        if not drawn:
            sets = {run.inputs["partition"]: run.inputs["arrays"] for run, _ in runs}
            path_lists = [(f"{arrays}/manifest.json", self.native("partitions", drawn)) for drawn, arrays in sets.items()]
        else:
            path_lists = [self.drawn(kind, run.inputs[kind], seeds) for run, seeds in runs for kind in FOLDERS]
        return list(dict.fromkeys(path for paths in path_lists for path in paths))

    def page(self, place: str) -> dict[str, list[str]]:
        """Returns what a paper's page is rendered from: plans of all tables and figures, evidence, and what is said beside the
        numbers.

        Under a short name it needs the reports of all tables, and trains their runs. A page below a scale never trains: it uses
        the evidence that exists when the workflow starts. Claims with an error end the process as `load` does.
        """
        paper, scale = paper_and_scale(place)
        with session.one_line():
            require_known(f"reports/{place}index.html", "paper", paper, self.project.papers_with_tables)
        tables = self.project.tables_of(paper)
        plans = [self.plan(place, table, alone=False) for table in tables]
        with session.one_line():
            require_effect(self.project, [] if scale else plans)
            check_claims(self.project, paper)
        runs_and_seeds = [(table_plan.runs, table_plan.seeds) for table_plan in plans]
        runs_at_seeds = dict.fromkeys((run_id, seed) for runs, seeds in runs_and_seeds for run_id in runs for seed in seeds)
        evidence = [str(path) for run_id, seed in runs_at_seeds if (path := self.store.find(run_id, seed))] if scale else []
        return {
            "evidence": evidence if scale else [f"reports/{place}{table}.json" for table in tables],
            "plans": [str(write_plan(place, table_plan)) for table_plan in plans],
            "words": [str(path) for path in words_of(paper) if path.exists()],
        }

    def rendered(self, place: str) -> str:
        """Changes whenever the report of one of the paper's tables does; a page links those that say the same as itself.

        The reports are no inputs of the page: otherwise a request for the page would render and track every table again.
        """
        paths = [Path(f"reports/{place}{table}.json") for table in self.project.tables_of(paper_and_scale(place)[0])]
        return canonical_hash([sha256_file(path) if path.exists() else None for path in paths])

    def pages(self, scales: Sequence[str] = ("demo", *PUBLISHED)) -> list[str]:
        """Lists the pages of these scales for which reports exist."""
        return [f"{folder}/index.json" for folder in rendered_folders(self.project.papers_with_tables, scales)]


@contextlib.contextmanager
def _naming_config(settings: Any) -> Iterator[None]:
    """Blames a mistake in params.yaml on --configfile and --config too, which may have put its value in place."""
    given = [f"--configfile {' '.join(map(str, settings.configfiles))}"] if settings.configfiles else []
    given += [f"--config {' '.join(settings.config)}"] if settings.config else []
    try:
        yield
    except UserError as error:
        if given and str(error).startswith("params.yaml: "):
            raise UserError(f"params.yaml with {' and '.join(given)}{str(error).removeprefix('params.yaml')}") from error
        raise


def _job_config(name: str) -> Any:
    """Returns the configuration of the run or the artifact `name`. An unknown name ends the process as `load` does."""
    path = CONFIGS / f"{name}.json"
    with session.one_line():
        if not path.exists():
            raise UserError(f"{path}: no such file: no report that was asked for here needs {name}; ask for a report")
        return read_json(path)


def _map_texts(read: Callable[[str], Any], value: Any) -> Any:
    """Returns the value with `read` of every text in it."""
    if isinstance(value, dict):
        return {key: _map_texts(read, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_texts(read, item) for item in value]
    return read(value) if isinstance(value, str) else value


def _yaml(text: str) -> Any:
    """Reads a value of --config as params.yaml has it: Snakemake leaves what is inside lists and mappings as text."""
    with contextlib.suppress(yaml.YAMLError):  # what is none says so where it is read
        return parse_yaml(text)
    return text
