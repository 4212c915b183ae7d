"""What the Snakefile asks: which files a table needs, and by which command each is made; all known before the first job."""

import json
import re
from pathlib import Path
from shlex import quote
from typing import Any

from fedrepro import arithmetic
from fedrepro.engine.environment import pick_device
from fedrepro.engine.receipts import RUNS, identity
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, sha256_file
from fedrepro.workflow import plans, session
from fedrepro.workflow.plans import Plans


class Workflow:
    """The project of params.yaml, seen as files."""

    def __init__(self, made: Plans, params: dict[str, Any]) -> None:
        self.made, self.params = made, params
        self.params_json = json.dumps(params, sort_keys=True)
        self.scale, self.seeds, self.own_seeds = made.scale, made.seeds, made.own_seeds
        self.device = pick_device(made.device)
        self.gpus_per_run = int(self.device == "cuda")
        self.workers = made.workers if self.device == "cpu" else 1
        self.tables = [table.split("/") for table in made.tables]
        every = reversed(made.tables_at_scale.values())
        self.runs: dict[str, dict[str, Any]] = {run_id: run for table in every for run_id, run in table["runs"].items()}
        """run_id -> the run as the first table has it that asks for it."""

    @classmethod
    def load(cls, params: dict[str, Any]) -> "Workflow":
        """The workflow of `params` (params.yaml with --config merged in). A mistake ends the process: one line, exit code 2."""
        with session.one_line():
            session.prepare(arithmetic.chosen(params.get("arithmetic")))
            return cls(plans.load(params), params)

    def plan(self, scale: str, paper: str, table: str) -> dict[str, Any]:
        """The plan of one table. A table that is unknown, or has a mistake in it, ends the process as `load` does."""
        name = f"{scale}/{paper}/{table}"
        if name not in self.made.tables_at_scale:
            from fedrepro.config.grid import plan
            from fedrepro.config.project import load_project

            with session.one_line():
                return plan(load_project(Path(), self.params), paper, table, scale)
        return self.made.tables_at_scale[name]

    def table_files(self, scale: str, paper: str, table: str) -> list[str]:
        """The file of a table, and that of the table which it varies."""
        names = table, self.plan(scale, paper, table)["variant_of"]
        return [f"papers/{paper}/tables/{name}.yaml" for name in names if name]

    def config_json(self, run_id: str) -> str:
        """What a training needs to know of its run, as JSON."""
        return json.dumps(identity(self.runs[run_id]), sort_keys=True)

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

    def page_tables(self, scale: str, paper: str) -> list[str]:
        """The tables that a paper's page tells of: all that there is a file for."""
        found = [name.split("/")[2] for name in self.made.tables_at_scale if name.startswith(f"{scale}/{paper}/")]
        with session.one_line():
            if not found:
                raise UserError(f"reports/{scale}/{paper}/index: papers/{paper}/tables has no table without a mistake in it")
        return found

    def page_plans(self, scale: str, paper: str) -> list[str]:
        """The plans of a paper's page."""
        return [f"results/plans/{scale}/{paper}/{table}.json" for table in self.page_tables(scale, paper)]

    def page_evidence(self, scale: str, paper: str) -> list[str]:
        """The evidence of a paper's page that is there now: a page never asks for a training."""
        wanted = (path for table in self.page_tables(scale, paper) for path in self.evidence(scale, paper, table))
        return [path for path in dict.fromkeys(wanted) if Path(path).exists()]

    def page_claims(self, paper: str) -> list[str]:
        """What the paper says of its tables, where somebody has written it down."""
        path = Path("papers", paper, "claims.yaml")
        return [str(path)] if path.exists() else []

    def rendered(self, scale: str, paper: str) -> str:
        """Changes whenever the report of one of the paper's tables does; a page links those that say the same as itself.

        No input of the page: then asking for the page would render, and track, every table anew.
        """
        paths = [Path(f"reports/{scale}/{paper}/{table}.json") for table in self.page_tables(scale, paper)]
        return canonical_hash([sha256_file(path) if path.exists() else None for path in paths])

    def pages(self) -> list[str]:
        """The page of every paper and scale that has any evidence now."""
        known = dict.fromkeys(name.rpartition("/")[0] for name in self.made.tables_at_scale)
        return [f"reports/{place}/index.json" for place in known if any(Path(f"reports/{place}/evidence").glob("*/seed*.json"))]

    def receipts(self) -> list[str]:
        """What training leaves for params.yaml's tables."""
        return [f"{RUNS}/{run_id}/seed{seed}.json" for run_id, seeds in self._current().items() for seed in seeds]

    def arrays(self) -> list[str]:
        """The manifests of every data set that params.yaml's tables read, at the native shape and the model's."""
        return list(dict.fromkeys(path for run_id in self._current() for path in self.made.arrays[run_id]))

    def drawn(self) -> list[str]:
        """Every partition, cohort list, proxy split and initial model that params.yaml's tables read."""
        return list(dict.fromkeys(path for run_id, seeds in self._current().items() for path in self._drawn(run_id, seeds)))

    def inputs_of(self, run_id: str, seeds: list[int]) -> list[str]:
        """All that one run reads for these seeds."""
        return [self.made.arrays[run_id][-1], *self._drawn(run_id, seeds)]

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
        return _ARGUMENTS[kind](self.made.definitions[f"{kind}/{artifact}"])

    def native_manifest(self, kind: str, artifact: str) -> str:
        """The arrays whose labels an artifact is drawn from."""
        return self.made.definitions[f"{kind}/{artifact}"]["native"]

    def _current(self) -> dict[str, list[int]]:
        """run_id -> seeds, of every run of params.yaml's tables."""
        found: dict[str, list[int]] = {}
        for paper, table in self.tables:
            made = self.plan(self.scale, paper, table)
            for run_id in made["runs"]:
                found[run_id] = list(dict.fromkeys([*found.get(run_id, []), *made["seeds"]]))
        return found

    def _drawn(self, run_id: str, seeds: list[int]) -> list[str]:
        return [f"{folder}/seed{seed}.json" for folder in self.made.drawn[run_id] for seed in seeds]


_ARGUMENTS = {
    "partition": lambda d: (
        f"{d['dataset']} {quote(d['scheme'])} --clients {d['clients']} --local-validation {d['local_validation']}"
    ),
    "participation": lambda d: (
        f"--clients {d['clients']} --ratio {d['ratio']} --rounds {d['rounds']} --cohorts {d.get('cohorts', 'drawn')}"
    ),
    "proxy": lambda d: f"{d['dataset']} --per-class {d['per_class']}",
    "init": lambda d: f"{d['model']} --classes {d['classes']}",
}
