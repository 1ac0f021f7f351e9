"""Thetas inside units of a tiling, with the labels claimed there: the samples of `sample_check`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..labels import Kept
from .answer import Answer
from .claims import Claim, piece_claim

LEAST_SIZE = 1e-6
"""The least volume of a sampled piece, and the least distance of a sample from the facets of a visited region.

Rounding may push a sample out of smaller ones."""

LEAST_DEPTH = 1e-9
"""How far a given theta must be from the facets of the piece whose labels it is compared with."""

SEED = 20244


class Sample(NamedTuple):
    """A theta with its errors (`Claim`), the labels claimed for it, and the number of the unit that claims them."""

    claim: Claim
    label: Kept
    attention: Kept
    unit: int


class Doubts(NamedTuple):
    """Units whose label, or whose attention, a sample contradicts within the error bounds of both."""

    label: list[int]
    attention: list[int]

    def __bool__(self) -> bool:
        return bool(self.label or self.attention)


def piece_samples(answer: Answer, count: int) -> Iterator[Sample]:
    """The centres of the largest pieces, and of some others; units are regions."""
    joint = answer.joint
    # Where strips are wide, the centre may lie in one.
    is_clear = np.maximum(joint.label_strip, joint.attention_strip) < 1e-3 * joint.polytopes.volumes
    for piece in chosen_sizes(joint.polytopes.volumes, count):
        if is_clear[piece]:
            yield _sample(answer, int(piece), piece_claim(answer, int(piece)))


def theta_samples(answer: Answer, thetas: np.ndarray) -> Iterator[Sample]:
    """Given thetas (N, d) with the pieces that they lie in; units are regions."""
    polytopes = answer.joint.polytopes
    for theta in thetas:
        point = answer.compound.to_unit(theta[None])[0]
        piece = polytopes.deepest(point)
        if piece is not None:
            centres, outward = polytopes.take(np.array([piece])).facet_planes(slice(None))
            if ((centres - point) * outward).sum(axis=1).min() > LEAST_DEPTH:
                yield _sample(answer, piece, replace(piece_claim(answer, piece), theta=theta))


def _sample(answer: Answer, piece: int, claim: Claim) -> Sample:
    joint = answer.joint
    label, attention = joint.label_codes[piece], joint.attention_codes[piece]
    return Sample(claim, Kept(int(label)), Kept(int(attention)), int(joint.pieces.region[piece]))


def chosen_sizes(sizes: np.ndarray, count: int) -> np.ndarray:
    """The numbers of the largest units, and of some of the others that are large enough."""
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > LEAST_SIZE]
    largest, others = order[: (count + 1) // 2], order[(count + 1) // 2 :]
    return np.concatenate([largest, np.random.default_rng(SEED).permutation(others)[: count // 2]])
