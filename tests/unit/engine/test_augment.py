"""Crops and flips by hand, their draws, and that all engines and workers use the same ones."""

import numpy as np
import pytest
import torch

from fedrepro import rng
from fedrepro.engine.augment import Crop, Flip, Pipeline
from fedrepro.engine.loop import train, train_together
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from tests import toy
from tests.contract.test_engines import assert_close, tasks

BLACK = torch.tensor([-1.0, -2.0])
AUGMENT = "crop(padding=1)+flip"


@pytest.mark.parametrize("padding", [1, 3])
def test_every_crop_is_a_window_of_the_padded_image(padding: int) -> None:
    """All choices at once, also with a leading client axis, equal slices of torch's padding."""
    part = Crop(padding)
    x = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(1))
    padded = torch.stack([torch.nn.functional.pad(c, [padding] * 4, value=b) for c, b in zip(x, BLACK.tolist(), strict=True)])
    places = 2 * padding + 1
    windows = [padded[:, i : i + 4, j : j + 5] for i in range(places) for j in range(places)]
    choices = torch.arange(part.choices)
    found = part(x.expand(part.choices, -1, -1, -1), choices, BLACK)
    assert torch.equal(found, torch.stack(windows))
    twice = part(x.expand(2, part.choices, -1, -1, -1), choices.expand(2, -1), BLACK)
    assert torch.equal(twice, torch.stack([found, found]))


def test_a_flip_by_hand() -> None:
    """An image is flipped only if its choice is 1."""
    x = torch.tensor([[[[1.0, 2.0, 3.0]]], [[[4.0, 5.0, 6.0]]]])
    assert Flip()(x, torch.tensor([0, 1]), BLACK).flatten().tolist() == [1, 2, 3, 6, 5, 4]


def test_draws_are_uniform_and_keyed() -> None:
    """Each of the 9 x 2 choices occurs about equally often (chi squared on 17 degrees, 99.9 %: 40.8). Another client, round or
    seed gives another draw, and epochs differ."""
    pipeline = Pipeline((Crop(1), Flip()), BLACK)
    assert pipeline.choices == 18
    where = {"seed": 8, "client": 0, "round": 0, "epochs": 2, "samples": 9000}
    drawn = pipeline.draw(**where)
    counts = np.bincount(drawn.ravel(), minlength=18)
    assert ((counts - 1000) ** 2 / 1000).sum() < 40.8
    assert np.array_equal(drawn, pipeline.draw(**where))
    assert not np.array_equal(drawn[0], drawn[1])
    for key in ("seed", "client", "round"):
        assert not np.array_equal(drawn, pipeline.draw(**(where | {key: 1})))


def test_black_is_a_pixel_of_zero() -> None:
    """(0 - mean) / deviation, one value or one per channel."""
    assert toy.make_task(augment=AUGMENT, normalise="centred").augmentation.black.tolist() == [-1.0]
    own = toy.make_task(augment=AUGMENT, normalise="standard", channel_statistics=((0.25,), (0.5,)))
    assert own.augmentation.black.tolist() == [-0.5]
    assert toy.make_task().augmentation is None


def test_a_client_sees_its_draws() -> None:
    """The batches of two epochs equal those made from orders and draws that this test takes from their streams."""
    task = toy.make_task(augment=AUGMENT)
    engine = SequentialEngine(task, compose("fedavg"))
    rows, seen = task.client_index[1], list(engine._training_batches(1, engine._batches(1, 2), 2))
    orders, draws = rng.stream(8, "batches", 1, 2), rng.stream(8, "augment", 1, 2).integers(18, size=(2, 12))
    for epoch in range(2):
        order = orders.permutation(12)
        x = task.train.x[rows[order]]
        choice = torch.from_numpy(draws[epoch][order])
        x = Flip()(Crop(1)(x, choice % 9, torch.zeros(1).double()), choice // 9, BLACK)
        assert torch.equal(torch.cat([batch.x for batch in seen[2 * epoch : 2 * epoch + 2]]), x)


@pytest.mark.parametrize("model", ["tiny", "norm"])
def test_engines_and_workers_agree(model: str) -> None:
    """Three seeds together agree to 1e-12 (1e-8 with BatchNorm), and workers to the bit. The data set is not modified."""
    several = tasks(model, augment=AUGMENT)
    before = [task.train.x.clone() for task in several]
    found = dict(train_together(several, compose("fedavg")))
    for i, task in enumerate(several):
        alone = train(task, compose("fedavg"))
        assert_close(found[i], alone, 1e-12 if model == "tiny" else 1e-8)
        assert torch.equal(train(task, compose("fedavg"), workers=2).params.flat, alone.params.flat)
        assert torch.equal(task.train.x, before[i])
    plain = train(tasks(model)[0], compose("fedavg"))
    assert (plain.params.flat - found[0].params.flat).abs().max() > 1e-3


def test_names_and_mistakes() -> None:
    """The identity of a run spells the augmentation out, unless there is none. A mistake gives one line."""
    assert toy.make_spec(augment="crop+flip").as_dict()["augment"] == "crop(padding=4)+flip"
    assert "augment" not in toy.make_spec(augment="none").as_dict()
    with pytest.raises(UserError, match="unknown augmentation 'rotate'"):
        toy.make_spec(augment="rotate")
    with pytest.raises(UserError, match="crop: padding = 0: must be at least 1"):
        toy.make_spec(augment="crop(padding=0)")
