"""The command line. Each command imports what it needs when it runs: `fedrepro evidence` starts in a tenth of a second.

Under a workflow those that need torch run in a fork of a process that has it (`fedrepro.cli.forkserver`).
"""

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from fedrepro import __version__, arithmetic, console
from fedrepro.cli import forkclient
from fedrepro.errors import UserError

# Commands that import torch. Of `run` only with --device cpu: a GPU's driver does not survive a fork.
FORKED = ("run", "plan", "data", "init", "plans", "announce")
# Commands whose results depend on the arithmetic, and the process that some of them are forked from.
COMPUTE = ("run", "verify", "data", "partition", "participation", "proxy", "init", "announce", "forkserver", "doctor")
Add = Callable[[str, str, str | None], argparse.ArgumentParser]  # name, module of fedrepro.cli, help -> the command
EPILOG = "Mistakes that you can mend end with one line and exit code 2; --debug adds the traceback."


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments; `fedrepro.cli.<module>` holds the functions behind them."""
    top = argparse.ArgumentParser(prog="fedrepro", description="Re-run tables of federated-learning papers.", epilog=EPILOG)
    top.add_argument("--version", action="version", version=__version__)
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, module: str, help: str | None) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=help) if help else commands.add_parser(name)
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.set_defaults(module=module, function=name)
        return command

    _run(add)

    verify = add("verify", "verify", "train published cells again: are they identical to the bit?")
    verify.add_argument("target", help="table as paper/table, for example fedgh/table2; or the run_id of published evidence")
    verify.add_argument("--scale", choices=["full", "short"], help="default: the first of them that has evidence")
    verify.add_argument("--rows", nargs="+", metavar="KEY", help="only these rows (methods) of the table")
    verify.add_argument("--columns", nargs="+", metavar="KEY", help="only these columns (settings) of the table")
    verify.add_argument("--seeds", nargs="+", type=int, metavar="N", help="only these seeds")
    help = "a sample that took so long when it was published; at least one training (default: 10)"
    verify.add_argument("--minutes", type=float, default=10, metavar="M", help=help)
    verify.add_argument("--all", action="store_true", help="no sample: everything that is there")
    verify.add_argument(
        "--workers", type=_at_least_one, default=1, metavar="N", help="processes that share out each round's clients"
    )
    help = "default: portable, whatever params.yaml says"
    verify.add_argument("--arithmetic", choices=arithmetic.CHOICES, default="portable", help=help)

    plan = add("plan", "runs", "write out all that a table needs: cells, runs, settings and their sources")
    plan.add_argument("target", help="table as paper/table")
    plan.add_argument("--scale", help="default: params.yaml")
    plan.add_argument("--params", help="content of params.yaml as JSON, to use instead of the file")
    plan.add_argument("--out", type=Path, help="file to write; default: standard output")

    config = add("config", "runs", "write the configuration of one run")
    config.add_argument("content", help="JSON")
    config.add_argument("--out", type=Path, required=True)

    evidence = add("evidence", "runs", "copy the receipts of finished seeds to where reports are rendered from")
    evidence.add_argument("receipt", type=Path)
    evidence.add_argument("out", type=Path)

    runs = add("runs", "runs", "list results; --prune removes those that no table asks for")
    runs.add_argument("--prune", action="store_true", help="remove result folders and MLflow runs that no table asks for")
    runs.add_argument("--dry-run", action="store_true", help="only say what --prune would remove")

    report = add("report", "reporting", "render a table from evidence: Markdown, HTML and JSON")
    report.add_argument("plan", type=Path)
    report.add_argument("--out", type=Path, required=True, help="path of the files to write, without suffix")

    page = add("page", "reporting", "render a paper's page from all evidence there is: Markdown, HTML and JSON")
    page.add_argument("plans", nargs="+", type=Path, help="plans of all tables of one paper at one scale")

    site = add("site", "reporting", "render the list of all papers' pages, reports/index")
    site.add_argument("pages", nargs="*", type=Path, help="JSON files of papers' pages")

    summary = add("summary", "reporting", "write the means of tables for `dvc metrics show`")
    summary.add_argument("documents", nargs="+", type=Path, help="JSON reports")
    summary.add_argument("--out", type=Path, default=Path("results/summary.json"))

    track = add("track", "reporting", "bring MLflow up to date with the result folders (safe to repeat)")
    track.add_argument("plans", nargs="*", type=Path, help="plan files; default: all under results/plans")
    track.add_argument("--out", type=Path, help="write what was done to this file, and never fail")

    ui = add("ui", "reporting", "sync, then serve the MLflow UI")
    ui.add_argument("--host", default="127.0.0.1")
    ui.add_argument("--port", type=int, default=5000)

    data = add("data", "drawing", "download, verify and prepare a data set")
    data.add_argument("dataset")
    data.add_argument("--shape", help="CxHxW, for example 1x28x28; default: the data set's own")
    data.add_argument("--mirror", help="folder or URL to look in before the network; default: $FEDREPRO_MIRROR")

    partition = add("partition", "drawing", "draw and save the clients' parts of a data set")
    partition.add_argument("dataset")
    partition.add_argument("scheme", help='for example "dirichlet_per_class(alpha=0.1)"')
    partition.add_argument("--clients", type=int, required=True)
    partition.add_argument("--local-validation", type=float, default=0.0, help="share held out of each client's part")

    participation = add("participation", "drawing", "draw and save the cohort of each round")
    participation.add_argument("--clients", type=int, required=True)
    participation.add_argument("--ratio", type=float, default=1.0, help="share of the clients in each round")
    participation.add_argument("--rounds", type=int, required=True)
    participation.add_argument("--cohorts", default="drawn", help="drawn for each round, or fixed: one for all rounds")

    proxy = add("proxy", "drawing", "draw and save the server's proxy set, taken from the test set")
    proxy.add_argument("dataset")
    proxy.add_argument("--per-class", type=int, required=True)

    init = add("init", "drawing", "draw and save an initial model")
    init.add_argument("model")
    init.add_argument("--classes", type=int, required=True)

    for command in (partition, participation, proxy, init):
        command.add_argument("--seeds", nargs="+", type=int, required=True, metavar="N")

    add("methods", "info", "list methods and the parts they are made of")
    describe = add("describe", "info", "explain a method: its parts, arguments and source")
    describe.add_argument("method", help='for example "fedprox(mu=0.01)+fixed_gamma"')
    add("doctor", "info", "check environment, device, data and results")
    _for_the_workflow(add)
    return top


def _run(add: Add) -> None:
    table = "table as paper/table, for example fedlaw/table3; or a file: a plan, or the configuration of one run"
    run = add("run", "runs", "train runs of a table, seed by seed; finished seeds are kept, begun ones go on")
    run.add_argument("target", help=table)
    run.add_argument("--run-id", nargs="+", metavar="ID", help="only these runs")
    run.add_argument("--rows", nargs="+", metavar="KEY", help="only these rows (methods) of the table")
    run.add_argument("--columns", nargs="+", metavar="KEY", help="only these columns (settings) of the table")
    run.add_argument("--scale", help="demo, short or full; default: params.yaml")
    run.add_argument("--seeds", nargs="+", type=int, metavar="N", help="default: params.yaml")
    run.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings to change, for example rounds=5 dataset=mnist"
    )
    run.add_argument("--device", choices=["auto", "cpu", "cuda"], help="default: params.yaml; auto for a file")
    help = (
        "portable: the same bits on every x86-64 CPU; native: this CPU's fastest kernels (default: params.yaml, else portable)"
    )
    run.add_argument("--arithmetic", choices=arithmetic.CHOICES, help=help)
    engines = ["auto", "sequential", "vectorised", "plain"]
    help = "auto: vectorised (all clients and seeds at once) on a GPU, sequential otherwise; plain is the readable reference"
    run.add_argument("--engine", choices=engines, default="auto", help=help)
    help = "processes that share out each round's clients; they change no bit (default: 1)"
    run.add_argument("--workers", type=_at_least_one, default=1, metavar="N", help=help)
    every = os.environ.get("FEDREPRO_CHECKPOINT_SECONDS", "20")
    help = f"save a resumable state so often, in seconds (default: {every})"
    run.add_argument("--checkpoint-seconds", type=float, default=every, metavar="S", help=help)
    help = "train finished seeds once more and say whether every number comes out the same; nothing is overwritten"
    run.add_argument("--again", action="store_true", default=bool(os.environ.get("FEDREPRO_AGAIN")), help=help)
    run.add_argument("--dry-run", action="store_true", help="only say what would be trained and how long it would take")
    run.add_argument("--cores", type=int, metavar="N", help="with --dry-run: how many the workflow would get; default: all")
    run.add_argument("--log", type=Path, help="also write what is printed to this file")


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number of at least 1")
    return int(text)


def _for_the_workflow(add: Add) -> None:
    """Commands that are not for people: without help, they are not listed."""
    plans = add("plans", "runs", None)
    plans.add_argument("--params", required=True)
    plans.add_argument("--out", type=Path, required=True)

    announce = add("announce", "forecast", None)
    announce.add_argument("--cores", type=int)

    forkserver = add("forkserver", "forkserver", None)
    forkserver.add_argument("listener", type=int)
    forkserver.add_argument("alive", type=int)


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `fedrepro`; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        forked = options.command in FORKED and getattr(options, "device", "cpu") == "cpu"
        if options.command in COMPUTE and getattr(options, "device", None) != "cuda":
            wanted = arithmetic.chosen(getattr(options, "arithmetic", None))
            forked = forked and wanted == arithmetic.chosen(None)  # which is what the fork server has loaded
            arithmetic.settle(wanted)
        if forked:
            code = forkclient.delegate(sys.argv[1:] if arguments is None else arguments)
            if code is not None:
                return code
        module = importlib.import_module(f"fedrepro.cli.{options.module}")
        return getattr(module, options.function)(options) or 0
    except BrokenPipeError:  # `fedrepro methods | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        console.fail("fedrepro: interrupted; the same command goes on from where it stopped")
        return 130
    except Exception as error:
        if options.debug:
            raise
        expected = isinstance(error, UserError)
        detail = str(error) if expected else f"{type(error).__name__}: {error}; run again with --debug for the traceback"
        console.fail("fedrepro: error: " + " ".join(detail.split()))
        return UserError.exit_code if expected else 1
