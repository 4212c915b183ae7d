"""What the workflow costs before any job: planning after an edit, with more papers, and with thousands of runs.

`python -m benchmarks.workflow CHECKOUT...` measures each checkout in turn, so that one run compares two versions. With
--seeds N a checkout must have the results of the demo (`snakemake reports/table3.md`), which are copied to seeds 1 to N.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from fedrepro.engine.records import seal

REPORT = ("snakemake", "reports/table3.md", "--cores", "2", "-n", "--quiet", "all")


def measure(root: Path, *command: str) -> tuple[float, float]:
    """Runs a command in `root` with the sources there. Returns processor seconds and peak memory in MiB, children included."""
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    program = str(Path(sys.executable).with_name(command[0]))
    child = subprocess.Popen([program, *command[1:]], cwd=root, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def copied(checkout: Path, folder: Path, results: bool = False) -> Path:
    """Copies the files that git tracks in a checkout to a new folder, and with `results` the demo's results."""
    listed = subprocess.run(["git", "ls-files"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checkout / name, folder / name)
    for name in ("results/runs", "data/arrays", "data/partitions", "data/participation", "data/proxy", "data/init"):
        if results:
            shutil.copytree(checkout / name, folder / name)
    return folder


def edit(root: Path, mu: float) -> None:
    """Changes one value of params.yaml."""
    path = root / "params.yaml"
    content = yaml.safe_load(path.read_text())
    content["methods"]["fedlaw"]["fedprox"]["mu"] = mu
    path.write_text(yaml.safe_dump(content))


def more_papers(root: Path, number: int) -> None:
    """Adds copies of one paper under other names."""
    for place in range(number):
        shutil.copytree(root / "papers/fedgh", root / f"papers/copy{place}", dirs_exist_ok=True)


def more_seeds(root: Path, number: int) -> int:
    """Copies seed 8 of every run of the demo to seeds 1 to `number`, so that they count as finished."""
    made = 0
    for folder in sorted((root / "results/runs").iterdir()):
        record = json.loads((folder / "seed8.json").read_text())
        for seed in (seed for seed in range(1, number + 1) if not (folder / f"seed{seed}.json").exists()):
            new = folder / f"seed{seed}"
            new.mkdir()
            for name in ("metrics.parquet", "model.safetensors", "env.json"):
                os.link((folder / "seed8" / name).resolve(), new / name)
            own = {key: value for key, value in record.items() if key != "digest"} | {"seed": seed}
            text = json.dumps(seal(own), indent=1, sort_keys=True) + "\n"
            (new / "manifest.json").write_text(text)
            (folder / f"seed{seed}.json").write_text(text)
            made += 1
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--papers", type=int, nargs="*", default=[0, 4, 8], help="how many more there are")
    parser.add_argument("--seeds", type=int, nargs="*", default=[], help="of every run of the demo")
    options = parser.parse_args()
    for checkout in options.checkouts:
        with tempfile.TemporaryDirectory() as folder:
            root = copied(checkout, Path(folder) / "project")
            measure(root, *REPORT)
            for turn, papers in enumerate(options.papers):
                more_papers(root, papers)
                edit(root, 0.002 + turn / 1000)
                used, _ = measure(root, *REPORT)
                print(f"{checkout}: dry run after an edit, {papers} more papers: {used:.1f} s of processor time", flush=True)
        for number in options.seeds:
            with tempfile.TemporaryDirectory(dir=checkout.parent) as folder:
                root = copied(checkout, Path(folder) / "project", results=True)
                more_seeds(root, number)
                path = root / "params.yaml"
                path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"seeds": [*range(1, number + 1)]}))
                for command in (REPORT, ("fedrepro", "runs"), ("fedrepro", "track")):
                    used, peak = measure(root, *command)
                    said = f"{used:.1f} s of processor time, at most {peak:.0f} MiB"
                    print(f"{checkout}: {' '.join(command)}, {number} seeds of 32 runs: {said}", flush=True)


if __name__ == "__main__":
    main()
