"""Dropout by key: rates, scale, and that a mask depends only on its purpose."""

import pytest
import torch

from fedrepro import tree
from fedrepro.models import build, initial
from fedrepro.models.dropout import JoinedKeys, Keys, dropout
from fedrepro.tree import Tree

KEY = torch.tensor(2**62 + 12345)


def test_rate_and_scale() -> None:
    """Of 400,000 ones a quarter is dropped (standard error 0.07 points) and the others become 4/3, so the mean stays."""
    y = dropout(torch.ones(500, 800, dtype=torch.float64), 0.25, KEY, 1)
    assert set(y.unique().tolist()) == {0.0, 1 / 0.75}
    assert abs(float((y == 0).double().mean()) - 0.25) < 0.003
    by_row, by_column = (y == 0).double().mean(1), (y == 0).double().mean(0)
    assert float(by_row.std()) < 0.02  # sqrt(0.25 * 0.75 / 800) = 0.0153
    assert float(by_column.std()) < 0.025  # sqrt(0.25 * 0.75 / 500) = 0.0194


def test_masks_of_other_keys_layers_steps_and_passes_are_independent() -> None:
    """Any two masks agree in as many places as by chance: 0.5 of them at rate one half."""
    x = torch.ones(100, 1000)
    keys, again = Keys(KEY), Keys(KEY)
    first, second = keys.next(), keys.next()
    keys.begin(1)
    third = keys.next()
    assert torch.equal(again.next(), first)
    masks = [dropout(x, 0.5, key, layer) for key in (first, second, third, KEY + 1) for layer in (1, 2)]
    for i, a in enumerate(masks):
        for b in masks[:i]:
            assert abs(float((a == b).float().mean()) - 0.5) < 0.01


def test_rate_zero_keeps_everything() -> None:
    """Dropout at rate 0 returns its input unchanged, to the bit."""
    x = torch.randn(4, 5)
    assert torch.equal(dropout(x, 0.0, KEY, 1), x)


def test_clients_side_by_side_drop_what_each_drops_alone() -> None:
    """Keys have a leading axis. A smaller batch drops the same as those rows of a larger one, so padding changes nothing."""
    keys_K, x = torch.tensor([5, -7, 2**40]), torch.ones(3, 6, 4, 2)
    together = dropout(x, 0.5, keys_K, 2)
    for k in range(3):
        assert torch.equal(together[k], dropout(x[k], 0.5, keys_K[k], 2))
        assert torch.equal(together[k, :4], dropout(x[k, :4], 0.5, keys_K[k], 2))
    ones = [Keys(key) for key in keys_K]
    assert torch.equal(JoinedKeys(ones).next(), torch.stack([Keys(key).next() for key in keys_K]))


def test_the_network_drops_in_training_only() -> None:
    """Evaluation ignores the key. In training half of the hidden units are dropped, and their gradients are zero."""
    model = build("fedgh_cnn", (1, 10, 10), 3)
    params, x = initial.draw(model, 8), torch.randn(64, 1, 10, 10)
    run = lambda train, key: model.forward(params, model.first_buffers(), x, train, key=key)[0]  # noqa: E731
    assert torch.equal(run(False, KEY), run(False, None))
    assert torch.equal(run(True, None), run(False, None))
    assert torch.equal(run(True, KEY), run(True, KEY))
    assert not torch.equal(run(True, KEY), run(True, KEY + 1))
    g = tree.gradient(lambda p: model.forward(p, model.first_buffers(), x[:1], True, key=KEY)[0].sum(), params)
    dropped = (g["fc1.bias"] == 0).float().mean()
    assert 0.3 < float(dropped) <= 1.0


@pytest.mark.parametrize("name", ["fedgh_cnn", "fedgh_cnn_relu"])
def test_fedghs_network_drops_a_quarter_and_then_a_half(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates are 0.25 and 0.5, in the order of the layers."""
    rates = []
    monkeypatch.setattr("fedrepro.models.fedgh_cnn.dropout", lambda h, rate, key, layer: rates.append((rate, layer)) or h)
    model = build(name, (3, 32, 32), 10)
    params = Tree(model.layout, torch.zeros(model.parameters))
    model.forward(params, model.first_buffers(), torch.zeros(2, 3, 32, 32), True, key=KEY)
    assert rates == [(0.25, 1), (0.5, 2)]
