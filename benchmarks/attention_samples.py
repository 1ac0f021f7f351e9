"""Do proved labels of attention agree with torch at sampled thetas, for every property and method, over the zoo?

    python benchmarks/attention_samples.py                                     # everything: about two hours
    python benchmarks/attention_samples.py --models M-FNN-100 --methods gradient smoothgrad:n=2 --thetas 2000

steadygaze answers every question with the engine it chooses, within a few seconds; parts that stay open are not
sampled. Thetas lie inside pieces and boxes with a label, more often in larger ones. At some thetas the loss itself is
compared, too. `attention_by_torch.py` is the other implementation. A contradiction fails the benchmark.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attention_by_torch import Domain, Explanation, Network, enlarged, losses, read_network
from paper_problems import image_name
from steadygaze import zoo
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.engines.refine.merged_answer import MergedAnswer
from steadygaze.errors import OptionError
from steadygaze.labels import Kept
from steadygaze.properties.joint import JointPieces
from steadygaze.question import Question, make_question
from steadygaze.results.result import Result
from timing import RESULTS, print_table, write_json

QUESTION = "whether proved labels of attention agree with torch at sampled thetas"
MODELS = ("M-FNN-100", "M-FNN-100-object", "M-CNN-S", "M-CNN-S-object", "M-MAXPOOL", "M-RESNET", "C-RESNET")
METHODS = (
    "gradient", "smoothgrad:n=2", "input-x-gradient", "integrated:steps=2", "gradcam", "occlusion:window=7,stride=7",
)  # fmt: skip
MASK = "auto:bright=0.2,grow=1"
PROPERTIES: dict[str, dict[str, Any]] = {
    "distance": {"delta": "50%"},
    "object": {"attention": "object", "tau": "90%", "mask": MASK},
    "pointing": {"attention": "pointing", "mask": MASK},
    "alike": {"attention": "alike", "gamma": 0.8, "classes": "predicted"},
    "topk": {"attention": "topk", "top": "30:0.6", "classes": "predicted"},
}
DOMAINS = (Domain("BP", 0.1), Domain("TB", 0.1))
BRIGHT = {"C-RESNET": 0.7}
"""The brightness from which pixels belong to the object, for networks with coloured backgrounds; 0.2 for all others."""
LAYERS = {"M-CNN-S": "relu1", "M-CNN-S-object": "relu2", "M-MAXPOOL": "pool1", "M-RESNET": "add2", "C-RESNET": "relu3"}
"""The layer of Grad-CAM: ReLUs, a pool, a residual sum."""
CLOSE = 1e-9
"""Losses closer to the limit than this share of it are not compared, because torch rounds."""
VALUES = 20
"""Thetas of each question at which the loss itself is compared with `Result.at`, to 1e-9."""
STRIP = 1e-6
"""Pieces with a wider undecided strip, as a share of their volume, are not sampled."""


def answer(question: Question, seconds: float) -> Result:
    """The answer of the chosen engine within a few seconds; refused if no engine proves the method."""
    limits = Limits(timeout_seconds=seconds, memory_gib=3.0)
    return run(question, "auto", threads=1, budget=Budget(limits))


def labelled(result: Result, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Thetas (N, d) inside pieces and boxes with a label, and whether attention is kept there (N,)."""
    found = result.answer
    parts: list[tuple[np.ndarray, Any]] = []
    if isinstance(found, MergedAnswer):
        boxes, chosen = found.boxes, np.asarray(found.bounded)
        codes = found.attention_codes[chosen]
        sure = chosen[codes != Kept.UNKNOWN]
        volumes = np.zeros(len(boxes))
        volumes[sure] = boxes.volumes[sure]
        parts.append((volumes, (boxes, found.attention_codes)))
        found = found.exact
    for joint in () if found is None else (block.joint for block in found.blocks()):
        volumes = joint.polytopes.volumes
        is_sure = (joint.attention_codes != Kept.UNKNOWN) & (joint.attention_strip <= STRIP * volumes)
        parts.append((np.where(is_sure, volumes, 0.0), joint))
    total = sum(float(volumes.sum()) for volumes, _ in parts)
    places, kept = [np.zeros((0, 2))], [np.zeros(0, dtype=bool)]
    for volumes, what in parts:
        own = round(count * float(volumes.sum()) / total) if total > 0.0 else 0
        if own:
            chosen = rng.choice(len(volumes), own, p=volumes / volumes.sum())
            if isinstance(what, JointPieces):
                places.append(np.stack([_inside(what, piece, rng) for piece in chosen]))
                kept.append(what.attention_codes[chosen] == Kept.YES)
            else:
                boxes, codes = what
                low, high = boxes.low[chosen][:, :2], boxes.high[chosen][:, :2]
                places.append(low + rng.random(low.shape) * (high - low))
                kept.append(codes[chosen] == Kept.YES)
    return result.question.perturbed.domain.to_theta(np.concatenate(places)), np.concatenate(kept)


def _inside(joint: JointPieces, piece: int, rng: np.random.Generator) -> np.ndarray:
    """A random mean of the vertices of a piece, in t."""
    polytopes = joint.polytopes
    corners = polytopes.points[polytopes.starts[piece] : polytopes.starts[piece + 1]]
    return rng.dirichlet(np.ones(len(corners))) @ corners


def losses_by_torch(question: Question, network: Network, domain: Domain, thetas: np.ndarray) -> np.ndarray:
    """The losses (N,) at thetas (N, 2), by the other implementation."""
    options, measure = question.attention, question.attention.measure
    image, classes = question.perturbed.x0, options.chosen(question.model.classes).tolist()
    method = Explanation(options.method.name, options.method.settings, options.method.arrays.get("noises"))
    images = domain.images(image, thetas)
    actual = method.maps(network, images, classes)
    if method.has_image:
        # The gradients of the unperturbed image, moved with it, times the image at theta.
        moved = domain.moved(method.gradients(network, image[None], classes)[0], thetas)
        expected = method.factor(images) * moved
    else:
        original = method.maps(network, image[None], classes)
        needs_size = domain.name == "TB" or options.mask is not None or measure.name == "topk"
        if needs_size:
            actual, original = (enlarged(maps, image.shape[1:]) for maps in (actual, original))
        expected = domain.moved(original[0], thetas)
    weights = None
    if options.mask is not None:
        weights = domain.moved(own_mask(image, BRIGHT.get(question.model_name, 0.2)), thetas)
    return losses(measure.name, actual, expected, weights, getattr(measure, "k", 0))


def own_mask(image: np.ndarray, bright: float) -> np.ndarray:
    """The mask (H, W) of an image (C, H, W): bright pixels in any channel, grown by one in eight directions."""
    is_bright = np.pad((image > bright).any(axis=0), 1)
    height, width = image.shape[1:]
    return np.any([is_bright[y : y + height, x : x + width] for y in range(3) for x in range(3)], axis=0).astype(float)


def compare(question: Question, result: Result, network: Network, domain: Domain, count: int) -> dict[str, Any]:
    """Compare labels at thetas: numbers of comparisons and contradictions, and the labelled share of the domain."""
    thetas, kept = labelled(result, count, np.random.default_rng(7))
    limit = question.own_limit
    found = losses_by_torch(question, network, domain, thetas) if len(thetas) else np.zeros(0)
    is_clear = np.abs(found - limit) > CLOSE * max(1.0, abs(limit))
    wrong = np.flatnonzero(is_clear & ((found <= limit) != kept))
    shown = np.array([result.at(theta).inconsistency for theta in thetas[:VALUES]])
    is_off = np.abs(shown - found[:VALUES]) > CLOSE * np.maximum(1.0, np.abs(shown))
    row = {
        "method": result.method, "thetas": int(is_clear.sum()), "kept": int(kept.sum()),
        "contradictions": len(wrong), "values off": int(is_off.sum()),
        "decided": round(1.0 - result.areas["undecided"][0], 4),
    }  # fmt: skip
    return row | (
        {"at": thetas[wrong[0]].tolist(), "loss": float(found[wrong[0]]), "limit": limit} if len(wrong) else {}
    )


def questions(options: argparse.Namespace) -> Iterator[tuple[str, str, str, Domain, Question]]:
    """All valid combinations of options."""
    for model in options.models:
        for text in options.methods:
            if text == "gradcam" and model not in LAYERS:
                continue
            explain = f"gradcam:layer={LAYERS[model]}" if text == "gradcam" else text
            for name in options.properties:
                for domain in DOMAINS:
                    index = options.image
                    image = f"colour:{index}" if model.startswith("C-") else image_name(model, index)
                    given = dict(PROPERTIES[name])
                    if "mask" in given:
                        given["mask"] = f"auto:bright={BRIGHT.get(model, 0.2):g},grow=1"
                    try:
                        asked = make_question(model, image, domain.specs, property="ar", explain=explain, **given)
                    except OptionError as error:
                        print(f"{model} {explain} {name} {domain.name}: refused: {error}", flush=True)
                        continue
                    yield model, explain, name, domain, asked


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print a table, write JSON; return 1 if a label is contradicted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--properties", nargs="+", choices=list(PROPERTIES), default=list(PROPERTIES))
    parser.add_argument("--thetas", type=int, default=100_000, help="altogether")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each question")
    parser.add_argument("--image", type=int, default=69993, help="its index in its set")
    parser.add_argument("--out", type=Path, default=RESULTS / "attention_samples.json")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    asked, rows = list(questions(options)), []
    networks = {model: read_network(zoo.model_path(model)) for model in options.models}
    for model, explain, name, domain, question in asked:
        result = answer(question, options.seconds)
        row = {"model": model, "explain": explain, "property": name, "domain": domain.name}
        rows.append(row | compare(question, result, networks[model], domain, -(-options.thetas // len(asked))))
        print(rows[-1], flush=True)
    compared, wrong, off = (sum(row[key] for row in rows) for key in ("thetas", "contradictions", "values off"))
    print_table([{key: str(value) for key, value in row.items()} for row in rows])
    print(f"{len(rows)} questions, {compared:,} thetas compared, {wrong} contradictions, {off} values off")
    write_json(options.out, QUESTION, repetitions=1, thetas=compared, contradictions=wrong, values_off=off, rows=rows)
    return 1 if wrong or off else 0


if __name__ == "__main__":
    sys.exit(main())
