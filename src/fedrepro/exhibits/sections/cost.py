"""What runs cost, with links to their evidence."""

from collections.abc import Sequence

from fedrepro.console import duration, some
from fedrepro.exhibits.exhibit import Exhibit, Totals, totals
from fedrepro.exhibits.names import volume
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.receipt import Cost
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

COST = (
    "wall time a seed",
    "peak memory",
    "samples a second",
    "a client sends / receives a round",
    "all send / receive in a run",
)
TRAFFIC = (
    "The last two columns are what a real deployment would send: float32 weights, running statistics where the method uses the "
    "clients', and what the client rule adds; nothing is compressed. Here nothing is sent. "
    "Wall times were taken beside other work, some on other processors; they do not rank methods."
)
OWN_PAGES = "What each run cost, with links to its evidence, is on the pages of "
COLUMNS = range(2, 2 + len(COST))


@section("table", at=110)
def cost_of_a_table(table: Exhibit) -> list[b.Block]:
    """A line for each run, with a link to the evidence of each seed."""
    rows = []
    for run in table.cost:
        links = b.joined(b.Text(str(receipt.seed), link=receipt.path) for receipt in run.receipts)
        rows.append((run.method, run.setting, *cost(run.of_seeds), links))
    if not rows:
        return []
    heads = b.heads("method", "setting", *COST, "evidence of seed", numbers=COLUMNS)
    grid = b.Grid("Cost and evidence of every run", heads, tuple(rows))
    total = total_cost(totals(table))
    return [b.Section("Cost and evidence", (b.Paragraph(f"{total} {TRAFFIC}"), grid), folded=True, note=total)]


@section("details", at=60)
def cost_of_a_paper(paper: PaperPage) -> list[b.Block]:
    """A line for each run that no page of a table lists, with a link to the evidence of its first seed."""
    if not paper.cost:
        return []
    plans = [table.plan for table in paper.tables if table.plan.table in paper.rendered]
    listed = {plan.source for plan in plans}
    rows = []
    for run, sources in paper.cost:
        if listed.isdisjoint(sources):
            seeds = f" ({', '.join(str(receipt.seed) for receipt in run.receipts)})"
            evidence = (b.Text(run.run_id[-8:], "code", link=run.receipts[0].path), seeds)
            rows.append((run.method, ", ".join(sources), *cost(run.of_seeds), evidence))
    blocks: list[b.Block] = [b.Paragraph(total_cost(paper.totals))]
    if plans:
        links = b.joined(b.Text(plan.source, link=words.page_of(plan)) for plan in plans)
        blocks.append(b.Paragraph((OWN_PAGES, *links, ".")))
    if rows:
        heads = b.heads("method", "tables", *COST, "evidence (seeds)", numbers=COLUMNS)
        blocks += [b.Paragraph(TRAFFIC), b.Grid("Cost and evidence of every run", heads, tuple(rows))]
    return [b.Section("Cost and evidence", tuple(blocks), folded=True, note=total_cost(paper.totals))]


def cost(runs: Sequence[tuple[str | None, Cost]]) -> tuple[str, ...]:
    """Returns, as text: mean wall time of a seed, peak memory, samples a second, bytes a client and round, bytes a seed.

    `runs`: (device, cost) of each seed; what a GPU took is said apart.
    """
    if not runs:
        return ("–",) * len(COST)
    seeds = [seed for _, seed in runs]
    by_device = [[seed for device, seed in runs if (device == "cuda") == gpu] for gpu in (False, True)]
    groups = [
        (" (GPU)" if gpu else "", group, sum(seed.wall_s for seed in group)) for gpu, group in enumerate(by_device) if group
    ]
    walls = "; ".join(f"{duration(wall / len(group))}{device_note}" for device_note, group, wall in groups)
    rates = "; ".join(
        f"{sum(seed.samples for seed in group) / wall if wall else 0.0:,.0f}{device_note}"
        for device_note, group, wall in groups
    )
    first = (walls, f"{max(seed.peak_rss_mib or 0.0 for seed in seeds):,.0f} MiB", rates)
    with_traffic = [seed for seed in seeds if seed.client_rounds]
    if not with_traffic:  # evidence from before traffic was counted
        return (*first, "–", "–")
    rounds = sum(seed.client_rounds or 0 for seed in with_traffic)
    return (*first, _traffic(with_traffic, rounds), _traffic(with_traffic, len(with_traffic)))


def _traffic(seeds: Sequence[Cost], parts: int) -> str:
    up, down = sum(seed.bytes_up or 0 for seed in seeds), sum(seed.bytes_down or 0 for seed in seeds)
    return f"{volume(up / parts)} / {volume(down / parts)}"


def total_cost(total: Totals) -> str:
    """Says in a sentence what all runs cost together."""
    if not total.runs_done:
        return "Nothing has run yet."
    on = f" ({duration(total.gpu_s)} of it on a GPU)" if total.gpu_s else ""
    text = (
        f"{some(total.runs_done, 'run')}, {duration(total.wall_s)} of computing in all{on}, "
        f"at most {total.peak_rss_mib:,.0f} MiB each."
    )
    if total.sharing:
        text += f" {total.sharing} of them went on from rounds that another run had trained; those are counted once."
    return text
