"""Contenders side by side: `make bench` (our engines and the plain loop), `make bench-peers` (other simulators too).

    python -m benchmarks.run --works A C --repeats 3 --peers
    python -m benchmarks.run --against b077a47 --contenders fedrepro-sequential fedrepro-portable fedrepro-b077a47

Every contender is a separate process, as a user would start it. Contenders take turns, so a machine that slows down slows
all of them. A ratio is the median over the repeats of ratios within a repeat. Rates leave out the first round of a process,
in which frameworks compile and caches are cold. `wall_s` is the time of the whole process with its start-up.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import describe, flops_per_sample
from benchmarks.works import WORKS, write

ROOT = Path(__file__).parent
CACHE, RESULTS, ENVS = ROOT / ".cache", ROOT / "results", ROOT / ".envs"
OURS, NAIVE = (sys.executable, "-m", "benchmarks.contenders.ours"), (sys.executable, "-m", "benchmarks.contenders.naive")

PORTABLE = ("--arithmetic", "portable")  # all other contenders of ours use native arithmetic
WITH_CONVOLUTIONS = frozenset({"B", "simple_cnn", "resnet20"})


@dataclass(frozen=True)
class Contender:
    """One way to run a work item."""

    name: str
    command: tuple[str, ...]
    cores: int
    works: frozenset[str] = frozenset(WORKS)
    once: bool = False  # measured in the first repeat only, since its start alone takes minutes
    folder: Path = ROOT.parent  # the checkout in which it starts


def contenders(device: str, peers: bool, *, installed: bool = True) -> list[Contender]:
    """Contenders of a device. With `installed` another simulator is included only if its environment exists (`make bench-peers`
    creates it)."""
    if device == "cuda":
        on_gpu, together = (*OURS, "--device", "cuda", "--engine"), ("vectorised", "--seeds", "3")
        return [
            Contender("naive", (*NAIVE, "--device", "cuda"), 1),
            Contender("fedrepro-sequential", (*on_gpu, "sequential"), 1),
            Contender("fedrepro-vectorised", (*on_gpu, "vectorised"), 1),
            Contender("fedrepro-vectorised-tf32", (*on_gpu, "vectorised", "--products", "tf32"), 1),
            Contender("fedrepro-vectorised-bf16", (*on_gpu, "vectorised", "--products", "bf16"), 1),
            Contender("fedrepro-vectorised-3-seeds", (*on_gpu, *together), 1),
            Contender("fedrepro-vectorised-3-seeds-unchunked", (*on_gpu, *together, "--chunk-mib", "1e9"), 1),
        ]
    found = [
        Contender("naive", NAIVE, 1),
        Contender("fedrepro-sequential", OURS, 1),
        Contender("fedrepro-portable", (*OURS, *PORTABLE), 1),
        Contender("fedrepro-portable-2-workers", (*OURS, *PORTABLE, "--workers", "2"), 2),
        Contender("fedrepro-2-threads", (*OURS, "--threads", "2"), 2),
        Contender("fedrepro-2-workers", (*OURS, "--workers", "2"), 2),
        Contender("fedrepro-vectorised", (*OURS, "--engine", "vectorised"), 1, frozenset("AC")),
        Contender("fedrepro-2-workers-bf16", (*OURS, "--workers", "2", "--products", "bf16"), 2, WITH_CONVOLUTIONS),
    ]
    # Some combinations take minutes and are left out: stacked convolutions on a CPU; FedJAX's second core on B; most of Flower.
    for name in ("fedjax", "pfl_research", "flower") if peers else ():
        interpreter, slow = ENVS / name / "bin" / "python", name == "flower"
        for cores in ((1,) if slow else (1, 2)) if interpreter.exists() or not installed else ():
            command = (str(interpreter), str(ROOT / "peers" / f"{name}.py"), "--threads", str(cores))
            works = frozenset("AC" if slow or (name, cores) == ("fedjax", 2) else "ABC")
            found.append(Contender(f"{name}-{cores}-core{'s' * (cores > 1)}", command, cores, works, once=slow))
    return found


def measure(contender: Contender, work: Path, limit_s: float) -> dict[str, Any] | None:
    """Measures one process: steady rate, wall time, start-up, peak memory of its processes together. None if it failed."""
    began = time.perf_counter()
    with (CACHE / "stderr.txt").open("w") as errors:
        command = [*contender.command, str(work)]
        sources = os.environ | {"PYTHONPATH": f"{contender.folder / 'src'}{os.pathsep}{contender.folder}"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=contender.folder, env=sources)
        peak = [0]
        threading.Thread(target=_watch, args=(process.pid, peak), daemon=True).start()
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            process.communicate()
            output = ""
    wall_s = time.perf_counter() - began
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        why = (CACHE / "stderr.txt").read_text().strip().splitlines()
        print(f"{contender.name}: failed: {why[-1] if why else f'no result in {limit_s:.0f} s'}", file=sys.stderr, flush=True)
        return None
    said = json.loads(lines[-1])
    steady = said["round_s"][1:] or said["round_s"]
    return {
        "samples_per_second": said["samples_round"] / statistics.median(steady),
        "wall_s": wall_s,
        "start_s": wall_s - sum(said["round_s"]),
        "first_round_s": said["round_s"][0],
        "peak_mib": said.get("device_peak_mib", peak[0] / 2**20),
        "test_accuracy": said["test_accuracy"],
    }


def _watch(pid: int, peak: list[int]) -> None:
    """Keeps in `peak` the most memory of a process and its children until it ends, as proportional set size, so that shared
    pages count once.

    One reading takes the kernel tens of milliseconds and delays a contender that uses both cores. So the readings take at most
    a twentieth of the time.
    """
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            together, began = 0, time.perf_counter()
            for one in (process, *process.children(recursive=True)):
                with suppress(psutil.Error):  # the process has just ended
                    together += one.memory_full_info().pss
            peak[0] = max(peak[0], together)
            time.sleep(max(0.2, 20 * (time.perf_counter() - began)))


def at_commit(commit: str) -> Contender:
    """Our sequential engine at a commit, in a checkout below the cache folder."""
    name = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}"]
    sha = subprocess.run(name, capture_output=True, text=True, check=True).stdout.strip()
    folder = CACHE / sha
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT.parent), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", "--detach", sha], check=True)
    return Contender(f"fedrepro-{commit}", OURS, 1, folder=folder)


def run(works: list[str], repeats: int, every: list[Contender], limit_s: float) -> dict[str, Any]:
    """Measures the contenders: {work: {contender: figures}}, with each work's title, data source and FLOPs per sample."""
    found: dict[str, Any] = {}
    for name in works:
        path = CACHE / f"{name}.npz"
        source = write(WORKS[name], path, ROOT.parent)
        chosen = [contender for contender in every if name in contender.works]
        measured: dict[str, list[dict[str, Any] | None]] = {contender.name: [] for contender in chosen}
        for repeat in range(min(repeats, WORKS[name].repeats)):
            for contender in (one for one in chosen if repeat == 0 or not one.once):
                one = measure(contender, path, limit_s)
                measured[contender.name].append(one)
                shown = f"{one['samples_per_second']:,.0f} samples/s, {one['wall_s']:.1f} s in all" if one else "failed"
                print(f"{name} {repeat + 1} {contender.name}: {shown}", file=sys.stderr, flush=True)
        found[name] = summary(measured) | {"work": WORKS[name].title, "data": source}
        found[name]["flops_per_sample"] = flops_per_sample(WORKS[name])
    return found


def summary(measured: dict[str, list[dict[str, Any] | None]]) -> dict[str, Any]:
    """Medians over the repeats; ratios are medians of ratios within a repeat."""
    figures: dict[str, Any] = {}
    for name, runs in measured.items():
        done = [one for one in runs if one]
        if not done:
            continue
        pairs = [(one, naive) for one, naive in zip(runs, measured.get("naive", []), strict=False) if one and naive]
        median = lambda key, done=done: statistics.median(one[key] for one in done)  # noqa: E731
        ratio = lambda key, pairs=pairs: statistics.median(one[key] / naive[key] for one, naive in pairs)  # noqa: E731
        figures[name] = {key: round(median(key), 3) for key in ("samples_per_second", "wall_s", "start_s", "peak_mib")}
        if pairs:
            figures[name] |= {
                "times_naive": round(ratio("samples_per_second"), 2),
                "whole_process_times_naive": round(1 / ratio("wall_s"), 2),
            }
        figures[name] |= {
            "test_accuracy": round(median("test_accuracy"), 2),
            "repeats": len(done),
            "samples_per_second_of_each": [round(one["samples_per_second"], 1) for one in done],
        }
    return figures


def is_whole(found: dict[str, Any], device: str) -> bool:
    """Whether all contenders of a CPU, other simulators included, have figures for each of their works."""
    every = contenders("cpu", peers=True, installed=False)
    return device == "cpu" and all(one.name in found.get(work, {}) for one in every for work in one.works)


def main() -> None:
    """Runs, prints a table, and writes results/<date>-<device>.json. A whole run on a CPU also replaces results/latest.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--peers", action="store_true", help="other simulators too (`make bench-peers`)")
    parser.add_argument("--against", metavar="COMMIT", help="our engine as it was at a commit, too")
    parser.add_argument("--contenders", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--limit-s", type=float, default=600.0, help="of one process")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    before = describe(options.device)
    every = contenders(options.device, options.peers) + ([at_commit(options.against)] if options.against else [])
    every = [one for one in every if not options.contenders or one.name in options.contenders]
    found = run(options.works, options.repeats, every, options.limit_s)
    after = describe(options.device)
    now = datetime.now(UTC)
    machine = before | {"matmul_gflops_after": after["matmul_gflops"]}
    content = {**found, "machine": machine, "measured": now.isoformat("T", "minutes")}
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1) + "\n"
    (options.out / f"{now:%Y-%m-%dT%H%M}-{options.device}.json").write_text(text)
    if is_whole(found, options.device):
        (options.out / "latest.json").write_text(text)
    print(table(content))


def table(content: dict[str, Any]) -> str:
    """A Markdown table with one row for each work item and contender."""
    heads = ("work", "contender", "samples/s", "x naive", "whole process x naive", "of matmul peak", "MiB")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for work in (name for name in WORKS if name in content):
        for name, one in content[work].items():
            if not isinstance(one, dict):
                continue
            cores = 2 if "-2-" in name else 1
            peak = content["machine"]["matmul_gflops"][f"{cores}"] * 1e9
            share = content[work]["flops_per_sample"] * one["samples_per_second"] / peak
            ratios = (one.get("times_naive", math.nan), one.get("whole_process_times_naive", math.nan))
            cells = f"{one['samples_per_second']:,.0f} | {ratios[0]:.1f} | {ratios[1]:.1f}"
            lines.append(f"| {work} | {name} | {cells} | {share:.0%} | {one['peak_mib']:,.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
