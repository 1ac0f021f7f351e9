"""Refines and maps published networks (chains, branches, windows): decided shares, seconds, and methods.

    python benchmarks/published_models.py FOLDER --cifar test_first100.npz    # FOLDER holds the model files
    python benchmarks/published_models.py FOLDER --only resnet_2b --cifar test_first100.npz --images 3

The question: is the label kept over brightness 0..0.05 × a patch of 6×6 pixels 0..0.05? Each of ten images has 120
seconds on all threads, and stops when 1 % is left. Digits are the bundled ones; the CIFAR file holds `images` (N, 32,
32, 3) as bytes and `labels`. Then a whole map gives both labels (AR at 25 %), with the same limit. Checked: at sampled
thetas the graph's own margins have the proved sign.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze import zoo
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.engines.refine.boxes import label_codes
from steadygaze.images import read_image
from steadygaze.labels import Kept
from steadygaze.network.model import Model, read_model
from steadygaze.question import make_question
from steadygaze.results.result import Result
from timing import RESULTS, Spread, clock, peak_mib, print_table, write_json

DIGITS = range(69990, 70000)
SPECS = ("brightness:0..0.05", "patch:x=12,y=12,w=6,h=6:0..0.05")
UNTIL, LIMIT_SECONDS = 0.01, 120.0
SAMPLES = 200


@dataclass(frozen=True)
class Published:
    """A model file: its images, and how it expects them."""

    name: str
    takes_colour: bool
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None


MODELS = (
    Published("resnet_2b", True, (0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)),
    Published("cifar10_small", True),
    Published("Convnet_maxpool", False),
    Published("mnist-net_256x2", False),
)


def images_of(model: Published, cifar: Path | None, count: int) -> list[np.ndarray]:
    """The first images (C, H, W) for a model, with pixels in [0, 1]."""
    if not model.takes_colour:
        return [read_image(zoo.image_path(f"mnist:{number}")).pixels for number in DIGITS[:count]]
    if cifar is None:
        return []
    with np.load(cifar) as file:
        return list(file["images"][:count].transpose(0, 3, 1, 2) / 255.0)


def wrong_signs(result: Result) -> int:
    """The number of sampled thetas of decided boxes where the graph's margin contradicts the proved sign."""
    boxes, question = result.tiling.boxes, result.question
    d, rng = question.perturbed.domain.dimension, np.random.default_rng(0)
    codes = label_codes(boxes.margin)
    decided = np.flatnonzero(codes != Kept.UNKNOWN)
    if not len(decided):
        return 0
    chosen = decided[rng.integers(len(decided), size=SAMPLES)]
    t = boxes.low[chosen, :d] + rng.random((SAMPLES, d)) * (boxes.high - boxes.low)[chosen, :d]
    logits = question.model.graph.logits(question.perturbed.images(question.compound.to_theta(t)))
    margins = logits[:, question.label] - np.delete(logits, question.label, axis=1).max(axis=1)
    return int(((margins > 0.0) != (codes[chosen] == Kept.YES)).sum())


def refined(model: Model, image: np.ndarray, threads: int | None) -> dict[str, Any]:
    """The outcome of one image."""
    question = make_question(model, image, list(SPECS), property="cr")
    budget = Budget(Limits(timeout_seconds=LIMIT_SECONDS))
    seconds, result = clock(lambda: run(question, "refine", budget=budget, until=UNTIL, threads=threads))
    return {
        "percent": 100.0 * (1.0 - result.areas["undecided"][1]),
        "seconds": seconds,
        "boxes": len(result.tiling.boxes),
        "regions": result.region_count,
        "relaxation": result.tiling.relaxation or "regions",
        "wrong": wrong_signs(result),
    }


def mapped(model: Model, image: np.ndarray, threads: int | None) -> dict[str, Any]:
    """The outcome of one image from a whole map with both labels."""
    question = make_question(model, image, list(SPECS))
    budget = Budget(Limits(timeout_seconds=LIMIT_SECONDS))
    seconds, result = clock(lambda: run(question, "map", budget=budget, threads=threads))
    thetas = result.question.perturbed.domain.to_theta(np.random.default_rng(0).random((SAMPLES, 2)))
    logits = model.graph.logits(question.perturbed.images(thetas))
    rivals = np.delete(logits, question.label, axis=1).max(axis=1)
    is_kept, (low, high) = logits[:, question.label] > rivals, result.areas["CR"]
    return {
        "percent": 100.0 * (1.0 - result.areas["undecided"][1]),
        "seconds": seconds,
        "boxes": result.region_count,
        "regions": result.region_count,
        "relaxation": "map" if result.is_complete else f"partial map ({result.stopped})",
        "wrong": int((low == 1.0 and not is_kept.all()) or (high == 0.0 and is_kept.any())),
    }


def table_row(name: str, outcomes: list[dict[str, Any]]) -> dict[str, str]:
    """Medians, with the smallest and largest in brackets, over the images of a model."""
    shares, seconds = (Spread.of([outcome[key] for outcome in outcomes]) for key in ("percent", "seconds"))
    return {
        "model": name,
        "images": f"{len(outcomes)}",
        "decided %": f"{shares:.2f}",
        "seconds": f"{seconds:.1f}",
        "boxes or regions": f"{Spread.of([outcome['boxes'] for outcome in outcomes]):,.0f}",
        "method": ", ".join(sorted({outcome["relaxation"] for outcome in outcomes})),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="holds the model files")
    parser.add_argument("--cifar", type=Path, help="an .npz file with CIFAR-10 images")
    parser.add_argument("--only", help="one model")
    parser.add_argument("--images", type=int, default=10, help="of each model")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", type=Path, default=RESULTS / "published_models.json", help="file for the results")
    options = parser.parse_args(arguments)
    rows, found = [], {}
    for one in MODELS:
        path = options.folder / f"{one.name}.onnx"
        images = images_of(one, options.cifar, options.images)
        if options.only not in (None, one.name) or not path.exists() or not images:
            continue
        model = read_model(path, mean=one.mean, std=one.std)
        for method, solve in (("refine", refined), ("map", mapped)):
            outcomes = [solve(model, image.reshape(model.input_shape), options.threads) for image in images]
            found[f"{one.name} {method}"] = outcomes
            rows.append(table_row(one.name, outcomes))
    if not rows:
        print(f"{options.folder} holds none of the models, or there are no images for them")
        return 2
    print_table(rows)
    wrong = sum(outcome["wrong"] for outcomes in found.values() for outcome in outcomes)
    print(f"peak memory {peak_mib():,.0f} MiB; {wrong} sampled margins contradict the proved sign")
    question = "what share of a small domain is decided for published networks, and how long does it take?"
    write_json(options.json, question, repetitions=1, models=found, specs=SPECS, until=UNTIL, wrong=wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
