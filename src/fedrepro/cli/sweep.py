"""fedrepro sweep: methods over values of settings and arguments, as one graph of runs with one table and one chart."""

import os
import shlex
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedrepro import console
from fedrepro.cli import request
from fedrepro.cli.runs import print_forecast
from fedrepro.config.by_hand import Request
from fedrepro.config.grid import plan
from fedrepro.config.layers import SETTINGS
from fedrepro.config.plan import Plan
from fedrepro.config.project import Project, load_project
from fedrepro.config.schema import Paper
from fedrepro.config.sweep import FIGURE, TABLE, files
from fedrepro.config.table import Table
from fedrepro.errors import UserError
from fedrepro.files import parse_yaml, read_yaml, write_text
from fedrepro.registry import named_arguments
from fedrepro.typed import check

SCALE = "full"  # this scale changes no setting of a sweep


def sweep(options: Namespace) -> int:
    """Writes the sweep's files and prints its forecast. Snakemake makes table and chart. Returns the exit code."""
    if not options.method:
        raise UserError('sweep: --method is missing; give one, or several, for example --method "fedprox(mu=0.1)+gh"')
    project = load_project()
    with request.blaming_the_options(options, [item.partition("=")[0] for item in options.over]):
        sweep_request = _request(project, options)
        name, texts = files(project, sweep_request, options.name, _command(options))
        sweep_plan = _plan(project, name, texts)
    console.say(request.sources_line(next(iter(sweep_plan.runs.values())), _explicit_settings(sweep_request), options.like))
    if options.dry_run:
        print_forecast(sweep_plan, options.device or project.params.device, options)
        return 0
    for path, text in texts.items():
        write_text(path, text)
    reports = [f"reports/{SCALE}/{name}/{TABLE}.md", f"reports/{SCALE}/{name}/{FIGURE}.svg"]
    command = ["snakemake", "--cores", str(options.cores or "all"), *reports]
    if options.device:
        command += ["--config", f"device={options.device}"]
    console.say(
        f"{console.some(len(sweep_plan.runs), 'run')} at {console.some(len(sweep_plan.seeds), 'seed')}: {shlex.join(command)}"
    )
    # This environment's programs first, whether or not it is active.
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    code = subprocess.run(command, env=os.environ | {"PATH": programs}).returncode
    if code == 0:
        print(f"table  {reports[0]}", f"chart  {reports[1]}", f"MLflow experiment {name}/{SCALE}: fedrepro ui", sep="\n")
    return code


def over(items: list[str]) -> dict[str, tuple[Any, ...]]:
    """`alpha=0.1,0.5,1` and `fedprox.mu=0.001,0.1` as key -> values. UserError for what is not of that form."""
    values_by_key: dict[str, tuple[Any, ...]] = {}
    for item in items:
        key, equals, text = item.partition("=")
        values = [request.read_value(f"--over {item}", value) for value in request.split(text)]
        if not equals or not values or text.rstrip().endswith(","):
            raise UserError(f"--over {item}: write key=value,value, for example alpha=0.1,0.5")
        if key in values_by_key:
            raise UserError(f"--over {item}: {key} is given twice")
        if any(isinstance(value, list | dict) for value in values):
            raise UserError(f"--over {item}: write the values without brackets, {key}=0.1,0.5")
        if "." in key or key in SETTINGS:
            values = [request.checked_value(f"--over {key}", key, value) for value in values]
        for value in values:
            if values.count(value) > 1:
                raise UserError(f"--over {item}: {value} is given twice")
        values_by_key[key] = tuple(values)
    return values_by_key


def _request(project: Project, options: Namespace) -> Request:
    swept = over(options.over)
    sweep_request = request.request_of(options, swept)
    sweep_request = replace(sweep_request, seeds=sweep_request.seeds or tuple(project.params.seeds))
    given = sweep_request.given
    of_methods = {key for method in options.method for key in named_arguments(method)}
    partitions = [*swept.get("partition", ()), *([given["partition"]] if "partition" in given else ())]
    of_schemes = {key.partition(".")[2] for scheme in partitions for key in named_arguments(scheme)}
    for key in (key for key in swept if key in {*given, *of_methods, *of_schemes}):
        raise UserError(f"--over {key}: has one value already; leave either out")
    return sweep_request


def _explicit_settings(sweep_request: Request) -> dict[str, Any]:
    """Returns the settings that were given or swept. The partition is one of them if an argument of its scheme is swept."""
    scheme = any("." not in key and key not in SETTINGS for key in sweep_request.over)
    return sweep_request.given | sweep_request.over | ({"partition": None} if scheme else {})


def _plan(project: Project, name: str, texts: dict[Path, str]) -> Plan:
    """Returns the plan of files that may not be written yet. UserError for a sweep of that name with other content."""
    contents = {path: parse_yaml(text) for path, text in texts.items()}
    for path, content in contents.items():
        if path.exists() and read_yaml(path) != content:
            folder, report = f"{path.parts[0]}/{path.parts[1]}", f"reports/{SCALE}/{name}/{TABLE}.md"
            raise UserError(
                f"{path}: is of another sweep, or was edited since; `snakemake --cores 2 {report}` runs it as it stands; "
                f"or give another --name, or delete {folder}"
            )
    paper, table = (next(c for path, c in contents.items() if path.stem == stem) for stem in ("paper", TABLE))
    definitions = {f"{name}/{TABLE}": (check(Paper, paper, name), check(Table, table, name))}
    planned = plan(replace(project.as_published(SCALE), own=definitions), name, TABLE, SCALE)
    columns: dict[tuple[str, str | None, str | None], str] = {}
    for cell in (cell for cell in planned.cells if cell.run_id):
        other = columns.setdefault((cell.row, cell.run_id, cell.read), cell.column)
        if other != cell.column:
            titles = " and ".join(planned.column(key).title for key in (other, cell.column))
            raise UserError(f"--over: {titles} are the same run here; leave one of the values out")
    return planned


def _command(options: Namespace) -> str:
    """Returns the command that a person wrote, for the head of the sweep's files."""
    words = ["fedrepro", "sweep", *(word for method in options.method for word in ("--method", method))]
    for key in (*request.SHORT, "like", "name"):
        words += [f"--{key}", str(value)] if (value := getattr(options, key)) is not None else []
    for key in ("set", "over"):
        words += [f"--{key}", *values] if (values := getattr(options, key)) else []
    return shlex.join(words + (["--seeds", *map(str, options.seeds)] if options.seeds else []))
