"""The truth about a tiny network, in exact whole numbers and fractions, straight from the definitions.

Weights, pixels and ranges are floats and hence whole numbers over powers of two. The domain is cut where a pixel
reaches 0 or 1, then layer by layer where a neuron changes sign; on each region the logits are affine and the attention
maps constant. One to three parameters, dense layers with ReLU between them. Shares no code with steadygaze.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, floor

import numpy as np

from .attention import Maps, Slabs, slabs
from .polytopes import Polytope, Whole, box, cells, split, volume

Layers = Sequence[tuple[np.ndarray, np.ndarray]]


class TooLargeError(Exception):
    """The network has more regions than the oracle was allowed to cut."""


@dataclass(frozen=True)
class Change:
    """One perturbation with its range: brightness, darkness, patch (a rectangle and its tone) or translate."""

    kind: str
    low: float
    high: float
    x: int = 0
    y: int = 0
    w: int = 1
    h: int = 1
    tone: int = 1
    dx: int = 0
    dy: int = 0

    @property
    def spec(self) -> str:
        """The spec for the verifier."""
        keys = {
            "patch": f":x={self.x},y={self.y},w={self.w},h={self.h}" + (",tone=-1" if self.tone < 0 else ""),
            "translate": f":dx={self.dx}" if self.dx else f":dy={self.dy}",
        }
        return f"{self.kind}{keys.get(self.kind, '')}:{self.low!r}..{self.high!r}"

    def added(self, pixels: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Constant and slope of the change of pixels (C, H, W); for translate, between step and step + 1."""
        nothing = np.full(pixels.shape, Fraction(0))
        if self.kind in ("brightness", "darkness"):
            return nothing, nothing + (1 if self.kind == "brightness" else -1)
        if self.kind == "patch":
            slope = nothing.copy()
            slope[:, self.y : self.y + self.h, self.x : self.x + self.w] += self.tone
            return nothing, slope
        here, there = self.moved(pixels, step), self.moved(pixels, step + 1)
        return here - step * (there - here) - pixels, there - here

    def moved(self, pixels: np.ndarray, steps: int) -> np.ndarray:
        """Pixels moved by whole steps; vacated pixels are zero."""
        far = steps * (1 if self.dx + self.dy > 0 else -1)
        found = np.full(pixels.shape, Fraction(0))
        for index in np.ndindex(pixels.shape):
            channel, row, column = index
            source = (channel, row, column - far) if self.dx else (channel, row - far, column)
            if 0 <= source[1] < pixels.shape[1] and 0 <= source[2] < pixels.shape[2]:
                found[index] = pixels[source]
        return found


@dataclass(frozen=True, eq=False)
class Question:
    """A network (float32 layers), an image (C, H, W) of floats in [0, 1], perturbations, and how maps are compared."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    image: np.ndarray
    changes: tuple[Change, ...]
    dist: str = "l2"
    delta: float = 0.0

    def with_layers(self, layers: Layers) -> "Question":
        return replace(self, layers=tuple(layers))

    @property
    def specs(self) -> list[str]:
        return [change.spec for change in self.changes]


@dataclass(frozen=True, eq=False)
class Region:
    """A part of the domain on which the network is affine: pattern by layer, forms of the logits times 2^exponent."""

    polytope: Polytope
    pattern: tuple[tuple[bool, ...], ...]
    logits: tuple[Whole, ...]
    exponent: int
    cell: int
    volume: Fraction


@dataclass(frozen=True)
class Point:
    """The exact truth at one theta: margin and bounds of the inconsistency."""

    margin: Fraction
    inconsistency: tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Truth:
    """Exact shares of the domain by name, each (low, high) with low = high unless a border is irrational.

    CR and MR need a strict winner; `tied` is the rest. least_margin is the smallest margin anywhere; `inconsistencies`
    are the inconsistencies met, ascending, rounded (at the ends of regions where they vary).
    """

    label: int
    least_margin: Fraction
    shares: dict[str, tuple[Fraction, Fraction]]
    tied: Fraction
    region_count: int
    inconsistencies: tuple[float, ...] = field(default=())

    def is_violated(self, wanted: str) -> bool | None:
        """Whether a property is violated: CR at a single theta, AR on a set with volume; None if unknown."""
        label = self.least_margin <= 0
        low, high = self.shares["IR"]
        attention = True if low > 0 else (False if high == 0 else None)
        if wanted == "cr":
            return label
        if wanted == "ar":
            return attention
        return True if label or attention else (None if attention is None else False)

    def violated_share(self, wanted: str) -> Fraction:
        """The share of the domain where a property is surely violated; ties count."""
        if wanted == "cr":
            return self.shares["MR"][0] + self.tied
        if wanted == "ar":
            return self.shares["IR"][0]
        return 1 - self.shares["CR&AR"][1]


class Oracle:
    """Answers about one question; `most_regions` bounds the work."""

    def __init__(self, question: Question, *, most_regions: int = 20_000) -> None:
        self.question = question
        self.most_regions = most_regions
        self.pixels = np.array([Fraction(float(v)) for v in question.image.ravel()]).reshape(question.image.shape)
        self.layers = [_whole_layer(weight, bias) for weight, bias in question.layers]
        self.moving = next((k for k, change in enumerate(question.changes) if change.kind == "translate"), None)
        original = [max(min(pixel, Fraction(1)), Fraction(0)) for pixel in self.pixels.ravel()]
        pattern, self.original_logits = self._forward(original)
        self.maps = Maps(self.layers, question.dist, self.pixels.size)
        self.original_maps = self.maps.of(pattern)

    @property
    def label(self) -> int | None:
        """The predicted class of the unperturbed image; None for a tie."""
        best = max(self.original_logits)
        winners = [j for j, value in enumerate(self.original_logits) if value == best]
        return winners[0] if len(winners) == 1 else None

    @cached_property
    def knot_cells(self) -> list[tuple[list[tuple[Fraction, Fraction]], int]]:
        """Boxes of thetas without a knot inside, each with the whole step of the translation there."""
        ranges = []
        for change in self.question.changes:
            low, high = Fraction(change.low), Fraction(change.high)
            knots = range(floor(low) + 1, ceil(high)) if change.kind == "translate" else ()
            ranges.append(cells(low, high, list(knots)))
        found = []
        for chosen in product(*ranges):
            step = floor(chosen[self.moving][0]) if self.moving is not None else 0
            found.append((list(chosen), step))
        return found

    @cached_property
    def domain_volume(self) -> Fraction:
        total = Fraction(1)
        for change in self.question.changes:
            total *= Fraction(change.high) - Fraction(change.low)
        return total

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """All regions with volume."""
        return tuple(self._cut())

    def at(self, theta: Sequence[Fraction | float]) -> Point:
        """The exact margin and inconsistency at one theta; active means > 0, on a knot the cell above counts."""
        point = [Fraction(value) for value in theta]
        step = self._step_at(point)
        pattern, logits = self._forward(self.image_at(point))
        expected = self._expected(step)
        t = point[self.moving] if self.moving is not None else Fraction(0)
        distance = self.maps.distance(self.maps.of(pattern), expected)
        label = self.label if self.label is not None else int(np.argmax(self.original_logits))
        margin = logits[label] - max(value for j, value in enumerate(logits) if j != label)
        return Point(margin, distance.bounds(t))

    def image_at(self, theta: Sequence[Fraction]) -> list[Fraction]:
        """The clipped pixels at a theta, flat."""
        step = self._step_at(theta)
        total = self.pixels.copy()
        for change, value in zip(self.question.changes, theta, strict=True):
            constant, slope = change.added(self.pixels, step)
            total = total + constant + Fraction(value) * slope
        return [max(min(pixel, Fraction(1)), Fraction(0)) for pixel in total.ravel()]

    def logits_at(self, theta: Sequence[Fraction]) -> list[Fraction]:
        """The exact logits at a theta."""
        return self._forward(self.image_at(theta))[1]

    @cached_property
    def truth(self) -> Truth:
        """All exact shares, for the question's δ."""
        return self.truth_at(self.question.delta)

    def truth_at(self, threshold: float) -> Truth:
        """All exact shares, for any δ."""
        label = self.label
        if label is None:
            raise ValueError("the classes are tied on the unperturbed image")
        delta = Fraction(threshold)
        names = ("CR", "MR", "AR", "IR", "CR&AR", "CR&IR", "MR&AR", "MR&IR")
        sums = {name: [Fraction(0), Fraction(0)] for name in names}
        least, tied, met = None, Fraction(0), set()
        for region in self.regions:
            forms = self._margin_forms(region, label)
            lowest = min(region.polytope.range(form)[0] / 2**region.exponent for form in forms)
            least = lowest if least is None else min(least, lowest)
            for attention, part in self._attention_parts(region, delta, met):
                whole, kept, lost = _label_volumes(part, forms)
                tied += whole - kept - lost
                for name, size in (("CR", kept), ("MR", lost), ("", whole)):
                    _add(sums, name, attention, size)
        shares = {name: (low / self.domain_volume, high / self.domain_volume) for name, (low, high) in sums.items()}
        return Truth(
            label, least or Fraction(0), shares, tied / self.domain_volume, len(self.regions), tuple(sorted(met))
        )

    def _margin_forms(self, region: Region, label: int) -> list[Whole]:
        own = region.logits[label]
        others = [form for j, form in enumerate(region.logits) if j != label]
        return [tuple(a - b for a, b in zip(own, form, strict=True)) for form in others]

    def _attention_parts(self, region: Region, delta: Fraction, met: set[float]) -> Iterator[tuple[str, Polytope]]:
        """The parts of a region that are AR, IR, or, near an irrational border, not certain ("")."""
        expected = self._expected(self.knot_cells[region.cell][1])
        distance = self.maps.distance(self.maps.of(region.pattern), expected)
        if self.moving is None or distance.is_constant:
            low, high = distance.bounds(Fraction(0))
            met.add(float((low + high) / 2))
            yield {True: "AR", False: "IR", None: ""}[distance.at_most(Fraction(0), delta)], region.polytope
            return
        axis = tuple(int(k == self.moving) for k in range(len(self.question.changes)))
        ends = region.polytope.range((*axis, 0))
        met.update(float(distance.bounds(end)[0]) for end in ends)
        found: Slabs = slabs(distance, *ends, delta)
        rest: Polytope | None = region.polytope
        for name, end in found:
            if rest is None:
                break
            form = (*(part * end.denominator for part in axis), -end.numerator)
            below, rest = split(rest, form)
            if below is not None:
                yield name, below

    def _expected(self, step: int) -> list[tuple[list[Fraction], list[Fraction]]]:
        """Constant and slope, in the moving parameter, of the expected map of every class."""
        found = []
        for row in self.original_maps:
            if self.moving is None:
                found.append((row, [Fraction(0)] * len(row)))
                continue
            maps = np.array(row).reshape(self.pixels.shape)
            constant, slope = self.question.changes[self.moving].added(maps, step)
            found.append((list((maps + constant).ravel()), list(slope.ravel())))
        return found

    def _step_at(self, theta: Sequence[Fraction]) -> int:
        if self.moving is None:
            return 0
        change = self.question.changes[self.moving]
        return min(floor(theta[self.moving]), ceil(Fraction(change.high)) - 1)

    def _forward(self, pixels: Sequence[Fraction]) -> tuple[tuple[tuple[bool, ...], ...], list[Fraction]]:
        values, pattern = list(pixels), []
        for number, (rows, bias, exponent) in enumerate(self.layers):
            sums = [
                (sum((w * values[i] for i, w in row), Fraction(0)) + constant) / 2**exponent
                for row, constant in zip(rows, bias, strict=True)
            ]
            if number == len(self.layers) - 1:
                return tuple(pattern), sums
            pattern.append(tuple(value > 0 for value in sums))
            values = [max(value, Fraction(0)) for value in sums]
        raise ValueError("a network needs a layer")

    def _cut(self) -> Iterator[Region]:
        done = 0
        for number, (sides, step) in enumerate(self.knot_cells):
            whole = box([low for low, _ in sides], [high for _, high in sides])
            forms, exponent = self._pixel_forms(step)
            parts = _clipped(whole, forms, exponent)
            pieces = [(part, values, exponent, ()) for part, values in parts]
            for rows, bias, shift in self.layers[:-1]:
                if done + len(pieces) > self.most_regions:
                    raise TooLargeError(f"more than {self.most_regions} regions")
                pieces = [
                    (part, gated, e + shift, (*pattern, bits))
                    for polytope, values, e, pattern in pieces
                    for part, gated, bits in _activate(polytope, _affine(rows, bias, values, e))
                ]
            done += len(pieces)
            rows, bias, shift = self.layers[-1]
            for polytope, values, e, pattern in pieces:
                logits = tuple(_affine(rows, bias, values, e))
                yield Region(polytope, pattern, logits, e + shift, number, volume(polytope))

    def _pixel_forms(self, step: int) -> tuple[list[Whole], int]:
        """The unclipped pixels as forms in theta, times 2^exponent."""
        constant, slopes = self.pixels.copy(), []
        for change in self.question.changes:
            offset, slope = change.added(self.pixels, step)
            constant = constant + offset
            slopes.append(slope.ravel())
        rows = [(*(slope[i] for slope in slopes), value) for i, value in enumerate(constant.ravel())]
        exponent = max(number.denominator.bit_length() - 1 for row in rows for number in row)
        return [tuple(int(number * 2**exponent) for number in row) for row in rows], exponent


def _whole_layer(weight: np.ndarray, bias: np.ndarray) -> tuple[list[list[tuple[int, int]]], list[int], int]:
    """Rows of (index, whole number) for non-zero weights, bias and exponent: the layer times 2^exponent."""
    exact = [[Fraction(float(value)) for value in row] for row in weight], [Fraction(float(value)) for value in bias]
    numbers = [number for row in [*exact[0], exact[1]] for number in row]
    exponent = max(number.denominator.bit_length() - 1 for number in numbers)
    rows = [[(i, int(value * 2**exponent)) for i, value in enumerate(row) if value] for row in exact[0]]
    return rows, [int(value * 2**exponent) for value in exact[1]], exponent


def _affine(rows: list[list[tuple[int, int]]], bias: list[int], values: Sequence[Whole], exponent: int) -> list[Whole]:
    size = len(values[0])
    found = []
    for row, constant in zip(rows, bias, strict=True):
        form = [0] * size
        for i, weight in row:
            value = values[i]
            for k in range(size):
                form[k] += weight * value[k]
        form[-1] += constant << exponent
        found.append(tuple(form))
    return found


def _clipped(whole: Polytope, forms: list[Whole], exponent: int) -> list[tuple[Polytope, list[Whole]]]:
    """Parts of a cell on which every pixel is below 0, above 1, or between, with the pixels as forms after the clip."""
    one = 1 << exponent
    zero = tuple(0 for _ in forms[0])
    parts: list[tuple[Polytope, list[Whole]]] = [(whole, [])]
    for form in forms:
        cut: list[tuple[Polytope, list[Whole]]] = []
        for part, values in parts:
            dark, light = split(part, form)
            if dark is not None:
                cut.append((dark, [*values, zero]))
            if light is not None:
                within, beyond = split(light, (*form[:-1], form[-1] - one))
                if within is not None:
                    cut.append((within, [*values, form]))
                if beyond is not None:
                    cut.append((beyond, [*values, (*zero[:-1], one)]))
        parts = cut
    return parts


def _activate(polytope: Polytope, forms: list[Whole]) -> list[tuple[Polytope, list[Whole], tuple[bool, ...]]]:
    """Parts on which every neuron of a layer has one sign, with the layer's values after ReLU."""
    zero = tuple(0 for _ in forms[0])
    parts: list[tuple[Polytope, list[Whole], tuple[bool, ...]]] = [(polytope, [], ())]
    for form in forms:
        cut: list[tuple[Polytope, list[Whole], tuple[bool, ...]]] = []
        for part, values, bits in parts:
            off, on = split(part, form)
            if off is not None:
                cut.append((off, [*values, zero], (*bits, False)))
            if on is not None:
                cut.append((on, [*values, form], (*bits, True)))
        parts = cut
    return parts


def _label_volumes(part: Polytope, margins: list[Whole]) -> tuple[Fraction, Fraction, Fraction]:
    """The volumes of the whole part, of the part where all margins are > 0, and of the part where one is < 0."""
    whole = volume(part)
    ahead: Polytope | None = part
    for form in margins:
        # The part that is not < 0 is ≥ 0; a margin that vanishes everywhere cuts nothing.
        ahead = split(ahead, tuple(-a for a in form))[0] if ahead is not None else None
    not_lost = volume(ahead)
    is_tied = any(not any(form) for form in margins)
    return whole, (Fraction(0) if is_tied else not_lost), whole - not_lost


def _add(sums: dict[str, list[Fraction]], label: str, attention: str, size: Fraction) -> None:
    """Add a part to the shares; if its attention is not certain, it counts only for the upper ends."""
    if label:
        sums[label][0] += size
        sums[label][1] += size
    for name in ("AR", "IR"):
        joint = f"{label}&{name}" if label else name
        if attention == name:
            sums[joint][0] += size
        if attention in (name, ""):
            sums[joint][1] += size
