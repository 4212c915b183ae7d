"""Long-tailed classes: how many samples of each class are left in FedLAW's training data (Table 7) and proxy sets (Table 6)."""

import math


def tail_size(count: int, c: int, classes: int, ratio: float) -> int:
    """floor(count * ratio^(-c / (C - 1))): what class c of C keeps of `count` samples. Class 0 keeps all, the last 1/ratio.

    This is the form in the code of FedLAW's authors (ICML 2023). A single class keeps all.
    """
    # Rounding can make a whole number slightly too small; it must not become the one below it.
    return math.floor(count * ratio ** (-c / max(classes - 1, 1)) + 1e-9)
