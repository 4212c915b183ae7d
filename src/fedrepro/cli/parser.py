"""All commands and their arguments. Those that only the workflow calls are described by `fedrepro COMMAND --help` alone."""

import argparse
import contextlib
import difflib
import math
import os
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from fedrepro import __version__, arithmetic
from fedrepro.choices import DEVICES, ENGINES, PUBLISHED
from fedrepro.cli.request import split

# Name, module of fedrepro.cli, help -> the command.
Add = Callable[[str, str, str], argparse.ArgumentParser]
# heading -> the commands for people below it, each with an example
GROUPS = {
    "train": {
        "run": "fedrepro run fedlaw/table3 --rows fedavg fedlaw --set rounds=5",
        "sweep": "fedrepro sweep --method fedprox+gh --over client_lr=0.01,0.1 fedprox.mu=0.01,0.1",
        "verify": "fedrepro verify fedgh/table2",
        "publish": "fedrepro publish fedgh/table2 --scale full",
    },
    "look at results": {
        "runs": "fedrepro runs fedgh/table2",
        "compare": "fedrepro compare b79f960d 330a5bbe",
        "diagnose": 'fedrepro diagnose "client_distance(relative=true)" RUN_ID --seeds 8',
        "ui": "fedrepro ui --port 5001",
    },
    "find out": {
        "list": "fedrepro list methods",
        "describe": 'fedrepro describe "fedprox(mu=0.1)+fixed_gamma"',
        "doctor": "fedrepro doctor",
    },
    "add": {"new": "fedrepro new method trimmed_mean --slot aggregate"},
    "steps of the workflow, by hand": {
        "data": "fedrepro data mnist",
        "report": "fedrepro report results/plans/full/fedgh/table2.json --out x",
        "track": "fedrepro track --every 30",
        "spread": "fedrepro spread fedgh",
    },
}
EPILOG = """\
fedrepro COMMAND --help    what a command takes
snakemake --cores 2 reports/table3.md    a whole table, with its report

Mistakes that you can mend end with one line and exit code 2;
--debug adds the traceback."""


def parser() -> argparse.ArgumentParser:
    """The command line; `fedrepro.cli.<module>` holds the functions behind its commands."""
    top = _Top(prog="fedrepro", usage="fedrepro [--version] [--debug] COMMAND ...")
    top.add_argument("--version", action="version", version=__version__)
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    plain = {"prog": "fedrepro", "parser_class": _Command}
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", **plain)

    def add(name: str, module: str, help: str) -> argparse.ArgumentParser:
        example = next((f"example: {group[name]}" for group in GROUPS.values() if name in group), None)
        command = commands.add_parser(name, description=help, epilog=example)
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.set_defaults(module=module, function=name)
        top.descriptions[name] = help
        return command

    _run(add)
    _sweep(add)
    _verify(add)
    _publish(add)
    _diagnose(add)
    _look(add)
    _find_out(add)
    _draw(add)
    _render(add)
    return top


class _Command(argparse.ArgumentParser):
    """A parser that prints a mistake as one line, as everywhere else; argparse would print all arguments above it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"fedrepro: error: {self.prog.removeprefix('fedrepro').strip()}: {message}; see `{self.prog} --help`\n")


class _Top(argparse.ArgumentParser):
    """Lists the commands by what they are for; argparse knows only one list."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.descriptions: dict[str, str] = {}

    def format_help(self) -> str:
        columns = shutil.get_terminal_size((120, 24)).columns
        lines = [f"usage: {self.usage}", "", "Re-run tables of federated-learning papers; compare with the printed numbers."]
        for heading, group in GROUPS.items():
            lines += ["", heading]
            for name, example in group.items():
                about = self.descriptions[name]
                lines += textwrap.wrap(about, columns, initial_indent=f"  {name:<10}", subsequent_indent=" " * 12)
                lines.append(f"{'':<12}$ {example}")
        return "\n".join([*lines, "", EPILOG, ""])

    def parse_args(self, args: Any = None, namespace: Any = None) -> argparse.Namespace:  # pyright: ignore
        """Parses the arguments; a mistake about a word that no command takes points to the command's own help."""
        options, more = self.parse_known_args(args, namespace)
        if more:
            what = f"{options.command}: unrecognized arguments: {' '.join(more)}{self._meant(options.command, more[0])}"
            self.exit(2, f"fedrepro: error: {what}; see `fedrepro {options.command} --help`\n")
        return options

    def _meant(self, command: str, word: str) -> str:
        """The nearest option of the command; for the name of a setting the option that takes it."""
        from fedrepro.config.defaults import SETTINGS

        commands: Any = next(action.choices for action in self._actions if action.dest == "command")
        known, (option, _, value) = [*commands[command]._option_string_actions], word.partition("=")
        if "--set" in known and (key := option.lstrip("-").replace("-", "_")) in SETTINGS:
            return f"; --set {key}={value or 'VALUE'} sets it"
        nearest = difflib.get_close_matches(option, known, n=1, cutoff=0.85) if option.startswith("-") else []
        return f"; did you mean {nearest[0]}?" if nearest else ""

    def error(self, message: str) -> NoReturn:
        """Prints the mistake; for an unknown command it suggests the nearest of the commands for people."""
        if "COMMAND: invalid choice: " in message:
            from fedrepro.registry import unknown

            message = unknown("command", message.split("'")[1], [name for group in GROUPS.values() for name in group])
        self.exit(2, f"fedrepro: error: {message}; see `fedrepro --help`\n")


class Listed(argparse.Action):
    """Several values, separated by spaces or commas: `--seeds 8 9`, `--seeds 8,9`. `type` applies to each of them."""

    def __init__(self, *args: Any, type: Callable[[str], Any] = str, nargs: str = "+", **options: Any) -> None:
        super().__init__(*args, nargs=nargs, **options)
        self.each = type

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        texts = [text for value in values for text in split(value)]
        try:
            items = [self.each(text) for text in texts]
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from error
        if not items and self.nargs == "+":
            raise argparse.ArgumentError(self, "expected at least one value")
        before = getattr(namespace, self.dest, self.default)
        earlier_items = [] if before is self.default or before is None else before  # the option was given before
        setattr(namespace, self.dest, list(dict.fromkeys([*earlier_items, *items])))


def _number(rule: str, low: float = 1, end: float = math.inf, kind: type = int) -> Callable[[str], Any]:
    """A reader of numbers from `low` to below `end`, which refuses others with the rule."""

    def read(text: str) -> Any:
        with contextlib.suppress(ValueError):
            if (kind is float or text.isdecimal()) and low <= (number := kind(text)) < end:
                return number
        raise argparse.ArgumentTypeError(f"{text[:40]}: {rule}")

    return read


_at_least_one = _number("must be a whole number of at least 1")
_port = _number("a port is a whole number from 1 to 65535", end=65536)
_minutes, _seconds = (_number(f"must be a number of {unit}, 0 or more", 0, kind=float) for unit in ("minutes", "seconds"))
# As in config.schema.
_seed = _number(f"a seed is a whole number from 0 to {2**63 - 1}; write --seeds 8 9 or --seeds 8,9", 0, 2**63)


def _word(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; give a name, or leave the option out")
    return text


def _svg(text: str) -> Path:
    if not text.endswith(".svg"):
        raise argparse.ArgumentTypeError(f"{text}: give a file that ends in .svg")
    return Path(text)


def _by_hand(command: argparse.ArgumentParser) -> None:
    """Adds the options that describe a run by its settings. No table has to have it."""
    help = 'any method, for example "fedprox(mu=0.1)+gh", or several; see `fedrepro list methods`'
    command.add_argument("--method", action=Listed, default=[], metavar="METHOD", help=help)
    for name in ("dataset", "model", "partition"):
        command.add_argument(f"--{name}", type=_word, metavar="NAME", help=f"see `fedrepro list {name}s`")
    command.add_argument("--rounds", type=_at_least_one, metavar="N", help="communication rounds")
    help = "settings, and arguments of methods, for example client_lr=0.1 fedprox.mu=1; see `fedrepro list settings`"
    command.add_argument("--set", action="extend", nargs="+", default=[], metavar="KEY=VALUE", help=help)
    help = "what is not given beside --method comes from this paper/table, or paper/table/column (default: stated defaults)"
    command.add_argument("--like", type=_word, metavar="TABLE", help=help)


def _part_of_a_table(
    command: argparse.ArgumentParser, seeds: str, rows: str = "only these rows (methods) of the table"
) -> None:
    command.add_argument("--rows", action=Listed, metavar="KEY", help=rows)
    command.add_argument("--columns", action=Listed, metavar="KEY", help="only these columns (settings) of the table")
    command.add_argument("--seeds", action=Listed, type=_seed, metavar="N", help=seeds)


def _run(add: Add) -> None:
    table = "table as paper/table, for example fedlaw/table3; or the file of one run's configuration"
    run = add("run", "runs", "train runs of a table, or any method; finished seeds are kept, begun ones go on")
    run.add_argument("target", nargs="?", help=table)
    _by_hand(run)
    help = 'only these rows of the table, or any method, for example "fedprox(mu=1)+gh"'
    _part_of_a_table(run, seeds="default: the table's, else those of params.yaml", rows=help)
    run.add_argument("--scale", type=_word, help="demo, short or full; default: params.yaml")
    run.add_argument("--device", choices=DEVICES, help="default: params.yaml; auto for a file")
    help = "portable: the same bits on every x86-64 CPU with AVX2; native: this CPU's fastest kernels; auto: portable where "
    help += "it can be (default: params.yaml's)"
    run.add_argument("--arithmetic", choices=arithmetic.CHOICES, help=help)
    help = "auto: vectorised (all clients and seeds at once) on a GPU, sequential otherwise; plain is the readable reference"
    run.add_argument("--engine", choices=ENGINES, default="auto", help=help)
    help = "processes that share out each round's clients; they change no bit (default: params.yaml)"
    run.add_argument("--workers", type=_at_least_one, metavar="N", help=help)
    _checkpoints(run)
    help = (
        "also keep the models of these rounds, for `fedrepro diagnose`; a finished seed is trained again up to the last of them"
    )
    run.add_argument("--keep", action=Listed, nargs="+", type=_at_least_one, default=[], metavar="ROUND", help=help)
    help = "train finished seeds once more and say whether every number comes out the same; nothing is overwritten"
    once_more = run.add_mutually_exclusive_group()
    once_more.add_argument("--again", action="store_true", default=bool(os.environ.get("FEDREPRO_AGAIN")), help=help)
    help = "train every seed from the start, finished ones too; the new result replaces the old one when it is complete"
    once_more.add_argument("--fresh", action="store_true", help=help)
    run.add_argument("--dry-run", action="store_true", help="only say what would be trained and how long it would take")
    help = "with --dry-run: number of cores of the workflow (default: all)"
    run.add_argument("--cores", type=_at_least_one, metavar="N", help=help)
    run.add_argument("--log", type=Path, help="also write what is printed to this file")
    _done(run)


def _checkpoints(command: argparse.ArgumentParser) -> None:
    every = os.environ.get("FEDREPRO_CHECKPOINT_SECONDS", "20")
    help = f"seconds between two checkpoints (default: {every})"
    command.add_argument("--checkpoint-seconds", type=_seconds, default=every, metavar="S", help=help)


def _sweep(add: Add) -> None:
    sweep = add("sweep", "sweep", "methods over values of settings and arguments: one graph of runs, a table and a chart")
    _by_hand(sweep)
    help = "values to combine: of a setting, of an argument of the partition scheme (alpha=0.1,1), or of part.argument"
    sweep.set_defaults(fresh=False, again=False)
    sweep.add_argument("--over", action="extend", nargs="+", default=[], metavar="KEY=VALUES", help=help)
    sweep.add_argument("--seeds", action=Listed, type=_seed, metavar="N", help="default: params.yaml")
    help = "name of the sweep: of its folder in sweeps/, its reports, its experiment (default: from its content)"
    sweep.add_argument("--name", type=_word, help=help)
    sweep.add_argument("--cores", type=_at_least_one, metavar="N", help="for all jobs together (default: all there are)")
    sweep.add_argument("--device", choices=DEVICES, help="default: params.yaml")
    sweep.add_argument("--dry-run", action="store_true", help="only say what would be trained and how long it would take")


def _verify(add: Add) -> None:
    verify = add("verify", "verify", "train published cells again: identical to the bit? Is the page what the evidence gives?")
    verify.add_argument("target", help="table as paper/table, for example fedgh/table2; or the end of a published run_id")
    verify.add_argument("--scale", choices=PUBLISHED, help="default: full if it has evidence, else short")
    _part_of_a_table(verify, seeds="only these seeds")
    help = "minutes that the sample's published runs took; at least one training runs (default: 10)"
    verify.add_argument("--minutes", type=_minutes, default=10, metavar="M", help=help)
    verify.add_argument("--all", action="store_true", help="no sample: everything that a CPU has trained")
    help = "write today's fingerprints of the code into evidence that comes out identical to the bit"
    verify.add_argument("--renew", action="store_true", help=help)
    help = "processes that share out each round's clients"
    verify.add_argument("--workers", type=_at_least_one, default=1, metavar="N", help=help)
    help = "default: portable, whatever params.yaml says"
    verify.add_argument("--arithmetic", choices=arithmetic.CHOICES, default="portable", help=help)


def _publish(add: Add) -> None:
    publish = add("publish", "publish", "copy a table's finished seeds to reports/<scale>, where evidence is committed")
    publish.add_argument("target", help="table as paper/table, for example fedgh/table2")
    publish.add_argument("--scale", choices=PUBLISHED, required=True, help="scale of the runs, and of their folder in reports/")
    help = "publish the finished part even if part of the table is missing"
    publish.add_argument("--partial", action="store_true", help=help)
    publish.add_argument("--native", action="store_true", help="also what was trained on a GPU or in native arithmetic")


def _diagnose(add: Add) -> None:
    diagnose = add("diagnose", "diagnose", "measure kept models of a run, round by round")
    diagnose.add_argument("call", help='for example "client_distance(to=before)"; see `fedrepro list diagnostics`')
    diagnose.add_argument("run", help="the end of a run_id of results/runs, or the configuration of a run (JSON)")
    diagnose.add_argument("--seeds", action=Listed, type=_seed, metavar="N", help="default: all that models are kept of")
    help = "default: every round whose models are kept; what was measured before stays"
    diagnose.add_argument("--rounds", action=Listed, type=_at_least_one, metavar="ROUND", help=help)
    diagnose.add_argument("--device", choices=DEVICES, default="auto")
    help = "with a configuration file: first train the seeds and models that are missing"
    diagnose.add_argument("--train", action="store_true", help=help)
    help = "with --train: processes that share out each round's clients (default: 1)"
    diagnose.add_argument("--workers", type=_at_least_one, metavar="N", help=help)
    _checkpoints(diagnose)
    diagnose.set_defaults(engine="auto", again=False, fresh=False, keep=[])
    diagnose.add_argument("--log", type=Path, help="also write what is printed to this file")
    _done(diagnose)


def _done(command: argparse.ArgumentParser) -> None:
    command.add_argument("--done", type=Path, help=argparse.SUPPRESS)  # the workflow's marker: a hash of what is finished


def _which(command: argparse.ArgumentParser, what: str) -> None:
    """Adds the options that select stored runs."""
    command.add_argument("what", nargs="*", metavar="WHAT", help=what)
    command.add_argument("--scale", type=_word, metavar="NAME", help="demo, short or full; default: all")
    for axis, meaning in (("rows", "methods"), ("columns", "settings")):
        command.add_argument(f"--{axis}", action=Listed, metavar="KEY", help=f"only of these {axis} ({meaning}) of tables")
    help = "only methods with these parts, for example fedprox or fedprox+gh; fedavg: no other parts than FedAvg's"
    command.add_argument("--method", action=Listed, default=[], metavar="METHOD", help=help)
    for name in ("dataset", "model", "partition"):
        command.add_argument(f"--{name}", type=_word, metavar="NAME", help=f"only with this {name}")
    command.add_argument("--rounds", type=_at_least_one, metavar="N", help="only runs of N rounds")
    help = "only with these settings, and arguments of methods, for example client_lr=0.1 fedprox.mu=1"
    command.add_argument("--set", action="extend", nargs="+", default=[], metavar="KEY=VALUE", help=help)
    command.add_argument("--trials", action="store_true", help="also runs that tuning tried and did not choose")


def _look(add: Add) -> None:
    help = "list runs that were trained here or published: a line for each table, or for each run of what is named"
    runs = add("runs", "listing", help)
    _which(runs, "a table as paper/table, all of a paper, or a run: its run_id, a part of it, or its folder")
    runs.add_argument("--prune", action="store_true", help="remove result folders and MLflow runs that no table asks for")
    runs.add_argument("--dry-run", action="store_true", help="only say what --prune would remove")

    compare = add("compare", "compare", "runs side by side: settings, values on the same seeds, rounds needed, cost, curves")
    _which(compare, "runs, or tables as paper/table; a run is its run_id, a part of it that no other has, or its folder")
    help = "also draw the curves: mean over seeds, lowest to highest"
    compare.add_argument("--plot", type=_svg, metavar="FILE.svg", help=help)

    ui = add("ui", "track", "serve the MLflow UI over the runs of all tables asked for, brought up to date")
    ui.add_argument("--host", default="127.0.0.1", help="address to listen on; default: 127.0.0.1, this machine alone")
    ui.add_argument("--port", type=_port, default=5000, help="default: 5000")


def _find_out(add: Add) -> None:
    help = "list papers, tables, methods, models, partitions, data sets, diagnostics, or settings with their forms and defaults"
    names = add("list", "describe", help)
    names.set_defaults(function="list_names")
    kinds = ["papers", "tables", "methods", "models", "partitions", "datasets", "settings", "diagnostics"]
    names.add_argument("kind", choices=kinds, metavar="KIND", help=", ".join(kinds))
    describe = add("describe", "describe", "explain a method, a model, a partition scheme, a data set, a diagnostic or a table")
    describe.add_argument("name", help='for example "fedprox(mu=0.01)+fixed_gamma", resnet20, shards, mnist, fedgh/table2')
    add("doctor", "info", "check environment, device, data and results")
    new = add("new", "new", "begin a method, a table, a paper or a data set: files that run as they are, to be edited")
    new.add_argument("kind", choices=["method", "table", "paper", "dataset"])
    new.add_argument("name", help="of a table as paper/table, for example fedlaw/table30")
    slots = ["client", "transform", "aggregate", "rescale", "server_opt", "refine", "average", "buffers"]
    help = f"of a method: {', '.join(slots)} (default: aggregate)"
    new.add_argument("--slot", choices=slots, default="aggregate", metavar="SLOT", help=help)


def _draw(add: Add) -> None:
    """Adds the commands for what the workflow draws once and saves."""
    data = add("data", "drawing", "download, verify and prepare a data set")
    data.add_argument("dataset", help="see `fedrepro list datasets`")
    data.add_argument("--shape", help="CxHxW, for example 1x28x28; default: the data set's own")
    data.add_argument("--mirror", help="folder or URL to look in before the network; default: $FEDREPRO_MIRROR")

    draw = add("draw", "drawing", "draw and save what a file of results/configs defines, as the workflow does")
    draw.add_argument("definition", type=Path)
    draw.add_argument("--seeds", action=Listed, type=_seed, required=True, metavar="N")
    _done(draw)


def _render(add: Add) -> None:
    """Adds the commands that make reports from plans and receipts."""
    help = "render a table (Markdown, HTML, JSON, CSV, LaTeX) or a figure (SVG, CSV, JSON) from evidence"
    report = add("report", "reporting", help)
    help = "a file of results/plans; `snakemake --dry-run` with the report's name writes it"
    report.add_argument("plan", type=Path, help=help)
    report.add_argument("--out", type=Path, help="path of the files to write, without suffix; default: by the plan")

    choose = add("choose", "reporting", "choose between the candidates of a table's tuned cells, from their evidence")
    choose.add_argument("plan", type=Path)
    choose.add_argument("--out", type=Path, required=True, help="JSON file to write: the choices, and the runs that follow")

    page = add("page", "reporting", "render a paper's page from all evidence there is: Markdown, HTML and JSON")
    page.add_argument("plans", nargs="+", type=Path, help="plans of all tables and figures of one paper at one scale")
    page.add_argument("--out", type=Path, help="folder of the files; default: by the plans")

    site = add("site", "reporting", "render the list of all pages that are here, reports/all")
    overview = add("overview", "reporting", "render what holds of all papers, by their published pages: reports/README.md")
    for command in (site, overview):
        command.add_argument("pages", nargs="*", type=Path, help="JSON files of papers' pages")

    spread = add("spread", "reporting", "estimate anew, from published evidence, how far a paper's seeds lie apart")
    spread.add_argument("paper")

    add("versioned", "drawing", "link all finished results into results/versioned, which DVC stores")
    summary = add("summary", "reporting", "write the means of tables for DVC: of each cell, and of each method")
    summary.add_argument("documents", nargs="*", type=Path, help="JSON reports of tables")
    help = "file for the cells; means.json beside it has the methods"
    summary.add_argument("--out", type=Path, default=Path("results/summary.json"), help=help)

    track = add("track", "track", "bring MLflow up to date with the result folders (safe to repeat)")
    track.add_argument("plans", nargs="*", type=Path, help="plan files; default: all under results/plans")
    track.add_argument("--out", type=Path, help="write what was done to this file, and never fail")
    help = "sync every S seconds until Ctrl-C, and show the rounds of running trainings"
    track.add_argument("--every", type=_at_least_one, metavar="SECONDS", help=help)
    track.add_argument("--beside", type=int, help=argparse.SUPPRESS)  # ends with this process
    track.add_argument("--published", action="store_true", help="also the runs of published reports, as `ui` does")
