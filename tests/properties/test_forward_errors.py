"""The claimed errors of regions are bounds: affine logits compared with exact forward passes."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steadygaze.attention.options import AttentionOptions
from steadygaze.compound import Compound
from steadygaze.network.graph import AffineMap
from steadygaze.perturbation import parse_spec
from steadygaze.properties.hull_proof import HullProof
from steadygaze.regions.forward_error import forward_errors, region_coverage, spectral_bound
from steadygaze.regions.region import RegionSet
from steadygaze.regions.subdivide import subdivide
from support.networks.layered_networks import FloatLayer, make_compound
from support.oracles.exact_attention import exact_image
from support.oracles.exact_numbers import Dyadic, ExactChain

MOST_REGIONS = 12


def deep_layers(rng: np.random.Generator, pixels: int) -> list[FloatLayer]:
    """Sixteen layers of ten."""
    sizes = [pixels, *[10] * 16, 3]
    return [(rng.normal(size=(b, a)) * np.sqrt(2 / a), 0.1 * rng.normal(size=b)) for a, b in pairwise(sizes)]


def uneven_layers(rng: np.random.Generator, pixels: int) -> list[FloatLayer]:
    """One neuron of the first layer matters a million times more than the others, where it is active."""
    weight = np.abs(rng.normal(size=(6, pixels)))
    top = rng.normal(size=(4, 6))
    top[:, rng.integers(6)] *= 1e6
    last = rng.normal(size=(2, 4))
    return [(weight, -(weight * rng.random((6, pixels))).sum(axis=1)), (top, np.zeros(4)), (last, np.zeros(2))]


def cancelling_layers(rng: np.random.Generator, pixels: int) -> list[FloatLayer]:
    """Large biases that cancel what comes in."""
    weight = rng.normal(size=(5, pixels))
    second = 1e5 * rng.normal(size=(5, 5))
    inside = np.maximum(weight @ rng.random(pixels) + 100.0, 0.0)
    return [(weight, np.full(5, 100.0)), (second, -second @ inside), (rng.normal(size=(3, 5)), np.zeros(3))]


NETWORKS: dict[str, Callable[[np.random.Generator, int], list[FloatLayer]]] = {
    "deep": deep_layers,
    "uneven": uneven_layers,
    "cancelling": cancelling_layers,
    "linear": lambda rng, pixels: [(rng.normal(size=(3, pixels)), rng.normal(size=3))],
}
PROBLEMS = (
    ((1, 2, 3), ("brightness:-0.5..0.5", "patch:x=1,y=0,w=2,h=2")),
    ((1, 2, 3), ("translate:dx=2:-0.7..1.9",)),
    ((1, 3, 2), ("darkness:-0.1..0.3", "translate:dy=-1")),
    ((1, 1, 300), ("translate:dx=290:270..271",)),
)


def make(network: str, shape: tuple[int, int, int], specs: tuple[str, ...], seed: int) -> tuple[Compound, RegionSet]:
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, size=shape) / 255
    layers = NETWORKS[network](rng, int(np.prod(shape)))
    compound = make_compound(layers, [parse_spec(spec) for spec in specs], image)
    return compound, subdivide(compound)


def exact_logits(compound: Compound, chain: ExactChain, point: np.ndarray) -> np.ndarray:
    """Logits (K,) as rationals at a point (2,) of the unit square."""
    domain = compound.domain
    # The scaling of the domain is part of what is claimed about: theta is low + t · (high − low) exactly.
    theta = [
        Fraction(float(low)) + Fraction(float(t)) * (Fraction(float(high)) - Fraction(float(low)))
        for low, high, t in zip(domain.low, domain.high, point, strict=False)
    ]
    return chain.forward(Dyadic.of_fractions(exact_image(compound.perturbed, theta).ravel()))[1].fractions()


def actual_errors(compound: Compound, regions: RegionSet, chosen: np.ndarray) -> np.ndarray:
    """The largest |affine − exact| of each logit on the vertices and the centre of the chosen regions, (S, K)."""
    chain = ExactChain.of(compound.chain)
    rows = []
    for region in chosen:
        worst = np.zeros(regions.logits.shape[2])
        for point in [*regions.polytopes[region][:4], regions.polytopes.centres[region]]:
            exact = exact_logits(compound, chain, point)
            for j, truth in enumerate(exact):
                form = [Fraction(float(number)) for number in regions.logits[region, :, j]]
                value = form[0] * Fraction(float(point[0])) + form[1] * Fraction(float(point[1])) + form[2]
                worst[j] = max(worst[j], float(abs(value - truth)))
        rows.append(worst)
    return np.array(rows)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    ("shape", "specs"), PROBLEMS, ids=lambda value: "+".join(value) if isinstance(value[0], str) else ""
)
def test_claimed_errors_bound_the_actual_ones(
    network: str, shape: tuple[int, int, int], specs: tuple[str, ...]
) -> None:
    compound, regions = make(network, shape, specs, seed=3)
    chosen = np.unique(np.linspace(0, len(regions) - 1, MOST_REGIONS).astype(int))
    actual = actual_errors(compound, regions, chosen)
    assert (actual <= forward_errors(compound, regions.accuracy)[-1]).all()
    # Half of the error of f_label − f_j is an error of one logit.
    assert (actual[:, 0] <= own_errors(compound, regions, chosen) + actual[:, 1:].max(axis=1)).all()


def own_errors(compound: Compound, regions: RegionSet, chosen: np.ndarray) -> np.ndarray:
    """The bounds (S,) of the margins' errors on single regions, for label 0."""
    proof = HullProof(compound, 0, AttentionOptions(), region_coverage(regions.accuracy))
    arguments = (regions.polytopes, regions.cell, regions.logits, chosen, np.arange(len(regions)))
    return proof.label_errors(*arguments)[1]


def test_an_unsound_bound_is_caught() -> None:
    compound, regions = make("deep", *PROBLEMS[0], seed=3)
    chosen = np.unique(np.linspace(0, len(regions) - 1, MOST_REGIONS).astype(int))
    actual = actual_errors(compound, regions, chosen)
    assert (actual > 1e-9 * forward_errors(compound, regions.accuracy)[-1]).any()


def test_a_missed_value_counts_in_every_layer_above() -> None:
    compound, regions = make("deep", *PROBLEMS[0], seed=3)
    missed = regions.accuracy.missed.copy()
    missed[0] = 1.0
    before, after = (
        forward_errors(compound, replace(regions.accuracy, missed=own)) for own in (regions.accuracy.missed, missed)
    )
    reached = np.abs(compound.chain.maps[1].matrix[:, 0])
    assert (after[1] >= before[1] + 0.99 * reached).all()
    assert after[-1].max() > 1e6 * before[-1].max()


def test_peaks_that_are_no_numbers_leave_everything_open() -> None:
    compound, regions = make("uneven", *PROBLEMS[0], seed=3)
    peaks = regions.accuracy.peaks.copy()
    peaks[0] = np.inf
    errors = forward_errors(compound, replace(regions.accuracy, peaks=peaks))
    assert np.isinf(errors[-1]).all()


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (20, 50), (64, 64)])
def test_spectral_bounds_are_close_above_the_norm(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(1).normal(size=shape)
    bound, norm = spectral_bound(AffineMap(matrix, np.zeros(shape[0]))), np.linalg.norm(matrix, 2)
    assert norm <= bound <= 1.05 * norm
