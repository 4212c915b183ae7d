"""Lock, announcement and errors of one snakemake process. The kernel frees the lock when the process ends."""

import atexit
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake.persistence import PersistenceBase

from fedrepro import arithmetic
from fedrepro.checkout import require_own_code
from fedrepro.config.plan import CONFIGS
from fedrepro.config.project import read_params
from fedrepro.cost.forecast import Forecast, Job
from fedrepro.engine import cluster
from fedrepro.errors import UserError
from fedrepro.files import lock, read_json
from fedrepro.workflow.jobs import LOCK, PLANNING

if TYPE_CHECKING:
    from fedrepro.workflow.graph import Workflow

ERRORS = Path(".snakemake/fedrepro-errors")

_open_locks = contextlib.ExitStack()  # the lock, for as long as the process lives
_claimed_locks: set[Path] = set()


def prepare(arithmetic_name: str) -> None:
    """Runs before any job. Puts the interpreter's folder into PATH: jobs find `fedrepro` there without an active environment.

    `arithmetic_name`: the arithmetic that they compute with.
    """
    arithmetic.export(arithmetic_name)
    _compare_params_without_pandas()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("FEDREPRO_ERRORS", str((ERRORS / f"{os.getpid()}.txt").absolute()))


def require_params() -> None:
    """Checks params.yaml before Snakemake, whose own reader takes the last of two equal keys, and names no line of a
    mistake."""
    with one_line():
        require_own_code()
        read_params(Path())


def claim() -> None:
    """Takes the lock before anything is written: making the graph, in a dry run too, writes plans and markers, which jobs of
    another process read. Processes that Snakemake starts for its own jobs share the claim of their main process."""
    if LOCK.absolute() not in _claimed_locks:
        with one_line():
            _open_locks.enter_context(lock(LOCK, busy=_refuse))
        _claimed_locks.add(LOCK.absolute())


def begin(flow: "Workflow", workflow: Any) -> None:
    """Prepares and announces the jobs, once, when Snakemake's `workflow` is about to run them."""
    with contextlib.suppress(Exception):  # no job depends on these steps
        if workflow.touch:
            return
        if _forced(workflow.dag_settings):
            os.environ["FEDREPRO_AGAIN"] = "1"
        jobs = list(workflow.dag.needrun_jobs())
        cluster.share_out_cards(workflow)
        if cluster.elsewhere(workflow) and (line := cluster.left_behind(Path.cwd())):
            print(f"fedrepro: {line}", file=sys.stderr, flush=True)
        trains = any(job.rule.name in ("train", "diagnose") for job in jobs)
        # Snakemake gives no job elsewhere more threads than --cores, and says nothing of it. The profile for Slurm has one.
        if workflow.non_local_exec and trains and flow.workers > workflow.cores:
            note = f"workers: {flow.workers} in params.yaml has no effect beyond {workflow.cores}"
            note += f", since no job gets more cores than --cores; give --cores {flow.workers}"
            print(f"fedrepro: {note}", file=sys.stderr, flush=True)
        announce(flow, None if cluster.elsewhere(workflow) else workflow.cores, jobs)


def _compare_params_without_pandas() -> None:
    """Spares each call half a second. Snakemake imports pandas in case a job's params have a data frame; ours are text."""
    with contextlib.suppress(AttributeError):  # another version of Snakemake works without this
        compare = PersistenceBase._serialize_param_builtin
        setattr(PersistenceBase, "_serialize_param", property(lambda persistence: partial(compare, persistence)))  # noqa: B010


def _forced(settings: Any) -> bool:
    """Whether Snakemake was told to train although everything is there: --forcerun train, --forceall."""
    rules = settings.forcerun if isinstance(settings.forcerun, set | frozenset) else ["train"]
    return bool(settings.forceall or "train" in rules)


def _refuse(holder: str) -> None:
    """Stops this workflow, since another one runs in the folder; waits where plans are written anew, which takes seconds."""
    if not holder.endswith(PLANNING):
        raise UserError(
            f"process {holder} already runs snakemake in this folder; wait for it (meanwhile `fedrepro runs` and "
            "`fedrepro run TABLE --dry-run` say what is there and what is missing)"
        )


def announce(flow: "Workflow", cores: int | None, jobs: Iterable[Any]) -> None:
    """Prints a line on what Snakemake is about to train, including the runs of candidates to be chosen, and how long that
    takes."""
    seeds = flow.foreseen([(job.wildcards.place, job.wildcards.table) for job in jobs if job.rule.name == "choice"])
    for job in (job for job in jobs if job.rule.name == "train"):
        seeds.setdefault(job.wildcards.run_id, {}).update(dict.fromkeys(map(int, job.wildcards.seeds.split("-"))))
    forecast_jobs = [Job.of(Path(), read_json(CONFIGS / f"{run_id}.json"), [*run_seeds]) for run_id, run_seeds in seeds.items()]
    forecast = Forecast(forecast_jobs, flow.rates, flow.device)
    lines = (forecast.announcement(cores), forecast.spare(cores, flow.workers), forecast.unpublishable())
    for line in filter(None, lines):
        print(f"fedrepro: {line}", file=sys.stderr, flush=True)


def repeat_errors() -> None:
    """Prints the errors of a workflow's jobs, each line once, after Snakemake's last output."""
    path = Path(os.environ["FEDREPRO_ERRORS"])
    with contextlib.suppress(OSError):
        lines = dict.fromkeys(path.read_text().splitlines())
        path.unlink()
        atexit.register(print, *lines, sep="\n", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Ends the process with one line and exit code 2 on a user's mistake, past Snakemake's own handling of exceptions."""
    try:
        yield
    except UserError as error:
        print("fedrepro: error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
        os._exit(UserError.exit_code)
