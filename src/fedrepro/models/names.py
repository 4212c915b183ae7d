"""Which architectures there are and what images they expect: readable without importing torch."""

# name -> native input shape (C, H, W) of the paper's experiments
MODELS: dict[str, tuple[int, int, int]] = {
    "mlp": (1, 28, 28),
    "lenet": (1, 28, 28),
}
