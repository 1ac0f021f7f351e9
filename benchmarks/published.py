"""Does the exact haze at which a label first changes lie in the interval that an SMT-based verifier published?

    python benchmarks/published.py FOLDER    # FOLDER holds model4a.onnx, model4a.npz and the same for model4b

DeepCert published intervals of width 1/512, found by bisection, for two CIFAR networks and 95 images. Each file of
images holds `images` (n, 32, 32, 3) as bytes, their `label`, and the ends `lower` and `upper` of the interval. The
benchmark maps haze 0..1, which proves that the nearest theta with another label lies between two numbers. It fails if
one of these numbers lies outside the published interval by more than rounding, or if the label differs.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import steadygaze
from steadygaze.network.model import read_model
from timing import RESULTS, Spread, clock, print_table, write_json

MODELS = ("model4a", "model4b")
LIMIT_SECONDS = 30.0
BLUR = 1e-7
"""How far an end may lie outside: published ends are sums of float32 numbers."""


def measure(folder: Path, name: str) -> list[dict[str, Any]]:
    """One row for each image of a network."""
    model, data = read_model(folder / f"{name}.onnx"), np.load(folder / f"{name}.npz")
    rows = []
    for number, image in enumerate(data["images"]):
        start = time.process_time()
        seconds, result = clock(
            lambda pixels=image: steadygaze.verify(model, pixels, "haze", property="cr", method="map", threads=1)
        )
        cpu_seconds = time.process_time() - start
        nearest = result.nearest["CR"]
        lower, upper = float(data["lower"][number]), float(data["upper"][number])
        low, high = float(nearest.low), float(nearest.high)
        is_inside = lower - BLUR <= low <= high <= upper + BLUR
        rows.append({
            "model": name, "image": int(data["index"][number]), "lower": lower, "upper": upper, "low": low,
            "high": high, "is_inside": is_inside, "is_label": result.question.label == int(data["label"][number]),
            "seconds": seconds, "cpu_seconds": cpu_seconds,
        })  # fmt: skip
    return rows


def main() -> None:
    """Measure all images, print a table, write JSON; exit 1 if a claim fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS / "published.json")
    given = parser.parse_args()
    rows = [row for name in MODELS for row in measure(given.folder, name)]
    table = []
    for name in MODELS:
        own = [row for row in rows if row["model"] == name]
        widest = max(row["high"] - row["low"] for row in own)
        table.append({
            "network": name, "images": str(len(own)), "inside": str(sum(row["is_inside"] for row in own)),
            "same label": str(sum(row["is_label"] for row in own)), "widest": f"{widest:.1e}",
            "seconds an image": f"{Spread.of([row['seconds'] for row in own]):.2f}",
        })  # fmt: skip
    print_table(table)
    total = sum(row["seconds"] for row in rows)
    busy = sum(row["cpu_seconds"] for row in rows)
    print(f"all: {total:.1f} s, CPU time {busy:.1f} s (target: at most {LIMIT_SECONDS:g})")
    write_json(
        given.out, "Does the exact haze that changes a label lie in the published interval?", repetitions=1,
        limit_seconds=LIMIT_SECONDS, total_seconds=total,
        cpu_seconds=busy, rows=rows,
    )  # fmt: skip
    if not all(row["is_inside"] and row["is_label"] for row in rows):
        sys.exit("an exact theta lies outside the published interval, or a label differs")


if __name__ == "__main__":
    main()
