"""Planted bugs in three dimensions: the check passes true maps and stops false ones."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from steadygaze.compound import Compound
from steadygaze.errors import InternalError
from steadygaze.polytopes import Cut
from steadygaze.regions.check import INSIDE, MORE_INSIDE, check_map
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from support.networks.bundled import bundled
from support.stand_ins.false_maps import MISTAKES, change_logit, inner_vertex

SPECS = ("translate:dx=1", "patch:x=12,y=12,w=4,h=4", "brightness:0..0.25")


@pytest.fixture(scope="module")
def compound() -> Compound:
    return bundled("M-FNN-100", "mnist:69991", *SPECS)


@pytest.fixture(scope="module")
def regions(compound: Compound) -> RegionSet:
    return subdivide(compound)


def test_a_true_map_passes(compound: Compound, regions: RegionSet) -> None:
    checked = check_map(compound, regions)
    assert checked.tiling_error < 1e-9
    assert checked.inside == min(len(regions), INSIDE + len(regions) // MORE_INSIDE) > 100
    assert checked.beside > 500


def with_points(regions: RegionSet, points: np.ndarray) -> RegionSet:
    return replace(regions, polytopes=replace(regions.polytopes, points=points))


def move_vertex(regions: RegionSet, *, of_all: bool) -> RegionSet:
    """Move a vertex towards the middle of one region, for it alone or for all polyhedra that share it."""
    points, place = regions.polytopes.points.copy(), inner_vertex(regions)
    shared = np.linalg.norm(points - points[place], axis=1) < 1e-9 if of_all else np.arange(len(points)) == place
    points[shared] += 0.02 * (regions.polytopes.centres[regions.polytopes.owner[place]] - points[place])
    return with_points(regions, points)


def swap(name: str) -> Callable[[RegionSet], RegionSet]:
    """Exchange the patterns or logits of the two largest regions beside some neuron's cut."""

    def exchange(regions: RegionSet) -> RegionSet:
        solids = regions.polytopes
        inner = (regions.cuts[:, 0] == Cut.NEURON) & (regions.cuts[:, 1] >= 2)
        facets = np.flatnonzero(inner[np.abs(solids.facets) - 1])
        place = facets[np.argmax(solids.facet_sizes[facets])]
        other = np.flatnonzero(solids.facets == -solids.facets[place])[0]
        first, second = solids.facet_owner[place], solids.facet_owner[other]
        values = getattr(regions, name).copy()
        values[[first, second]] = values[[second, first]]
        return replace(regions, **{name: values})

    return exchange


def wrong_sign(regions: RegionSet) -> RegionSet:
    """One facet claims to lie on the other side of its cut."""
    solids = regions.polytopes
    inner = np.flatnonzero(regions.cuts[np.abs(solids.facets) - 1, 0] == Cut.NEURON)
    facets = solids.facets.copy()
    facets[inner[np.argmax(solids.facet_sizes[inner])]] *= -1
    return replace(regions, polytopes=replace(solids, facets=facets))


def lost_incidence(regions: RegionSet) -> RegionSet:
    """One vertex of a large region is not on one of its facets any more."""
    incidence, place = regions.polytopes.incidence.copy(), inner_vertex(regions)
    incidence[place, 0] &= incidence[place, 0] - np.uint64(1)
    return replace(regions, polytopes=replace(regions.polytopes, incidence=incidence))


MUTATIONS: dict[str, Callable[[RegionSet], RegionSet]] = {
    **MISTAKES,
    "vertex moved": lambda regions: move_vertex(regions, of_all=False),
    "shared vertex moved": lambda regions: move_vertex(regions, of_all=True),
    "constant of a logit changed": change_logit(1e-4, 3),
    "slope of a logit changed": change_logit(1e-2, 2),
    "patterns of neighbours exchanged": swap("pattern"),
    "logits of neighbours exchanged": swap("logits"),
    "axes exchanged": lambda regions: with_points(regions, np.ascontiguousarray(regions.polytopes.points[:, ::-1])),
    "mirrored in place": lambda regions: with_points(regions, 1 - regions.polytopes.points),
    "point that is no number": lambda regions: with_points(regions, regions.polytopes.points * np.nan),
    "facet on the wrong side": wrong_sign,
    "vertex taken off a facet": lost_incidence,
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_planted_bug_is_caught(compound: Compound, regions: RegionSet, mutation: str) -> None:
    broken = MUTATIONS[mutation](regions)
    with pytest.raises(InternalError):
        check_map(compound, broken)


def test_the_map_of_another_image_is_caught(compound: Compound) -> None:
    other = bundled("M-FNN-100", "mnist:69993", *SPECS)
    with pytest.raises(InternalError):
        check_map(compound, subdivide(other))
