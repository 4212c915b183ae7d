"""Settings of a run: bounds, the learning-rate schedule, plain values."""

import json

import pytest

from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from tests import toy


def test_learning_rate_decays_by_a_factor_a_round_from_round_one_on() -> None:
    """0.08 * 0.99^t: round 0 undecayed, round 2 at 0.08 * 0.9801 = 0.078408."""
    spec = toy.make_spec(client_lr=0.08, client_lr_decay=0.99)
    assert spec.client_lr_at(0) == 0.08
    assert spec.client_lr_at(2) == pytest.approx(0.078408, abs=1e-15)


def test_as_dict_is_json_and_back() -> None:
    """A plan's config makes the same spec again."""
    spec = toy.make_spec()
    assert RunSpec(**json.loads(json.dumps(spec.as_dict()))) == spec


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
    """One line `key = value: rule`."""
    with pytest.raises(UserError, match=f"^{key} = {value!r}: must be"):
        toy.make_spec(**{key: value})


@pytest.mark.parametrize(
    ("key", "value"), [("participation", 1.0), ("local_validation", 0.0), ("proxy_per_class", 0), ("client_momentum", 0.0)]
)
def test_the_ends_of_the_ranges_are_allowed(key: str, value: float) -> None:
    """Closed where the rule says "at least" and "at most"."""
    assert getattr(toy.make_spec(**{key: value}), key) == value
