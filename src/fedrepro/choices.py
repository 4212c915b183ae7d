"""What a training may be told of its device and its engine."""

DEVICES = ("auto", "cpu", "cuda")  # as in params.yaml
ENGINES = ("auto", "sequential", "vectorised", "plain")
