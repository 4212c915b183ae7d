"""The networks of the work items in PyTorch, with its default initial weights, for the contenders that use it."""

import torch
from torch import nn


def make_model(name: str) -> nn.Sequential:
    """Maps images float32 [B, C, H, W] to logits [B, 10]. KeyError for a name that is not in `contender.MODELS`."""
    return {"two_nn": _two_nn, "logistic": _logistic, "mnist_cnn": _mnist_cnn, "simple_cnn": _simple_cnn}[name]()


@torch.no_grad()
def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Percent of images that `model` gives their label."""
    model.eval()
    batches = zip(images.split(1000), labels.split(1000), strict=True)
    return 100 * sum(int((model(x).argmax(1) == y).sum()) for x, y in batches) / len(labels)


def _two_nn() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


def _logistic() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))


def _mnist_cnn() -> nn.Sequential:
    features = nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*features, nn.Flatten(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10))


def _simple_cnn() -> nn.Sequential:
    first = nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2)
    features = *first, nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 64, 3), nn.ReLU()
    return nn.Sequential(*features, nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10))
