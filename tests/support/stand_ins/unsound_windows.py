"""Unsound bounds of windows and branches: each function plants one error in a step of the package."""

from collections.abc import Callable

import numpy as np
import pytest

from steadygaze.bounds import box_kernels as kernels
from steadygaze.bounds import decisions, forms, passes
from steadygaze.bounds.decisions import OFF, ON, OPEN
from steadygaze.network.layers import Layer
from steadygaze.network.steps import SumStep

Plant = Callable[[pytest.MonkeyPatch], None]


def _changed_bits(patch: pytest.MonkeyPatch, change: Callable[[np.ndarray], None]) -> None:
    """Change the bits (entries of one window,) of every window with several candidates."""
    true = kernels.find_candidates

    def find(*arguments: object) -> None:
        true(*arguments)
        first, end, bits = (arguments[place] for place in (7, 8, 11))
        for box in range(len(bits)):
            for one, two in zip(first, end, strict=True):
                if (bits[box, one:two] == OPEN).sum() > 1:
                    change(bits[box, one:two])

    patch.setattr(kernels, "find_candidates", find)


def candidate_excluded(patch: pytest.MonkeyPatch) -> None:
    def change(bits: np.ndarray) -> None:
        bits[np.flatnonzero(bits == OPEN)[-1]] = OFF
        if (bits == OPEN).sum() == 1:
            bits[bits == OPEN] = ON

    _changed_bits(patch, change)


def first_candidate_wins(patch: pytest.MonkeyPatch) -> None:
    def change(bits: np.ndarray) -> None:
        place = np.flatnonzero(bits == OPEN)[0]
        bits[:] = OFF
        bits[place] = ON

    _changed_bits(patch, change)


def last_of_equals_wins(patch: pytest.MonkeyPatch) -> None:
    """Beaten only by a strictly larger one, and the last of those that are never beaten wins."""
    true = kernels.find_candidates

    def find(*arguments: object) -> None:
        true(*arguments)
        table, first, end, bits = (arguments[place] for place in (0, 7, 8, 11))
        for box in range(len(bits)):
            for one, two in zip(first, end, strict=True):
                winner = np.flatnonzero(bits[box, one:two] == ON)
                if len(winner):
                    own = table[box, :, one:two]
                    equal = np.flatnonzero((own == own[:, winner]).all(axis=0))
                    bits[box, one:two] = OFF
                    bits[box, one + equal[-1]] = ON

    patch.setattr(kernels, "find_candidates", find)


def half_the_radius_of_a_window(patch: pytest.MonkeyPatch) -> None:
    true = kernels.relax_windows

    def relax(*arguments: object) -> None:
        true(*arguments)
        arguments[12][:, arguments[5][0] :] *= 0.5  # type: ignore[index]

    patch.setattr(kernels, "relax_windows", relax)


def lost_branch(patch: pytest.MonkeyPatch) -> None:
    true = SumStep._forward

    def run(self: SumStep, values: np.ndarray, *, is_absolute: bool) -> np.ndarray:
        kept = values.copy()
        kept[:, self.sizes[1] :] = 0.0
        return true(self, kept, is_absolute=is_absolute)

    patch.setattr(SumStep, "_forward", run)


def carried_values_bend(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Layer, "carried", property(lambda self: np.zeros(len(self.kind), dtype=bool)))


def remainder_of_carried_values_dropped(patch: pytest.MonkeyPatch) -> None:
    true = passes.decide

    def decide(layer: Layer, *arguments: object) -> decisions.DecidedLayer:
        found = true(layer, *arguments)  # type: ignore[arg-type]
        found.output.remainder[:, layer.carried] = 0.0
        return found

    patch.setattr(passes, "decide", decide)


def parts_in_the_wrong_order(patch: pytest.MonkeyPatch) -> None:
    true = forms._side_by_side
    patch.setattr(forms, "_side_by_side", lambda parts: true(parts[::-1]))


PLANTED: dict[str, tuple[Plant, str]] = {
    "a candidate is excluded": (candidate_excluded, "bit"),
    "a candidate is excluded from the values": (candidate_excluded, "margin"),
    "the first candidate wins": (first_candidate_wins, "gradient"),
    "the last of equal entries wins": (last_of_equals_wins, "bit"),
    "half the radius of a window": (half_the_radius_of_a_window, "value"),
    "a branch is lost": (lost_branch, "value"),
    "carried values bend": (carried_values_bend, "margin"),
    "the remainder of carried values is dropped": (remainder_of_carried_values_dropped, "value"),
    "parts in the wrong order": (parts_in_the_wrong_order, "value"),
}
