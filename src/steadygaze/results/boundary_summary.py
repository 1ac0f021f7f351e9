"""The summary of an outermost boundary: one typed record, which `steadygaze boundary --json` prints."""

from typing import Any

from ..boundary import Boundary, Component, Enclave
from ..labels import Kept, Verdict
from ..words import percent_down
from .result import Result
from .summary import AnswerFacts, common_facts


class BoundarySummary(AnswerFacts, frozen=True, kw_only=True):
    """An outermost boundary; `verdict` is that of its property.

    The shares that satisfy the property, are reachable or enclosed are proved lower bounds: they leave out the strips
    of pieces that are too close to a threshold.
    """

    regions: int
    satisfying_share: float
    reachable_share: float
    unreachable_share: float
    enclosed_share: float
    farthest: dict[str, Any] | None
    components: list[dict[str, Any]]
    enclaves: list[dict[str, Any]]
    starts: int
    undecided: dict[str, Any]


def reach_sentence(summary: BoundarySummary, kept: str) -> str:
    """How much of the domain zero can reach while the property is kept; `kept` is the property as a clause."""
    if not summary.starts:
        return f"There is no proof around theta = 0 that {kept}, so no part counts as reachable."
    if summary.verdict is Verdict.ROBUST and not summary.components and not summary.enclaves:
        return f"All of the domain can be reached from theta = 0 while {kept}: there is no boundary."
    least = percent_down(summary.reachable_share)
    return f"From theta = 0, at least {least} of the domain can be reached while {kept}."


def summarise_boundary(result: Result, boundary: Boundary) -> BoundarySummary:
    """The summary of a boundary."""
    return BoundarySummary(
        **common_facts(result, result.verdict_of(boundary.wanted), boundary.wanted),
        regions=result.region_count,
        satisfying_share=min(boundary.satisfying_share, result.areas[boundary.wanted.share][0]),
        reachable_share=max(0.0, boundary.reachable_share - boundary.strip_share),
        unreachable_share=boundary.unreachable_share,
        enclosed_share=max(0.0, boundary.enclosed_share - boundary.strip_share),
        farthest=(
            None if boundary.farthest is None else {"theta": boundary.farthest.tolist(), "distance": boundary.distance}
        ),
        components=[_component(component) for component in boundary.components],
        enclaves=[_enclave(enclave) for enclave in boundary.enclaves],
        starts=boundary.starts,
        undecided={
            "share": boundary.share(boundary.kept == Kept.UNKNOWN),
            "pieces_beside": len(boundary.undecided),
            "strip_share": boundary.strip_share,
        },
    )


def _component(component: Component) -> dict[str, Any]:
    return {
        "measure": component.measure,
        "touches_border": component.touches_border,
        "share_beyond": component.share,
        "inner_regions": component.inner.tolist(),
        "outer_regions": component.outer.tolist(),
    }


def _enclave(enclave: Enclave) -> dict[str, Any]:
    return {
        "share": enclave.share,
        "satisfying_share": enclave.satisfying_share,
        "measure": enclave.measure,
        "nearest": {"theta": enclave.theta.tolist(), "distance": enclave.distance},
        "regions": enclave.regions.tolist(),
        "inner_regions": enclave.inner.tolist(),
        "outer_regions": enclave.outer.tolist(),
    }
