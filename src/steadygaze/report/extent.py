"""In words: how much of the domain a result covers, and by what. Draws nothing."""

from ..engines.refine.boxes import State
from ..engines.refine.refine_result import RefineResult
from ..results.domain_result import DomainResult
from .wording import counted, percent


def extent_text(result: DomainResult) -> str:
    """What a figure rests on: a map of regions, or boxes and regions.

    A partial result says why it is one.
    """
    regions = counted(result.region_count, "region")
    if isinstance(result, RefineResult):
        boxes = counted(int((result.boxes.state == State.BOUNDED).sum()), "box").replace("boxs", "boxes")
        exact = f" and {regions}" if result.region_count else ""
        stopped = "" if result.is_complete else f" (ended by {result.stopped})"
        undecided = result.guarantee_shares["undecided"]
        rest = f", {percent(undecided)} undecided" if undecided > 0.0 else ""
        return f"refinement{stopped}: {boxes} decided by bounds{exact}{rest}"
    if result.is_complete:
        return f"map of {regions}"
    share = percent(1.0 - share_not_reached(result))
    return f"partial map ({result.stopped}): {regions} on {share} of the domain"


def share_not_reached(result: DomainResult) -> float:
    """The share of the domain that a partial map does not cover."""
    missing = 1.0 - float(result.answer.joint.polytopes.volumes.sum())
    return missing if missing > 1e-9 and not result.is_complete else 0.0
