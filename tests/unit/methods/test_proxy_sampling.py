"""Class-balanced mini-batches of the proxy set: by hand, by distribution, and in every method that trains on them."""

import dataclasses

import numpy as np
import pytest
import torch

from fedrepro.engine.loop import train
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import proxy_batches
from fedrepro.methods.proxy_sampling import balanced_positions
from fedrepro.types import Batch
from tests import toy

LABELS = np.array([2, 0, 2, 2, 0, 2, 2, 5, 2, 2])  # positions 1 and 4, seven others, and 7


class Drawn:
    """A generator that draws the numbers of the test."""

    def __init__(self, *numbers: list[int]) -> None:
        self.numbers, self.asked = list(numbers), list[list[int]]()

    def integers(self, high: int | np.ndarray, size: int | None = None) -> np.ndarray:
        self.asked.append(np.broadcast_to(high, size or np.shape(high)).tolist())
        return np.array(self.numbers.pop(0))


def test_by_hand() -> None:
    """Classes 0, 2 and 5 have 2, 7 and 1 samples. Each of ten samples first draws one of the three classes, then a sample of
    it."""
    rng = Drawn([0, 0, 1, 1, 1, 2, 0, 1, 2, 0], [0, 1, 0, 6, 3, 0, 1, 1, 0, 0])
    assert balanced_positions(LABELS, rng).tolist() == [1, 4, 0, 9, 5, 7, 4, 2, 7, 1]  # pyright: ignore[reportArgumentType]
    assert rng.asked == [[3] * 10, [2, 2, 7, 7, 7, 1, 2, 7, 1, 2]]


def test_every_class_is_as_likely_and_every_sample_of_it() -> None:
    """40,000 draws give 13,333 +- 94 of each class (binomial) and 1,905 +- 43 of each sample of class 2. The test allows five
    deviations."""
    rng = np.random.default_rng(0)
    taken = np.bincount(np.concatenate([balanced_positions(LABELS, rng) for _ in range(4000)]), minlength=10)
    classes = np.bincount(LABELS, taken)
    assert classes[[1, 3, 4]].tolist() == [0, 0, 0]
    assert abs(classes[[0, 2, 5]] - 40000 / 3).max() < 5 * 94
    assert abs(taken[LABELS == 2] - 40000 / 21).max() < 5 * 43


def test_batches_have_the_sizes_of_shuffled_ones() -> None:
    """Twelve images make batches of 8 and 4 in each of three epochs. Each epoch draws other ones, and the same seed draws the
    same ones. The class of a text is the character after its window."""
    task = toy.make_task()
    assert task.proxy is not None
    both = [list(proxy_batches(toy.server_context(task, proxy_sampling=how), "any", 3)) for how in ("shuffled", "balanced")]
    assert [[(epoch, len(index)) for epoch, index in found] for found in both] == [
        [(t, n) for t in range(3) for n in (8, 4)]
    ] * 2
    assert len({tuple(index.tolist()) for _, index in both[1]}) == 6
    after = torch.stack([torch.zeros_like(task.proxy.y), task.proxy.y], 1)
    text = toy.server_context(task, proxy_sampling="balanced", proxy=Batch(task.proxy.x, after))
    assert [index.tolist() for _, index in proxy_batches(text, "any", 3)] == [index.tolist() for _, index in both[1]]


@pytest.mark.parametrize("text", [text for text in toy.PART_METHODS if "proxy" in compose(text).needs])
def test_whatever_learns_on_the_proxy_set_follows(text: str) -> None:
    """On a proxy set of six, two and one images of three classes, with BatchNorm, weights or statistics differ."""
    task = toy.make_task(model=toy.norm_model(), rounds=1)
    assert task.proxy is not None
    some = torch.cat([torch.where(task.proxy.y == c)[0][:count] for c, count in enumerate((4, 2, 1))])
    task = dataclasses.replace(task, proxy=task.proxy.take(some))
    other = dataclasses.replace(task, spec=dataclasses.replace(task.spec, proxy_sampling="balanced"))
    first, second = (train(one, compose(text)) for one in (task, other))
    changed = [not a.flat.equal(b.flat) for a, b in ((first.params, second.params), (first.buffers, second.buffers))]
    assert any(changed)


def test_settings() -> None:
    """The defaults are not part of the settings. `proxy` and `proxy_sampling` with other values need a proxy set."""
    plain = toy.make_spec(proxy="balanced", proxy_sampling="shuffled")
    assert not {"proxy", "proxy_sampling"} & set(plain.as_dict())
    made = toy.make_spec(proxy="long_tailed", proxy_sampling="balanced").as_dict()
    assert (made["proxy"], made["proxy_sampling"]) == ("long_tailed(ratio=10.0)", "balanced")
    for key, value, wrong in (
        ("proxy", "long_tailed", r"proxy = 'long_tailed\(ratio=10.0\)': needs a proxy set; set proxy_per_class to at least 1"),
        ("proxy_sampling", "balanced", "proxy_sampling = 'balanced': needs a proxy set; set proxy_per_class to at least 1"),
    ):
        with pytest.raises(UserError, match=f"^{wrong}$"):
            toy.make_spec(proxy_per_class=0, **{key: value})
    for changes, line in (
        ({"proxy": "long_tail"}, "proxy = 'long_tail': unknown kind of proxy set 'long_tail'; did you mean 'long_tailed'"),
        ({"proxy": "long_tailed(ratio=0.5)"}, r"proxy = .*: long_tailed\(ratio=...\) = 0.5: must be at least 1"),
        ({"proxy_sampling": "even"}, "proxy_sampling = 'even': must be one of shuffled, balanced"),
    ):
        with pytest.raises(UserError, match=line):
            toy.make_spec(**changes)
