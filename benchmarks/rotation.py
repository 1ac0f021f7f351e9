"""How many images does a network trained for rotations keep over all angles, and how long does a proof take?

Reads rot30.onnx and the test set of MNIST; 94 of the first 100 images are proved by intervals over pieces of 0.25°.
Prints one line for each image, then the totals, and optionally writes them as JSON:

    python benchmarks/rotation.py MODEL.onnx FOLDER_OF_MNIST [--count 100] [--spec rotate:-30..30] [--json FILE]
"""

import argparse
import gzip
import json
import statistics
import time
from collections import Counter
from pathlib import Path

import numpy as np

import steadygaze
from steadygaze.budget import Budget, Limits


def read_images(folder: Path, count: int) -> np.ndarray:
    """The first images (count, 1, 28, 28) of the test set, with pixels in [0, 1]."""
    file = next(folder.glob("t10k-images*"))
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return np.frombuffer(data, dtype=np.uint8, offset=16).reshape(-1, 1, 28, 28)[:count] / 255.0


def main() -> None:
    """Decide every image, and report verdicts and times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("images", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--spec", action="append", help="a perturbation; by default rotate:-30..30")
    parser.add_argument("--goal", default="verdict", choices=("map", "verdict"))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for an image")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    specs = given.spec or ["rotate:-30..30"]
    rows = []
    for number, image in enumerate(read_images(given.images, given.count)):
        started, work = time.perf_counter(), time.process_time()
        found = steadygaze.verify(
            given.model, image, specs, property="cr", method="refine", goal=given.goal,
            until=0.0 if given.goal == "verdict" else None, budget=Budget(Limits(given.limit)),
        )  # fmt: skip
        row = {
            "image": number, "label": found.question.label, "verdict": found.verdict.value,
            "boxes": len(found.tiling.boxes), "violations": found.tiling.points[:3].tolist(),
            "undecided": found.answer.areas["undecided"][0], "seconds": time.perf_counter() - started,
            "cpu_seconds": time.process_time() - work,
        }  # fmt: skip
        rows.append(row)
        print(json.dumps(row), flush=True)
    totals = {
        "verdicts": Counter(row["verdict"] for row in rows),
        "median_seconds": statistics.median(row["seconds"] for row in rows),
        "median_cpu_seconds": statistics.median(row["cpu_seconds"] for row in rows),
        "median_boxes": statistics.median(row["boxes"] for row in rows),
        "decided": statistics.median(1.0 - row["undecided"] for row in rows),
    }
    print(json.dumps(totals))
    if given.json is not None:
        given.json.write_text(json.dumps({"specs": specs, "totals": totals, "images": rows}, indent=1))


if __name__ == "__main__":
    main()
