"""Violations where entries of maxima tie at positive values: a flat background behind a convolution with a bias."""

import numpy as np
import pytest

from steadygaze.api import verify
from steadygaze.properties import hull_proof
from steadygaze.results.claims import Violation
from support.networks.onnx_files import make_proto
from support.networks.operator_models import floats, node

IMAGE = np.zeros((1, 8, 8))
IMAGE[0, 3:5, 3:5] = [[0.5, 0.75], [1.0, 0.25]]
BRIGHTER = "brightness:0..0.001"


@pytest.fixture
def flat(tmp_path):
    """Two channels with positive biases on the background, padded, and their largest values in windows of 2 × 2."""
    nodes = [
        node("Conv", "image k c", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "a", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "p", "f"),
        node("MatMul", "f w", "h"),
        node("Add", "h b", "y"),
    ]
    weights = {"k": floats(2, 1, 3, 3, seed=3), "c": np.float32([0.3, 0.6]), "w": floats(32, 3, seed=4)}
    path = tmp_path / "flat.onnx"
    path.write_bytes(make_proto(nodes, weights | {"b": floats(3, seed=5)}, [1, 1, 8, 8]).SerializeToString())
    return path


def lost(path, perturbation=BRIGHTER, **options):
    """A result whose share of mass on the object is 0.05 below the threshold without any perturbation."""
    asked = {"attention": "object", "mask": "auto:bright=0.2", "method": "map"} | options
    own = 1.0 - verify(path, IMAGE, perturbation, **asked, tau=0.01).at([0.0]).inconsistency
    return verify(path, IMAGE, perturbation, **asked, tau=own + 0.05)


def test_a_violation_in_tied_windows_has_a_witness_and_a_nearest_theta(flat):
    result = lost(flat)
    assert result.areas["IR"][0] > 0.999
    assert [one.kind for one in result.witnesses] == [Violation.ATTENTION, Violation.EVIDENCE]
    assert not result.findings.notes
    nearest = result.nearest["AR"]
    assert nearest.theta is not None and nearest.high < 1e-3
    for theta in (nearest.theta, result.witnesses[0].point.theta):
        assert result.at(theta).inconsistency > result.answer.delta


def test_bounds_alone_leave_tied_windows_open_and_the_note_says_so(flat, monkeypatch):
    monkeypatch.setattr(hull_proof.TiedPoints, "inconsistency", lambda *_: (0.0, np.inf))
    result = lost(flat)
    assert not result.witnesses and result.nearest["AR"].theta is None
    assert result.findings.notes
    assert all("entries of a maximum tie there" in note for note in result.findings.notes)


def test_the_map_at_the_unperturbed_image_is_the_expected_one(flat):
    """Beside the padding, entries tie at zero alone: the winner of the region around it is another one."""
    result = lost(flat)
    point = result.at([0.0])
    assert (point.actual == point.expected).all()
    beside = result.at([1e-6])
    assert (beside.actual != beside.expected).any()


def test_expected_maps_of_tied_windows_are_known_at_witnesses(flat):
    """The distance compares with maps of the unperturbed image, whose own windows tie, too."""
    result = verify(flat, IMAGE, "brightness:0..1", delta=0.01, method="map")
    (witness,) = (one for one in result.witnesses if one.kind is Violation.ATTENTION)
    assert witness.point.inconsistency > 0.01
