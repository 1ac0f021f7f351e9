"""What do properties of attention cost: maps for `object` compared with maps for the distance?

    python benchmarks/attention_properties.py --part map
    python benchmarks/attention_properties.py --part refine --model M-CNN-M --images 10
    python benchmarks/attention_properties.py --part smoothgrad --images 10

`map`: both questions alternate in one process, so other work on the machine slows both; the ratio compares CPU time.
`object` is measured for gradients, and for gradients times the image if nothing moves. Attention that is kept
everywhere costs more to prove, because kinks must be examined; then the distance gets a δ that keeps it everywhere,
too. `refine`: wall-clock seconds until 99.9 % of the domain are decided for `object --tau 90%`. `smoothgrad`:
wall-clock seconds of whole maps of M-FNN-100, brightness × patch, for SmoothGrad with four copies.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

# Read when numpy is imported: products stay on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from paper_problems import DOMAINS, INDEXES, Asked, image_name, specs
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.labels import Property, Verdict
from steadygaze.question import Question, make_question
from steadygaze.results.result import Result
from timing import write_json

QUESTION = "cost of properties of attention, relative to the distance"
MASK = "auto:bright=0.2,grow=1"
OPTIONS: dict[str, dict[str, Any]] = {
    "distance": {"delta": "25%"},
    "distance, robust": {"delta": "10000%"},
    "object": {"attention": "object", "tau": "90%", "mask": MASK},
    "input×gradient": {"attention": "object", "tau": "90%", "mask": MASK, "explain": "input-x-gradient"},
    "SmoothGrad": {"delta": "25%", "explain": "smoothgrad:n=4"},
}
MOST = {"object": 1.2, "input×gradient": 1.5}
"""The targets: the largest ratio to the distance."""
SMOOTHGRAD_SECONDS = 60.0
"""The target for every image."""


def question_of(asked: Asked, name: str, *, wanted: str = "both") -> Question:
    """A fresh question without cached values, with a checked model."""
    found = make_question(asked.model, asked.image, specs(asked.domain), property=wanted, **OPTIONS[name])
    _ = found.agreement
    return found


def measure_maps(options: argparse.Namespace) -> list[dict[str, Any]]:
    """CPU seconds of maps with a summary, by question, and the ratio of each property to the distance."""
    asked = [("object", "BP"), ("object", "TB"), ("input×gradient", "BP")]
    rows = []
    for model in options.model or ("M-FNN-100", "M-CNN-S"):
        for name, domain in asked:
            row = _compare(options, model, domain, name)
            rows.append(row)
            print(row, flush=True)
    return rows


def _compare(options: argparse.Namespace, model: str, domain: str, name: str) -> dict[str, Any]:
    """The times of one property and of the distance, over all images."""
    own_sum, distance_sum, robust = 0.0, 0.0, 0
    for index in INDEXES[: options.images]:
        asked = Asked(model, domain, image_name(model, index))
        # The first run loads compiled code.
        is_robust = timed(asked, name)[1].verdict_of(Property.AR) is Verdict.ROBUST
        against = "distance, robust" if is_robust else "distance"
        timed(asked, against)
        robust += is_robust
        for _ in range(options.repetitions):
            own_sum += timed(asked, name)[0]
            distance_sum += timed(asked, against)[0]
    return {
        "model": model, "domain": domain, "property": name, "problems": options.images, "robust": robust,
        "seconds": round(own_sum / options.repetitions, 3),
        "distance [s]": round(distance_sum / options.repetitions, 3),
        "ratio": round(own_sum / distance_sum, 3), "target": MOST[name],
    }  # fmt: skip


def timed(asked: Asked, name: str) -> tuple[float, Result]:
    """CPU seconds of a map with its summary, and the map."""
    question = question_of(asked, name)
    before = time.process_time()
    result = run(question, "map", threads=1, budget=Budget())
    result.summary()
    return time.process_time() - before, result


def measure_refinements(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds until 99.9 % of the domain are decided, problem by problem."""
    rows: list[dict[str, Any]] = []
    for model in options.model or ("M-CNN-M", "F-CNN-M"):
        for index in INDEXES[: options.images]:
            for domain in DOMAINS:
                asked = Asked(model, domain, image_name(model, index))
                question = question_of(asked, "object", wanted="ar")
                before, spent = time.perf_counter(), time.process_time()
                limits = Limits(timeout_seconds=options.limit)
                result = run(question, "refine", threads=options.threads, budget=Budget(limits))
                seconds, cpu = time.perf_counter() - before, time.process_time() - spent
                open_share = result.areas["undecided"][0]
                row = {
                    "problem": str(asked), "seconds": round(seconds, 2), "cpu": round(cpu, 2),
                    "undecided": open_share, "AR": result.areas["AR"], "regions": result.region_count,
                    "boxes": len(result.tiling.boxes),
                }  # fmt: skip
                rows.append(row)
                print(row, flush=True)
    decided = [row for row in rows if row["undecided"] <= 0.001 + 1e-9]
    times = [row["seconds"] if row in decided else float("inf") for row in rows]
    print(f"{len(decided)} of {len(rows)} decided; median {statistics.median(times):.1f} s")
    return rows


def measure_smoothgrad(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds of a whole map for every image."""
    rows: list[dict[str, Any]] = []
    for model in options.model or ("M-FNN-100",):
        for index in INDEXES[: options.images]:
            asked = Asked(model, "BP", image_name(model, index))
            question = question_of(asked, "SmoothGrad")
            before = time.perf_counter()
            result = run(question, "map", threads=options.threads, budget=Budget(Limits(timeout_seconds=options.limit)))
            summary = result.summary()
            row = {
                "problem": str(asked), "seconds": round(time.perf_counter() - before, 2),
                "regions": result.region_count, "complete": summary["complete"],
                "undecided": result.areas["undecided"][1],
            }  # fmt: skip
            rows.append(row | {"is_met": row["complete"] and row["seconds"] <= SMOOTHGRAD_SECONDS})
            print(rows[-1], flush=True)
    return rows


PARTS = {"map": measure_maps, "refine": measure_refinements, "smoothgrad": measure_smoothgrad}


def main() -> int:
    """Run one part, print its rows, and store them with `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="map")
    parser.add_argument("--model", action="append", help="a bundled network; may be given several times")
    parser.add_argument("--images", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one refinement")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    options = parser.parse_args()
    rows = PARTS[options.part](options)
    if options.out:
        write_json(options.out, QUESTION, repetitions=options.repetitions, part=options.part, rows=rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
