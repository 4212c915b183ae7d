"""What the runs of a table cost, what computed them, and the sha256 of all that they read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fedrepro.reports.model import Cell, Choice, Evidence, InputFile, MethodRun, Plan, Provenance, Receipt, RunCost, SeedCost

VERSIONS = ("python", "torch", "numpy", "platform", "engine", "arithmetic", "linear_kernel", "products")


@dataclass
class _Input:
    """What the runs of a column read at a seed; more than one sha256 is a fault."""

    kind: str
    id: str
    seed: int
    setting: str
    sha256: list[str] = field(default_factory=list)


def costs(evidence: Evidence, cells: list[Cell], choices: Sequence[Choice]) -> tuple[RunCost, ...]:
    """Per run: what each seed cost, and where its evidence lies. Runs shared by several cells are listed once."""
    places: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        if cell.run_id:
            places.setdefault(cell.run_id, []).append((cell.method_label, cell.setting_label))
    for choice in choices:
        for one in choice.tried:
            places.setdefault(one.run_id, [(f"{choice.method_label}, {one.shown}", choice.setting_label)])
    return tuple(
        RunCost(
            run_id=run_id,
            method=shared[0][0],
            setting=", ".join(dict.fromkeys(setting for _, setting in shared)),
            seeds=tuple(seed_cost(receipt) for receipt in evidence.get(run_id, {}).values()),
        )
        for run_id, shared in places.items()
    )


def seed_cost(receipt: Receipt) -> SeedCost:
    """Of one run and seed."""
    cost = receipt.cost
    return SeedCost(
        seed=receipt.seed,
        status=receipt.status,
        wall_s=cost.wall_s,
        peak_rss_mib=cost.peak_rss_mib,
        samples=cost.samples,
        samples_per_second=cost.samples_per_second,
        client_rounds=cost.client_rounds,
        bytes_up=cost.bytes_up,
        bytes_down=cost.bytes_down,
        finished_at=cost.finished_at,
        commit=receipt.environment.commit,
        evidence=receipt.path,
        shared_s=cost.shared_s,
    )


def methods(plan: Plan) -> tuple[MethodRun, ...]:
    """Per row: the method strings that its runs used; more than one when an argument depends on the setting."""
    specs: dict[str, dict[str, None]] = {row.key: {} for row in plan.rows}
    for cell in plan.planned:
        specs[cell.row][plan.run(cell).method] = None
    return tuple(MethodRun(row.key, row.label, tuple(specs[row.key])) for row in plan.rows)


def provenance(plan: Plan, evidence: Evidence) -> Provenance:
    """Versions of what computed the numbers, and the sha256 of every input by kind, identity and seed."""
    environments = [receipt.environment for seeds in evidence.values() for receipt in seeds.values()]
    found = {key: {str(value) for one in environments if (value := getattr(one, key)) is not None} for key in VERSIONS}
    unique: dict[tuple[str, str, str], list[int]] = {}
    for entry in _inputs(plan, evidence):
        for digest in entry.sha256:
            seeds = unique.setdefault((entry.kind, entry.id, digest), [])
            if entry.seed not in seeds:
                seeds.append(entry.seed)
    files = [InputFile(kind, name, tuple(seeds), digest) for (kind, name, digest), seeds in unique.items()]
    return Provenance(
        versions={key: tuple(sorted(values)) for key, values in found.items()},
        inputs=tuple(sorted(files, key=lambda one: (one.kind, one.id, one.seeds))),
    )


def conflicts(plan: Plan, evidence: Evidence) -> Iterator[str]:
    """A sentence for each input that is not the same for every method of a column at a seed.

    Participation, initial model and data are shared by all rows of a column, so rows of one column that name the same input
    must have read the same bytes.
    """
    for entry in _inputs(plan, evidence):
        if len(entry.sha256) > 1:
            digests = ", ".join(digest[:12] for digest in entry.sha256)
            yield f"Input {entry.kind} of {entry.setting} at seed {entry.seed} is not the same for every method ({digests})."


def _inputs(plan: Plan, evidence: Evidence) -> list[_Input]:
    """Per kind, column and seed: the identity of the input and every sha256 that its runs report."""
    found: dict[tuple, _Input] = {}
    for cell in plan.planned:
        run = plan.run(cell)
        for seed, receipt in evidence.get(run.run_id, {}).items():
            for kind, digest in sorted(receipt.inputs.items()):
                name = str(run.inputs.get(kind, ""))
                blank = _Input(kind, name, seed, plan.column(cell.column).title)
                entry = found.setdefault((kind, name, seed, cell.column), blank)
                if digest is not None and digest not in entry.sha256:
                    entry.sha256.append(digest)
    return list(found.values())
