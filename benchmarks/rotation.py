"""How many images keep their label over all angles, with a network trained for rotations, and how long is a proof?

Reads rot30.onnx and the test set of MNIST; intervals over pieces of 0.25° prove 94 of the first 100 images.

    python benchmarks/rotation.py MODEL.onnx FOLDER_OF_MNIST
"""

import argparse
import gzip
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import steadygaze
from steadygaze.budget import Budget, Limits
from timing import RESULTS, print_table, write_json

MOST_SECONDS = 0.3  # for an image, in the median


def read_images(folder: Path, count: int) -> np.ndarray:
    """The first images (count, 1, 28, 28) of the test set, with pixels in [0, 1]."""
    file = next(folder.glob("t10k-images*"))
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return np.frombuffer(data, dtype=np.uint8, offset=16).reshape(-1, 1, 28, 28)[:count] / 255.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Decide every image, and report verdicts and times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("images", type=Path, help="folder with t10k-images-idx3-ubyte.gz")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for an image")
    parser.add_argument("--out", type=Path, default=RESULTS / "rotation.json")
    options = parser.parse_args(arguments)
    rows = [decide(options.model, image, options.limit) for image in read_images(options.images, options.count)]
    print_table(
        [
            {"image": str(number), "verdict": str(row["verdict"]), "boxes": str(row["boxes"]),
             "violations": str(row["violations"]), "s": f"{row['seconds']:.2f}", "CPU s": f"{row['cpu_seconds']:.2f}"}
            for number, row in enumerate(rows)
        ]
    )  # fmt: skip
    verdicts = Counter(str(row["verdict"]) for row in rows)
    medians = {name: statistics.median(row[name] for row in rows) for name in ("seconds", "cpu_seconds", "boxes")}
    is_met = verdicts["undecided"] == 0 and medians["seconds"] <= MOST_SECONDS
    print(f"{dict(verdicts)}, medians {medians}, target {'met' if is_met else 'missed'}")
    write_json(
        options.out, "a network trained for rotations over ±30°", repetitions=1, verdicts=verdicts, medians=medians,
        is_met=is_met, images=rows,
    )  # fmt: skip
    return 0 if verdicts["undecided"] == 0 else 1


def decide(model: Path, image: np.ndarray, limit: float) -> dict[str, Any]:
    """Decide one image; returns verdict and costs."""
    started, work = time.perf_counter(), time.process_time()
    found = steadygaze.verify(
        model, image, ["rotate:-30..30"], property="cr", method="refine", goal="verdict", until=0.0,
        budget=Budget(Limits(limit)),
    )  # fmt: skip
    return {
        "verdict": found.verdict.value, "boxes": len(found.tiling.boxes),
        "violations": found.tiling.points[:3].tolist(), "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - work,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
