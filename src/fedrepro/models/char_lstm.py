"""Next-character models: an embedding, LSTM layers, and a linear layer that predicts the next character after each.

char_lstm: embedding of 8, one layer of 64 units.
shakespeare_lstm: two layers of 256, 820,522 parameters with 90 characters and one bias per gate. The model of McMahan et al.
(AISTATS 2017, https://arxiv.org/abs/1602.05629) for Shakespeare, which Elastic aggregation uses too.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.lstm import lstm
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int], classes: int, embedding: int, hidden: int, layers: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order. As in torch's LSTM, a layer's last matrix decides its initial range, 1/sqrt(hidden)."""
    param_shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (classes, embedding)}
    for layer in range(1, layers + 1):
        inputs = hidden if layer > 1 else embedding
        param_shapes |= {f"lstm{layer}.into": (4 * hidden, inputs), f"lstm{layer}.weight": (4 * hidden, hidden)}
        param_shapes[f"lstm{layer}.bias"] = (4 * hidden,)
    return param_shapes | {"fc.weight": (classes, hidden), "fc.bias": (classes,)}


def features(
    params: Tree, buffers: Tree, x: Tensor, train: bool, embedding: int, hidden: int, layers: int
) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, T, H], for characters x [..., B, T], int64. The model has no buffers."""
    h = ops.embedding(x, params["embedding.weight"])
    for layer in range(1, layers + 1):
        h = lstm(h, *(params[f"lstm{layer}.{kind}"] for kind in ("into", "weight", "bias")))
    return h, buffers


def head(params: Tree, h: Tensor, embedding: int, hidden: int, layers: int) -> Tensor:
    """Logits [..., B, T, classes] of features [..., B, T, H]."""
    return ops.linear(h.flatten(-3, -2), params["fc.weight"], params["fc.bias"]).unflatten(-2, h.shape[-3:-1])


def loss(outputs: Tensor, y: Tensor, input_shape: tuple[int]) -> Tensor:
    """Mean cross-entropy over all characters of the batch: outputs [..., B, T, C], next characters y [..., B, T]."""
    return ops.cross_entropy(outputs.flatten(-3, -2), y.flatten(-2))
