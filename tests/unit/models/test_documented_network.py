"""The network and the partition scheme of docs/adding-a-network.md, as written, train."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import fedrepro
from fedrepro.data.partition.scheme import SCHEMES
from fedrepro.errors import UserError
from fedrepro.models import build
from fedrepro.models.names import MODELS, Architecture
from fedrepro.registry import parse

BLOCKS = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[3] / "docs/adding-a-network.md").read_text(), flags=re.DOTALL
)


def test_the_documented_network_and_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module says how many parameters the network has. Two clients, of which one has the digits 0 and 1 and the other 2
    and 3, learn to tell all four apart. A wrong argument is refused."""
    network, line, scheme = BLOCKS
    module = ModuleType("fedrepro.models.one_conv")
    exec(network, module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name, architecture in eval(f"{{{line}}}", {"Architecture": Architecture}).items():
        monkeypatch.setitem(MODELS, name, architecture)
    assert f"{build('one_conv', (1, 28, 28), 10).parameters:,} parameters" in str(module.__doc__)
    monkeypatch.setattr(SCHEMES, "_classes", dict(SCHEMES._classes))
    exec(scheme, {"__name__": "fedrepro.data.partition.by_label"})
    labels = np.arange(400) % 4
    x = np.zeros((400, 8, 8), np.float32)
    x[np.arange(400), labels, labels] = 1.0
    trained = fedrepro.train(
        "fedavg", ((x, labels), (x, labels)), model="one_conv", clients=2, partition="by_label", rounds=5, client_lr=0.5
    )
    accuracy = trained.curves.query("metric == 'test_accuracy'")["value"].iloc[-1]
    assert accuracy > 0.9
    parts = SCHEMES.make(parse("by_label(mixed=0.2)")[0])(labels, 4, 3, np.random.default_rng(8)).parts
    assert sorted(np.concatenate(parts)) == list(range(400))
    assert max(map(len, parts)) - min(map(len, parts)) <= 2
    with pytest.raises(UserError, match="must be from 0 to 1"):
        SCHEMES.make(parse("by_label(mixed=2)")[0])
