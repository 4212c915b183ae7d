"""The curves of several runs as a picture: the mean over seeds, and the range from the lowest to the highest seed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedrepro import pictures
from fedrepro.cli.stored_runs import StoredRun
from fedrepro.config.reading import Reading
from fedrepro.config.run_differences import method_names
from fedrepro.files import writing
from fedrepro.looks import looks_of
from fedrepro.units import unit

Point = tuple[int, list[float]]  # round from 1, value of each seed


def draw(path: Path, runs: Mapping[str, StoredRun], readings: Sequence[Reading]) -> None:
    """Writes an SVG with a pair of axes for each metric of `readings`; `runs`: label -> run. A method has the colour that it
    has in all figures; its runs differ in the dash."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    names = method_names([run.config["method"] for run in runs.values()])
    by_metric = {reading.metric: reading for reading in readings}
    looks = looks_of(runs, dict(zip(runs, names, strict=True)))
    with pictures.styled(), writing(path):
        height = 2.4 * len(by_metric) + 1.25 * pictures.LINE * (len(runs) + 1)  # lines of a legend stand farther apart
        figure = Figure(figsize=(pictures.WIDTH, height), layout="constrained")
        panels = figure.subplots(len(by_metric), sharex=True, squeeze=False)[:, 0]
        for axes, (metric, reading) in zip(panels, by_metric.items(), strict=True):
            for label, run in runs.items():
                points, (colour, dash) = _points(run, metric), looks[label]
                rounds = [number for number, _ in points]
                axes.plot(rounds, [sum(seeds) / len(seeds) for _, seeds in points], linestyle=dash, color=colour, label=label)
                low, high = ([choose(seeds) for _, seeds in points] for choose in (min, max))
                axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
            sign = unit(reading.unit).sign.strip()
            axes.set_ylabel(metric.replace("_", " ") + (f" in {sign}" if sign else ""))
            axes.spines[["top", "right"]].set_visible(False)
        panels[-1].set_xlabel("round; mean over seeds, lowest to highest seed")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        pictures.save(figure, path)


def _points(run: StoredRun, metric: str) -> list[Point]:
    """Returns the rounds that every seed measured and reached."""
    curves = [receipt["curves"].get(metric, []) for receipt in run.receipts.values()]
    rounds = enumerate(zip(*curves, strict=False), start=1)
    return [(number, list(values)) for number, values in rounds if None not in values]
