"""Turns layers of numbers into models, and models into answers.

Such a model has no file: its replay is its own graph in float32.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steadygaze.api import verify
from steadygaze.attention.distances import Distance
from steadygaze.attention.filters import Filter
from steadygaze.attention.inconsistency import original_maps
from steadygaze.attention.map_errors import MapErrors
from steadygaze.attention.measuring import measure
from steadygaze.attention.options import AttentionOptions
from steadygaze.budget import Budget
from steadygaze.compound import Compound
from steadygaze.network.graph import Graph, lower
from steadygaze.network.layout import Preprocessing
from steadygaze.network.model import Model
from steadygaze.network.replay import FLOAT32
from steadygaze.perturbation import Perturbation
from steadygaze.properties.classification import classify
from steadygaze.regions.subdivide import subdivide
from steadygaze.results.answer import Answers
from steadygaze.results.result import Result
from support.networks.layered_networks import FloatLayer, make_graph
from support.oracles.attention_by_definition import Question


class GraphReplay:
    """Stands in for onnxruntime."""

    float_type = FLOAT32
    unit_roundoff = FLOAT32.unit
    preprocessing = Preprocessing(np.zeros(1), np.ones(1), 1.0)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def logits(self, images: np.ndarray) -> np.ndarray:
        return self.graph.logits(images).astype(np.float32).astype(np.float64)


def make_model(layers: Sequence[tuple], shape: tuple[int, int, int]) -> Model:
    """A model of images (C, H, W) from layers (W, b), a ReLU after all but the last."""
    arrays: list[FloatLayer] = [(np.array(weight, dtype=float), np.array(bias, dtype=float)) for weight, bias in layers]
    return model_of(make_graph(arrays, shape))


def model_of(graph: Graph) -> Model:
    """A model of a graph, without a file."""
    return Model(graph, lower(graph), Path("tiny.onnx"), "tiny", "0" * 64, (), GraphReplay(graph))  # type: ignore[arg-type]


def ask(
    layers: Sequence[tuple], image: np.ndarray, perturbations: Sequence[Perturbation | str], **options: object
) -> Result:
    """`verify` for layers and an image (C, H, W), in one thread."""
    return verify(make_model(layers, image.shape), image, perturbations, **{"threads": 1, **options})


def interrupted(model: str, image: str, specs: Sequence[str], *, calls: int, **options: object) -> Result:
    """`verify` of a bundled network, ended by the user at the given call of its progress."""
    budget, seen = Budget(), []

    def progress(share: float, regions: int) -> None:
        seen.append(share)
        if len(seen) == calls:
            budget.cancelled.set()

    return verify(model, image, specs, budget=budget, threads=1, progress=progress, **options)


def make_answers(compound: Compound, label: int, question: Question) -> Answers:
    """Everything that a map knows, for a label that need not be the predicted one."""
    options = AttentionOptions(Filter.parse(question.filter), Distance.parse(question.dist), question.classes)
    original = original_maps(compound, options)
    regions = subdivide(compound)
    curves = measure(compound, regions, options, original)
    errors = MapErrors(compound, regions.patterns, curves, options)
    size = sum(options.distance.size(part) for part in original)
    return Answers(compound, regions, classify(compound, regions, label), curves, errors, float(size))
