"""Which images of a plan fit which models, after the `fit`, `grey` and `rgb` of a run. Solves nothing."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from .. import zoo
from ..errors import ImageError, ModelError, OptionError
from ..image_fit import CHANNELS, GREY, RGB, ImageFit
from ..images import read_image
from ..inputs import read_fitting
from ..network.layout import ReadOptions
from .plan_tables import plan_words
from .stored_campaign import PlannedImage, PlannedModel, image_file

Shape = tuple[int, ...]
COLOURS = {1: "grey", 3: "RGB"}


@lru_cache(maxsize=1)
def pixels_of(image: PlannedImage) -> np.ndarray:
    """The pixels (C, H, W) of an image as it is."""
    return read_image(image_file(image.location)).pixels


class PlanFits:
    """The images of a plan as its models take them; remembers those that do not fit."""

    def __init__(self) -> None:
        self._inputs: dict[tuple[str, Shape], Shape | None] = {}
        self._seen: dict[str, set[str]] = {}
        self._misfits: dict[str, dict[str, Shape]] = {}
        self._last: tuple[tuple[str, ...], np.ndarray] | None = None

    def input_shape(self, model: PlannedModel, shape: Shape) -> Shape | None:
        """The shape (C, H, W) that a model takes, for an image of a shape; None if the model is not supported."""
        if (model.name, shape) not in self._inputs:
            options = ReadOptions(
                None if model.mean is None else list(model.mean), None if model.std is None else list(model.std),
                model.scale, model.output,
            )  # fmt: skip
            bundled = {one.name: one.path for one in zoo.models()}
            path = bundled.get(model.location, Path(model.location))
            try:
                self._inputs[model.name, shape] = read_fitting(path, shape, options).input_shape
            except (ModelError, OptionError):
                self._inputs[model.name, shape] = None
        return self._inputs[model.name, shape]

    def fitted(self, model: PlannedModel, image: PlannedImage, options: Mapping[str, str]) -> np.ndarray | None:
        """The pixels that a problem verifies; None if the model is not supported. ImageError if the image cannot fit.

        The error speaks the words of plans.
        """
        asked = [options[name] for name in ("fit", GREY, RGB)]
        if not any(asked) and _is_made_for(model, image):
            return pixels_of(image)
        key = (model.name, image.name, *asked)
        if self._last is None or self._last[0] != key:
            found = self._fit(model, image, ImageFit.of(asked[0], grey=asked[1], rgb=asked[2]))
            if found is None:
                return None
            self._last = key, found
        return self._last[1]

    def _fit(self, model: PlannedModel, image: PlannedImage, fit: ImageFit) -> np.ndarray | None:
        try:
            pixels, _ = fit.prepare(pixels_of(image), image.name)
        except ImageError as error:
            raise ImageError(plan_words(str(error))) from None
        taken = self.input_shape(model, pixels.shape)
        if taken is None:
            return None
        channels, height, width = taken
        self._seen.setdefault(model.name, set()).add(image.name)
        pixels, _ = fit.finish(pixels, (channels, height, width))
        if pixels.shape != taken:
            self._misfits.setdefault(model.name, {})[image.name] = pixels.shape
            found, asked = _shape_text(pixels.shape), _shape_text(taken)
            raise ImageError(f"is {found}, but the model takes {asked}; {_advice(pixels.shape, taken)}")
        return pixels

    def notes(self) -> Iterator[str]:
        """One line for each model that some images do not fit."""
        for model, misfits in self._misfits.items():
            taken = next(shape for (name, _), shape in self._inputs.items() if name == model and shape is not None)
            sizes = {shape[1:] for shape in misfits.values()} - {taken[1:]}
            other = [shape for shape in misfits.values() if shape[0] != taken[0]]
            kinds = [f"{len(sizes):,} other size{'s' * (len(sizes) != 1)}"] if sizes else []
            kinds += [f"{len(other):,} {COLOURS.get(other[0][0], 'of other channels')}"] if other else []
            worst = (other[0][0] if other else taken[0], *(next(iter(sizes)) if sizes else taken[1:]))
            yield (
                f"{len(misfits):,} of {len(self._seen[model]):,} images do not fit {model}, which takes "
                f"{_shape_text(taken)}: {', '.join(kinds)}; {_advice(worst, taken)}"
            )


def _is_made_for(model: PlannedModel, image: PlannedImage) -> bool:
    """Whether both are bundled, and of the same set."""
    sets = {one.name: one.dataset for one in zoo.models()}
    return zoo.is_reference(image.location) and image.location.partition(":")[0] == sets.get(model.location)


def _shape_text(shape: Shape) -> str:
    """A shape for people.

    >>> _shape_text((3, 20, 30)), _shape_text((4, 2, 2))
    ('30 × 20 in RGB', '2 × 2 in 4 channels')
    """
    return f"{shape[2]} × {shape[1]} in {COLOURS.get(shape[0], f'{shape[0]} channels')}"


def _advice(shape: Shape, taken: Shape) -> str:
    """The remedy: an addition to the plan.

    >>> _advice((3, 20, 30), (1, 28, 28))
    'add fit = "pad" (or "crop", "resize") and grey = true to [[runs]]'
    """
    wanted = ['fit = "pad" (or "crop", "resize")'] if shape[1:] != taken[1:] else []
    if shape[0] != taken[0]:
        flag = next((name for name, channels in CHANNELS.items() if channels == taken[0]), None)
        if flag is None or shape[0] not in COLOURS:
            return f"give images with {taken[0]} channels"
        wanted.append(f"{flag} = true")
    return f"add {' and '.join(wanted)} to [[runs]]"
