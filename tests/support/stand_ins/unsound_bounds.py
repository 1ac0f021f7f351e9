"""Unsound bounds: each function plants one error in a step of the package."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from steadygaze.attention import filters
from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Intervals, absolute, mean
from steadygaze.attention.measures import distance as distances
from steadygaze.attention.measures.distance import Inconsistent
from steadygaze.bounds import bounder, decisions, expected, forms, passes
from steadygaze.bounds import box_kernels as kernels
from steadygaze.bounds.bounder import Bounder
from steadygaze.bounds.decisions import OPEN
from steadygaze.bounds.expected import Ends, MovedAlong
from steadygaze.bounds.forms import Forms, Relaxed
from steadygaze.network.steps import ConvStep, MatrixStep, ScaleStep
from steadygaze.perturbation import Perturbed

Plant = Callable[[pytest.MonkeyPatch], None]
STEPS = (MatrixStep, ConvStep, ScaleStep)


def no_absolute_value_forward(patch: pytest.MonkeyPatch) -> None:
    for step in STEPS:
        patch.setattr(step, "forward_abs", step.forward)


def no_absolute_value_backward(patch: pytest.MonkeyPatch) -> None:
    for step in STEPS:
        patch.setattr(step, "backward_abs", step.backward)


def no_absolute_value_of_coefficients(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Forms, "spread", property(lambda self: np.abs(self.forms[:, 1:].sum(axis=1))))


def no_outward_rounding(patch: pytest.MonkeyPatch) -> None:
    for module, name in product(
        (forms, decisions, passes, expected, distances, filters, absolute, mean),
        ("gamma", "up", "down", "LEAST", "LEAST_ROOT"),
    ):
        if hasattr(module, name):
            exact = {"gamma": lambda terms: 0.0, "up": lambda terms: 1.0, "down": lambda terms: 1.0}
            patch.setattr(module, name, exact.get(name, 0.0))


def no_rounding_errors_of_products(patch: pytest.MonkeyPatch) -> None:
    for module in (forms, decisions, passes):
        patch.setattr(module, "gamma", lambda terms: 0.0)


def no_rounding_errors_of_gradients(patch: pytest.MonkeyPatch) -> None:
    for module in (forms, passes, filters, mean):
        patch.setattr(module, "gamma", lambda terms: 0.0)
        patch.setattr(module, "up", lambda terms: 1.0)


def relaxed_otherwise(name: str, change: Callable[[Relaxed], Relaxed]) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        true = getattr(forms, name)
        for module in (forms, decisions):
            if hasattr(module, name):
                patch.setattr(module, name, lambda low, high: change(true(low, high)))

    return plant


def derivative_of_open_neurons(value: float) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        def multiply(centre: np.ndarray, radius: np.ndarray, bits: np.ndarray, lift: float) -> None:
            factor = np.where(bits == OPEN, value, bits)[:, None]
            centre *= factor
            radius *= factor

        patch.setattr(kernels, "bit_gradients", multiply)

    return plant


def expected_map_stands_still(patch: pytest.MonkeyPatch) -> None:
    true = MovedAlong.ends
    patch.setattr(MovedAlong, "ends", lambda self, cell, low, high: true(self, cell, low, low))


def expected_map_is_never_moved(patch: pytest.MonkeyPatch) -> None:
    true = MovedAlong.ends
    patch.setattr(MovedAlong, "ends", lambda self, cell, low, high: true(self, cell, 0.0 * low, 0.0 * high))


def remainder_dropped_at_a_step(patch: pytest.MonkeyPatch) -> None:
    true = passes.through

    def through(values: Forms, step: object) -> Forms:
        after = true(values, step)  # type: ignore[arg-type]
        return Forms(after.forms, true(Forms(values.forms, 0.0 * values.remainder), step).remainder)  # type: ignore[arg-type]

    patch.setattr(passes, "through", through)


def remainder_dropped_at_the_logits(patch: pytest.MonkeyPatch) -> None:
    true = passes.Readout.bounds
    patch.setattr(passes.Readout, "bounds", lambda self, f: true(self, Forms(f.forms, 0.0 * f.remainder)))


def generators_lost(patch: pytest.MonkeyPatch) -> None:
    true = forms._generators
    patch.setattr(forms, "_generators", lambda radius, room: (0.0 * true(radius, room)[0], true(radius, room)[1]))


def bias_left_out(patch: pytest.MonkeyPatch) -> None:
    true = passes.through
    patch.setattr(
        passes,
        "through",
        lambda values, step: Forms(
            np.concatenate([true(values, step).forms[:, :1] - step.bias, true(values, step).forms[:, 1:]], axis=1),
            true(values, step).remainder,
        ),
    )


def box_too_small(patch: pytest.MonkeyPatch) -> None:
    true = forms.pixels
    shrink = 0.01

    def pixels(
        perturbed: Perturbed, cell: int, low: np.ndarray, high: np.ndarray, *rest: object, **options: bool
    ) -> Forms:
        less = shrink * (high - low)
        return true(perturbed, cell, low + less, high - less, *rest, **options)  # type: ignore[arg-type]

    patch.setattr(bounder, "pixels", pixels)


def absolute_values_of_ends(patch: pytest.MonkeyPatch) -> None:
    def enclose(self: absolute.Absolute, maps: Intervals) -> Intervals:
        low, high = map(np.abs, maps.ends)
        return Intervals.between(np.minimum(low, high), np.maximum(low, high))

    patch.setattr(absolute.Absolute, "enclose", enclose)


def mean_of_the_radius_left_out(patch: pytest.MonkeyPatch) -> None:
    true = mean.Mean3x3.enclose

    def enclose(self: mean.Mean3x3, maps: Intervals) -> Intervals:
        after = true(self, maps)
        return Intervals(after.centre, 0.5 * after.radius)

    patch.setattr(mean.Mean3x3, "enclose", enclose)


def distance_of_the_middles(patch: pytest.MonkeyPatch) -> None:
    true = Inconsistent.enclose

    def enclose(
        self: Inconsistent, maps: Intervals, expected: Ends, weights: Ends | None, norm: Distance
    ) -> np.ndarray:
        exact = Intervals(maps.centre, 0.0 * maps.radius)
        ends = true(self, exact, expected, weights, norm), true(self, maps, expected, weights, norm)
        return np.stack([ends[0][:, 0], ends[1][:, 1]], axis=1)

    patch.setattr(Inconsistent, "enclose", enclose)


def one_rival_alone(patch: pytest.MonkeyPatch) -> None:
    true = Bounder.__init__

    def made(self: Bounder, *arguments: object, **options: object) -> None:
        true(self, *arguments, **options)  # type: ignore[arg-type]
        self.margins = passes.Readout(*(part[:1] for part in vars(self.margins).values()))

    patch.setattr(Bounder, "__init__", made)


PLANTED: dict[str, Plant] = {
    "a missing absolute value, forward": no_absolute_value_forward,
    "a missing absolute value, backward": no_absolute_value_backward,
    "a missing absolute value of the coefficients": no_absolute_value_of_coefficients,
    "no outward rounding": no_outward_rounding,
    "no rounding errors of products": no_rounding_errors_of_products,
    "no rounding errors of gradients": no_rounding_errors_of_gradients,
    "a slope outside its range": relaxed_otherwise("relax_relu", lambda r: Relaxed(1.1 * r.slope, r.shift, r.radius)),
    "a slope without its radius": relaxed_otherwise(
        "relax_relu", lambda r: Relaxed(np.where(r.radius > 0.0, 0.5, r.slope), r.shift, r.radius)
    ),
    "half the radius of a ReLU": relaxed_otherwise("relax_relu", lambda r: Relaxed(r.slope, r.shift, 0.5 * r.radius)),
    "no shift of a ReLU": relaxed_otherwise("relax_relu", lambda r: Relaxed(r.slope, 0.0 * r.shift, r.radius)),
    "no radius of the clip": relaxed_otherwise("relax_clip", lambda r: Relaxed(r.slope, r.shift, 0.0 * r.radius)),
    "open neurons are off": derivative_of_open_neurons(0.0),
    "open neurons are on": derivative_of_open_neurons(1.0),
    "open neurons are half on": derivative_of_open_neurons(0.5),
    "the expected map stands still": expected_map_stands_still,
    "the expected map is never moved": expected_map_is_never_moved,
    "the remainder is dropped at a step": remainder_dropped_at_a_step,
    "the remainder is dropped at the logits": remainder_dropped_at_the_logits,
    "generators are lost": generators_lost,
    "the bias is left out": bias_left_out,
    "the box is too small": box_too_small,
    "absolute values of ends": absolute_values_of_ends,
    "half the radius after a mean": mean_of_the_radius_left_out,
    "the distance of the middles": distance_of_the_middles,
    "one rival alone": one_rival_alone,
}
