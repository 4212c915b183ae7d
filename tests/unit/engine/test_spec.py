"""Settings of a run: their bounds."""

import pytest

from fedrepro.errors import UserError
from tests import toy


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rounds", 0),
        ("clients", 0),
        ("local_epochs", 0),
        ("batch_size", 0),
        ("proxy_batch_size", 0),
        ("classes", 0),
        ("participation", 0.0),
        ("participation", 1.1),
        ("participation", float("nan")),
        ("local_validation", 1.0),
        ("local_validation", -0.1),
        ("client_lr", 0.0),
        ("client_lr", float("inf")),
        ("client_lr_decay", 0.0),
        ("client_momentum", 1.0),
        ("client_momentum", -0.1),
        ("weight_decay", -1e-3),
        ("weight_decay", 1.0),
        ("proxy_per_class", -1),
    ],
)
def test_a_value_out_of_range_is_named(key: str, value: float) -> None:
    """The error is one line `key = value: rule`."""
    with pytest.raises(UserError, match=f"^{key} = {value!r}: must be"):
        toy.make_spec(**{key: value})
