"""fedrepro doctor."""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from fedrepro import arithmetic
from fedrepro.cli.code_groups import KEYS, code_summary
from fedrepro.config.project import load_project
from fedrepro.data.transfer import is_url
from fedrepro.engine import checkout, environment, measurements, records
from fedrepro.engine.receipts import RUNS
from fedrepro.errors import UserError
from fedrepro.grouping import grouped

PINNED = ("torch", "torchvision", "snakemake", "dvc", "mlflow", "pandas", "numpy", "pydantic")


def doctor(options: Namespace) -> int:
    """Prints a line for each check; exit code 1 when one fails."""
    checks = [("python", sys.version_info >= (3, 11), platform.python_version())]
    locked_versions = _locked()
    for name in PINNED:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "missing"
        allowed = locked_versions.get(name, {version})
        checks.append((name, version in allowed, f"{version} (locked: {', '.join(sorted(allowed))})"))
    for name in ("snakemake", "dvc", "mlflow", "git"):
        where = shutil.which(name)
        detail = where or "not found; activate the environment: . .venv/bin/activate"
        checks.append((f"{name} on PATH", where is not None, detail))
    commit = checkout.state()[0]
    objection = checkout.objection()
    # An archive without a repository trains and renders; a repository that git refuses is a mistake.
    checks.append(("commit", commit is not None or not Path(".git").exists(), objection or str(commit)))
    try:
        project = load_project()
        checks.append(("params.yaml", True, f"scale {project.params.scale}, seeds {project.params.seeds}"))
        checks.append(("device", True, environment.pick_device(project.params.device)))
        checks.append(("arithmetic", True, _arithmetic()))
    except UserError as error:
        checks.append(("params.yaml", False, str(error)))
    records_by_kind = _check_records(checks)
    checks.append(("code", True, code_summary(Path(), records_by_kind["receipts"], records_by_kind["evidence"])))
    free = shutil.disk_usage(Path()).free / 2**30
    checks.append(("free disk", free > 1, f"{free:.1f} GiB"))
    mirror = os.environ.get("FEDREPRO_MIRROR")
    reachable = not mirror or is_url(mirror) or Path(mirror).expanduser().is_dir()
    checks.append(("mirror", reachable, mirror or "none; set FEDREPRO_MIRROR to a folder or URL to look in before the network"))
    for name, good, detail in checks:
        print(f"{'ok  ' if good else 'BAD '} {name:<20}{detail}")
    return 0 if all(good for _, good, _ in checks) else 1


def _check_records(checks: list[tuple[str, bool, str]]) -> dict[str, list[dict[str, Any]]]:
    """Reads result folders, receipts and evidence as the workflow reads them, and adds to `checks` a line for each kind, or one
    for each damaged file. Returns by kind the code that made each receipt and each piece of evidence."""
    records_by_kind: dict[str, list[dict[str, Any]]] = {}
    places = (f"{measurements.DIAGNOSTICS}/*/*/seed*.parquet", "reports/*/*/evidence/*/*/seed*.parquet")
    measured = [path for place in places for path in Path().glob(place)]
    for name, read, files in (
        ("result folders", records.read_folder, [path for path in RUNS.glob("*/seed*") if path.is_dir()]),
        ("receipts", records.read_receipt, RUNS.glob("*/seed*.json")),
        ("evidence", records.read, Path().glob("reports/*/*/evidence/*/seed*.json")),
        ("diagnostics", measurements.read, measured),
    ):
        paths, bad, code_records = sorted(files), [], records_by_kind.setdefault(name, [])
        for path in paths:
            try:
                record = read(path)
                if isinstance(record, dict):
                    code_records.append({key: record.get(key) for key in KEYS})
            except UserError as error:
                bad.append((name, False, str(error)))
        checks += bad or [(name, True, f"{len(paths)}, each as it was written" if paths else "none")]
    return records_by_kind


def _arithmetic() -> str:
    """Returns the arithmetic of trainings on a CPU. UserError if portable arithmetic is required and this machine cannot
    compute it."""
    arithmetic.widen()
    environment.prepare("cpu")
    if arithmetic.current() == "native":
        return "native: this processor's fastest kernels, other last digits on another"
    return f"portable, known answers found, {'AVX-512 where it gives the same bits' if arithmetic.wide() else 'AVX2'}"


def _locked() -> dict[str, set[str]]:
    """Returns name -> versions that requirements.lock allows."""
    path = Path("requirements.lock")
    pairs = re.findall(r"^([^\s=]+)==(\S+)", path.read_text(), re.MULTILINE) if path.exists() else []
    return {name: {*versions} for name, versions in grouped(pairs).items()}
