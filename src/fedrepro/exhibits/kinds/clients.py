"""A line for each client of what a diagnostic measures of it: a panel for each row and column of the figure."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.config.plan import Place, Plan
from fedrepro.engine.measurements import Value
from fedrepro.errors import UserError
from fedrepro.exhibits.kinds import panels, style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.line import x_of
from fedrepro.exhibits.kinds.measured import rounds_reached
from fedrepro.exhibits.receipt import Evidence
from fedrepro.grouping import grouped
from fedrepro.pictures import wrapped
from fedrepro.registry import require

NAMED = 10  # with more clients the legend would be longer than the picture


@KINDS.register("clients")
@dataclass(frozen=True)
class ClientsKind(Kind):
    """Over all kept rounds that the cell's reading reaches; or over x, in the last of them, where the metric is a curve over x.
    It is of one seed: each has its own clients.

    `groups`: the first clients, by id, have one colour and the others another; 0: each has its own.
    """

    groups: int = 0

    def __post_init__(self) -> None:
        require(self.groups >= 0, "groups", self.groups, "must be the number of clients in the first group, or 0")

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes a series for each client, `<metric>/<client>`. UserError for a metric without values of clients."""
        series: list[Series] = []
        names = {}
        for cell in plan.planned:
            reading, receipts = cell.reading, evidence.get(cell.run_id or "", {})
            seeds = [seed for seed, receipt in receipts.items() if receipt.has(reading) and not receipt.diverges(reading)]
            if not seeds:
                continue
            seed = min(seeds)
            measured = receipts[seed].measured[reading.curve].values if cell.diagnostic else []
            values = [value for value in measured if value.metric == cell.metric.name and value.client is not None]
            if not values:
                advice = f"{cell.metric.name!r} has none; take another metric or kind"
                raise UserError(f"{plan.paper}/{plan.table}: kind: {self.name} draws values of clients, {advice}")
            series += _lines(cell, seed, _values_reached(plan, cell, values))
            names["round" if values[0].x is None else x_of(cell.diagnostic or "")] = None
        return Drawing(plan, tuple(series), ", ".join(names) or "round")

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws thin lines, with a legend of the groups, or of a few clients."""
        clients = sorted({int(line.metric.rpartition("/")[2]) for line in figure.series})
        looks = {client: self._look(client, place, len(clients)) for place, client in enumerate(clients)}
        labels = list(dict.fromkeys(label for _, label in looks.values() if label))
        with style.panelled(path, style.title(figure.plan), panels.titles(figure), labels) as all_axes:
            for axes, lines in zip(all_axes, figure.places.values(), strict=True):
                for line in lines:
                    metric, _, client = line.metric.rpartition("/")
                    colour, label = looks[int(client)]
                    axes.plot(line.x, line.y, color=colour, linewidth=0.9, label=label)
                    axes.set_ylabel(style.quantities([figure.metrics[metric]]))
                axes.set_xlabel("communication round" if figure.x == "round" else wrapped(figure.x, 28))
                axes.grid(alpha=0.25, linewidth=0.5)

    def _look(self, client: int, place: int, count: int) -> tuple[str, str]:
        """Returns (colour, name in the legend). An empty name is not in the legend."""
        if self.groups:
            first = client < self.groups
            return style.COLOURS[1 if first else 2], f"clients 0 to {self.groups - 1}" if first else "the others"
        return style.COLOURS[place % len(style.COLOURS)], f"client {client}" if count <= NAMED else ""


def _values_reached(plan: Plan, cell: Place, values: list[Value]) -> list[Value]:
    """Lists the values of the rounds that the cell's reading reaches; of curves over x those of the last of these rounds."""
    rounds = rounds_reached(plan, cell)
    in_rounds = [value for value in values if value.round in rounds]
    last = max((value.round for value in in_rounds), default=0)
    return [value for value in in_rounds if value.x is None or value.round == last]


def _lines(cell: Place, seed: int, values: list[Value]) -> list[Series]:
    """Makes a series for each client."""
    present = [value for value in values if value.client is not None and value.value is not None]
    points = grouped((value.client, (float(value.round) if value.x is None else value.x, value.value)) for value in present)
    curves = {client: zip(*sorted(client_points), strict=True) for client, client_points in sorted(points.items())}
    return [Series.of(cell, [seed], str(client), y=y, x=x) for client, (x, y) in curves.items()]
