"""Checks what a search visited before it is delivered: pattern and logits of regions against a plain forward pass.

The pass is the graph's own, at a point inside of every region (a fixed sample of many). It shares nothing with the
traversal but the images.
"""

import numpy as np

from ..accuracy import Accuracy
from ..errors import InternalError
from ..problem import Problem
from ..regions.forward_error import by_layer, forward_errors, plain_errors
from ..regions.pattern import unpack
from .outcome import Visited

MOST = 2_000
BATCH = 512


def check_visited(problem: Problem, visited: list[Visited], accuracy: Accuracy) -> None:
    """Compare visited regions with the graph; raises InternalError where they differ beyond the errors of both.

    `accuracy` is what bounds the errors of the traversal.
    """
    count = len(visited)
    chosen = range(count) if count <= MOST else np.linspace(0, count - 1, MOST).astype(np.int64)
    for start in range(0, len(chosen), BATCH):
        _check([visited[i] for i in chosen[start : start + BATCH]], problem, accuracy)


def _check(visited: list[Visited], problem: Problem, accuracy: Accuracy) -> None:
    compound = problem.compound
    *layers, last = (
        first + second
        for first, second in zip(forward_errors(compound, accuracy), plain_errors(compound, accuracy), strict=True)
    )
    missed = by_layer(compound, accuracy.missed)
    inside = np.array([one.region.inside for one in visited])
    thetas = compound.domain.low + inside * compound.domain.widths
    values, logits = compound.graph.trace(compound.perturbed.images(thetas))
    packed = np.stack([np.frombuffer(one.region.pattern, dtype=np.uint8) for one in visited])
    for layer, (value, bits) in enumerate(zip(values, unpack(packed, compound.hidden), strict=True)):
        # NaN is no value.
        wrong = ~(np.abs(value) <= layers[layer] + missed[layer]) & ((value > 0.0) != bits)
        if wrong.any():
            _fail(f"neuron {np.argmax(wrong.any(axis=0))} of ReLU layer {layer}")
    forms = np.stack([one.region.logits for one in visited])
    claimed = np.einsum("bi,bik->bk", np.hstack([inside, np.ones((len(inside), 1))]), forms)
    off = np.abs(logits - claimed).max(axis=1)
    if not (np.abs(logits - claimed) <= last).all():
        _fail(f"a logit, by {off.max():.3g}")


def _fail(what: str) -> None:
    raise InternalError(
        f"self-check failed inside a visited region: {what} differs from a plain forward pass; nothing is delivered, "
        "please report this model and image"
    )
