"""Long-tailed classes: how many samples of each are left, in FedLAW's training data (Table 7) and proxy sets (Table 6)."""

import math


def tail_size(count: int, c: int, classes: int, ratio: float) -> int:
    """floor(count * ratio^(-c / (C - 1))), what class c of C keeps of `count` samples: all of class 0, 1/ratio of the last.

    The form is that of FedLAW's authors' code (ICML 2023). A single class keeps all.
    """
    # A whole number that is a rounding error too small must not become the one below it.
    return math.floor(count * ratio ** (-c / max(classes - 1, 1)) + 1e-9)
