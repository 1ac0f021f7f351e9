"""The layouts and recipes of the zoo: layers and training of each network; needs no torch.

The paper gives only neuron counts; the layouts of the CNNs were chosen to match them. The networks with max pooling and
residual blocks are not in the paper.
"""

from dataclasses import dataclass
from itertools import groupby

SIDE = 28
KERNEL = 3
CLASSES = 10


@dataclass(frozen=True)
class Conv:
    """A square convolution with ReLU."""

    channels: int
    kernel: int = KERNEL
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class MaxPool:
    """The largest value of every square window; windows do not overlap."""

    size: int = 2


@dataclass(frozen=True)
class Residual:
    """A residual block: two 3×3 convolutions with a ReLU between, plus a shortcut, then a ReLU.

    The shortcut is the input itself, or a 1×1 convolution if channels or side differ.
    """

    channels: int
    stride: int = 1


Spatial = Conv | MaxPool | Residual
Shape = tuple[int, int]  # channels and side


def shape_after(layer: Spatial, shape: Shape) -> Shape:
    """Channels and side of the picture after a layer.

    >>> shape_after(Conv(4, kernel=5), (1, 28)), shape_after(MaxPool(), (4, 25)), shape_after(Residual(8, 2), (4, 14))
    ((4, 24), (4, 12), (8, 7))
    """
    channels, side = shape
    if isinstance(layer, Conv):
        return layer.channels, (side + 2 * layer.padding - layer.kernel) // layer.stride + 1
    if isinstance(layer, MaxPool):
        return channels, side // layer.size
    return layer.channels, (side - 1) // layer.stride + 1


def has_projection(layer: Residual, shape: Shape) -> bool:
    """Whether the shortcut of a block is a convolution."""
    return shape_after(layer, shape) != shape


@dataclass(frozen=True)
class Layout:
    """Layers on pictures, then hidden dense layers, then ten logits."""

    spatial: tuple[Spatial, ...] = ()
    hidden: tuple[int, ...] = ()
    colours: int = 1

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Channels and side of the image, then of the picture after each layer."""
        shapes = [(self.colours, SIDE)]
        for layer in self.spatial:
            shapes.append(shape_after(layer, shapes[-1]))
        return tuple(shapes)

    @property
    def flat(self) -> int:
        """Number of values that enter the first dense layer."""
        channels, side = self.shapes[-1]
        return channels * side**2

    @property
    def neurons(self) -> int:
        """Number of ReLUs and of windows.

        >>> Layout((Conv(2), Conv(1)), (100,)).neurons, Layout((Conv(2), MaxPool(), Residual(3))).neurons
        (2028, 2704)
        """
        bends = {Conv: 1, MaxPool: 1, Residual: 2}
        pictures = zip(self.spatial, self.shapes[1:], strict=True)
        return sum(bends[type(layer)] * c * s * s for layer, (c, s) in pictures) + sum(self.hidden)

    def describe(self) -> str:
        """One readable line.

        >>> Layout((Conv(2),), (50, 50)).describe()
        'conv 3x3 -> 2x26x26, 2 x fc 50, fc 10'
        >>> Layout((Conv(2, stride=2, padding=1), MaxPool(), Residual(4))).describe()
        'conv 3x3 /2 -> 2x14x14, max 2x2 -> 2x7x7, residual -> 4x7x7, fc 10'
        """
        pictures = [
            f"{_word(layer)} -> {c}x{s}x{s}" for layer, (c, s) in zip(self.spatial, self.shapes[1:], strict=True)
        ]
        runs = [(width, len(list(run))) for width, run in groupby(self.hidden)]
        dense = [f"{count} x fc {width}" if count > 1 else f"fc {width}" for width, count in runs]
        return ", ".join([*pictures, *dense, f"fc {CLASSES}"])


def _word(layer: Spatial) -> str:
    if isinstance(layer, MaxPool):
        return f"max {layer.size}x{layer.size}"
    name = f"conv {layer.kernel}x{layer.kernel}" if isinstance(layer, Conv) else "residual"
    return name if layer.stride == 1 else f"{name} /{layer.stride}"


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
    weight_penalty: float
    object_penalty: float

    def describe_training(self) -> str:
        """One readable line: `plain`, or augmentation and the factors of the penalties."""
        if not self.is_augmented:
            return "plain"
        beside = f", off-object {self.object_penalty:g}" if self.object_penalty else ""
        return f"augmented, L1 {self.weight_penalty:g}{beside}"


LAYOUTS = {
    "FNN-100": Layout(hidden=(50,) * 2),
    "FNN-200": Layout(hidden=(50,) * 4),
    "FNN-400": Layout(hidden=(50,) * 8),
    "FNN-800": Layout(hidden=(50,) * 16),
    "CNN-S": Layout((Conv(2), Conv(1)), (100,)),
    "CNN-M": Layout((Conv(8), Conv(16)), (200,)),
}
"""The paper's networks, for both of its data sets."""

OTHERS = {
    "M-MAXPOOL": Layout((Conv(4, kernel=5), MaxPool(), Conv(6, kernel=5), MaxPool()), (50,)),
    "M-RESNET": Layout((Conv(4, stride=2, padding=1), Residual(4), Residual(8, stride=2))),
    "C-RESNET": Layout((Conv(8, stride=2, padding=1), Residual(8), Residual(16, stride=2)), colours=3),
}
"""Networks with max pooling or residual blocks."""

EPOCHS = {
    "FNN-100": 15, "FNN-200": 15, "FNN-400": 15, "FNN-800": 15, "CNN-S": 8, "CNN-M": 3,
    "MAXPOOL": 8, "RESNET": 6,
}  # fmt: skip
DATASETS = {"M": "mnist", "F": "fashion", "C": "colour"}
WITH_SIBLINGS = ("M-FNN-100", "M-CNN-S")
"""The networks that have a sibling trained plainly, and one trained to look at the object."""

PLAIN, OBJECT = "-plain", "-object"
WEIGHT_PENALTY = 1e-4
OBJECT_PENALTY = 0.3


def recipe(name: str) -> Recipe:
    """Return the recipe of a name such as `F-CNN-M`, `M-FNN-100-plain` or `M-FNN-100-object`."""
    base = name.removesuffix(PLAIN).removesuffix(OBJECT)
    is_plain = name.endswith(PLAIN)
    size = base[2:]
    return Recipe(
        name=name,
        dataset=DATASETS[base[0]],
        layout=OTHERS[name] if name in OTHERS else LAYOUTS[size],
        # a fixed number per name: training one network alone gives the same weights as training all
        seed=1 + NAMES.index(name),
        epochs=EPOCHS[size],
        batch=128,
        rate=1e-3 if size == "FNN-800" else 2e-3,
        is_augmented=not is_plain,
        weight_penalty=0.0 if is_plain else WEIGHT_PENALTY,
        object_penalty=OBJECT_PENALTY if name.endswith(OBJECT) else 0.0,
    )


NAMES = (
    *(f"{letter}-{size}" for letter in "MF" for size in LAYOUTS),
    *(name + PLAIN for name in WITH_SIBLINGS),
    *OTHERS,
    *(name + OBJECT for name in WITH_SIBLINGS),
)
RECIPES = {name: recipe(name) for name in NAMES}
