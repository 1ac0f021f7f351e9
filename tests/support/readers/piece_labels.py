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


def is_in_strip(result, region, point):
    """Whether a point (D,) in t lies where its region claims nothing, between its inner and its outer slab."""
    labels = result.answer.labels
    if labels.along is None:
        return False
    at = point @ labels.along[region]
    (first, last), (before, after) = labels.inner[region], labels.outer[region]
    return bool(before <= at <= after and not first <= at <= last)


def disagreements(result, truth):
    """Pieces whose attention differs from the exact one at points inside, by number; and the decided share."""
    joint, wrong, decided = result.answer.joint, [], 0.0
    polytopes = joint.polytopes
    for piece in range(len(polytopes)):
        code, volume = int(joint.attention_codes[piece]), float(polytopes.volumes[piece])
        if code == Kept.UNKNOWN or volume < 1e-9:
            continue
        decided += volume - float(joint.attention_strip[piece])
        centre, corners = polytopes.centres[piece], polytopes[piece]
        # Close to the corners too: a border that is off shows there.
        for point in (centre, *(centre + 0.999 * (corner - centre) for corner in corners)):
            is_claimed = not is_in_strip(result, int(joint.pieces.region[piece]), point)
            if is_claimed and truth.is_kept_at(exact_theta(result, point)) != (code == Kept.YES):
                wrong.append(piece)
                break
    return wrong, decided


def attention_at(result, theta):
    """The attention that a map claims at a theta (d,), as a `Kept` code."""
    answer, region = result.answer, result.tiling.region_at(theta)
    labels, point = answer.labels, result.question.compound.to_unit(np.asarray(theta)[None])[0]
    if labels.is_kept[region] or labels.is_lost[region]:
        return Kept.YES if labels.is_kept[region] else Kept.NO
    at = point @ labels.along[region]
    (first, last), (before, after) = labels.inner[region], labels.outer[region]
    return Kept.YES if first <= at <= last else Kept.UNKNOWN if before <= at <= after else Kept.NO
