"""fedrepro re-runs the tables of federated-learning papers and holds them against the printed numbers."""

__version__ = "0.1.0"
