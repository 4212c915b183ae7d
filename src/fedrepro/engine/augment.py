"""Random changes of training images, drawn by keys of (seed, client, round, epoch, sample).

A sample's draw is one integer, encoded in the sample's index. So the code that builds batches does not change, the data set is
not copied, and both engines with any number of workers compute the same bits.
"""

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from fedrepro import rng
from fedrepro.registry import Registry, parse, require

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from fedrepro.types import Batch

AUGMENTATIONS = Registry("augmentation")
NONE = "none"


@dataclass(frozen=True)
class Augmentation:
    """One change. It has `choices` outcomes, all equally likely."""

    name: ClassVar[str]

    @property
    def choices(self) -> int:
        """The number of outcomes."""
        raise NotImplementedError

    def __call__(self, x: "Tensor", choice: "Tensor", black: "Tensor") -> "Tensor":
        """The images x [..., B, C, H, W], each changed by its choice [..., B]. `black` [C]: a pixel of 0, normalised."""
        raise NotImplementedError


@AUGMENTATIONS.register("crop")
@dataclass(frozen=True)
class Crop(Augmentation):
    """A window of the image's size, placed anywhere in the image with `padding` >= 1 black pixels around it."""

    padding: int = 4

    def __post_init__(self) -> None:
        require(self.padding >= 1, "crop: padding", self.padding, "must be at least 1")

    @property
    def choices(self) -> int:
        return (2 * self.padding + 1) ** 2

    def __call__(self, x: "Tensor", choice: "Tensor", black: "Tensor") -> "Tensor":
        import torch

        height, width = x.shape[-2:]
        offsets = 2 * self.padding + 1

        def positions(by: "Tensor", side: int) -> "Tensor":
            return by.unsqueeze(-1) - self.padding + torch.arange(side, device=x.device)

        rows, columns = positions(choice // offsets, height).unsqueeze(-1), positions(choice % offsets, width).unsqueeze(-2)
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)  # [..., B, H, W]
        pixel_index = (rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1)).flatten(-2).unsqueeze(-2)
        window = x.flatten(-2).gather(-1, pixel_index.expand(*x.shape[:-2], height * width)).view(x.shape)
        return torch.where(inside.unsqueeze(-3), window, black.view(-1, 1, 1))


@AUGMENTATIONS.register("flip")
@dataclass(frozen=True)
class Flip(Augmentation):
    """Flips the image left to right, or leaves it unchanged."""

    @property
    def choices(self) -> int:
        return 2

    def __call__(self, x: "Tensor", choice: "Tensor", black: "Tensor") -> "Tensor":
        return x.flip(-1).where(choice.bool().view(*choice.shape, 1, 1, 1), x)


def augmentations(text: str) -> tuple[Augmentation, ...]:
    """The augmentations that `text` names, in order: `crop(padding=4)+flip`, or none. UserError for an unknown one."""
    return () if text == NONE else tuple(AUGMENTATIONS.make(call) for call in parse(text))


def canonical(text: str) -> str:
    """The text with every argument written out."""
    return "+".join(str(AUGMENTATIONS.canonical(augmentation)) for augmentation in augmentations(text)) or NONE


@dataclass(frozen=True)
class Pipeline:
    """All augmentations of a run, in order. An augmented index is position * choices + choice."""

    steps: tuple[Augmentation, ...]
    black: "Tensor"  # [C]

    @property
    def choices(self) -> int:
        """The number of outcomes of all steps together."""
        return prod(step.choices for step in self.steps)

    def draw(self, *, seed: int, client: int, round: int, epochs: int, samples: int, purpose: str = "augment") -> "np.ndarray":
        """Draws a choice for each of a client's samples in each epoch, int64 [epochs, samples]."""
        return rng.stream(seed, purpose, client, round).integers(self.choices, size=(epochs, samples))

    def take(self, data: "Batch", index: "Tensor") -> "Batch":
        """The samples at augmented indices [..., B], with their changes applied."""
        position, choice = index // self.choices, index % self.choices
        x = data.x.index_select(0, position.flatten()).unflatten(0, index.shape)
        for step in self.steps:
            x = step(x, choice % step.choices, self.black)
            choice = choice // step.choices
        return type(data)(x, data.y[position])
