"""Symmetric Dirichlet proportions, kept as logarithms.

With a small concentration most proportions are below the smallest float. As plain numbers they would all be 0 once the large
ones are ruled out (a class used up, a client full), and could not be normalised any more. As logarithms they can be compared.
"""

import numpy as np

from fedrepro.registry import require


def require_concentration(where: str, value: float) -> None:
    """UserError unless `value` lies in [1e-300, 1e300], where every logarithm below is finite."""
    require(1e-300 <= value <= 1e300, where, value, "must be > 0, from 1e-300 to 1e300")


def log_weights(concentration: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """float64 `shape`: normalised over the last axis (`proportions`), each row is a draw from Dir(concentration * 1).

    They are logarithms of Gamma(a) variables, drawn as Gamma(a + 1) * U^(1/a), which has the same distribution (Marsaglia and
    Tsang, "A simple method for generating gamma variables", ACM TOMS 2000); -log U is a standard exponential.
    """
    return np.log(rng.standard_gamma(concentration + 1, shape)) - rng.standard_exponential(shape) / concentration


def proportions(log_weights: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Normalised over the last axis among the `allowed` entries (bool, broadcast), 0 elsewhere. Each row must allow one."""
    masked_log_weights = np.where(allowed, log_weights, -np.inf)
    weights = np.exp(masked_log_weights - masked_log_weights.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
