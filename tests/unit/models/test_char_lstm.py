"""The LSTM layer and the next-character model compared with torch's, with and without a leading client axis."""

import pytest
import torch
from torch import Tensor, nn

from fedrepro import tree
from fedrepro.errors import UserError
from fedrepro.models import build, initial, ops
from tests.toy import normal


def torch_order(rows: Tensor) -> Tensor:
    """Our gates are input, forget, output, candidate; torch's are input, forget, candidate, output."""
    i, f, o, g = rows.chunk(4)
    return torch.cat([i, f, g, o])


def test_the_papers_model_has_its_parameters() -> None:
    """McMahan's model: an embedding of 8, two layers of 256, 90 characters, one bias per gate."""
    assert build("shakespeare_lstm", (80,), 90).parameters == 820_522
    assert build("char_lstm", (80,), 8).parameters == 8 * 8 + 256 * (8 + 64 + 1) + 8 * 65


def test_two_layers_are_torchs() -> None:
    """The paper's model is compared with torch's embedding, LSTM of two layers and linear layer: logits and gradient in
    float64."""
    model = build("shakespeare_lstm", (80,), 90)
    params = initial.draw(model, 8)
    params, batch = params.like(params.flat.double()), model.random(4, torch.Generator().manual_seed(0))
    table, layers = nn.Embedding(90, 8), nn.LSTM(8, 256, num_layers=2, batch_first=True)
    torchs = nn.ModuleList([table, layers, nn.Linear(256, 90)]).double()
    ours = [torch_order(value) if name.startswith("lstm") else value for name, value in params.items()]
    theirs = [parameter for name, parameter in torchs.named_parameters() if "bias_hh" not in name]
    with torch.no_grad():
        layers.bias_hh_l0.zero_(), layers.bias_hh_l1.zero_()
        for parameter, value in zip(theirs, ours, strict=True):
            parameter.copy_(value)
    expected = torchs[2](layers(table(batch.x))[0])
    found = model.forward(params, model.first_buffers(), batch.x, True)[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    g = tree.gradient(lambda p: model.loss(model.forward(p, model.first_buffers(), batch.x, True)[0], batch.y), params)
    slopes = torch.autograd.grad(nn.functional.cross_entropy(expected.flatten(0, 1), batch.y.flatten()), theirs)
    for (name, one), other in zip(g.items(), slopes, strict=True):
        torch.testing.assert_close(torch_order(one) if name.startswith("lstm") else one, other, rtol=0, atol=1e-12)


def test_a_prediction_sees_the_past_alone() -> None:
    """Another last character changes only the last logits. Stacked clients give the results of each alone."""
    model = build("char_lstm", (12,), 5)
    both = tree.map(lambda flat: flat.double(), tree.stack([initial.draw(model, seed) for seed in (8, 9)]))
    x = model.random(2 * 3, torch.Generator().manual_seed(0)).x.view(2, 3, 12)
    other = x.clone()
    other[..., -1] = (x[..., -1] + 1) % 5
    before, after = (model.forward(both, model.first_buffers(), each, True)[0] for each in (x, other))
    assert before.shape == (2, 3, 12, 5)
    assert torch.equal(before[..., :-1, :], after[..., :-1, :])
    assert (before[..., -1, :] != after[..., -1, :]).all()
    for k in range(2):
        alone = model.forward(both.like(both.flat[k]), model.first_buffers(), x[k], True)[0]
        torch.testing.assert_close(before[k], alone, rtol=0, atol=1e-14)


def test_the_loss_is_the_mean_over_characters() -> None:
    """Two windows of three characters, logits of 0 except one of log 3 at the right place: 5 log 2 + log 4/3 over 6. With a
    client axis it is the sum over clients, and padded windows do not count."""
    model = build("char_lstm", (3,), 2)
    logits, y = torch.zeros(2, 3, 2), torch.tensor([[0, 1, 1], [0, 0, 1]])
    logits[1, 2, 1] = torch.tensor(3.0).log()
    one = (5 * torch.tensor(2.0).log() + torch.tensor(4 / 3).log()) / 6
    torch.testing.assert_close(model.loss(logits, y), one)
    padded = torch.stack([y, torch.stack([y[0], torch.full((3,), -100)])])
    torch.testing.assert_close(model.loss(torch.stack([logits, logits]), padded), one + torch.tensor(2.0).log())


def test_embeddings_with_a_client_axis() -> None:
    """Client k's characters use client k's table. The gradient of a row is the sum over its occurrences."""
    weight, x = normal(2, 4, 3).requires_grad_(), torch.tensor([[[0, 3], [3, 1]], [[2, 2], [2, 0]]])
    rows = ops.embedding(x, weight)
    assert torch.equal(rows, torch.stack([weight[k][x[k]] for k in range(2)]))
    (g,) = torch.autograd.grad(rows.sum(), weight)
    assert g[..., 0].tolist() == [[1, 1, 0, 2], [1, 0, 3, 0]]


@pytest.mark.parametrize(("name", "shape"), [("char_lstm", (1, 8, 8)), ("mlp", (80,))])
def test_samples_of_the_wrong_kind(name: str, shape: tuple[int, ...]) -> None:
    """One line names the model and the shape."""
    with pytest.raises(UserError, match=rf"^{name}: reads (text|images), and samples of shape .* are none$"):
        build(name, shape, 10)
