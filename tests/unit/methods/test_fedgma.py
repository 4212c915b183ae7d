"""FedGMA's masks by hand, and the authors' form compared with a literal loop."""

from dataclasses import replace

import pytest
import torch

from fedrepro.methods.compose import compose
from fedrepro.types import Cohort
from tests import toy


def served(text: str, x: Cohort) -> tuple[list[float], dict[str, float]]:
    """The update, and the values that the part notes."""
    ctx = toy.server_context(toy.make_task(), x)
    update, _ = compose(text).aggregate(x, None, ctx)
    return update.flat.tolist(), ctx.notes


# The parameters: all agree; a third of weight 0.2 does not; the heaviest is against both others; one does not move.
THREE = toy.cohort([[1, 1, 2, -1], [1, 1, -1, 0], [1, -1, -1, -1]], [0.5, 0.3, 0.2])


@pytest.mark.parametrize(("variant", "expected"), [("masked", [1, 0.36, 0, -0.7]), ("and", [1, 0, 0, -0.7])])
def test_by_hand(variant: str, expected: list[float]) -> None:
    """Means (1, 0.6, 0.5, -0.7); agreement (1, 0.5 + 0.3 - 0.2, 0.5 - 0.5, 0.7) at a threshold of 0.65. So the second is masked
    to 0.6 times 0.6, and the third to 0."""
    update, notes = served(f"fedgma(threshold=0.65, variant={variant})", THREE)
    assert update == pytest.approx(expected, abs=1e-12)
    assert notes["gma_agreed"] == 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nine_of_ten_agree_at_four_fifths(dtype: torch.dtype) -> None:
    """Ten clients of equal size: 0.9 - 0.1 counts as 0.8 for any rounding; 8 against 2 is 0.6."""
    for against, mask in ((1, 1.0), (2, 0.0)):
        x = toy.cohort([[1.0]] * (10 - against) + [[-1.0]] * against, [0.1] * 10, dtype)
        assert served("fedgma(variant=and)", x)[0] == pytest.approx([mask * (10 - 2 * against) / 10], abs=1e-6)
    everybody = toy.cohort([[1.0]] * 7, [1 / 7] * 7, dtype)
    assert served("fedgma(threshold=1, variant=and)", everybody)[0] == pytest.approx([1.0], abs=1e-6)


def test_the_authors_form_by_hand() -> None:
    """Two clients, 3/4 and 1/4, a step of 1e-4 / 2, both votes needed (2 > 0.8 * 2).

    (4, 2): mean 3.5, less 4 * 5e-5 = 3.4998; 2 is below that, so the second client disagrees with the votes. (-4, -2): the
    same, mirrored. (1, -1): no votes, mean 0.5. (4, 4): 4 less 2e-4 = 3.9998, then less 5e-5 of the 2e-4 that are left.
    """
    x = toy.cohort([[4, -4, 1, 4], [2, -2, -1, 4]], [0.75, 0.25])
    expected = [3.4998, -3.4998, 0.5, 3.9998 - 1e-8]
    assert served("fedgma(variant=authors)", x)[0] == pytest.approx(expected, abs=1e-13)
    other = replace(x, updates=x.updates.like(x.updates.flat.flip(0)), weights=x.weights.flip(0))
    assert served("fedgma(variant=authors)", other)[0][0] == pytest.approx(3.5 - 1e-4 - 5e-5 * (4 - 3.4999), abs=1e-13)


def test_the_authors_form_beside_models_that_share_memory() -> None:
    """The literal loop goes number by number and overwrites the old global model on the way. 5 clients, 200 parameters,
    1e-14."""
    generator = torch.Generator().manual_seed(0)
    updates = torch.randn(5, 200, generator=generator, dtype=torch.float64) * 0.3 + 0.4
    x = toy.cohort(updates.tolist(), [0.3, 0.1, 0.2, 0.15, 0.25])
    old = torch.randn(200, generator=generator, dtype=torch.float64)
    x = replace(x, anchor=x.anchor.like(old))
    expected = []
    for j in range(200):
        models = [float(old[j] + u[j]) for u in updates]
        mean = sum(p * w for p, w in zip(x.weights.tolist(), models, strict=True))
        at = float(old[j])
        votes = sum((w > at) - (w < at) for w in models)
        for w in models:
            agrees = ((w - at > 0) == (votes > 0)) and abs(votes) > 0.5 * 5
            mean -= 1e-4 * (w - at) * agrees / 5
            at = mean
        expected.append(mean - float(old[j]))
    found = served("fedgma(threshold=0.5, variant=authors)", x)[0]
    assert found == pytest.approx(expected, abs=1e-14)
    fedavg = served("fedavg", x)[0]
    assert 1e-6 < max(abs(a - b) for a, b in zip(found, fedavg, strict=True)) < 1e-3


def test_unanimous_clients_are_fedavg() -> None:
    """This holds for any threshold and for both masks."""
    x = toy.cohort([[1.0, -2.0], [3.0, -1.0]], [0.75, 0.25])
    for text in ("fedgma(threshold=1)", "fedgma(threshold=1, variant=and)"):
        assert served(text, x)[0] == served("fedavg", x)[0]
