"""What the Snakefile asks: which files a table needs, and by which command each is made; all known before the first job."""

import json
import re
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrepro import arithmetic
from fedrepro.config import scales
from fedrepro.config.places import is_figure, table_path
from fedrepro.engine.environment import pick_device
from fedrepro.engine.receipts import RUNS, committed, identity, receipt_path, trained
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, sha256_file
from fedrepro.workflow import measured, plans, session
from fedrepro.workflow.drawing import ARGUMENTS
from fedrepro.workflow.plans import Plans

MISSING = Path(".snakemake/fedrepro-missing")


class Workflow:
    """The project of params.yaml, seen as files."""

    def __init__(self, made: Plans, params: dict[str, Any]) -> None:
        self.made, self.params = made, params
        self.scale, self.seeds = made.scale, made.seeds
        self.device = pick_device(made.device)
        self.gpus_per_run = int(self.device == "cuda")
        self.workers = made.workers if self.device == "cpu" else 1
        self.tables = [table.split("/") for table in made.tables]
        every = reversed(made.tables_at_scale.values())
        self.runs: dict[str, dict[str, Any]] = {run_id: run for table in every for run_id, run in table["runs"].items()}
        """run_id -> the run as the first table has it that asks for it."""
        self.calls = measured.calls(made.tables_at_scale.values())
        self._keeps = measured.keeps(made.tables_at_scale.values())
        self._told: set[str] = set()

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
                if scale != scales.plain(scale):
                    self._require_edited(scales.plain(scale), paper)
                project = load_project(Path(), self.params)
                return plan(project.as_published(scale) if scale in self.made.published_seeds else project, paper, table, scale)
        return self.made.tables_at_scale[name]

    def current(self, paper: str) -> str:
        """The scale that a paper's reports with params.yaml's values have; `edited-full` where they are not published."""
        return scales.edited(self.scale) if f"{self.scale}/{paper}" in self.made.edited else self.scale

    def plan_params(self, scale: str) -> str:
        """What stands in params.yaml, as far as the plans of a scale depend on it: nothing, for published reports. As JSON."""
        seeds = self.made.published_seeds.get(scale)
        return json.dumps(self.params if seeds is None else {"scale": scale, "seeds": seeds}, sort_keys=True)

    def plan_files(self, scale: str, paper: str, table: str) -> list[str]:
        """The files that a plan follows from."""
        own = [] if scale in self.made.published_seeds else ["params.yaml"]
        folder, name = Path("papers", paper), table
        tables = []
        while name:  # of a figure's table, or of the one that a table varies, too
            tables.append(str(table_path(Path(), paper, name)))
            made = self.plan(scale, paper, name)
            name = made["of"] or made["variant_of"]
        printed = sorted(map(str, [*folder.glob("published/*.csv"), *folder.glob("spread.json")]))
        return [*own, "papers/scales.yaml", "data/registry.yaml", f"{folder}/paper.yaml", *tables, *printed]

    def _require_edited(self, scale: str, paper: str) -> None:
        """UserError where params.yaml has nothing to report at the scale but what is published."""
        place = f"reports/{scales.edited(scale)}/{paper}"
        if scale != self.scale:
            raise UserError(f"{place}: params.yaml: scale = {self.scale!r}; set it to {scale}, or add --config scale={scale}")
        if f"{scale}/{paper}" not in self.made.edited:
            raise UserError(f"{place}: params.yaml changes nothing there; ask for reports/{scale}/{paper}")

    def config_json(self, run_id: str) -> str:
        """What a training needs to know of its run, as JSON."""
        return json.dumps(identity(self.runs[run_id]), sort_keys=True)

    def reports(self) -> list[str]:
        """The reports of params.yaml's tables at its scale, under their short names too."""
        named = [(paper, f"{table}.{_endings(table)[0]}") for paper, table in self.tables]
        short = [f"reports/{name}" if paper == "fedlaw" else f"reports/{paper}/{name}" for paper, name in named]
        return [f"reports/{self.current(paper)}/{paper}/{name}" for paper, name in named] + short

    def documents(self) -> list[str]:
        """The JSON reports that the summary is made from: those of tables."""
        tables = [(paper, table) for paper, table in self.tables if not is_figure(table)]
        return [f"reports/{self.current(paper)}/{paper}/{table}.json" for paper, table in tables]

    def current_files(self, paper: str, table: str) -> list[str]:
        """The report that a short name stands for."""
        return [f"reports/{self.current(paper)}/{paper}/{table}.{ending}" for ending in _endings(table)]

    def current_plan(self, paper: str, table: str) -> str:
        """Its plan."""
        return f"results/plans/{self.current(paper)}/{paper}/{table}.json"

    def shown(self, scale: str, paper: str, table: str, checkpoints: Any) -> list[str]:
        """`evidence` of a report that is asked for; says so where params.yaml has values that are not in it."""
        place = f"{scale}/{paper}"
        if place in self.made.edited and place not in self._told:
            self._told.add(place)
            there = f"reports/{scales.edited(scale)}/{paper}" + (
                "" if scale == self.scale else f" (with --config scale={scale})"
            )
            print(
                f"fedrepro: reports/{place} keeps to the paper's own settings and published seeds; with params.yaml's: {there}",
                file=sys.stderr,
            )
        return self.evidence(scale, paper, table, checkpoints)

    def evidence(self, scale: str, paper: str, table: str, checkpoints: Any = None) -> list[str]:
        """The evidence that one report is rendered from; of a tuned table, once Snakemake's `checkpoints` have its choice."""
        asked = self._asked(scale, paper, table, checkpoints)
        return _evidence(scale, paper, asked.items()) + measured.evidence(self.plan(scale, paper, table))

    def trials(self, scale: str, paper: str, table: str) -> list[str]:
        """The evidence that the candidates of a tuned table are chosen by."""
        tried = [one["trial"] for one in self.plan(scale, paper, table)["candidates"]]
        return _evidence(scale, paper, ((one["run_id"], one["seeds"]) for one in tried))

    def _asked(self, scale: str, paper: str, table: str, checkpoints: Any) -> dict[str, list[int]]:
        """run_id -> seeds of a report. Snakemake comes back here when the choice of a tuned table is made."""
        made = self.plan(scale, paper, table)
        if not made["candidates"]:
            return made["asked"]
        return read_json(Path(checkpoints.choice.get(scale=scale, paper=paper, table=table).output[0]))["asked"]

    def page_tables(self, scale: str, paper: str) -> list[str]:
        """The tables and figures that a paper's page tells of: all that there is a file for."""
        found = [name.split("/")[2] for name in self.made.tables_at_scale if name.startswith(f"{scale}/{paper}/")]
        with session.one_line():
            if not found:
                raise UserError(f"reports/{scale}/{paper}/index: papers/{paper}/tables has no table without a mistake in it")
        return found

    def page_plans(self, scale: str, paper: str) -> list[str]:
        """The plans of a paper's page."""
        return [f"results/plans/{scale}/{paper}/{table}.json" for table in self.page_tables(scale, paper)]

    def page_evidence(self, scale: str, paper: str) -> list[str]:
        """The evidence of a paper's page that is there now, or is published elsewhere: a page never asks for a training."""
        plans = [self.plan(scale, paper, table) for table in self.page_tables(scale, paper)]
        asked = ((run_id, made["seeds"]) for made in plans for run_id in made["runs"])
        return [
            str(path)
            for path in map(Path, dict.fromkeys(_evidence(scale, paper, asked)))
            if path.exists() or committed(Path(), path.parent.name, int(path.stem[4:]))
        ]

    def page_words(self, paper: str) -> list[str]:
        """What is said of the paper beside its numbers, where it is written down. Mistaken claims end the process as `load`."""
        with session.one_line():
            self.made.require_claims(paper)
        names = (f"{paper}/claims.yaml", f"{paper}/summary.yaml", "changes.yaml")
        return [str(path) for path in (Path("papers", name) for name in names) if path.exists()]

    def rendered(self, scale: str, paper: str) -> str:
        """Changes whenever the report of one of the paper's tables does; a page links those that say the same as itself.

        No input of the page: then asking for the page would render, and track, every table anew.
        """
        paths = [Path(f"reports/{scale}/{paper}/{table}.json") for table in self.page_tables(scale, paper)]
        return canonical_hash([sha256_file(path) if path.exists() else None for path in paths])

    def pages(self, published: bool = False) -> list[str]:
        """The page of every paper and scale that has any evidence now; only of the scales that are `published`."""
        known = dict.fromkeys(name.rpartition("/")[0] for name in self.made.tables_at_scale)
        wanted = [place for place in known if not published or place.partition("/")[0] in self.made.published_seeds]
        return [
            f"reports/{place}/index.json" for place in wanted if any(Path(f"reports/{place}/evidence").glob("*/seed*.json"))
        ]

    def receipts(self, checkpoints: Any = None) -> list[str]:
        """What training leaves for params.yaml's tables."""
        asked = [self._asked(self.current(paper), paper, table, checkpoints) for paper, table in self.tables]
        found = [f"{RUNS}/{run_id}/seed{seed}.json" for one in asked for run_id, seeds in one.items() for seed in seeds]
        return list(dict.fromkeys(found))

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
    def papers(self) -> str:
        """A regular expression of the papers: the folders of papers/ that have a paper.yaml."""
        return _any_of(sorted(path.parent.name for path in Path("papers").glob("*/paper.yaml")))

    @property
    def drawn_seeds(self) -> list[int]:
        """The seeds that every artifact is drawn for: those of params.yaml and of published reports."""
        return list(dict.fromkeys([*self.seeds, *(seed for seeds in self.made.published_seeds.values() for seed in seeds)]))

    @cached_property
    def apart(self) -> str:
        """A regular expression of the run_ids that no table asks for with params.yaml's seeds."""
        tables = self.made.tables_at_scale.values()
        together = {run_id for table in tables for run_id, seeds in table["asked"].items() if {*seeds} == {*self.seeds}}
        return _any_of(sorted(self.runs.keys() - together))

    @cached_property
    def settled(self) -> str:
        """A regular expression of the evidence, below reports/, that is taken as it is: no rule makes it.

        What is published, whatever has been trained here since; and what nothing is left of but the evidence.
        """
        found = []
        for path in sorted(Path("reports").glob("*/*/evidence/*/seed*.json")):
            _, scale, _, _, run_id, _ = path.parts
            if scale in self.made.published_seeds or not trained(Path(), run_id, int(path.stem[4:])):
                found.append(str(path.relative_to("reports")))
        return _any_of(found + measured.settled(self.made.tables_at_scale, self.made.published_seeds))

    def missing(self, scale: str) -> list[str]:
        """For evidence that no rule would make if it were there, a file newer than any report: without it, a report from before
        the evidence was taken away would count as up to date."""
        return self._newest() if scale in self.made.published_seeds else []

    def _newest(self) -> list[str]:
        MISSING.parent.mkdir(exist_ok=True)
        MISSING.touch()
        return [str(MISSING)]

    def origin(self, run_id: str, seed: str) -> str:
        """What evidence is copied from: the receipt, or evidence that is published elsewhere where nothing is trained here."""
        if not trained(Path(), run_id, int(seed)):
            for path in committed(Path(), run_id, int(seed)):
                return str(path)
        return str(receipt_path(Path(), run_id, int(seed)))

    def keep(self, run_id: str) -> str:
        """The rounds whose models tables want kept, apart by spaces."""
        return " ".join(map(str, self._keeps.get(run_id, [])))

    def lacking(self, run_id: str, seed: str) -> list[str]:
        """A file newer than any other, where some of them are missing in the list of what is kept."""
        return self._newest() if measured.lacks(run_id, seed, self._keeps.get(run_id, [])) else []

    def measured(self, scale: str, paper: str, run_id: str, folder: str, seed: str) -> str:
        """What evidence of a diagnostic is copied from."""
        plans = (plan for name, plan in self.made.tables_at_scale.items() if name.startswith(f"{scale}/{paper}/"))
        return measured.origin(run_id, folder, seed, measured.keeps(plans).get(run_id, []))

    def arguments(self, kind: str, artifact: str) -> str:
        """The command-line arguments that draw an artifact."""
        return ARGUMENTS[kind](self.made.definitions[f"{kind}/{artifact}"])

    def native_manifest(self, kind: str, artifact: str) -> str:
        """The arrays whose labels an artifact is drawn from."""
        return self.made.definitions[f"{kind}/{artifact}"]["native"]

    def _current(self) -> dict[str, list[int]]:
        """run_id -> seeds, of every run of params.yaml's tables and every one that they may choose."""
        found: dict[str, list[int]] = {}
        for paper, table in self.tables:
            made = self.plan(self.current(paper), paper, table)
            for run_id in made["runs"]:
                found[run_id] = list(dict.fromkeys([*found.get(run_id, []), *made["seeds"]]))
        return found

    def _drawn(self, run_id: str, seeds: list[int]) -> list[str]:
        return [f"{folder}/seed{seed}.json" for folder in self.made.drawn[run_id] for seed in seeds]


def _evidence(scale: str, paper: str, asked: Iterable[tuple[str, list[int]]]) -> list[str]:
    """The files of these runs at their seeds."""
    return [f"reports/{scale}/{paper}/evidence/{run_id}/seed{seed}.json" for run_id, seeds in asked for seed in seeds]


def _endings(table: str) -> tuple[str, ...]:
    """Of the files that a report consists of, the one to ask for first."""
    return ("svg", "csv", "json") if is_figure(table) else ("md", "html", "json")


def _any_of(texts: list[str]) -> str:
    """A regular expression of them; matches nothing when there are none."""
    return "|".join(map(re.escape, texts)) or "(?!)"
