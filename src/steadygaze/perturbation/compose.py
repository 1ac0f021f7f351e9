"""Applies perturbations to one image: first movements, then changes of light, then the clip to [0, 1].

Turns perturbations and an image into the domain, the knot cells with the affine form of the unclipped image on each,
and the images themselves, computed directly from the definitions of the families. If the image is not affine between
knots, `curved` encloses it on boxes instead.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ImageError, InternalError, PerturbationError
from .base import FloatArray, Perturbation
from .curved import Curve
from .families.translate import Translate
from .movement import CurvedMovement, movements_of
from .scalar_forms import Box, Form
from .triangles import Triangles


@dataclass(frozen=True, eq=False)
class Domain:
    """The box of perturbation parameters: a name, a low and a high end per axis; low and high are (d,)."""

    names: tuple[str, ...]
    low: FloatArray
    high: FloatArray

    @property
    def dimension(self) -> int:
        """The number of parameters d."""
        return len(self.names)

    @cached_property
    def widths(self) -> FloatArray:
        """The widths of the axes (d,), all positive."""
        return _frozen(self.high - self.low)

    @property
    def zero_in_t(self) -> FloatArray:
        """The theta zero as a point t (d,); outside the unit box if the domain does not contain zero."""
        return self.to_unit(np.zeros(self.dimension))

    def to_unit(self, thetas: FloatArray, axis: int | None = None) -> FloatArray:
        """Scale thetas (..., d), or any numbers along one axis, to the unit box.

        >>> Domain(("brightness",), np.array([-1.0]), np.array([1.0])).to_unit(np.array([0.0]))
        array([0.5])
        """
        chosen = slice(None) if axis is None else axis
        return (thetas - self.low[chosen]) / self.widths[chosen]

    def to_theta(self, points: FloatArray, axis: int | None = None) -> FloatArray:
        """Scale points t (..., d), or any numbers along one axis, back to thetas; rounding may leave the domain."""
        chosen = slice(None) if axis is None else axis
        return self.low[chosen] + points * self.widths[chosen]

    def clip(self, thetas: FloatArray) -> FloatArray:
        """Move thetas (..., d) outside the domain to its border."""
        return np.clip(thetas, self.low, self.high)

    @property
    def contains_zero(self) -> bool:
        """Whether theta zero, the unperturbed image, lies in the domain or on its border."""
        return self.contains(np.zeros(self.dimension))

    def contains(self, theta: ArrayLike) -> bool:
        """Return whether theta (d,) lies in the box or on its border, without tolerance; False for NaN.

        >>> domain = Domain(("brightness",), np.array([0.0]), np.array([1.0]))
        >>> domain.contains([1.0]), domain.contains([1.0000001])
        (True, False)
        """
        point = np.asarray(theta, dtype=np.float64)
        if point.shape != self.low.shape:
            raise PerturbationError(f"theta has shape {point.shape}; expected one number for each of {self.names}")
        return bool(((self.low <= point) & (point <= self.high)).all())


@dataclass(frozen=True, eq=False)
class KnotCell:
    """A part of the domain without a knot inside: the unclipped image is x0 + offset + Σ_i theta_i * slope[i] on it.

    The cell is the box from low to high (d,), or the part of the box where side (d+1,), a form of theta in whole
    numbers, is not negative. offset (C, H, W), slope (d, C, H, W); index is the cell's place in `Perturbed.cells`, box
    the place of its box in `Perturbed.boxes`; is_above: which triangle of a unit cell contains it (see `Triangles`).
    Offset and slope of a curved image are NaN: it has no affine form, and NaN decides nothing.
    """

    low: FloatArray
    high: FloatArray
    offset: FloatArray
    slope: FloatArray
    index: int
    box: int
    side: FloatArray | None = None
    is_above: bool = False


@dataclass(frozen=True, eq=False)
class Perturbed:
    """An image under all perturbations at once, as a function of theta; made by `compose`.

    The cells tile the domain; the first axis varies slowest. moving_axis is the first parameter that moves the expected
    map, or None. curve: the image if it is not affine on the cells, else None. triangles: the two translations
    interpolated on triangles, or None.
    """

    perturbations: tuple[Perturbation, ...]
    x0: FloatArray
    domain: Domain
    cells: tuple[KnotCell, ...]
    moving_axis: int | None
    curve: Curve | None = None
    triangles: Triangles | None = None

    @cached_property
    def boxes(self) -> tuple[tuple[KnotCell, ...], ...]:
        """The cells of every box: one that fills it, or two halves, of which the second is above the diagonal."""
        found: list[list[KnotCell]] = [[] for _ in range(1 + self.cells[-1].box)]
        for cell in self.cells:
            found[cell.box].append(cell)
        return tuple(map(tuple, found))

    @property
    def has_enclosed_maps(self) -> bool:
        """Whether moved maps depend on several parameters, or are curved: boxes can enclose them, regions cannot."""
        return self.moving_axis is not None and (self.curve is not None or self.triangles is not None)

    @property
    def is_curved(self) -> bool:
        """Whether the image is enclosed on boxes instead of being affine on the cells."""
        return self.curve is not None

    @property
    def why_curved(self) -> str:
        """Why the image is not affine between knots, for a message."""
        curved = [one.spec for one in self.perturbations if one.is_curved]
        if curved:
            return f"{', '.join(curved)} {'is' if len(curved) == 1 else 'are'} curved"
        moving = [one.spec for one in self.perturbations if one.moves]
        if len(moving) > 1:
            shift = " (a shift)" if _is_shift(self.perturbations) else ""
            return f"{' and '.join(moving)} at once{shift} are curved"
        reading = ", ".join(one.spec for one in self.perturbations if one.reads_image)
        return f"{moving[0]} with {reading}, which depends on the pixels, is curved"

    def box(self, low: FloatArray, high: FloatArray) -> Box:
        """The boxes from low to high (B, d) in t, as thetas."""
        return Box.of(low, high, self.domain.low, self.domain.widths)

    def enclose_maps(self, maps: FloatArray, low: FloatArray, high: FloatArray) -> Form:
        """The expected maps (N, H, W), moved over boxes from low to high (B, d) in t; only if `has_enclosed_maps`."""
        if self.triangles is not None:
            return self.triangles.enclose(maps, self.box(low, high))
        if self.curve is None or self.curve.moved is None:
            raise InternalError("the expected maps have an affine form; only other maps are enclosed on boxes")
        return self.curve.moved.enclose(maps, self.box(low, high))

    @cached_property
    def magnitudes(self) -> FloatArray:
        """Bounds (pixels,) of Σ|terms| of a pixel before the clip, valid on every knot cell.

        Rounding may push the corner of a box beyond a knot, where the form of the next cell holds.
        """
        if self.curve is not None:
            return _frozen(self.curve.magnitudes(self.domain.low, self.domain.high))
        ends = np.maximum(np.abs(self.domain.low), np.abs(self.domain.high))
        sizes = [
            np.abs(cell.offset.ravel()) + ends @ np.abs(cell.slope.reshape(self.domain.dimension, -1))
            for cell in self.cells
        ]
        return _frozen(np.abs(self.x0.ravel()) + np.max(sizes, axis=0))

    def cell_of(self, theta: ArrayLike) -> KnotCell:
        """Return the cell of theta (d,): on a knot the cell above it; outside the domain the nearest cell."""
        point = self._points(np.asarray(theta, dtype=np.float64)[None])[0]
        index = 0
        for perturbation, value in zip(self.perturbations, point, strict=True):
            knots = perturbation.knots()
            index = index * (len(knots) + 1) + bisect_right(knots, value)
        *below, cell = self.boxes[index]
        if not below or cell.side is None:
            return cell
        # Exact arithmetic: within an ulp of a diagonal, rounded sums choose the wrong half.
        value = sum(Fraction(float(a)) * Fraction(float(x)) for a, x in zip(cell.side, (*point, 1.0), strict=True))
        return below[0] if value < 0 else cell

    def image(self, theta: ArrayLike) -> FloatArray:
        """Return the image (C, H, W) at theta (d,), clipped to [0, 1]."""
        return self.images(np.asarray(theta, dtype=np.float64)[None])[0]

    def images(self, thetas: ArrayLike) -> FloatArray:
        """Return the images (B, C, H, W) at thetas (B, d), clipped to [0, 1], independent of the cells."""
        images = self.unclipped(thetas)
        return np.clip(images, 0.0, 1.0, out=images)

    def unclipped(self, thetas: ArrayLike) -> FloatArray:
        """Return the images (B, C, H, W) at thetas (B, d) before the clip, independent of the cells."""
        points = self._points(np.asarray(thetas, dtype=np.float64))
        if self.curve is not None:
            return self.curve.images(points)
        if self.triangles is None:
            images, done = np.repeat(self.x0[None], len(points), axis=0), frozenset[int]()
        else:
            images, done = self.triangles.images(self.x0, points), frozenset(self.triangles.axes)
        for axis, (perturbation, values) in enumerate(zip(self.perturbations, points.T, strict=True)):
            if axis not in done:
                images += perturbation.apply(self.x0, values) - self.x0
        return images

    def expected(self, maps: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the expected maps (..., C, H, W) at a theta (d,): the maps, moved like the image."""
        if self.curve is not None:
            return maps if self.curve.moved is None else self.curve.moved.images(maps, theta[None])[0]
        if self.triangles is not None:
            return self.triangles.images(maps, theta[None])[0]
        moved, axis = self.transport(maps, self.cell_of(theta)), self.moving_axis
        return maps if moved is None or axis is None else maps + moved[0] + theta[axis] * moved[1]

    def transport(self, maps: FloatArray, cell: KnotCell) -> tuple[FloatArray, FloatArray] | None:
        """Return offset and slope of the expected maps on a cell, shaped like maps (..., C, H, W); None if kept.

        The expected maps are maps + offset + theta[moving_axis] * slope, unclipped.
        """
        axis = self.moving_axis
        if axis is None:
            return None
        if self.has_enclosed_maps:
            raise InternalError("expected maps that depend on several parameters have no single slope")
        return self.perturbations[axis].transport(maps, float(cell.low[axis]), float(cell.high[axis]))

    def moved_form(self, maps: FloatArray, cell: KnotCell) -> tuple[FloatArray, FloatArray]:
        """Return offset and slopes (d, ...) of maps (..., H, W) on a cell, moved along any number of axes.

        The moved maps are maps + offset + Σ_i theta_i * slopes[i]; both are zero if nothing moves.
        """
        offset, slopes = np.zeros(maps.shape), np.zeros((self.domain.dimension, *maps.shape))
        if self.triangles is not None:
            offset, *both = self.triangles.change(maps, cell.low, is_above=cell.is_above)
            slopes[list(self.triangles.axes)] = both
        elif self.moving_axis is not None:
            moved = self.transport(maps, cell)
            assert moved is not None
            offset, slopes[self.moving_axis] = moved
        return offset, slopes

    def _points(self, points: FloatArray) -> FloatArray:
        if points.ndim != 2 or points.shape[1] != self.domain.dimension or not np.isfinite(points).all():
            raise PerturbationError(
                f"thetas have shape {points.shape}, or are not all finite; "
                f"expected one finite number for each of {', '.join(self.domain.names)}"
            )
        return points


def compose(perturbations: Sequence[Perturbation], image: ArrayLike) -> Perturbed:
    """Apply perturbations to an image (C, H, W) with pixels in [0, 1].

    Movements come first, in the order given; then changes of light. Raises PerturbationError for a perturbation that
    does not fit the image, or the others.

    >>> from steadygaze.perturbation import Brightness, Translate
    >>> row = np.array([[[0.0, 0.5, 1.0]]])
    >>> both = compose([Translate(dx=2), Brightness(range=(-0.5, 0.5))], row)
    >>> both.domain.names, len(both.cells)
    (('translation right [px]', 'brightness'), 2)
    >>> both.image([1.5, 0.25])
    array([[[0.25, 0.25, 0.5 ]]])
    """
    chosen = tuple(perturbations)
    x0 = _checked_image(image)
    _check_together(chosen)
    for perturbation in chosen:
        try:
            perturbation.check(x0.shape)
        except PerturbationError as error:
            if isinstance(perturbation, Translate) and _is_shift(chosen):
                raise PerturbationError(f"{error} (one of the two translations of a shift)") from None
            raise
    domain = Domain(
        names=_distinct_names(chosen),
        low=_frozen(np.array([perturbation.low for perturbation in chosen])),
        high=_frozen(np.array([perturbation.high for perturbation in chosen])),
    )
    moving = [axis for axis, perturbation in enumerate(chosen) if perturbation.moves]
    triangles = Triangles.of(chosen)
    curve = Curve(chosen, x0) if triangles is None and _is_curved(chosen) else None
    if curve is not None:
        _check_sizes(curve)
    cells = _knot_cells(chosen, x0, triangles, is_curved=curve is not None)
    return Perturbed(chosen, x0, domain, cells, moving[0] if moving else None, curve, triangles)


def _is_curved(perturbations: tuple[Perturbation, ...]) -> bool:
    """Whether the image is not affine between knots.

    So are images of a curved family, of several movements, and of a movement with a change that depends on the pixels.
    Two translations interpolated on triangles stay affine.
    """
    moving = sum(perturbation.moves for perturbation in perturbations)
    reads = any(perturbation.reads_image for perturbation in perturbations)
    return any(one.is_curved for one in perturbations) or moving > 1 or (moving == 1 and reads)


def _is_shift(perturbations: Sequence[Perturbation]) -> bool:
    """Whether translations along both axes are given, as a shift is."""
    translations = [one for one in perturbations if isinstance(one, Translate)]
    return len({bool(one.dx) for one in translations}) == 2


def _check_sizes(curve: Curve) -> None:
    for light in curve.lights:
        if light.is_too_large:
            raise PerturbationError(
                f"{light.family.spec} depends on the pixels of a moving image, and this image of {curve.x0.size:,} "
                "pixels is too large for that; leave the movement out, or resize the image and the network"
            )


def _check_together(perturbations: tuple[Perturbation, ...]) -> None:
    if not perturbations:
        raise PerturbationError("no perturbation given; give one or more, for example brightness or translate:dy=1")
    for perturbation in perturbations:
        if not isinstance(perturbation, Perturbation):
            raise PerturbationError(
                f"{perturbation!r} is not a perturbation; give for example Brightness(), or parse_spec('brightness')"
            )
    written = ", ".join(perturbation.spec for perturbation in perturbations)
    movements = [movement for _, movement in movements_of(perturbations)]
    if len({movement.outside for movement in movements}) > 1:
        fixed = sorted({movement.keyword for movement in movements if not isinstance(movement, CurvedMovement)})
        remedy = (
            f"{fixed[0]} has no border=edge, so leave border=edge out"
            if fixed
            else "give border=edge to all of them, or to none"
        )
        raise PerturbationError(
            f"{written}: several movements share one look-up, so they need the same border; {remedy}"
        )
    for number, perturbation in enumerate(perturbations):
        if perturbation in perturbations[:number]:
            raise PerturbationError(f"{perturbation.spec} is given twice; give each perturbation once")


def _checked_image(image: ArrayLike) -> FloatArray:
    try:
        pixels = np.array(image, dtype=np.float64)
    except (TypeError, ValueError):
        raise ImageError("the image is not an array of numbers; expected pixels in [0, 1], shape (C, H, W)") from None
    if pixels.ndim != 3 or 0 in pixels.shape:
        raise ImageError(f"the image has shape {pixels.shape}; expected (channels, height, width), all positive")
    if not ((pixels >= 0) & (pixels <= 1)).all():
        raise ImageError(
            f"the image has pixels from {pixels.min()} to {pixels.max()}; expected numbers in [0, 1]: divide 8-bit "
            "pixels by 255, and replace NaN"
        )
    return _frozen(pixels)


def _distinct_names(perturbations: tuple[Perturbation, ...]) -> tuple[str, ...]:
    names: list[str] = []
    for perturbation in perturbations:
        # A family may occur twice with different settings, but every axis needs its own name.
        before = sum(earlier.name == perturbation.name for earlier in perturbations[: len(names)])
        names.append(f"{perturbation.name} ({before + 1})" if before else perturbation.name)
    return tuple(names)


def _knot_cells(
    perturbations: tuple[Perturbation, ...], x0: FloatArray, triangles: Triangles | None, *, is_curved: bool
) -> tuple[KnotCell, ...]:
    unknown, together = np.full(x0.shape, np.nan), () if triangles is None else triangles.axes
    pieces = []
    for axis, perturbation in enumerate(perturbations):
        ends = (perturbation.low, *perturbation.knots(), perturbation.high)
        changes = [
            (unknown, unknown) if is_curved or axis in together else perturbation.change(x0, low, high)
            for low, high in pairwise(ends)
        ]
        pieces.append([(low, high, *change) for (low, high), change in zip(pairwise(ends), changes, strict=True)])
    cells: list[KnotCell] = []
    for box, chosen in enumerate(product(*pieces)):
        low, high = (_frozen(np.array([piece[end] for piece in chosen])) for end in (0, 1))
        alone = [piece[2] for axis, piece in enumerate(chosen) if axis not in together]
        slope = np.stack([piece[3] for piece in chosen])
        for side, is_above in _halves(triangles, low, high):
            offset, slopes = np.sum([np.zeros(x0.shape), *alone], axis=0), slope.copy()
            if triangles is not None:
                own, *slopes_of_both = triangles.change(x0, low, is_above=is_above)
                offset += own
                slopes[list(triangles.axes)] = slopes_of_both
            cells.append(KnotCell(low, high, _frozen(offset), _frozen(slopes), len(cells), box, side, is_above))
    return tuple(cells)


def _halves(triangles: Triangles | None, low: FloatArray, high: FloatArray) -> list[tuple[FloatArray | None, bool]]:
    """The sides of the cells in a box, and whether each is above the diagonal; (None, …) if no diagonal crosses it."""
    if triangles is None:
        return [(None, False)]
    least, most = triangles.range_of_side(low, high)
    if least >= 0.0 or most <= 0.0:
        return [(None, least >= 0.0)]
    row = triangles.side(low, len(low))
    return [(_frozen(-row), False), (_frozen(row), True)]


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array
