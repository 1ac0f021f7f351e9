"""The error of computed margins on tiny pieces of steep forms: it covers how the values themselves are rounded."""

import numpy as np

from steadygaze.attention.options import AttentionOptions
from steadygaze.properties.hull_proof import HullProof
from steadygaze.tolerances import UNIT
from support.networks.layered_models import ask

STEEP = 2.0**40


def test_the_error_of_a_steep_margin_includes_the_rounding_of_its_values() -> None:
    """f₀ − f₁ = 2⁴⁰ (x − 1/3) + 1 near x = 1/3: a value there is off by up to 2⁴⁰ · 2⁻⁵³, however small the piece."""
    layers = [(np.array([[STEEP, 0.0], [0.0, 0.0]]), np.array([1.0 - STEEP / 3.0, 0.0]))]
    result = ask(layers, np.array([[[0.5, 0.25]]]), ["patch:x=0,y=0,w=1,h=1:-0.5..0.5"], property="cr")
    regions = result.tiling.answers.regions
    proof = HullProof(result.question.compound, result.label, AttentionOptions(), 1e-15)
    region = np.arange(len(regions))
    _, error = proof.label_errors(regions.polytopes, regions.cell, regions.logits, region, region)
    assert (error >= STEEP * UNIT).all()
