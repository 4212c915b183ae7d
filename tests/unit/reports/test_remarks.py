"""Remarks state numbers; here they are computed from the committed evidence again."""

import re
from pathlib import Path

import yaml

from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.reports.cells import tabulate
from fedrepro.reports.evidence import load_evidence

ROOT = Path(__file__).parents[3]


def test_what_partitions_are_worth() -> None:
    """FedGH, table2-partitions: both methods and the gain under either draw over the clients of each class."""
    made = plan(load_project(ROOT), "fedgh", "table2-partitions", "full")
    evidence = load_evidence(made, ROOT / "reports" / "full" / "fedgh" / "evidence")
    means = {(cell.method, cell.setting): cell.mean for cell in tabulate(made, evidence)}
    remarks = yaml.safe_load((ROOT / "papers/fedgh/tables/table2-partitions.yaml").read_text())["remarks"]["full"]
    for remark, setting in zip(remarks, ("balanced-top1", "per-class-top1"), strict=True):
        plain, harmonised = (means[method, setting] for method in ("fedavg", "fedavg+gh"))
        assert plain is not None
        assert harmonised is not None
        stated = re.search(r"FedAvg (\d+\.\d+) and FedAvg \+ GH (\d+\.\d+)", " ".join(remark.split()))
        assert stated
        assert stated.groups() == (f"{plain:.2f}", f"{harmonised:.2f}")
        assert f"+{harmonised - plain:.1f}" in remark
