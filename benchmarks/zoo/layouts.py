"""The layouts and recipes of the zoo: which layers each network has and how it is trained; needs no torch.

The paper gives neuron counts only; the layouts of the CNNs are our choice with these counts.
"""

from dataclasses import dataclass
from itertools import groupby

SIDE = 28
KERNEL = 3
CLASSES = 10


@dataclass(frozen=True)
class Layout:
    """Convolutions (3×3, stride 1, no padding; output channels), then hidden dense layers, then ten logits."""

    channels: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()

    @property
    def sides(self) -> tuple[int, ...]:
        """Side length of the picture after each convolution."""
        return tuple(SIDE - (KERNEL - 1) * (i + 1) for i in range(len(self.channels)))

    @property
    def flat(self) -> int:
        """Number of values that enter the first dense layer."""
        return self.channels[-1] * self.sides[-1] ** 2 if self.channels else SIDE**2

    @property
    def neurons(self) -> int:
        """Number of ReLUs.

        >>> Layout(channels=(2, 1), hidden=(100,)).neurons
        2028
        """
        return sum(c * s * s for c, s in zip(self.channels, self.sides, strict=True)) + sum(self.hidden)

    def describe(self) -> str:
        """One readable line.

        >>> Layout(channels=(2,), hidden=(50, 50)).describe()
        'conv 3x3 -> 2x26x26, 2 x fc 50, fc 10'
        """
        convs = [f"conv 3x3 -> {c}x{s}x{s}" for c, s in zip(self.channels, self.sides, strict=True)]
        runs = [(width, len(list(run))) for width, run in groupby(self.hidden)]
        dense = [f"{count} x fc {width}" if count > 1 else f"fc {width}" for width, count in runs]
        return ", ".join([*convs, *dense, f"fc {CLASSES}"])


@dataclass(frozen=True)
class Recipe:
    """How one network is trained."""

    name: str
    dataset: str
    layout: Layout
    seed: int
    epochs: int
    batch: int
    rate: float
    is_augmented: bool
    penalty: float

    def describe_training(self) -> str:
        """One readable line: `plain`, or augmentation and L1 weight."""
        return f"augmented, L1 {self.penalty:g}" if self.is_augmented else "plain"


LAYOUTS = {
    "FNN-100": Layout(hidden=(50,) * 2),
    "FNN-200": Layout(hidden=(50,) * 4),
    "FNN-400": Layout(hidden=(50,) * 8),
    "FNN-800": Layout(hidden=(50,) * 16),
    "CNN-S": Layout(channels=(2, 1), hidden=(100,)),
    "CNN-M": Layout(channels=(8, 16), hidden=(200,)),
}
EPOCHS = {"FNN-100": 15, "FNN-200": 15, "FNN-400": 15, "FNN-800": 15, "CNN-S": 8, "CNN-M": 3}
DATASETS = {"M": "mnist", "F": "fashion"}
PLAIN = ("M-FNN-100", "M-CNN-S")
PENALTY = 1e-4


def recipe(name: str) -> Recipe:
    """Return the recipe of a name such as `F-CNN-M` or `M-FNN-100-plain`."""
    base = name.removesuffix("-plain")
    is_plain = base != name
    size = base[2:]
    return Recipe(
        name=name,
        dataset=DATASETS[base[0]],
        layout=LAYOUTS[size],
        # a fixed number per name, so that training one network alone gives the same weights as training all
        seed=1 + NAMES.index(name),
        epochs=EPOCHS[size],
        batch=128,
        rate=1e-3 if size == "FNN-800" else 2e-3,
        is_augmented=not is_plain,
        penalty=0.0 if is_plain else PENALTY,
    )


NAMES = (*(f"{letter}-{size}" for letter in DATASETS for size in LAYOUTS), *(f"{name}-plain" for name in PLAIN))
RECIPES = {name: recipe(name) for name in NAMES}
