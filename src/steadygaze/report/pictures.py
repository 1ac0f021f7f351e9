"""Images and attention maps on a sheet: grey or colour, maps on one scale around 0. Chooses no thetas."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from ..problem import Problem
from ..results.domain_result import Point
from .colours import INK, JOINT, KEPT, MAP_SHADES
from .sheet import Sheet
from .wording import comparison

CHANGED_INK = JOINT["MR&IR"]
"""Of words about a label that is not kept."""


@dataclass(frozen=True, eq=False)
class ShownMaps:
    """Which of the maps that are compared is shown: that of the label, where it is among them.

    place counts into the maps of a `Point`; name is that of its class; words say which it is, one line each.
    """

    place: int
    name: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, problem: Problem) -> "ShownMaps":
        """The choice for a question."""
        chosen = problem.attention.chosen(problem.model.classes).tolist()
        place = chosen.index(problem.label) if problem.label in chosen else 0
        name = problem.names[chosen[place]]
        words = (f"of class {name}",)
        # Colour images have one map for each channel; what is shown is their sum.
        return cls(place, name, (*words, "channels summed") if len(problem.perturbed.x0) > 1 else words)

    def pair(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """The actual and the expected map (H, W) at a theta."""
        return point.actual[self.place].sum(axis=0), point.expected[self.place].sum(axis=0)


def common_scale(maps: Sequence[np.ndarray]) -> Normalize:
    """One scale for all maps, symmetric around 0; a few extreme pixels may saturate."""
    size = np.abs(np.concatenate([values.ravel() for values in maps]))
    top = float(np.quantile(size, 0.999)) or float(size.max()) or 1.0
    return Normalize(-top, top)


def show_image(sheet: Sheet, left: float, top: float, side: float, image: np.ndarray, *, frame: float = 0.6) -> None:
    """An image (C, H, W) inside a square: three channels are colours, others are averaged to grey."""
    if len(image) == 3:
        pixels = np.moveaxis(image, 0, 2)
        sheet.image(*fitted(left, top, side, pixels), pixels, frame=frame)
    else:
        pixels = image.mean(axis=0)
        sheet.image(*fitted(left, top, side, pixels), pixels, cmap="gray", norm=Normalize(0.0, 1.0), frame=frame)


def show_map(sheet: Sheet, left: float, top: float, side: float, values: np.ndarray, norm: Normalize) -> None:
    """An attention map (H, W) inside a square."""
    sheet.image(*fitted(left, top, side, values), values, cmap=MAP_SHADES, norm=norm)


def fitted(left: float, top: float, side: float, pixels: np.ndarray) -> tuple[float, float, float, float]:
    """Left, top, width and height of pixels (H, W, …) that stay square in the middle of a square."""
    height, width = (side * length / max(pixels.shape[:2]) for length in pixels.shape[:2])
    return left + 0.5 * (side - width), top + 0.5 * (side - height), width, height


def show_scale(sheet: Sheet, left: float, top: float, height: float, norm: Normalize) -> None:
    """The colours of the maps with their values."""
    bar = sheet.axes(left, top, 0.11, height)
    sheet.figure.colorbar(ScalarMappable(norm=norm, cmap=MAP_SHADES), cax=bar)
    bar.tick_params(labelsize=8, width=0.6, length=2, colors=INK)


def write_prediction(
    sheet: Sheet, problem: Problem, point: Point, left: float, top: float, width: float, *, size: float = 8.5
) -> None:
    """What the network says at a theta; bold and dark where that is not the label."""
    look = {} if point.label == problem.label else {"colour": CHANGED_INK, "weight": "bold"}
    sheet.write(left, top, f"predicts {problem.names[point.label]}", size=size, width=width, **look)


def draw_gauge(
    sheet: Sheet, point: Point, delta: float, longest: float, left: float, top: float, side: float, width: float
) -> None:
    """A bar as long as the inconsistency, with a tick at δ; `longest` is the value that fills the side."""
    colour = KEPT if point.inconsistency <= delta else JOINT["CR&IR"]
    sheet.box(left, top + 0.05, side, 0.11, facecolor="white")
    sheet.box(left, top + 0.05, side * point.inconsistency / longest, 0.11, facecolor=colour)
    tick = left + side * delta / longest
    sheet.page.plot([tick, tick], [top + 0.02, top + 0.19], color=INK, linewidth=1.6)
    sheet.write(left, top + 0.3, comparison(point.inconsistency, delta), size=8.5, width=width)
