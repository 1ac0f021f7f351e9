"""Parts within an error bound are unknown, and count once in each direction."""

from types import SimpleNamespace

import numpy as np
import pytest

from steadygaze.compound import plain_program
from steadygaze.labels import Kept
from steadygaze.properties.joint import shares
from steadygaze.regions.subdivide import subdivide_cells


def one_piece(area, label_strip, attention_strip):
    """A stand-in for pieces: one piece that keeps label and attention, with strips of the given areas."""
    return SimpleNamespace(
        polytopes=SimpleNamespace(volumes=np.array([area]), dimension=2),
        pieces=SimpleNamespace(keeps_label=np.array([True])),
        attention=np.array([Kept.YES]),
        label_strip=np.array([label_strip]),
        attention_strip=np.array([attention_strip]),
    )


def test_strips_that_cover_everything_prove_nothing():
    found = shares(one_piece(1.0, 1.0, 1.0)).named()
    assert found["CR"] == (0.0, 1.0)
    assert found["AR"] == (0.0, 1.0)
    assert found["CR&AR"] == (0.0, 1.0)


def test_strips_that_must_overlap_keep_both_marginals():
    found = shares(one_piece(1.0, 0.75, 0.5)).named()
    assert found["CR"] == pytest.approx((0.25, 1.0))
    assert found["AR"] == pytest.approx((0.5, 1.0))


def test_a_partial_map_is_never_whole_however_little_is_missing():
    assert shares(one_piece(1.0, 0.0, 0.0), is_partial=True).named()["undecided"][0] > 0.0
    assert shares(one_piece(1.0, 0.0, 0.0)).named()["CR&AR"] == (1.0, 1.0)


def test_a_vertex_taken_for_a_point_of_the_cut_is_a_sliver():
    """The line x = (1 − 9e-11) y passes the corner (1, 1) closer than the tolerance."""
    layers = [(np.array([[1.0, -(1 - 9e-11)]]), np.zeros(1)), (np.ones((1, 1)), np.zeros(1))]
    found = subdivide_cells([plain_program(layers)])
    assert len(found) == 2
    wedge = abs(found.polytopes.volumes[0] - 0.5 * (1 - 9e-11))
    assert 0.0 < wedge <= found.accuracy.slivers < 1e-9
    assert found.accuracy.missed[0] >= 9e-11 * (1 - 1e-6)
