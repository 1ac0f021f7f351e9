"""The unperturbed image in real numbers: which classes can win, which neurons are active, how far its maps may be off.

Bounds in float64 are tried first, then values that are equal by construction, then exact arithmetic.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .attention.gradients import pattern_at
from .attention.methods import GradientMethod
from .attention.options import AttentionOptions
from .bounds.bounder import Bounder
from .compound import Compound
from .errors import ImageError, ModelError
from .network.doubts import count_kinks
from .properties.pattern_points import PatternPoints, has_windows

if TYPE_CHECKING:
    from .exact import ExactLabels


@dataclass(frozen=True, eq=False)
class Unperturbed:
    """The image of a compound network before any perturbation."""

    compound: Compound
    attention: AttentionOptions

    @cached_property
    def logits(self) -> np.ndarray:
        """The logits (K,) in float64."""
        return self.compound.graph.logits(self.compound.perturbed.x0[None])[0]

    @property
    def float_label(self) -> int:
        """The class that float64 arithmetic predicts."""
        return int(np.argmax(self.logits))

    @cached_property
    def winners(self) -> list[int]:
        """The classes that may have the largest logit: one if proved, several if tied or unknown.

        Raises ModelError if bounds do not decide and exact arithmetic does not support the network.
        """
        if self._bounder is not None and self._bounder.original_margin[0] > 0.0:
            return [self.float_label]
        return self._exact.winners_at_original()

    @cached_property
    def pattern(self) -> tuple[np.ndarray, ...] | None:
        """The active neurons (n,) of every layer, proved; None if neither bounds nor exact arithmetic decide them."""
        if self._bounder is not None and self._bounder.is_original_certain:
            return tuple(layer[0] for layer in self.compound.original_pattern)
        if has_windows(self.compound.graph):
            found = PatternPoints(self.compound).at_original()
            if found is not None:
                return found
        try:
            exact = self._exact.pattern_at_original()
        except ModelError:
            return None
        return None if exact is None else tuple(exact)

    @cached_property
    def doubt(self) -> float:
        """How far the maps may be off because signs are uncertain: a bound on the sum of distances over the classes.

        The bound also covers a threshold of up to 100 % of the maps' size. It is 0 if the pattern is proved.
        """
        if self._is_certain:
            return 0.0
        if self._bounder is None:
            return math.inf
        # Two maps in an interval differ by up to twice its radius. The threshold may be off by as much again.
        size = 4.0 * self.attention.size(self._bounder.expected_radius)
        if self.attention.method.factor_baseline is not None:
            size *= self.attention.filter.lipschitz(self.attention.distance.value)
        return size * (1.0 + 1e-9) if math.isfinite(size) else math.inf

    def label(self, image_name: str, names: Sequence[str]) -> int:
        """The class that the network in real numbers predicts; ImageError if classes tie, or if none is proved."""
        if not np.isfinite(self.logits).all():
            raise ImageError(f"{image_name}: the logits are not finite; check the weights and the preprocessing")
        try:
            winners = self.winners
        except ModelError as error:
            raise ImageError(
                f"{image_name}: float64 cannot decide which class wins on the unperturbed image, and there is no exact "
                f"arithmetic for this network ({error}); choose another image"
            ) from None
        if len(winners) > 1:
            tied = ", ".join(names[j] for j in winners)
            raise ImageError(
                f"{image_name}: the classes {tied} are tied on the unperturbed image, so there is no label to keep; "
                "choose another image"
            )
        return winners[0]

    def notes(self, names: Sequence[str], label: int, *, asks_maps: bool) -> Iterator[str]:
        """Sentences about choices and doubts; asks_maps: whether the question depends on the maps of this image."""
        if label != self.float_label:
            yield (
                f"the network in real numbers predicts {names[label]} for the unperturbed image, as exact "
                f"arithmetic shows; float64 arithmetic gives {names[self.float_label]}, because rounding decides"
            )
        close, tied = count_kinks(self.compound.graph, self.compound.perturbed.x0.ravel())
        if close:
            noun, verb = ("neuron", "is on its kink") if close == 1 else ("neurons", "are on their kink")
            yield (
                f"{close} {noun} of the classifier {verb} at the unperturbed image; a neuron on its kink counts as "
                "inactive, and the expected maps depend on that choice"
            )
        if tied:
            noun, verb = ("window", "has") if tied == 1 else ("windows", "have")
            yield (
                f"{tied} {noun} of the classifier {verb} several largest entries at the unperturbed image; the first "
                "of them counts as the winner, and the expected maps depend on that choice"
            )
        if asks_maps and self.doubt > 0.0:
            yield (
                "the signs of some neurons at the unperturbed image are not certain in float64, and exact arithmetic "
                "did not settle them: the expected maps, and a δ relative to them, may be off; answers about attention "
                "allow for that"
            )

    @property
    def _is_certain(self) -> bool:
        """Whether the computed maps are those of the proved pattern, up to rounding."""
        if self.pattern is None or isinstance(self.attention.method, GradientMethod):
            return self.pattern is not None
        computed = pattern_at(self.compound.graph, self.compound.perturbed.x0.reshape(1, -1))
        return all((own == bits[0]).all() for own, bits in zip(self.pattern, computed, strict=True))

    @cached_property
    def _bounder(self) -> Bounder | None:
        """Bounds at the unperturbed image; None if weights are so small that products with them vanish."""
        try:
            return Bounder(self.compound.graph, self.compound.perturbed, self.float_label, self.attention)
        except ModelError:
            return None

    @cached_property
    def _exact(self) -> "ExactLabels":
        from .exact import ExactLabels  # noqa: PLC0415 (rarely needed)

        return ExactLabels(self.compound, self.float_label)
