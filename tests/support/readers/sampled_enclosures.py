"""Bounds of graphs with branches against thousands of thetas, without any tolerance.

Weights, pixels and thetas are short binary fractions, so the plain pass of such a graph is exact in float64; so are its
gradients. `is_exact` makes sure of that: it compares the pass with one in whole numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.options import AttentionOptions
from steadygaze.bounds.bounder import Bounder
from steadygaze.bounds.forms import pixels
from steadygaze.bounds.passes import decide_layers, gradients
from steadygaze.network.graph import Graph, patterns
from steadygaze.network.graph import gradients as plain_gradients
from steadygaze.network.joins import Concat, Winner
from steadygaze.network.operators import Relu, ScaleShift
from steadygaze.perturbation import Perturbed, compose, parse_spec
from support.networks.branching import Builder, dense, random_graph

SPECS = (
    ("brightness:-0.25..0.5", "patch:x=0,y=0,w=1,h=2:-0.5..0.5"),
    ("brightness:0..0.5",),
    ("patch:x=0,y=0,w=1,h=1:0..0.5", "patch:x=1,y=0,w=1,h=1:-0.5..0.5", "brightness:-0.125..0.125"),
)
STEPS = 2**12  # thetas are multiples of the domain's width over this


def pooled_graph(seed: int) -> Graph:
    """Overlapping windows over ReLUs, many of them dead, beside a branch that keeps them, twice."""
    rng, builder = np.random.default_rng([33, seed]), Builder()
    value = 0
    for _ in range(2):
        rectified = builder.add(Relu(), dense(rng, builder, value, 6))
        largest = builder.add(Winner(np.array([[0, 1, 2], [2, 3, 4], [4, 5, -1]]), (1, 3)), rectified)
        value = builder.add(Concat(1), largest, builder.add(ScaleShift(gain=-0.5), rectified))
    dense(rng, builder, value, 3)
    return builder.graph()


@dataclass(frozen=True, eq=False)
class BranchingCase:
    """A graph, a perturbed image, and boxes (B, d) in t."""

    graph: Graph
    perturbed: Perturbed
    low: np.ndarray
    high: np.ndarray
    room: int

    @classmethod
    def random(cls, seed: int) -> "BranchingCase":
        """Boxes from the whole domain down to a point."""
        rng = np.random.default_rng([31, seed])
        width = int(rng.integers(2, 5))
        graph = pooled_graph(seed) if seed % 4 == 3 else random_graph(seed, width=width, blocks=4, classes=3)
        image = rng.integers(0, 5, size=(1, 2, 2)) / 4
        perturbed = compose([parse_spec(spec) for spec in SPECS[seed % len(SPECS)]], image)
        d = perturbed.domain.dimension
        widths = np.array([STEPS, STEPS // 4, STEPS // 16, STEPS // 128, 0])[:, None]
        low = rng.integers(0, STEPS + 1 - np.broadcast_to(widths, (5, d)))
        return cls(graph, perturbed, low / STEPS, (low + widths) / STEPS, int(rng.choice([0, 0, 2, 100])))

    def bounder(self) -> Bounder:
        """The code under test."""
        options = AttentionOptions(Filter.parse("identity"), Distance.parse("l2"))
        return Bounder(self.graph, self.perturbed, 0, options, room=self.room)

    def thetas(self, box: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """Thetas (count, d) of a box, its corners among them."""
        low, high = (np.round(STEPS * end[box]).astype(np.int64) for end in (self.low, self.high))
        t = rng.integers(low, high + 1, size=(count, len(low)))
        t[: count // 8] = np.where(rng.random((count // 8, len(low))) < 0.5, low, high)
        return self.perturbed.domain.low + t / STEPS * self.perturbed.domain.widths


def false_claims(case: BranchingCase, samples: int, seed: int = 0) -> Iterator[str]:
    """The kinds of claims that samples of each box refute: 'margin', 'value', 'bit', 'gradient'."""
    rng, bounder, label = np.random.default_rng([32, seed]), case.bounder(), 0
    found = bounder.bound(0, case.low, case.high)
    passed = bounder.pass_forward(0, case.low, case.high)
    slopes = gradients(bounder.segments, passed, bounder.aims).ends
    image = pixels(case.perturbed, 0, case.low, case.high)
    layers = list(decide_layers(bounder.segments, bounder.layers, image, room=case.room))
    for box in range(len(case.low)):
        thetas = case.thetas(box, samples, rng)
        inputs, logits = case.graph.trace(case.perturbed.images(thetas))
        margins = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1)
        if not ((found.margin[box, 0] <= margins) & (margins <= found.margin[box, 1])).all():
            yield "margin"
        bits = patterns(case.graph, inputs)
        for layer, values, own in zip(layers, inputs, bits, strict=True):
            if not ((layer.low[box] <= values) & (values <= layer.high[box])).all():
                yield "value"
            if ((layer.bits[box] != 2) & (layer.bits[box] != own)).any():
                yield "bit"
        kinds = np.unique(np.concatenate([*bits, np.zeros((samples, 1), dtype=bool)], axis=1), axis=0)
        ends = np.cumsum([part.shape[1] for part in bits])
        for kind in kinds:
            *_, exact = plain_gradients(case.graph, np.split(kind[:-1], ends[:-1]))
            if not ((slopes[0][box] <= exact) & (exact <= slopes[1][box])).all():
                yield "gradient"


def is_exact(case: BranchingCase, count: int = 20) -> bool:
    """Whether the plain pass of a case is exact: in whole numbers of the smallest unit, no number exceeds 2⁵³."""
    thetas = np.concatenate([case.thetas(box, count, np.random.default_rng(box)) for box in range(len(case.low))])
    inputs, logits = case.graph.trace(case.perturbed.images(thetas))
    scaled = np.concatenate([*inputs, logits], axis=1) * 2.0**34
    return bool((scaled == np.round(scaled)).all() and np.abs(scaled).max() < 2.0**53)
