"""What the runs of a plan cost, what computed them, the sha256 of all that they read, and what a reader must know of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fedrepro.config.plan import Plan
from fedrepro.config.reading import EDITED
from fedrepro.console import some
from fedrepro.engine import fingerprints
from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.choices import Choice
from fedrepro.exhibits.kinds import make_kind
from fedrepro.exhibits.receipt import Cost, Environment, Evidence, Receipt, receipts
from fedrepro.exhibits.settings import show
from fedrepro.grouping import grouped
from fedrepro.registry import named_arguments

VERSIONS = ("python", "torch", "numpy", "platform", "engine", "arithmetic", "linear_kernel", "products")


@dataclass(frozen=True)
class RunCost:
    """A run with its receipts; one that several cells share is listed once, with all their settings."""

    run_id: str
    method: str
    setting: str
    receipts: tuple[Receipt, ...]

    @property
    def of_seeds(self) -> list[tuple[str | None, Cost]]:
        """(device, cost) of each seed."""
        return [(receipt.environment.device, receipt.cost) for receipt in self.receipts]


def costs(evidence: Evidence, cells: Sequence[Cell], choices: Sequence[Choice]) -> list[RunCost]:
    """Lists the runs of cells and trials that have evidence."""
    places = grouped((cell.run_id, (cell.row.label, cell.column.title)) for cell in cells if cell.run_id)
    for choice in choices:
        for candidate in choice.tried:
            places.setdefault(candidate.run_id, [(f"{choice.row}, {candidate.text}", choice.column)])
    return [
        RunCost(
            run_id,
            shared[0][0],
            ", ".join(dict.fromkeys(setting for _, setting in shared)),
            tuple(evidence[run_id].values()),
        )
        for run_id, shared in places.items()
        if evidence.get(run_id)
    ]


def methods(plan: Plan) -> list[tuple[str, list[str]]]:
    """Lists the label of each row with the methods of its runs. There are several when an argument depends on the setting."""
    specs = grouped((cell.row, plan.run(cell).method) for cell in plan.planned)
    return [(row.label, list(dict.fromkeys(specs.get(row.key, [])))) for row in plan.rows]


def versions(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    """Returns library -> the versions that computed the numbers."""
    environments = [receipt.environment for receipt in receipts(evidence)]
    recorded = {
        key: {str(value) for environment in environments if (value := getattr(environment, key)) is not None}
        for key in VERSIONS
    }
    return {key: tuple(sorted(values)) for key, values in recorded.items()}


def page_versions(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    """Returns `versions` under the names that pages have, with the number of runs that do not record one."""
    environments, by_name = [receipt.environment for receipt in receipts(evidence)], {}
    for key, values in versions(evidence).items():
        lacking = sum(getattr(environment, key) is None for environment in environments)
        note = [f"not recorded by {lacking} of {len(environments)} runs"] if lacking else []
        by_name[key.replace("_", " ")] = (*values, *note)
    return by_name


def devices(evidence: Evidence) -> list[str]:
    """Lists devices, `cpu, AMD EPYC, 1 thread a run`."""
    return sorted({_device(receipt.environment) for receipt in receipts(evidence)})


def _device(environment: Environment) -> str:
    threads = environment.threads
    count = None if threads is None else f"{threads} thread{'' if threads == 1 else 's'} a run"
    return ", ".join(part for part in (environment.device, environment.processor, count) if part)


def commits(evidence: Evidence) -> list[str]:
    """Lists the commits of the runs. `(dirty)` marks uncommitted changes."""
    environments = [receipt.environment for receipt in receipts(evidence)]
    return sorted(
        {f"{environment.commit or 'unknown'}{' (dirty)' if environment.dirty else ''}" for environment in environments}
    )


def input_files(plan: Plan, evidence: Evidence) -> list[tuple[str, str, str, list[int]]]:
    """Lists every file that the runs read: kind, identity, sha256, seeds."""
    return sorted(
        (
            (kind, name, digest, [seed for seed, digests in seeds.items() if digest in digests])
            for (kind, name), seeds in _inputs(plan, evidence).items()
            for digest in dict.fromkeys(digest for digests in seeds.values() for digest in digests)
        ),
        key=lambda entry: (entry[0], entry[1], entry[3]),
    )


def warnings(plan: Plan, evidence: Evidence, cells: Sequence[Cell], planned: int) -> tuple[str, ...]:
    """Returns the sentences that a reader needs before the numbers; empty when there is nothing to warn of. `planned`: the runs
    that the report needs."""
    runs, sentences = receipts(evidence), [plan.stand_in] if plan.stand_in else []
    if len(runs) < planned:
        sentences.append(f"Incomplete: {len(runs)} of {planned} runs (run = one cell's setting at one seed) have evidence.")
    if diverged := {receipt.key for receipt in runs if receipt.diverged}:
        shown = plan.kind and make_kind(plan.kind).shows_diverged
        said = "the figure shows the rounds before that" if shown else _describe_diverged(diverged, cells)
        sentences.append(f"{len(diverged)} of {some(len(runs), 'run')} diverged; {said}.")
    changed = [names for receipt in runs if (names := fingerprints.changed(receipt.code, receipt.config).names)]
    if changed:
        what = fingerprints.listed(dict.fromkeys(name for names in changed for name in names))
        were = "was" if len(changed) == 1 else "were"
        sentences.append(f"{len(changed)} of {some(len(runs), 'run')} {were} trained with other code of {what} than today's.")
    if unknown := sum(not fingerprints.comparable(receipt.code) for receipt in runs):
        sentences.append(f"{unknown} of {len(runs)} runs do not record which code trained them.")
    edited = _edited(plan)
    if edited:
        sentences.append(f"params.yaml overrides what the table would take: {', '.join(edited)}.")
    commit_ids = {receipt.environment.commit for receipt in runs}
    if len(commit_ids) > 1:
        where = "the JSON lists them" if plan.kind else "“commit of the runs” below lists them"
        sentences.append(f"The runs come from {len(commit_ids)} different commits; {where}.")
    if any(receipt.environment.dirty for receipt in runs):
        sentences.append("Some runs were made from a working tree with uncommitted changes (marked dirty).")
    return (*sentences, *_mixed(cells), *_conflicts(plan, evidence))


def _describe_diverged(diverged: set[str], cells: Sequence[Cell]) -> str:
    """Says what the cells show of runs that diverged, given by their keys."""
    without: dict[str, dict[str, None]] = {}
    earlier = False
    for cell in cells:
        ends = [receipt.diverges(cell.place.reading) for receipt in cell.receipts.values() if receipt.key in diverged]
        if any(ends):
            without.setdefault(cell.row.label, {})[cell.column.title] = None
        earlier = earlier or not all(ends)
    if not without:
        return "the cells show earlier rounds" if earlier else "they are candidates that no cell shows"
    listing = ", ".join(f"{row} ({'; '.join(titles)})" for row, titles in without.items())
    return f"these cells have no mean: {listing}{'. Other cells show earlier rounds of these runs' if earlier else ''}"


def _edited(plan: Plan) -> list[str]:
    """Lists `rounds = 5` for every value that comes from params.yaml instead of from the table, its paper or the scale."""
    edited = {f"average_last = {cell.average_last}" for cell in plan.cells if cell.average_last_source == EDITED}
    for run in plan.runs.values():
        values = run.config | named_arguments(run.method)
        sources = run.sources | run.argument_sources
        edited |= {f"{key} = {show(values[key])}" for key, source in sources.items() if source == EDITED}
    return sorted(edited)


def _mixed(cells: Sequence[Cell]) -> Iterator[str]:
    """Yields a sentence if seeds of a cell differ in arithmetic, and one if they differ in device."""
    ways = {
        "arithmetic": [{receipt.environment.arithmetic or "native" for receipt in cell.receipts.values()} for cell in cells],
        "devices": [{str(receipt.environment.device) for receipt in cell.receipts.values()} for cell in cells],
    }
    for what, used in ways.items():
        unlike = [kinds for kinds in used if len(kinds) > 1]
        if unlike:
            names = fingerprints.listed(sorted(set().union(*unlike)))
            yield f"{len(unlike)} of {len(cells)} cells have seeds that were trained with unlike {what}: {names}."


def _conflicts(plan: Plan, evidence: Evidence) -> Iterator[str]:
    """Yields a sentence for each input whose sha256 differs between runs of a seed; for the arrays also between seeds.

    Runs with the same participation or initial model must have read the same bytes.
    """
    for (kind, name), seeds in _inputs(plan, evidence).items():
        short = {seed: ", ".join(digest[:12] for digest in digests) for seed, digests in seeds.items()}
        if kind == "arrays" and len({digest for digests in seeds.values() for digest in digests}) > 1:
            listing = "; ".join(f"seed {seed} {digests}" for seed, digests in short.items() if digests)
            yield f"Not all runs read the same {kind} {name}: {listing}."
            continue
        for seed in [seed for seed, digests in seeds.items() if len(digests) > 1]:
            yield f"Not all runs read the same {kind} {name} at seed {seed} ({short[seed]})."


def _inputs(plan: Plan, evidence: Evidence) -> dict[tuple[str, str], dict[int, list[str]]]:
    """Maps (kind, identity) of an input to seed -> the sha256 sums that the runs report."""
    digests: dict[tuple[str, str], dict[int, list[str]]] = {}
    for run_id in dict.fromkeys(cell.run_id for cell in plan.planned if cell.run_id):
        for seed, receipt in evidence.get(run_id, {}).items():
            for kind, digest in sorted(receipt.inputs.items()):
                seed_digests = digests.setdefault((kind, str(plan.runs[run_id].inputs.get(kind, ""))), {}).setdefault(seed, [])
                if digest is not None and digest not in seed_digests:
                    seed_digests.append(digest)
    return digests
