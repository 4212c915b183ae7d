"""What the Snakefile asks: which files a target needs, and what each job is told.

A target is planned when it is asked for, and nothing else is. `place` is what stands before a report's name below reports/:
`full/fedgh/` with the paper's own settings at that scale, `fedgh/` with params.yaml's, and nothing for FedLAW's.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrepro import arithmetic
from fedrepro.config import named
from fedrepro.config.grid import plan
from fedrepro.config.ignored import require_effect
from fedrepro.config.places import is_figure, report_folder
from fedrepro.config.plan import Plan, Run
from fedrepro.config.project import Project, load_project
from fedrepro.engine import diagnosed, receipts
from fedrepro.engine.artifacts import FOLDERS, drawn
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, sha256_file
from fedrepro.store import PUBLISHED, Store, is_published
from fedrepro.workflow import cluster, needs, session
from fedrepro.workflow.jobs import CONFIGS, jobs, write_configs, write_plan


class Workflow:
    """The project of params.yaml, seen as files."""

    def __init__(self, project: Project, workflow: Any) -> None:
        self.project, self.store, self.made, self.workflow = project, Store.of(), {}, workflow
        self.tables: list[tuple[str, str]] = []  # those of params.yaml: place, name
        for paper, table in (name.split("/") for name in project.params.tables):
            project.table(paper, table)  # which says what is wrong with it
            self.tables.append((f"{report_folder(paper, None)}/".removeprefix("reports/"), table))

    @classmethod
    def load(cls, params: dict[str, Any], workflow: Any) -> "Workflow":
        """Snakemake's `workflow` of `params` (params.yaml with --config merged in). A mistake ends the process: one line, exit
        code 2."""
        with session.one_line():
            session.prepare(arithmetic.chosen(params.get("arithmetic")), workflow.remote_exec)
            return cls(load_project(Path(), params), workflow)

    @property
    def device(self) -> str:
        """What a training is told; see `device_for_jobs`. Known once Snakemake makes its graph."""
        return self._device[0]

    @property
    def gpus_per_run(self) -> int:
        """How many GPUs a training asks for."""
        return self._device[1]

    @property
    def workers(self) -> int:
        """The processes of a training."""
        return self.project.params.workers if self.device == "cpu" else 1

    @cached_property
    def _device(self) -> tuple[str, int]:
        with session.one_line():
            return cluster.device_for_jobs(self.project.params.device, self.elsewhere, self.workflow.dryrun)

    @property
    def elsewhere(self) -> bool:
        """Whether jobs run on other machines."""
        return cluster.elsewhere(self.workflow)

    def needs(self, run_id: str, seeds: str, attempt: int) -> needs.Needs:
        """Memory and time that a job on another machine asks for, at its first, second, ... attempt; elsewhere no matter."""
        if not self.workflow.non_local_exec:
            return needs.Needs(0, 0)
        embedded, found = self._took(run_id)
        took = found or (needs.EMBEDDED if embedded else needs.UNKNOWN)
        return needs.of(*took, len(seeds.split("-")), self.workers).at(attempt)

    def group(self, run_id: str, seeds: str) -> str | None:
        """The trainings on other machines that share a job, since starting one takes longer; None for the others."""
        if not self.workflow.non_local_exec or self.device == "cuda":
            return None
        embedded, found = self._took(run_id)
        short = found[0] * len(seeds.split("-")) < needs.SHORT_S if found else embedded
        return "short" if short else None

    def seconds(self, run_id: str, seeds: str) -> float | None:
        """What such a training took where it is published; None where none of its kind is."""
        _, found = self._took(run_id)
        return found and found[0] * len(seeds.split("-"))

    def _took(self, run_id: str) -> tuple[bool, tuple[float, float] | None]:
        """(whether its data need no download, seconds and MiB of a published seed of its kind)."""
        config = read_json(CONFIGS / f"{run_id}.json")["config"]
        return not self.project.registry[config["dataset"]].urls, needs.seed(config, self.device)

    def plan(self, place: str, table: str, alone: bool = True) -> Plan:
        """The plan of one table, which is written to results/plans with what its jobs need to know of its runs.

        One that is unknown, or has a mistake in it, ends the process as `load` does; asked for `alone`, an edit of params.yaml
        that changes nothing in it does, too.
        """
        if (place, table) not in self.made:
            paper, scale = _parts(place)
            with session.one_line():
                project = self.project.as_published(scale) if scale else self.project
                made = plan(project, paper, table, scale or project.params.scale)
                require_effect(project, [made] if alone else [])
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
        asked: dict[str, Any] = made.asked  # type: ignore[assignment]
        if made.candidates:
            asked = read_json(Path(checkpoints.choice.get(place=place, table=table).output[0]))["asked"]
        called = dict.fromkeys((cell.run_id or "", cell.diagnostic) for cell in made.planned)
        measured = [path for run_id, call in called if call for path in self._measured(made, run_id, call)]
        return [path for run_id, seeds in asked.items() for path in self.results(made.runs[run_id], seeds)] + measured

    def trials(self, place: str, table: str) -> list[str]:
        """The evidence that the candidates of a tuned table are chosen by."""
        made = self.plan(place, table)
        tried = dict.fromkeys((one.trial.run_id, one.trial.seeds) for one in made.candidates)
        return [path for run_id, seeds in tried for path in self.results(made.runs[run_id], seeds)]

    def results(self, run: Run, seeds: Iterable[int]) -> list[str]:
        """Published evidence of these seeds, which is a source, and the jobs that train the others: those that are missing, and
        those that other code of a part or of the partition scheme made."""
        found = {seed: self.store.find(run.run_id, seed) for seed in seeds}
        public = {seed: str(path) for seed, path in found.items() if path and is_published(path)}
        own = [seed for seed in found if seed not in public]
        fresh = {seed: found[seed] for seed in own if receipts.fresh(Path(), run.run_id, seed, run.config)}
        return [*public.values(), *self._jobs(receipts.RUNS / run.run_id, own, fresh.get)]

    def _jobs(self, folder: Path, seeds: Sequence[int], find: Callable[[int], Path | None]) -> list[str]:
        """Forces those that lack results: Snakemake does not make a missing file again below a report that is there."""
        found = self._markers(folder, seeds, find)
        if not self.workflow.remote_exec:
            self.workflow.dag.forcefiles.update(marker for marker in found if not Path(marker).exists())
        return found

    def _markers(self, folder: Path, seeds: Sequence[int], find: Callable[[int], Path | None]) -> list[str]:
        return jobs(folder, seeds, find, look=self.workflow.remote_exec)

    def _measured(self, made: Plan, run_id: str, call: str) -> list[str]:
        """What a diagnostic leaves: published, or the jobs that measure it."""
        at = lambda seed: self.store.measured(run_id, call, seed, made.runs[run_id].keep)  # noqa: E731
        with session.one_line():
            found = {seed: at(seed) for seed in made.seeds}
        public = {seed: str(path) for seed, path in found.items() if path and is_published(path)}
        own = [seed for seed in made.seeds if seed not in public]
        return [*public.values(), *self._jobs(diagnosed.DIAGNOSTICS / run_id / diagnosed.folder(call), own, found.get)]

    def call(self, run_id: str, folder: str) -> str:
        """The diagnostic behind the name of its folder."""
        return read_json(CONFIGS / f"{run_id}.json")["calls"][folder]

    def inputs_of(self, run_id: str, seeds: Sequence[int]) -> list[str]:
        """All that one run reads for these seeds."""
        inputs = read_json(CONFIGS / f"{run_id}.json")["inputs"]
        drawn = [path for kind in FOLDERS for path in self.drawn(kind, inputs[kind], seeds)]
        return [f"{inputs['arrays']}/manifest.json", *drawn, *self._ahead(run_id, seeds)]

    def _ahead(self, run_id: str, seeds: Sequence[int]) -> list[str]:
        """The jobs of the run that trains the rounds which this one shares with others of its plan, unless it is published."""
        for made in self.made.values():
            for fork in reversed(made.runs[run_id].forks) if run_id in made.runs else ():
                if (first := fork.runs[0]) != run_id and first in made.asked:
                    wanted, found = {*map(str, seeds)}, self.results(made.runs[first], made.asked[first])
                    return [path for path in found if "/jobs/" in path and wanted & {*Path(path).name.split("-")}]
        return []

    def drawn(self, kind: str, artifact: str, seeds: Sequence[int]) -> list[str]:
        """The jobs that draw an artifact for these seeds."""
        return self._markers(FOLDERS[kind] / artifact, seeds, lambda seed: drawn(kind, artifact, seed))

    def native(self, drawn: str, artifact: str) -> str:
        """The arrays whose labels an artifact is drawn from."""
        return read_json(CONFIGS / drawn / f"{artifact}.json")["native"]

    def reports(self) -> list[str]:
        """The reports of params.yaml's tables, under their short names."""
        return [f"reports/{place}{table}.{'svg' if is_figure(table) else 'md'}" for place, table in self.tables]

    def documents(self) -> list[str]:
        """The JSON reports that the summary is made from: those of tables."""
        return [f"reports/{place}{table}.json" for place, table in self.tables if not is_figure(table)]

    def trained(self, checkpoints: Any) -> list[str]:
        """What params.yaml's tables need of trainings."""
        return list(dict.fromkeys(path for place in self.tables for path in self.evidence(*place, checkpoints)))

    def sources(self, of: Callable[[dict[str, Any], Sequence[int]], list[str]]) -> list[str]:
        """`of` the inputs and the seeds of every run that params.yaml's tables may ask for."""
        plans = [self.plan(*place) for place in self.tables]
        found = ((run.inputs, made.seeds) for made in plans for run in made.runs.values())
        return list(dict.fromkeys(path for inputs, seeds in found for path in of(inputs, seeds)))

    def arrays(self) -> list[str]:
        """The manifests of every data set that params.yaml's tables read, at the native shape and the model's."""
        return self.sources(
            lambda inputs, _: [f"{inputs['arrays']}/manifest.json", self.native("partitions", inputs["partition"])]
        )

    def artifacts(self) -> list[str]:
        """Every partition, cohort list, proxy split and initial model that params.yaml's tables read."""
        return self.sources(lambda inputs, seeds: [path for kind in FOLDERS for path in self.drawn(kind, inputs[kind], seeds)])

    def page_tables(self, place: str) -> list[str]:
        """The tables and figures that a paper's page tells of: all that there is a file for."""
        paper, _ = _parts(place)
        return [name.partition("/")[2] for name in self.project.table_names() if name.startswith(f"{paper}/")]

    def page_plans(self, place: str) -> list[str]:
        """The plans of a paper's page."""
        plans = [self.plan(place, table, alone=False) for table in self.page_tables(place)]
        with session.one_line():
            require_effect(self.project, plans if _parts(place)[1] is None else [])
        return [str(write_plan(place, made)) for made in plans]

    def page_evidence(self, place: str) -> list[str]:
        """Of a page under a short name the reports of all its tables, with all that they train. A page below a scale never
        trains: it has the evidence that is there when the workflow starts."""
        tables = self.page_tables(place)
        if _parts(place)[1] is None:
            return [f"reports/{place}{table}.json" for table in tables]
        plans = [self.plan(place, table, alone=False) for table in tables]
        asked = dict.fromkeys((run_id, seed) for made in plans for run_id in made.runs for seed in made.seeds)
        found = (self.store.find(run_id, seed) for run_id, seed in asked)
        return [str(path) for path in found if path is not None]

    def page_words(self, place: str) -> list[str]:
        """What is said of the paper beside its numbers, where it is written down. Mistaken claims end the process as `load`."""
        paper, _ = _parts(place)
        with session.one_line():
            named.check_claims(self.project, paper)
        names = (f"{paper}/claims.yaml", f"{paper}/summary.yaml", "changes.yaml")
        return [str(path) for path in (Path("papers", name) for name in names) if path.exists()]

    def rendered(self, place: str) -> str:
        """Changes whenever the report of one of the paper's tables does; a page links those that say the same as itself.

        No input of the page: then asking for the page would render, and track, every table anew.
        """
        paths = [Path(f"reports/{place}{table}.json") for table in self.page_tables(place)]
        return canonical_hash([sha256_file(path) if path.exists() else None for path in paths])

    def pages(self, scales: Iterable[str] = ("demo", *PUBLISHED)) -> list[str]:
        """The pages of these scales that have published evidence, or were made here before."""
        papers = dict.fromkeys(name.partition("/")[0] for name in self.project.table_names())
        folders = [Path("reports", scale, paper) for paper in papers for scale in scales]
        known = [folder for folder in folders if any((folder / name).exists() for name in ("evidence", "index.json"))]
        return [f"{folder}/index.json" for folder in known]


def _parts(place: str) -> tuple[str, str | None]:
    """(paper, scale) of a place; no scale where it is a short name. UserError for a scale without a paper."""
    *scale, paper = place.strip("/").split("/")
    if not scale and paper in ("demo", *PUBLISHED):
        with session.one_line():
            raise UserError(f"reports/{place}: which paper? Ask for reports/{paper}/fedlaw/table3.md, for example")
    return paper or "fedlaw", scale[0] if scale else None
