"""Running statistics by hand: one BatchNorm of one channel, so that D' is a mean and a variance.

Global statistics are (0, 1). Two clients with data-size weights 1/4 and 3/4 send (1, 2) and (5, 10). The proxy set is the
two images 1 and 3: mean 2, unbiased variance 2. One training pass changes a statistic s to 0.9 s + 0.1 * 2.
"""

import dataclasses

import pytest
import torch

from fedrepro.engine.local import TrainingNetwork
from fedrepro.methods.compose import ServerState, compose
from fedrepro.tree import Tree
from fedrepro.types import Batch
from tests import toy

MODEL = toy.ONE_NORM
BEFORE = (0.0, 1.0)


def statistics(*rows: tuple[float, float]) -> Tree:
    flat = torch.tensor(rows, dtype=torch.float64)
    return Tree(MODEL.buffer_layout, flat if len(rows) > 1 else flat[0])


def params(*values: float) -> Tree:
    return Tree(MODEL.layout, torch.tensor(values, dtype=torch.float64))


COHORT = toy.cohort(
    Tree(MODEL.layout, torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]], dtype=torch.float64)),
    [0.25, 0.75],
    anchor=params(1.0, 0.0, 0.5),
    buffers=statistics((1.0, 2.0), (5.0, 10.0)),
)


def rounds(text: str, count: int = 1) -> list[list[float]]:
    """The global model's statistics after each of `count` rounds with the same cohort."""
    task = dataclasses.replace(toy.make_task(), model=MODEL)
    proxy = Batch(torch.tensor([1.0, 3.0], dtype=torch.float64).reshape(2, 1, 1, 1), torch.tensor([0, 1]))
    method, found = compose(text), []
    state: ServerState = method.init(COHORT.anchor, statistics(BEFORE))
    for round in range(count):
        state = dataclasses.replace(state, params=COHORT.anchor)
        network = TrainingNetwork(MODEL, state.buffers)
        ctx = toy.server_context(task, COHORT, round, network=network, proxy=proxy, smallest_batch=MODEL.smallest_batch)
        state = method.apply(state, ctx)
        found.append(state.buffers.flat.tolist())
    return found


def moved(start: tuple[float, float], passes: int) -> list[float]:
    """2 + 0.9^passes (start - 2), the same for the mean and the variance."""
    return [2 + 0.9**passes * (value - 2) for value in start]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fedavg", [4, 8]),  # 1/4 + 15/4, 1/2 + 15/2
        ("mean_buffers", [4, 8]),
        ("mean_buffers(weighting=uniform)", [3, 6]),
        ("feddyn", [3, 6]),  # the part that FedDyn wants
        ("first_client_buffers", [1, 2]),
        ("server_buffers", [0, 1]),
        ("fedlaw(server_epochs=0)", [0, 1]),
        ("server_ft(server_epochs=1)", [3.8, 7.4]),  # 3.6 + 0.2, 7.2 + 0.2
        ("server_ft(server_epochs=2)", [3.62, 6.86]),
        ("feddf(server_epochs=2)", [3.62, 6.86]),
        ("fedbe(server_epochs=2)", [3.62, 6.86]),
        ("server_ft(server_epochs=2)+server_buffers", [0.38, 1.19]),  # 0, 0.2, 0.38; 1, 1.1, 1.19
        ("fedlaw(server_epochs=2)", [0.38, 1.19]),
        ("attentive_law(server_epochs=2)", [0.38, 1.19]),
        ("adaptive_gws(server_epochs=2)", [0.38, 1.19]),
        ("fedlaw_swa(server_epochs=2)", [0.38, 1.19]),  # one epoch for each stage
        ("fedlaw_swa(server_epochs=3)", [0.38, 1.19]),
        ("fedlaw(server_epochs=2)+mean_buffers", [3.62, 6.86]),
        ("fedlaw_quad(server_epochs=2)", [0.38, 1.19]),
        ("law_swa(server_epochs=2)", [0.38, 1.19]),
        ("early_stopped_law(server_epochs=2, stop=1)", [3.62, 6.86]),
        ("early_stopped_law(server_epochs=2, stop=0)", [4, 8]),
        ("fedlaw_only(server_epochs=2)+proxy_buffers(passes=1)", [0.542, 1.271]),  # two passes learn, one measures
        ("proxy_buffers(passes=1)", [0.2, 1.1]),
        ("proxy_buffers(passes=3)", [0.542, 1.271]),  # 2 - 2 * 0.729, 2 - 0.729
        ("server_ft(server_epochs=2)+proxy_buffers(passes=1)", [0.542, 1.271]),
    ],
)
def test_one_round_by_hand(text: str, expected: list[float]) -> None:
    """The buffers part sets the statistics' start. Then every step of the server's training makes a pass."""
    assert rounds(text) == [pytest.approx(expected, abs=1e-12)]


@pytest.mark.parametrize(("text", "passes"), [("fedlaw(server_epochs=4)", 4), ("proxy_buffers(passes=4)", 4)])
def test_the_servers_own_statistics_go_on_over_rounds(text: str, passes: int) -> None:
    """Four passes per round, three rounds: 4, 8 and 12 passes from (0, 1)."""
    expected = [pytest.approx(moved(BEFORE, passes * (t + 1)), abs=1e-12) for t in range(3)]
    assert rounds(text, 3) == expected


def test_averaged_statistics_begin_anew_in_each_round() -> None:
    """The server's training of the last round has no effect: (4, 8) is moved twice in every round."""
    assert rounds("server_ft(server_epochs=2)", 3) == [pytest.approx(moved((4, 8), 2), abs=1e-12)] * 3


def test_recalibration_takes_the_final_weights() -> None:
    """On a model with BatchNorm, the passes use the new global model, in the order of the stream (seed, round, proxy-buffers),
    and start from the old statistics. The weights are FedAvg's."""
    from fedrepro import rng
    from fedrepro.engine.loop import train

    task = toy.make_task(model=toy.norm_model(), rounds=1)
    assert task.proxy is not None
    found, fedavg = train(task, compose("proxy_buffers(passes=2)")), train(task, compose("fedavg"))
    assert torch.equal(found.params.flat, fedavg.params.flat)
    buffers, generator = task.buffers, rng.stream(task.seed, "server/proxy-buffers", 0)
    for _ in range(2):
        order = torch.from_numpy(generator.permutation(12))
        for index_B in (order[:8], order[8:]):
            _, buffers = task.model.forward(fedavg.params, buffers, task.proxy.x[index_B], True)
    torch.testing.assert_close(found.buffers.flat, buffers.flat, rtol=0, atol=1e-12)
    assert (found.buffers.flat - fedavg.buffers.flat).abs().max() > 1e-2
