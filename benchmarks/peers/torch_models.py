"""The networks of the work items as PyTorch modules with PyTorch's default initial weights, for contenders that use those."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn


def make_model(name: str) -> nn.Sequential:
    """A module that maps images float32 [B, C, H, W] to logits [B, 10]. Raises KeyError for a name that no work item has."""
    makers = {
        "two_nn": _two_nn,
        "logistic": _logistic,
        "mnist_cnn": _mnist_cnn,
        "simple_cnn": _simple_cnn,
        "resnet20": _resnet20,
    }
    return makers[name]()


@torch.no_grad()
def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Percent of images that `model` classifies correctly."""
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


def _resnet20() -> nn.Sequential:
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(a, b) for a, b in pairwise(widths)]
    stem = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Block(nn.Module):
    """Two 3x3 convolutions with a shortcut around them."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        stride = 1 if channels == width else 2
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        projection = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        self.shortcut = nn.Identity() if stride == 1 else projection

    def forward(self, x):
        """Applies the block to images."""
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))
