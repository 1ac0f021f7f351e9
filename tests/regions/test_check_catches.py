"""Planted bugs: the check of every run must pass true maps and stop false ones."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.budget import Budget, Limits
from steadygaze.compound import Compound
from steadygaze.errors import InternalError
from steadygaze.perturbation import Brightness, Darkness, Patch, Perturbation, Translate
from steadygaze.polytopes import Cut, Polygons
from steadygaze.regions.check import INSIDE, MORE_INSIDE, check_map
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from support.networks.bundled import bundled
from support.networks.layered_networks import crossing_layers, make_compound
from support.stand_ins.false_maps import MISTAKES, change_logit, inner_vertex

IMAGE = np.array([0.0, 0.5, 1.0, 0.25]).reshape(1, 2, 2)
PERTURBATIONS: list[Perturbation] = [Brightness(range=(-0.5, 0.5)), Patch(x=0, y=0, w=2, h=1)]


@pytest.fixture(scope="module")
def compound() -> Compound:
    return bundled("M-FNN-100", "mnist:69990", "brightness", "patch:x=12,y=12,w=4,h=4")


@pytest.fixture(scope="module")
def regions(compound: Compound) -> RegionSet:
    return subdivide(compound)


# True maps pass


def test_a_true_map_passes(compound: Compound, regions: RegionSet) -> None:
    checked = check_map(compound, regions)
    assert checked == check_map(compound, regions, threads=2)
    assert checked.tiling_error < 1e-9
    assert checked.inside == min(len(regions), INSIDE + len(regions) // MORE_INSIDE)
    assert checked.beside > 100


@pytest.mark.parametrize(
    "question",
    [
        ("M-CNN-S", "mnist:69991", "translate:dx=-2:0.5..1.5", "darkness:0..0.125"),
        ("M-FNN-100", "mnist:69990", "translate:dx=3"),
        ("M-FNN-100", "mnist:69999", "brightness:0.25..0.25001", "translate:dy=1"),
    ],
    ids=lambda question: "+".join(question[2:]),
)
def test_other_true_maps_pass(question: tuple[str, ...]) -> None:
    compound = bundled(*question)
    check_map(compound, subdivide(compound))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["BP", "TB", "TD", "BD", "T"]))
def test_degenerate_true_maps_pass(seed: int, chosen: str) -> None:
    rng = np.random.default_rng(seed)
    families: dict[str, Perturbation] = {
        "B": Brightness(),
        "P": Patch(x=0, y=0, w=1, h=2),
        "D": Darkness(),
        "T": Translate(dx=2),
    }
    layers = crossing_layers(rng, [4, 4, 3, 2], rng.integers(0, 5, size=(3, 4)) / 4)
    image = rng.choice([0.0, 0.25, 1.0], size=(1, 2, 2))
    compound = make_compound(layers, [families[letter] for letter in chosen], image)
    check_map(compound, subdivide(compound))


def test_partial_maps_pass() -> None:
    compound = bundled("M-FNN-100", "mnist:69992", "translate:dy=2", "brightness:0..0.5")
    part = subdivide(compound, budget=Budget(Limits(max_regions=100)))
    assert part.stopped is not None and part.polytopes.volumes.sum() < 1 - 1e-6
    check_map(compound, part)


def test_a_map_that_ended_before_its_first_region_passes(compound: Compound) -> None:
    budget = Budget()
    budget.cancelled.set()
    check_map(compound, subdivide(compound, budget=budget))


# Planted bugs


def with_points(regions: RegionSet, points: np.ndarray) -> RegionSet:
    return replace(regions, polytopes=Polygons(points, regions.polytopes.starts, regions.polytopes.facets))


def move_one_vertex(regions: RegionSet) -> RegionSet:
    points = regions.polytopes.points.copy()
    place = inner_vertex(regions)
    points[place] += 0.01 * (regions.polytopes.centres[regions.polytopes.owner[place]] - points[place])
    return with_points(regions, points)


def move_a_vertex_of_all_who_share_it(regions: RegionSet) -> RegionSet:
    """Polygons on all sides follow, so the areas still add up."""
    points = regions.polytopes.points.copy()
    place = inner_vertex(regions)
    shared = np.hypot(*(points - points[place]).T) < 1e-9
    towards = regions.polytopes.centres[regions.polytopes.owner[place]] - points[place]
    points[shared] += 0.02 * towards
    return with_points(regions, points)


def swap(name: str) -> Callable[[RegionSet], RegionSet]:
    """Exchange the patterns or logits of the two regions beside some neuron's cut."""

    def exchange(regions: RegionSet) -> RegionSet:
        polygons = regions.polytopes
        inner = np.flatnonzero((regions.cuts[:, 0] == Cut.NEURON) & (regions.cuts[:, 1] >= 2)) + 1
        place = next(p for p, edge in enumerate(polygons.facets) if edge in inner)
        other = next(p for p, edge in enumerate(polygons.facets) if edge == -polygons.facets[place])
        first, second = polygons.owner[place], polygons.owner[other]
        values = getattr(regions, name).copy()
        values[[first, second]] = values[[second, first]]
        return replace(regions, **{name: values})

    return exchange


MUTATIONS: dict[str, Callable[[RegionSet], RegionSet]] = {
    **MISTAKES,
    "vertex moved": move_one_vertex,
    "shared vertex moved": move_a_vertex_of_all_who_share_it,
    "constant of a logit changed": change_logit(1e-4, 2),
    "slope of a logit changed": change_logit(1e-2, 0),
    "patterns of neighbours exchanged": swap("pattern"),
    "logits of neighbours exchanged": swap("logits"),
    "turned over": lambda regions: with_points(regions, regions.polytopes.points[:, ::-1]),
    "mirrored in place": lambda regions: with_points(regions, 1 - regions.polytopes.points),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_planted_bug_is_caught(compound: Compound, regions: RegionSet, mutation: str) -> None:
    broken = MUTATIONS[mutation](regions)
    for threads in (1, 2):
        with pytest.raises(InternalError):
            check_map(compound, broken, threads=threads)


def test_a_wrong_sign_is_caught() -> None:
    layers = [(np.array([[1.0, -1.0, 0.5, 0]]), np.array([-0.25])), (np.ones((2, 1)), np.zeros(2))]
    wrong = [(-layers[0][0], -layers[0][1]), layers[1]]
    compound = make_compound(layers, PERTURBATIONS, IMAGE)
    check_map(compound, subdivide(compound))
    with pytest.raises(InternalError):
        check_map(compound, subdivide(make_compound(wrong, PERTURBATIONS, IMAGE)))


def test_the_map_of_another_image_is_caught(compound: Compound) -> None:
    other = bundled("M-FNN-100", "mnist:69991", "brightness", "patch:x=12,y=12,w=4,h=4")
    with pytest.raises(InternalError):
        check_map(compound, subdivide(other))
