"""What the Snakefile asks: which files a table needs, and by which command each is made; all known before the first job."""

import atexit
import contextlib
import fcntl
import json
import os
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

from fedrepro.config.grid import FOLDERS, definitions, plan
from fedrepro.config.project import Project, load_project
from fedrepro.data.arrays import MANIFEST, arrays_folder
from fedrepro.engine.environment import pick_device
from fedrepro.engine.results import RUNS, identity
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError

ERRORS = Path(".snakemake/fedrepro-errors")
LOCK = Path(".snakemake/fedrepro.lock")


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Ends the process with one line and exit code 2 on a user's mistake, past Snakemake's own handling of exceptions."""
    try:
        yield
    except UserError as error:
        print("fedrepro: error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
        os._exit(UserError.exit_code)


class Workflow:
    """The project of params.yaml, seen as files."""

    def __init__(self, project: Project, params: dict[str, Any]) -> None:
        self.project, self.params_json = project, json.dumps(params, sort_keys=True)
        self.scale, self.seeds = project.params.scale, project.params.seeds
        self.device = pick_device(project.params.device)
        self.gpus_per_run = int(self.device == "cuda")
        self.tables = [self._table(name) for name in project.params.tables]
        self._plans: dict[tuple[str, str, str], dict[str, Any]] = {}
        for paper, table in self.tables:
            self.plan(self.scale, paper, table)
        self.own_seeds = {run_id: made["seeds"] for made in self._plans_with_own_seeds() for run_id in made["runs"]}
        """run_id -> the seeds that its table's budget asks for; each of them is trained by a job of its own."""

    @classmethod
    def load(cls, params: dict[str, Any]) -> "Workflow":
        """The workflow of `params` (params.yaml with --config merged in). A mistake ends the process: one line, exit code 2."""
        # Jobs call `fedrepro`, which lies beside the interpreter whether or not the environment is active.
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ.setdefault("FEDREPRO_ERRORS", str((ERRORS / f"{os.getpid()}.txt").absolute()))
        with one_line():
            return cls(load_project(Path(), params), params)

    def plan(self, scale: str, paper: str, table: str) -> dict[str, Any]:
        """The plan of one table, made once."""
        key = (scale, paper, table)
        if key not in self._plans:
            with one_line():
                self._plans[key] = plan(self.project, paper, table, scale)
        return self._plans[key]

    def config_json(self, run_id: str) -> str:
        """What a training needs to know of its run, as JSON."""
        return json.dumps(identity(self._run(run_id)), sort_keys=True)

    def reports(self) -> list[str]:
        """The reports of params.yaml's tables at its scale, under their short names too."""
        short = [f"reports/{table}.md" if paper == "fedlaw" else f"reports/{paper}/{table}.md" for paper, table in self.tables]
        return [f"reports/{self.scale}/{paper}/{table}.md" for paper, table in self.tables] + short

    def documents(self) -> list[str]:
        """The JSON reports that the summary is made from."""
        return [f"reports/{self.scale}/{paper}/{table}.json" for paper, table in self.tables]

    def evidence(self, scale: str, paper: str, table: str) -> list[str]:
        """The evidence that one report is rendered from."""
        made = self.plan(scale, paper, table)
        return [
            f"reports/{scale}/{paper}/evidence/{run_id}/seed{seed}.json" for run_id in made["runs"] for seed in made["seeds"]
        ]

    def receipts(self) -> list[str]:
        """What training leaves for params.yaml's tables."""
        return [f"{RUNS}/{run['run_id']}/seed{seed}.json" for run, seeds in self._current() for seed in seeds]

    def arrays(self) -> list[str]:
        """The manifests of every data set that params.yaml's tables read, at the native shape and the model's."""
        found = {}
        for run, _ in self._current():
            spec = RunSpec(**run["config"])
            for shape in (self.project.registry[spec.dataset].native_shape, spec.input_shape):
                found[str(arrays_folder(Path(), spec.dataset, shape) / MANIFEST)] = None
        return list(found)

    def drawn(self) -> list[str]:
        """Every partition, cohort list, proxy split and initial model that params.yaml's tables read."""
        return list(dict.fromkeys(path for run, seeds in self._current() for path in self._drawn(run, seeds)))

    def inputs_of(self, run_id: str, seeds: list[int]) -> list[str]:
        """All that one run reads for these seeds."""
        run = self._run(run_id)
        return [f"{run['inputs']['arrays']}/{MANIFEST}", *self._drawn(run, seeds)]

    @property
    def drawn_seeds(self) -> list[int]:
        """The seeds that every artifact is drawn for: those of params.yaml, and those that budgets ask for besides."""
        return list(dict.fromkeys([*self.seeds, *(seed for seeds in self.own_seeds.values() for seed in seeds)]))

    @property
    def budget_runs(self) -> str:
        """A regular expression of the run_ids in `own_seeds`; matches nothing when there are none."""
        return "|".join(map(re.escape, sorted(self.own_seeds))) or "(?!)"

    def arguments(self, kind: str, artifact: str) -> str:
        """The command-line arguments that draw an artifact."""
        d = self._definitions[kind, artifact]
        match kind:
            case "partition":
                return (
                    f"{d['dataset']} {quote(d['scheme'])} --clients {d['clients']} --local-validation {d['local_validation']}"
                )
            case "participation":
                return f"--clients {d['clients']} --ratio {d['ratio']} --rounds {d['rounds']}"
            case "proxy":
                return f"{d['dataset']} --per-class {d['per_class']}"
            case _:
                return f"{d['model']} --classes {d['classes']}"

    def native_manifest(self, kind: str, artifact: str) -> str:
        """The arrays whose labels an artifact is drawn from."""
        name = self._definitions[kind, artifact]["dataset"]
        return str(arrays_folder(Path(), name, self.project.registry[name].native_shape) / MANIFEST)

    def hold_lock(self) -> None:
        """One workflow a folder. The lock lives as long as this process; a second one ends with one line."""
        LOCK.parent.mkdir(exist_ok=True)
        self._lock = LOCK.open("a+")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            print(
                f"fedrepro: error: process {self._lock.read().strip()} already runs snakemake in this folder; wait for it",
                file=sys.stderr,
            )
            os._exit(UserError.exit_code)
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def announce(self, workflow: Any) -> None:
        """One line on what Snakemake is about to train and how long that takes; never an error, since it is only a courtesy.

        Not on a GPU: measuring there would keep a part of its memory for as long as the workflow runs.
        """
        with contextlib.suppress(Exception):
            from fedrepro.cli.forecast import Job, one_line

            if workflow.touch:
                return
            trained = [job for job in workflow.dag.needrun_jobs() if job.rule.name in ("train", "train_seed")]
            seeds: dict[str, list[int]] = {}
            for job in trained:
                own = getattr(job.wildcards, "seed", None)
                seeds.setdefault(job.wildcards.run_id, []).extend(self.seeds if own is None else [int(own)])
            jobs = [Job.of(Path(), self._run(run_id), wanted) for run_id, wanted in seeds.items()]
            jobs = [job for job in jobs if job.to_train]
            if self.device == "cpu":
                line = one_line(Path(), self.project.registry, jobs, self.device, workflow.cores)
            else:
                line = f"training {len(jobs)} runs; how long it takes says `fedrepro run <paper>/<table> --dry-run`"
            if jobs and line:
                print(f"fedrepro: {line}", file=sys.stderr, flush=True)

    def repeat_errors(self) -> None:
        """Ends a failed workflow with what its jobs said was wrong, each line once, after Snakemake's own last words."""
        path = Path(os.environ["FEDREPRO_ERRORS"])
        with contextlib.suppress(OSError):
            lines = dict.fromkeys(path.read_text().splitlines())
            path.unlink()
            atexit.register(print, *lines, sep="\n", file=sys.stderr, flush=True)

    def _run(self, run_id: str) -> dict[str, Any]:
        return self.plan(*self._home[run_id])["runs"][run_id]

    @cached_property
    def _home(self) -> dict[str, tuple[str, str, str]]:
        """run_id -> (scale, paper, table) of the first table that has it; params.yaml's own scale and tables come first."""
        found: dict[str, tuple[str, str, str]] = {}
        for key in self._every_plan():
            for run_id in self.plan(*key)["runs"]:
                found.setdefault(run_id, key)
        return found

    @cached_property
    def _definitions(self) -> dict[tuple[str, str], dict[str, Any]]:
        found = {}
        for key in self._every_plan():
            for run in self.plan(*key)["runs"].values():
                spec = RunSpec(**run["config"])
                for kind, definition in definitions(spec, self.project.registry[spec.dataset]).items():
                    found[kind, run["inputs"][kind]] = definition
        return found

    def _plans_with_own_seeds(self) -> Iterator[dict[str, Any]]:
        """The plans whose seeds are not those of params.yaml."""
        for name in self.project.table_names():
            paper, table = self._table(name)
            with one_line():
                budgets = self.project.table(paper, table).budget
            yield from (self.plan(scale, paper, table) for scale, budget in budgets.items() if budget.seeds)

    def _every_plan(self) -> Iterator[tuple[str, str, str]]:
        tables = dict.fromkeys([*self.tables, *(self._table(name) for name in self.project.table_names())])
        for scale in dict.fromkeys([self.scale, *self.project.scales]):
            yield from ((scale, paper, table) for paper, table in tables)

    def _current(self) -> list[tuple[dict[str, Any], list[int]]]:
        """Every run of params.yaml's tables, with its seeds."""
        found: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for paper, table in self.tables:
            made = self.plan(self.scale, paper, table)
            for run_id, run in made["runs"].items():
                _, seeds = found.get(run_id, (run, []))
                found[run_id] = run, list(dict.fromkeys([*seeds, *made["seeds"]]))
        return list(found.values())

    def _drawn(self, run: dict[str, Any], seeds: list[int]) -> list[str]:
        return [f"{FOLDERS[kind]}/{run['inputs'][kind]}/seed{seed}.json" for kind in FOLDERS for seed in seeds]

    @staticmethod
    def _table(name: str) -> tuple[str, str]:
        paper, _, table = name.partition("/")
        return paper, table
