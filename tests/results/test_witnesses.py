"""Every kind of violation has a witness that holds independently of the map, and a wrong one is caught."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.attention.gradients import maps_under, pattern_at
from steadygaze.errors import InternalError
from steadygaze.labels import Kept
from steadygaze.network.replay import FLOAT32
from steadygaze.results import map_check, witness
from steadygaze.results.claims import Violation, Visible, piece_claims
from steadygaze.results.map_check import check_maps, longest_steps
from steadygaze.results.witness import find_witnesses


def with_joint(result, **changes):
    """The same result with something planted in its labelled pieces."""
    planted = replace(result)
    planted.__dict__["answer"] = replace(result.answer, joint=replace(result.answer.joint, **changes))
    return planted


def test_every_kind_that_exists_has_one_and_no_other(results):
    kinds = {name: [found.kind for found in result.witnesses] for name, result in results.items()}
    assert kinds["keep"] == ["label", "attention", "right label, other evidence"]
    assert kinds["moving l1"] == ["attention", "right label, other evidence"]
    assert kinds["robust"] == []
    everywhere = results["keep"].with_delta(1e3)
    assert [found.kind for found in everywhere.witnesses] == ["label"]
    assert everywhere.areas["IR"][0] == 0.0 and everywhere.areas["IR"][1] <= everywhere.sliver_share


@pytest.mark.parametrize("name", ["keep", "moving l1", "moving l2", "line", "partial"])
def test_witness_violates_by_the_plain_definitions(results, name):
    result = results[name]
    delta, joint = result.answer.delta, result.answer.joint
    for found in result.witnesses:
        point = result.at(found.point.theta)
        if found.kind is Violation.LABEL:
            assert point.label != result.label
            assert point.margin < 0.0
        else:
            assert point.inconsistency > delta
        if found.kind is Violation.EVIDENCE:
            assert point.label == result.label
        place = result.question.compound.to_unit(point.theta[None])[0]
        inside = [piece for piece in range(len(joint.pieces)) if is_inside(place, joint.polytopes[piece])]
        assert len(inside) == 1
        if found.kind is not Violation.LABEL:
            assert joint.attention[inside[0]] == Kept.NO
        if found.kind is not Violation.ATTENTION:
            assert joint.pieces.keeps_label[inside[0]] == (found.kind is Violation.EVIDENCE)


def is_inside(point: np.ndarray, polygon: np.ndarray) -> bool:
    """Strictly inside of a polygon whose vertices run counter-clockwise; with one parameter any t_1 will do."""
    point = np.array([point[0], 0.5]) if point[1] == 0.0 else point
    edges = np.roll(polygon, -1, axis=0) - polygon
    away = point - polygon
    return bool((edges[:, 0] * away[:, 1] - edges[:, 1] * away[:, 0] > 0.0).all())


@pytest.mark.parametrize("name", ["keep", "moving l2"])
def test_replay_and_maps_agree(results, name):
    result = results[name]
    for found in result.witnesses:
        again = result.question.model.replay.logits(found.point.image[None])[0]
        np.testing.assert_array_equal(found.replay.logits, again)
        assert found.replay.difference == np.abs(again - found.point.logits).max()
        assert 0.0 < found.replay.difference <= found.replay.tolerance < 0.01
        assert found.replay.agrees
        assert found.is_deep
        check = found.map_check
        assert check.is_checkable
        assert check.agrees is True
        assert check.checked >= 24
        assert check.classes[0] == result.label


def test_maps_of_chosen_classes_alone_are_checked(results):
    assert set(results["moving l1"].witnesses[0].map_check.classes) == {3, 7}


def test_shallow_witness_is_flagged(results, monkeypatch):
    monkeypatch.setattr(witness, "_tolerance", lambda rounding, point: 1e3)
    flags = {found.kind: found.is_deep for found in find_witnesses(results["keep"]).witnesses}
    assert flags == {Violation.LABEL: False, Violation.ATTENTION: True, Violation.EVIDENCE: False}


def test_deep_piece_is_preferred_to_a_nearer_shallow_one(results, monkeypatch):
    result = results["keep"]
    nearest = result.witnesses[2].point.theta
    monkeypatch.setattr(
        witness, "_tolerance", lambda rounding, point: 1e3 if np.array_equal(point.theta, nearest) else 1e-3
    )
    found = find_witnesses(result).witnesses[2]
    assert found.is_deep
    assert not np.array_equal(found.point.theta, nearest)


def test_pieces_that_the_file_cannot_show_are_left_out_if_there_are_others(results):
    """Behind the error of maps in float32, the nearest piece comes first; without such pieces, all are tried."""
    result = results["keep"]
    answer, kind = result.answer, Violation.ATTENTION
    error = 2.0 * min(answer.answers.errors.coarse, float(answer.answers.errors.of(np.arange(1))[0]))

    def depths(excess):
        """How far the losses of the pieces tried exceed δ, if the file is so coarse that errors reach `excess`."""
        tried = piece_claims(answer, kind, Visible(0.0, excess / error))
        return [result.at(claim.theta).inconsistency - answer.delta for claim in tried]

    usual = depths(0.0)
    assert usual[0] < 0.95 * usual[-1]  # the last one is the deepest of all
    assert min(depths(0.5 * (usual[0] + usual[-1]))) > usual[0]
    assert depths(2.0 * usual[-1]) == usual


def test_other_pieces_are_not_tried_if_the_file_shows_none_of_them_better(results, monkeypatch):
    tried, usual = [], witness._examine
    monkeypatch.setattr(
        witness, "_examine", lambda result, kind, *others: (tried.append(kind), usual(result, kind, *others))[1]
    )
    monkeypatch.setattr(Visible, "through", lambda question, scale: Visible(0.0, 1e30))
    found = find_witnesses(results["keep"]).witnesses
    assert [one.kind for one in found] == list(Violation)
    assert tried.count(Violation.ATTENTION) == tried.count(Violation.EVIDENCE) == 1
    assert all(one.replay.agrees for one in found)


def test_piece_with_a_wrong_winner_is_caught(results):
    result = results["robust"]
    pieces = result.answer.joint.pieces
    planted = with_joint(result, pieces=replace(pieces, winner=np.full_like(pieces.winner, 3)))
    with pytest.raises(InternalError, match="claims a violation \\(label\\)"):
        find_witnesses(planted)


@pytest.mark.parametrize("name", ["robust", "keep"])
def test_piece_with_a_wrong_attention_label_is_caught(results, name):
    result = results[name].with_delta(1e3)
    attention = np.full_like(result.answer.joint.attention, Kept.NO)
    with pytest.raises(InternalError, match="claims a violation \\(attention\\)"):
        find_witnesses(with_joint(result, attention=attention))


class OtherReplay:
    """Gives logits that have nothing to do with the file."""

    float_type, unit_roundoff = FLOAT32, FLOAT32.unit

    def __init__(self, logits: list[float]) -> None:
        self.row = logits

    def logits(self, images: np.ndarray) -> np.ndarray:
        return np.tile(self.row, (len(images), 1))


def with_replay(result, logits: list[float]):
    question = replace(result.question, model=replace(result.question.model, replay=OtherReplay(logits)))
    return replace(result, question=question)


def test_replay_that_predicts_another_label_is_flagged(results):
    result = results["keep"]
    found = find_witnesses(with_replay(result, np.eye(10)[result.label].tolist()))
    lost, _, evidence = found.witnesses
    assert not lost.replay.agrees and not lost.replay.shows_label
    assert "onnxruntime, in float32, still predicts 7 there" in lost.remark
    assert "more than its rounding" in lost.remark
    assert evidence.replay.shows_label and not evidence.replay.agrees
    assert [note for note in found.notes if "the witness of the lost label is real, but onnxruntime" in note]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_replay_without_numbers_is_never_agreement(results, bad):
    lost, attention, _ = find_witnesses(with_replay(results["keep"], [bad] * 10)).witnesses
    for found in (lost, attention):
        assert not found.replay.agrees and found.replay.label is None and found.replay.difference is None
        assert found.map_check.agrees is False and found.map_check.difference is None
        assert "NaN or infinite logits" in found.remark


@pytest.mark.parametrize("bug", ["sign", "one neuron", "one pixel"])
def test_wrong_gradient_is_caught(results, monkeypatch, bug):
    def wrong(graph, bits, targets):
        maps = maps_under(graph, bits)
        if bug == "sign":
            return -targets @ maps
        if bug == "one neuron":
            # The active neuron of the first layer that matters most to the label is forgotten.
            loss = [np.abs(maps - maps_under(graph, flipped(bits, k)))[7].max() for k in range(50)]
            return maps_under(graph, flipped(bits, int(np.argmax(loss))), targets)
        place = np.argmax(np.abs(maps[7]))
        maps[7, place] *= 0.7
        return targets @ maps

    monkeypatch.setattr(map_check, "maps_under", wrong)
    with pytest.raises(InternalError, match="finite differences"):
        find_witnesses(results["keep"])


def flipped(bits: list[np.ndarray], neuron: int) -> list[np.ndarray]:
    first = bits[0].copy()
    first[0, neuron] = False
    return [first, *bits[1:]]


def pieces_of_check(result):
    model, point = result.question.model, result.witnesses[0].point
    return model, point.image, pattern_at(model.graph, point.image.reshape(1, -1))


def test_noise_that_hides_everything_is_not_called_agreement(results):
    model, image, bits = pieces_of_check(results["keep"])
    check = check_maps(model, image, bits, np.array([7, 5]), 1e6)
    assert (check.checked, check.is_checkable, check.agrees, check.difference) == (0, False, None, None)
    assert check.skipped >= 24


def test_steps_reach_exactly_to_the_nearest_kink(results):
    model, image, bits = pieces_of_check(results["keep"])
    pixels = np.arange(300, 500, 7)
    steps = longest_steps(model.graph, image.ravel(), bits, pixels)
    assert (steps > 0.0).all()
    for pixel, step in zip(pixels, steps, strict=True):
        changes = []
        for share in (-1.001, -0.999, 0.999, 1.001):
            moved = image.ravel().copy()
            moved[pixel] += share * step
            here = pattern_at(model.graph, moved[None])
            changes.append(any((a != b).any() for a, b in zip(here, bits, strict=True)))
        assert not changes[1] and not changes[2]
        assert changes[0] or changes[3]
