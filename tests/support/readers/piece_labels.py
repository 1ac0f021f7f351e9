"""Compares the attention of the pieces of a map with an exact answer, at points inside of them."""

import numpy as np

from steadygaze.labels import Kept
from support.oracles.exact_numbers import rational


def exact_theta(result, point):
    """A point (D,) in t as a theta in rationals."""
    domain = result.question.perturbed.domain
    return [
        rational(low) + rational(t) * (rational(high) - rational(low))
        for low, high, t in zip(domain.low.tolist(), domain.high.tolist(), point.tolist(), strict=False)
    ]


def is_in_strip(result, piece, point):
    """Whether a point (D,) in t lies where its piece claims nothing, between its inner and its outer slab."""
    labels, row = result.answer.joint.slabs, result.answer.joint.rows[piece]
    if labels.along is None:
        return False
    at = point @ labels.along[row]
    (first, last), (before, after) = labels.inner[row], labels.outer[row]
    return bool(before <= at <= after and not first <= at <= last)


def disagreements(result, truth, most=None):
    """Pieces whose attention differs from the exact one at points inside, by number; and the decided share.

    most: how many pieces are looked at, half of them beside the border; None for all.
    """
    joint, wrong = result.answer.joint, []
    polytopes, codes = joint.polytopes, joint.attention_codes
    is_known = (codes != Kept.UNKNOWN) & (polytopes.volumes >= 1e-9)
    decided = float((polytopes.volumes - joint.attention_strip)[codes != Kept.UNKNOWN].sum())
    pieces, rng = np.flatnonzero(is_known), np.random.default_rng(0)
    if most is not None and len(pieces) > most:
        beside = rng.permutation(pieces[joint.attention_strip[pieces] > 0.0])[: most // 2]
        pieces = np.concatenate([beside, rng.permutation(pieces)[: most - len(beside)]])
    for piece in pieces.tolist():
        code, centre, corners = int(codes[piece]), polytopes.centres[piece], polytopes[piece]
        # Close to the corners too: a border that is off shows there.
        for point in (centre, *(centre + 0.999 * (corner - centre) for corner in corners)):
            is_claimed = not is_in_strip(result, piece, point)
            if is_claimed and truth.is_kept_at(exact_theta(result, point)) != (code == Kept.YES):
                wrong.append(piece)
                break
    return wrong, decided


def attention_at(result, theta):
    """The attention that a map claims at a theta (d,), as a `Kept` code."""
    answer, region = result.answer, result.tiling.region_at(theta)
    labels, point = answer.labels, result.question.compound.to_unit(np.asarray(theta)[None])[0]
    if answer.joint.row is not None:
        # Parts of regions have slabs of their own.
        piece = answer.joint.polytopes.deepest(point)
        return Kept.UNKNOWN if is_in_strip(result, piece, point) else Kept(int(answer.joint.attention_codes[piece]))
    if labels.is_kept[region] or labels.is_lost[region]:
        return Kept.YES if labels.is_kept[region] else Kept.NO
    at = point @ labels.along[region]
    (first, last), (before, after) = labels.inner[region], labels.outer[region]
    return Kept.YES if first <= at <= last else Kept.UNKNOWN if before <= at <= after else Kept.NO
