"""Which runs the plans ask for, and what MLflow shall show of each. Pure but for reading plans, receipts and manifests."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.config.reading import Reading, readings
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, read_json, sha256_file
from fedrepro.registry import named_arguments
from fedrepro.reports.evidence import Receipt, load_plan, load_receipt

PLANS = Path("results/plans")
RUNS = Path("results/runs")
FOLDERS = {"partition": "partitions", "participation": "participation", "proxy": "proxy", "init": "init"}
FORMAT = 2  # raise it when the way a run is shown changes: every run is then written again
KEY, DIGEST, LIVE = "fedrepro.run_key", "fedrepro.digest", "fedrepro.live"


@dataclass
class Wanted:
    """One run at one seed, as the plans see it."""

    paper: str
    scale: str
    run: dict[str, Any]  # entry of plan["runs"]
    seed: int
    names: list[str] = field(default_factory=list)  # row labels
    settings: list[str] = field(default_factory=list)  # column labels
    tables: list[str] = field(default_factory=list)
    reported: list[Reading] = field(default_factory=list)  # what the tables show of it

    @property
    def key(self) -> str:
        """`<run_id>/seed<k>`, the same in reports and in MLflow."""
        return f"{self.run['run_id']}/seed{self.seed}"

    @property
    def experiment(self) -> str:
        """`<paper>/<scale>`."""
        return f"{self.paper}/{self.scale}"

    @property
    def title(self) -> str:
        """`FedLAW · FashionMNIST MLP α=0.1 · seed 8`."""
        return f"{self.names[0]} · {self.settings[0].replace(' = ', '=').replace(',', '')} · seed {self.seed}"


def plan_files(root: Path) -> list[Path]:
    """Every plan on disk, in a fixed order."""
    return sorted((Path(root) / PLANS).rglob("*.json"))


def collect(plans: list[Path]) -> dict[tuple[str, str], Wanted]:
    """(experiment, run key) -> what is wanted; a cell that several tables share appears once and names them all."""
    found: dict[tuple[str, str], Wanted] = {}
    for path in sorted({Path(plan).resolve() for plan in plans}):
        plan = load_plan(path)
        labels = {axis: {entry["key"]: _label(entry) for entry in plan[axis]} for axis in ("rows", "columns")}
        for cell, reading in readings(plan):
            for seed in plan["seeds"]:
                one = Wanted(plan["paper"], plan["scale"], plan["runs"][cell["run_id"]], seed)
                one = found.setdefault((one.experiment, one.key), one)
                _add(one.names, labels["rows"][cell["row"]])
                _add(one.settings, labels["columns"][cell["column"]])
                _add(one.tables, plan["table"])
                _add(one.reported, reading)
    return found


def receipt_file(root: Path, wanted: Wanted) -> Path | None:
    """The receipt of the result folder, or else the evidence kept with the reports; None while there is neither.

    A run in progress has none. Showing it live would start here: its metrics so far lie in its checkpoint.
    """
    name = Path(wanted.run["run_id"]) / f"seed{wanted.seed}.json"
    for folder in (RUNS, Path("reports") / wanted.scale / wanted.paper / "evidence"):
        if (Path(root) / folder / name).exists():
            return Path(root) / folder / name
    return None


def read_receipt(path: Path, wanted: Wanted) -> Receipt:
    """The receipt, checked to be this run's and to hold what the tables show."""
    return load_receipt(path, *(reading.metric for reading in wanted.reported))


def artifacts(root: Path, wanted: Wanted) -> dict[str, Path]:
    """Name in MLflow -> file, of those that exist: final model, configuration, environment, picture of the partition."""
    folder = Path(root) / RUNS / wanted.run["run_id"]
    files = {
        "config.json": folder / "config.json",
        "env.json": folder / f"seed{wanted.seed}" / "env.json",
        "model.safetensors": folder / f"seed{wanted.seed}" / "model.safetensors",
    }
    partition = wanted.run.get("inputs", {}).get("partition")
    if partition:
        files["partition.svg"] = Path(root) / "data" / FOLDERS["partition"] / partition / f"seed{wanted.seed}.svg"
    return {name: path for name, path in files.items() if path.exists()}


def digest(root: Path, wanted: Wanted, receipt: Path) -> str:
    """Changes when the receipt, the artifacts that exist, or our way of showing them do."""
    shown = sorted(map(list, wanted.reported), key=str)
    present = {name: path.stat().st_size for name, path in artifacts(root, wanted).items()}
    return canonical_hash([FORMAT, sha256_file(receipt), present, shown], 32)


def tags(wanted: Wanted, receipt: Receipt, content: str) -> dict[str, str]:
    """Every tag of a complete run, `content` being its digest."""
    environment = receipt["environment"]
    found = {
        KEY: wanted.key,
        DIGEST: content,
        LIVE: "true",
        "mlflow.runName": wanted.title,
        "mlflow.source.name": "fedrepro",
        "mlflow.source.git.commit": str(environment.get("commit")),
        "paper": wanted.paper,
        "scale": wanted.scale,
        "tables": ", ".join(sorted(wanted.tables)),
        "method": receipt["method"],
        "method_label": receipt["method_label"],
        "setting": "; ".join(wanted.settings),
        "seed": str(wanted.seed),
        "status": receipt["status"],
        "commit": str(environment.get("commit")) + (" (dirty)" if environment.get("dirty") else ""),
        "device": str(environment.get("device")),
    }
    return found | {f"input.{kind}": value for kind, value in receipt["inputs"].items() if value}


def parameters(receipt: Receipt) -> dict[str, str]:
    """Every setting, and every argument of the method as `<part>.<argument>`."""
    found = receipt["config"] | {"seed": receipt["seed"]} | named_arguments(receipt["method"])
    return {key: str(value) for key, value in found.items()}


def summary(wanted: Wanted, receipt: Receipt) -> dict[str, float | None]:
    """The receipt's summary and, under the metric's own name, the number that the tables show.

    Where tables read a metric at several rounds or average over different numbers of them, the latest and longest mean has the
    plain name, the others say where they end and how long they are.
    """
    found: dict[str, float | None] = {}
    rounds = len(receipt["curves"]["round"])
    latest = lambda reading: (reading.metric, -(reading.until_round or rounds), -reading.average_last)  # noqa: E731
    for reading in sorted(wanted.reported, key=latest):
        name = reading.metric
        if name in found:
            name += f"_round{reading.until_round}" if reading.until_round else ""
            name += f"_last{reading.average_last}" if reading.average_last > 1 or not reading.until_round else ""
        found[name] = reading.of(receipt)
    return receipt["summary"] | found


def metrics(wanted: Wanted, receipt: Receipt, started: int, ended: int) -> list[tuple[str, float, int, int]]:
    """(name, value, timestamp in ms, round) of every finite value, then the summary and the cost at the last round.

    A round's timestamp is where it would be if all rounds had taken equally long.
    """
    rounds = receipt["curves"]["round"]
    last = rounds[-1] if rounds else 0
    times = [started + (ended - started) * (place + 1) // len(rounds) for place in range(len(rounds))]
    found = [
        (name, float(value), time, number)
        for name, values in receipt["curves"].items()
        if name != "round"
        for number, time, value in zip(rounds, times, values, strict=False)
        if value is not None
    ]
    cost = {key: value for key, value in receipt["cost"].items() if isinstance(value, int | float)}
    for group, values in (("summary", summary(wanted, receipt)), ("cost", cost)):
        found += [(f"{group}/{name}", float(value), ended, last) for name, value in values.items() if value is not None]
    return found


def inputs(root: Path, wanted: Wanted, receipt: Receipt) -> list[dict[str, Any]]:
    """Per input file of the run: name, context, digest, where it lies, and its manifest where that is at hand."""
    found = []
    for kind, sha256 in receipt["inputs"].items():
        identity = str(wanted.run.get("inputs", {}).get(kind) or "")
        if not sha256 or not identity:
            continue
        if kind == "arrays":
            path, name = Path(identity) / "manifest.json", Path(identity).as_posix().removeprefix("data/arrays/")
        else:
            name = f"{identity}/seed{wanted.seed}"
            path = Path("data") / (FOLDERS[kind] if kind in FOLDERS else str(kind)) / f"{name}.json"
        found.append({"context": kind, "name": name, "sha256": sha256, "path": path, "manifest": _manifest(Path(root) / path)})
    return found


def _manifest(path: Path) -> dict[str, Any] | None:
    try:
        return read_json(path)
    except UserError:  # not pulled on this machine, or damaged: whoever trains finds out, a view need not
        return None


def _label(entry: dict[str, Any]) -> str:
    return " ".join(part for part in (entry.get("group"), entry["label"]) if part)


def _add(items: list, item: Any) -> None:
    if item not in items:
        items.append(item)
