"""From a boundary to plain data: what `steadygaze boundary --json` prints. Nothing is decided here."""

from typing import Any

from ..boundary import Boundary, Component, Enclave
from ..properties.joint import Kept
from .domain_result import DomainResult
from .schema import SCHEMA_VERSION
from .summary import domain_summary


def summarise_boundary(result: DomainResult, boundary: Boundary) -> dict[str, Any]:
    """A boundary as numbers, texts, lists and dictionaries with texts as keys; `verdict` is that of its property."""
    problem = result.problem
    return {
        "schema_version": SCHEMA_VERSION,
        "method": result.method,
        "verdict": result.verdict_of(boundary.wanted).value,
        "property": boundary.wanted.value,
        "label": result.label,
        "label_name": problem.names[result.label],
        "delta": {"text": str(result.delta), "value": result.answer.delta, "map_size": result.map_size},
        "domain": domain_summary(problem.perturbed),
        "model": {"name": problem.model_name, "sha256": problem.model.sha256, "classes": problem.model.classes},
        "image": {"name": problem.image_name, "shape": list(problem.perturbed.x0.shape)},
        "regions": result.region_count,
        "satisfying_share": boundary.satisfying_share,
        "reachable_share": boundary.reachable_share,
        "unreachable_share": boundary.unreachable_share,
        "enclosed_share": boundary.enclosed_share,
        "farthest": _farthest(boundary),
        "components": [_component(component) for component in boundary.components],
        "enclaves": [_enclave(enclave) for enclave in boundary.enclaves],
        "starts": boundary.starts,
        "sliver_share": result.sliver_share,
        "undecided": {
            "share": boundary.share(boundary.kept == Kept.UNKNOWN),
            "pieces_beside": len(boundary.undecided),
            "strip_share": boundary.strip_share,
        },
    }


def _farthest(boundary: Boundary) -> dict[str, Any] | None:
    if boundary.farthest is None:
        return None
    return {"theta": boundary.farthest.tolist(), "distance": boundary.distance}


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
