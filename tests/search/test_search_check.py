"""Visited regions are compared with a plain forward pass; a planted fault stops the search."""

from dataclasses import replace

import numpy as np
import pytest

from steadygaze.engines.search.traversal import Traversal
from steadygaze.engines.search.walker import check_visited
from steadygaze.errors import InternalError
from steadygaze.question import make_question
from support.networks.search_problems import search_alone


@pytest.fixture(scope="module")
def found():
    question = make_question("M-FNN-100", "mnist:69990", ["brightness:0..0.1", "patch:x=12,y=12,w=4,h=4:0..0.1"])
    return search_alone(question, method="gbs")


@pytest.fixture(scope="module")
def accuracy(found):
    """The measures that bound the errors of the traversal, after it found the same regions again."""
    traversal = Traversal.of(found.question.compound)
    for one in found.tiling.visited:
        traversal.region_at(one.region.inside)
    return traversal.accuracy()


def test_what_was_found_passes(found, accuracy):
    check_visited(found.question, found.tiling.visited, accuracy)


def test_a_flipped_bit_is_caught(found, accuracy):
    one = found.tiling.visited[-1]
    bits = bytearray(one.region.pattern)
    bits[0] ^= 0x80
    planted = replace(one, region=replace(one.region, pattern=bytes(bits)))
    with pytest.raises(InternalError, match="neuron 0 of ReLU layer 0"):
        check_visited(found.question, [*found.tiling.visited[:-1], planted], accuracy)


def test_a_wrong_logit_is_caught(found, accuracy):
    one = found.tiling.visited[0]
    forms = one.region.logits + np.eye(1, one.region.logits.size, 3).reshape(one.region.logits.shape)
    with pytest.raises(InternalError, match="a logit, by"):
        check_visited(found.question, [replace(one, region=replace(one.region, logits=forms))], accuracy)
