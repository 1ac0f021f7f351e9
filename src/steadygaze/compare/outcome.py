"""Several results into one comparison: what differs, their areas, difference maps against the first, rankings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..problem import Delta
from ..results.domain_result import DomainResult
from ..verdict import Property
from .overlay import Bounds, combine, lay_over
from .question import check_comparable, find_differences, make_notes, name_results, specs
from .rank import Ranking, find_contrary, make_rankings

MOST_LAID_OVER = 2
"""Parameters up to which the pieces of two results are laid over each other."""


@dataclass(frozen=True)
class Difference:
    """Where one of two results keeps a property and the other does not.

    first and second count results. shares: proved bounds of the shares of the domain where both keep it, only the
    first, only the second, neither; and what is undecided for one of them. `is_exact`: their pieces were laid over each
    other; otherwise the bounds follow from the results' own shares.
    """

    first: int
    second: int
    property: Property
    shares: dict[str, Bounds]
    is_exact: bool


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` returns. Immutable.

    names: what to call each result; differs: which of network, image, perturbation, attention and delta are not the
    same for all; notes: what limits the comparison; rankings: by what is kept, or by risk. Difference maps are those of
    every result against the first, and there are none where the domains differ.
    """

    results: tuple[DomainResult, ...]
    names: tuple[str, ...]
    differs: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def areas(self) -> tuple[dict[str, Bounds], ...]:
        """The shares of every result, as in `result.areas`."""
        return tuple(result.areas for result in self.results)

    @cached_property
    def rankings(self) -> tuple[Ranking, ...]:
        """The rankings that make sense for what differs."""
        return make_rankings(self.results, self.differs)

    @cached_property
    def contrary(self) -> tuple[tuple[int, int], ...]:
        """Pairs of results of which the first keeps the label on more of the domain, the second the attention."""
        if not self.has_difference_map:
            return ()
        found = {ranking.measure: ranking for ranking in self.rankings}
        return find_contrary(found["CR"], found["AR"]) if {"CR", "AR"} <= found.keys() else ()

    @property
    def has_difference_map(self) -> bool:
        """Whether all results are about the same domain."""
        return all(specs(result) == specs(self.results[0]) for result in self.results)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every result against the first, for the label, the attention, and both."""
        if not self.has_difference_map:
            return ()
        return tuple(
            _differ(self.results, second, wanted)
            for second in range(1, len(self.results))
            for wanted in Property
            if wanted is Property.CR or (self.results[0].is_measured and self.results[second].is_measured)
        )

    def summary(self) -> dict[str, Any]:
        """The comparison as plain data: what `--json` prints."""
        from .summary import summarise_comparison  # noqa: PLC0415 (a summary describes a comparison)

        return summarise_comparison(self)

    def plot(self, path: str | Path) -> list[Path]:
        """Draw areas and difference maps: PATH.png, .svg or .pdf as its suffix says, all three without one."""
        from .figure import draw_comparison  # noqa: PLC0415 (matplotlib is slow to import)

        return draw_comparison(self, path)


def compare_results(results: Sequence[object], *, delta: str | float | None = None) -> Comparison:
    """Compare maps and refinements, each at its own δ unless one is given for all; OptionError for anything else."""
    given = check_comparable(results)
    if delta is not None:
        Delta.parse(delta)
        given = tuple(result.with_delta(delta) for result in given)
    differs = find_differences(given)
    names = name_results(given, differs)
    return Comparison(given, names, differs, make_notes(given, names, differs))


def _differ(results: Sequence[DomainResult], second: int, wanted: Property) -> Difference:
    own, other = results[0], results[second]
    is_exact = own.problem.compound.domain.dimension <= MOST_LAID_OVER
    shares = (
        lay_over(own, other, wanted).shares() if is_exact else combine(own.answer.shares, other.answer.shares, wanted)
    )
    return Difference(0, second, wanted, shares, is_exact)
