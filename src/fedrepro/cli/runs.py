"""fedrepro run."""

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro import arithmetic, console
from fedrepro.cli import request, table_selection
from fedrepro.config.places import SWEEP
from fedrepro.engine import cards, environment
from fedrepro.engine.receipts import IDENTITY, receipt_path
from fedrepro.errors import UserError
from fedrepro.files import content_of, read_json, write_text
from fedrepro.store import Store

if TYPE_CHECKING:
    from fedrepro.config.plan import Place, Plan
    from fedrepro.config.project import Project
    from fedrepro.cost.forecast import Forecast

Job = tuple[dict[str, Any], list[int]]  # what training needs to know of a run, and its seeds


def run(options: Namespace) -> None:
    console.log_to(options.log)
    if options.engine != "vectorised":
        arithmetic.widen()
    _require_one_target(options)
    if options.target and options.target.startswith(SWEEP):
        options.scale = options.scale or "full"  # this scale changes no setting of a sweep
    if options.target and options.target.endswith(".json"):
        _run_file(Path(options.target), options)
        return
    project = _project(options)
    plan, cells = _resolve(project, options)
    if options.method:
        for run in list(plan.runs.values())[:1]:  # one line holds for all runs
            console.say(request.sources_line(run, request.given_values(options), options.like))
    seeds, device = options.seeds or list(plan.seeds), options.device or project.params.device
    workers = project.params.workers
    if options.dry_run:
        follow, candidates = table_selection.cells_after_trials(plan, cells, Store.of())
        _forecast(_training_jobs(table_selection.jobs(plan, [*cells, *follow], seeds)), device, options)
        if candidates:
            print(candidates)
        return
    trained: set[tuple[str, int]] = set()
    if tuned := table_selection.candidates(cells):
        trials = table_selection.jobs(plan, tuned, seeds)
        _train(_training_jobs(trials), options, device, workers=workers)
        if options.fresh or options.again:
            trained = {(run.run_id, seed) for run, trial_seeds in trials for seed in trial_seeds}
        plan = table_selection.with_choices(plan, Store.of())
        decided_cells = table_selection.cells(plan, options)
        cells = [cell for cell in decided_cells if cell.chosen or (cell.run_id and not cell.tuned)]
        for cell in (cell for cell in decided_cells if cell.tuned and not cell.chosen):
            console.show(f"{plan.row(cell.row).label}, {plan.column(cell.column).title}: {cell.reason}")
        if not cells:
            return
    from fedrepro.cli.outcome import Conclusion

    outcome = Conclusion(project, plan, cells, seeds, keeps=bool(options.keep))
    jobs = [
        (run, left)
        for run, run_seeds in table_selection.jobs(plan, cells, seeds)
        if (left := [seed for seed in run_seeds if (run.run_id, seed) not in trained])
    ]
    _train(_training_jobs(jobs), options, device, outcome.read, workers=workers)
    for line in outcome.lines():
        console.show(line)


def _require_one_target(options: Namespace) -> None:
    """Raises UserError unless there is a table, a file or a method, and nothing that does not go with it."""
    if bool(options.target) == bool(options.method):
        what = " (with --like for what is not given)" if options.target else ", for example fedlaw/table3"
        raise UserError(f"run: give either a table or --method{what}")
    if options.like and not options.method:
        raise UserError(f"--like {options.like}: goes with --method; of a table give the table itself")
    if options.cores and not options.dry_run:
        raise UserError(f"--cores {options.cores}: goes with --dry-run; without it one run trains after another, see --workers")
    for key in ("rows", "columns", "scale"):
        if options.method and getattr(options, key):
            raise UserError(f"--{key}: goes with a table, not with --method; give settings by --set")


def configuration(path: Path) -> dict[str, Any]:
    """Returns the configuration of one run. UserError for a file of something else."""
    entry = read_json(path)
    if not isinstance(entry, dict) or not {*IDENTITY} <= entry.keys():
        raise UserError(f"{path}: not the configuration of a run; snakemake writes them to results/configs")
    return entry


def _run_file(path: Path, options: Namespace) -> None:
    """Trains the run of a configuration file, as a job of the workflow."""
    entry = configuration(path)
    if not options.seeds:
        raise UserError(f"{path}: the configuration of one run names no seeds; add --seeds 8 9 10")
    for key in ("rows", "columns", "scale", "set", "rounds", "dataset", "model", "partition", "like"):
        if getattr(options, key):
            raise UserError(f"{path}: names one run and all of its settings; leave --{key} out")
    _require_rounds([entry], options.keep)
    if options.dry_run:
        _forecast([(entry, options.seeds)], options.device or "auto", options)
    else:
        train_file(path, entry, options)
        if options.done:
            write_text(options.done, content_of(receipt_path(Path(), entry["run_id"], seed) for seed in options.seeds))


def train_file(path: Path, entry: dict[str, Any], options: Namespace) -> None:
    """Trains what is missing of the run that the file at `path` describes by `entry`, as a job of the workflow."""
    from fedrepro.engine.artifacts import require_run

    require_run(entry, path, "delete it and run the same command again")
    _train([(entry, options.seeds)], options, options.device or "auto", by_hand=False)


def _training_jobs(jobs: "list[table_selection.Job]") -> list[Job]:
    """Returns the jobs as training takes them, with the rounds whose models tables keep and measure, and shared rounds."""
    return [
        (run.identity | {"keep": run.keep, "measures": run.measures, "forks": [*map(asdict, run.forks)]}, seeds)
        for run, seeds in jobs
    ]


def _train(jobs: list[Job], options: Namespace, device: str, read: Any = None, by_hand: bool = True, workers: int = 1) -> None:
    """Trains the jobs. `workers`: of params.yaml, where the command names none and the engine takes several."""
    device = cards.choose(device)  # before torch is imported
    from fedrepro.engine.forks import Fork
    from fedrepro.engine.run import Options, run_seeds

    later: dict[str, float] = {}  # run_id -> the training time of all later runs, in multiples of one seed of this run
    if by_hand:  # the workflow has announced all of its jobs
        forecast = _forecast_of(jobs, device, options)
        later = forecast.later()
        for line in filter(None, (forecast.announcement(cores=1), forecast.unpublishable())):
            console.say(line)
    for entry, seeds in jobs:
        run_options = Options(
            root=Path(),
            device=device,
            engine=options.engine,
            workers=options.workers or (1 if device == "cuda" or options.engine == "vectorised" else workers),
            checkpoint_s=options.checkpoint_seconds,
            again=options.again and not options.fresh,
            fresh=options.fresh,
            keep=tuple(sorted({*(n for n in options.keep if n <= entry["config"]["rounds"]), *entry.get("keep", ())})),
            forks=tuple(Fork(**fork) for fork in entry.get("forks", ())),
            later=later.get(entry["run_id"], 0.0),
            read=read,
        )
        outcomes = run_seeds(entry, seeds, run_options)
        line = f"{entry['run_id']}: " + ", ".join(f"seed {seed} {what}" for seed, what in outcomes.items())
        if not by_hand and {*outcomes.values()} == {"trained"}:  # a line was printed for each seed
            console.note(line)
        else:
            console.say(line)


def _require_rounds(entries: Iterable[dict[str, Any]], keep: list[int]) -> None:
    """Raises UserError for a round of --keep that a run does not have."""
    for entry in entries:
        rounds = entry["config"]["rounds"]
        for number in (number for number in keep if number > rounds):
            has = console.some(rounds, "round")
            raise UserError(f"--keep {number}: {entry['run_id']} has {has}; name rounds from 1 to {rounds}")


def _forecast(jobs: list[Job], device: str, options: Namespace) -> None:
    print(*_forecast_of(jobs, device, options).lines(options.cores), sep="\n")


def _forecast_of(jobs: list[Job], device: str, options: Namespace) -> "Forecast":
    from fedrepro.cost import forecast
    from fedrepro.cost.rates import Rates
    from fedrepro.data.registry import REGISTRY, load_registry

    device = environment.pick_device(device)
    for run, _ in jobs:
        environment.choose_products(device, run["config"].get("products", "float32"))
    forecast_jobs = [forecast.Job.of(Path(), *job, options.again, options.fresh) for job in jobs]
    return forecast.Forecast(forecast_jobs, Rates(Path(), load_registry(REGISTRY), environment._processor()), device)


def print_forecast(plan: "Plan", device: str, options: Namespace) -> None:
    """Prints what all of a plan would train, and how long that takes."""
    _forecast(_training_jobs(table_selection.jobs(plan, plan.cells, plan.seeds)), device, options)


def _project(options: Namespace) -> "Project":
    """Returns the project under params.yaml and the options of the command."""
    from fedrepro.config import by_hand
    from fedrepro.config.project import load_project, read_params

    content = read_params(Path())
    if not isinstance(content, dict) or not isinstance(content.get("settings") or {}, dict):
        return load_project(params=content)  # which raises UserError
    with request.blaming_the_options(options):
        if options.method:
            project = by_hand.alone(load_project(params=content), request.request_of(options))
            options.target, options.scale = f"{by_hand.PAPER}/{by_hand.TABLE}", "full"
            return project
    values = request.given_values(options)
    settings = {key: value for key, value in values.items() if "." not in key}
    arguments = {key: value for key, value in values.items() if "." in key}
    with request.blaming_the_options(options):
        project = load_project(params=content | {"settings": (content.get("settings") or {}) | settings})
        if values or options.rows or options.columns:
            return by_hand.narrowed(project, options.target, options.rows, options.columns, arguments)
        return project


def _resolve(project: "Project", options: Namespace) -> "tuple[Plan, list[Place]]":
    """Returns the plan of paper/table at --scale and the chosen cells; draws what a run by hand still lacks."""
    from fedrepro.config.grid import plan as resolve
    from fedrepro.config.ignored import require_effect, unused_seeds

    paper, _, table = options.target.partition("/")
    with request.blaming_the_options(options):
        resolved = resolve(project, paper, table, options.scale or project.params.scale)
        require_effect(project, [resolved])
    if not options.seeds and (line := unused_seeds(project, resolved)):
        console.say(line)
    cells = _select(resolved, options)
    jobs = table_selection.jobs(resolved, cells, options.seeds or resolved.seeds, chosen=True)
    _require_rounds((resolved.runs[cell.run_id].identity for cell in cells if cell.run_id), options.keep)  # not of trials
    if not options.dry_run:
        from fedrepro.cli.drawing import draw_missing
        from fedrepro.engine.receipts import beside

        for entry, seeds in jobs:
            with_others = options.again or options.keep  # a finished seed trains again together with the seeds it trained with
            draw_missing(project, entry, beside(Path(), entry.run_id, seeds) if with_others else seeds)
    return resolved, cells


def _select(plan: "Plan", options: Namespace) -> "list[Place]":
    """Returns the cells with runs that --rows and --columns leave. UserError when a name is unknown or nothing is left."""
    cells = table_selection.cells(plan, options)
    runnable = [cell for cell in cells if cell.run_id]
    if not runnable:
        reasons = sorted({str(cell.reason) for cell in cells if cell.reason})
        raise UserError(f"{options.target}: nothing to run: {'; '.join(reasons) or 'no cell is left'}")
    return runnable
