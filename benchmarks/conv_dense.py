"""What does a region cost with several dense layers above convolutions, compared with one dense layer?

    python benchmarks/conv_dense.py --model ../shared/models/cifar10_small.onnx
    python benchmarks/conv_dense.py --model network.onnx --images photo.png other.png --rounds 3

Maps: the given network with both labels over brightness 0..0.1 × a patch of 6×6, 0..0.3, and M-CNN-S over brightness ×
the same patch, [0, 1] each, which has about as many regions. Both alternate on one thread, measured in CPU time. The
cost of a region covers subdivision, attention and labels, as in `map.py`; the whole run with its self-check has its own
column. Refinements: AR at 50 % over the first domain until 1 % is open, image by image. Every map is compared with
plain passes at sampled thetas.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

# Read when numpy is imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from one_map import contradictions
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.labels import Kept
from steadygaze.question import Question, make_question
from steadygaze.results.result import Result
from timing import CHECKOUT, RESULTS, Spread, exit_code, print_table, write_json

BASELINE, BASELINE_IMAGE = "M-CNN-S", "mnist:69990"
PATCH = "patch:x=12,y=12,w=6,h=6"
WHOLE = ("brightness", PATCH)
SMALL = ("brightness:0..0.1", f"{PATCH}:0..0.3")
DELTA = "50%"
PHASES = ("walk", "attention", "labels")
"""Phases of a map before its self-check."""

MOST_RATIO = 3.0
LIMIT_SECONDS, OPEN = 30.0, 0.01
"""Targets: the cost of a region over that of the baseline, and the seconds until at most OPEN of the domain is left."""

IMAGES = CHECKOUT.parent / "shared" / "data" / "cifar10" / "test_first100.npz"


def solve(question: Question, method: str, **options: Any) -> tuple[float, Result]:
    """CPU seconds for a fresh question, and the result with the CPU seconds of its phases."""
    start = time.process_time()
    result = run(question, method, threads=1, **options)
    return time.process_time() - start, result


def time_maps(model: str, image: str, rounds: int, samples: int) -> dict[str, Any]:
    """Both networks in turn: microseconds per region by phase and in total, and the ratio of each round."""
    asked = {"model": (model, image, SMALL), "baseline": (BASELINE, BASELINE_IMAGE, WHOLE)}
    regions, problems, compared = {}, [], 0
    for name, (network, picture, domain) in asked.items():  # compiles or loads the kernels
        _, result = solve(make_question(network, picture, domain), "map")
        regions[name] = len(result.tiling.answers.regions)
        found, count = contradictions(result, samples)
        problems, compared = problems + found, compared + count
    costs: dict[str, list[dict[str, float]]] = {name: [] for name in asked}
    for _ in range(rounds):
        for name, (network, picture, domain) in asked.items():
            # Runs time their phases by this clock.
            with mock.patch.object(time, "perf_counter", time.process_time):
                seconds, result = solve(make_question(network, picture, domain), "map")
            parts = {phase: result.seconds.get(phase, 0.0) for phase in PHASES}
            parts |= {"region": sum(parts.values()), "run": seconds}
            costs[name].append({part: 1e6 * value / regions[name] for part, value in parts.items()})
            if len(result.tiling.answers.regions) != regions[name]:
                problems.append(f"{network}: {len(result.tiling.answers.regions)} regions after {regions[name]}")
    pairs = list(zip(costs["model"], costs["baseline"], strict=True))
    ratios = {part: Spread.of([ours[part] / theirs[part] for ours, theirs in pairs]) for part in ("region", "run")}
    spread = {
        name: {part: Spread.of([one[part] for one in found]) for part in found[0]} for name, found in costs.items()
    }
    return {
        "image": Path(image).name, "regions": regions, "us_per_region": spread, "ratio": ratios,
        "compared_thetas": compared, "problems": problems,
    }  # fmt: skip


def time_refinement(model: str, image: str) -> dict[str, Any]:
    """One refinement for AR within the limit: wall-clock and CPU seconds, and the open share."""
    question = make_question(model, image, SMALL, property="ar", delta=DELTA)
    started = time.perf_counter()
    seconds, result = solve(question, "refine", until=OPEN, budget=Budget(Limits(LIMIT_SECONDS)))
    wall = time.perf_counter() - started
    answers = result.tiling.answers
    return {
        "image": Path(image).name, "seconds": wall, "cpu_seconds": seconds,
        "decided": 1.0 - sum(row[Kept.UNKNOWN] for row in result.answer.shares.cells),
        "boxes": len(result.tiling.boxes), "regions": 0 if answers is None else len(answers.regions),
    }  # fmt: skip


def image_files(given: Sequence[str], count: int, folder: Path) -> list[str]:
    """The images: files as they are, and the first images of an array file with `images` (N, H, W, C)."""
    found = [name for name in given if not name.endswith(".npz")]
    for name in given:
        if name.endswith(".npz"):
            for number, pixels in enumerate(np.load(name)["images"][:count]):
                np.save(folder / f"{Path(name).stem}-{number}.npy", pixels)
                found.append(str(folder / f"{Path(name).stem}-{number}.npy"))
    return found[:count]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="an ONNX file with colour images of at least 18×18 pixels")
    parser.add_argument("--images", nargs="+", default=[str(IMAGES)], help="image files, or an .npz file of images")
    parser.add_argument("--maps", type=int, default=10, help="number of images to map, from the first")
    parser.add_argument("--refinements", type=int, default=10, help="number of images to refine, from the first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=200, help="thetas at which each map is compared")
    parser.add_argument("--out", type=Path, default=RESULTS / "conv_dense.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        images = image_files(options.images, max(options.maps, options.refinements), Path(folder))
        maps = [time_maps(options.model, image, options.rounds, options.samples) for image in images[: options.maps]]
        refined = [time_refinement(options.model, image) for image in images[: options.refinements]]
    summary = {}
    if maps:
        print_table([_map_line(row) for row in maps])
        ratio = Spread.of([row["ratio"]["region"].median for row in maps])
        summary["maps"] = {"ratio": ratio, "is_met": ratio.median <= MOST_RATIO}
        print(f"a region costs {ratio:.2f} of {BASELINE}" + _mark(summary["maps"]["is_met"]))
    if refined:
        print_table([_refinement_line(row) for row in refined])
        found = {name: Spread.of([row[name] for row in refined]) for name in ("seconds", "cpu_seconds", "decided")}
        is_met = found["decided"].median >= 1.0 - OPEN and found["seconds"].median <= LIMIT_SECONDS
        summary["refinements"] = found | {"is_met": is_met}
        print(f"AR at {DELTA}: {found['decided']:.3f} decided in {found['seconds']:.1f} s" + _mark(is_met))
    write_json(
        options.out, (__doc__ or "").splitlines()[0], repetitions=options.rounds, model=Path(options.model).name,
        summary=summary, maps=maps, refinements=refined,
    )  # fmt: skip
    return exit_code([f"{row['image']}: {problem}" for row in maps for problem in row["problems"]])


def _map_line(row: dict[str, Any]) -> dict[str, str]:
    ours, theirs = row["us_per_region"]["model"], row["us_per_region"]["baseline"]
    return {
        "image": row["image"], "regions": f"{row['regions']['model']:,}", "µs a region": f"{ours['region']:.1f}",
        BASELINE: f"{theirs['region']:.1f}", "ratio": f"{row['ratio']['region']:.2f}",
        " / ".join(PHASES): " / ".join(f"{ours[phase].median:.1f}" for phase in PHASES),
        "whole run": f"{ours['run'].median:.1f}", "its ratio": f"{row['ratio']['run']:.2f}",
    }  # fmt: skip


def _refinement_line(row: dict[str, Any]) -> dict[str, str]:
    return {
        "image": row["image"], "s": f"{row['seconds']:.1f}", "processor s": f"{row['cpu_seconds']:.1f}",
        "decided": f"{row['decided']:.2%}", "boxes": f"{row['boxes']:,}", "regions": f"{row['regions']:,}",
    }  # fmt: skip


def _mark(is_met: bool) -> str:
    return "" if is_met else " MISSED"


if __name__ == "__main__":
    sys.exit(main())
