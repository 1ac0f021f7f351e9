"""How much of a rotation with a change of light is decided, for labels and for moving attention?

    python benchmarks/turned_light.py
    python benchmarks/turned_light.py --model M-CNN-S --images 2 --kind label --limit 120

Refines rotate:-10..10 × brightness:0..0.1 for ten images per network: labels until 99.9 % of the domain are decided,
attention on the object (`--tau 90%`) until 90 %, and the distance until 90 % (without a target). Seconds are wall-clock
time; on a busy machine compare CPU seconds instead.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

# Read when numpy is imported: products stay on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from paper_problems import INDEXES, image_name
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.question import make_question
from timing import RESULTS, print_table, write_json

SPECS = ("rotate:-10..10", "brightness:0..0.1")
MODELS = ("M-CNN-S", "M-CNN-M")


class Kind(NamedTuple):
    """A kind of question: its options, the share that may stay open, and the target in seconds; None: no target."""

    options: dict[str, Any]
    open: float
    seconds: float | None


KINDS = {
    "label": Kind({"property": "cr"}, 0.001, 30.0),
    "object": Kind(
        {"property": "ar", "attention": "object", "tau": "90%", "mask": "auto:bright=0.2,grow=1"}, 0.1, 60.0
    ),
    "distance": Kind({"property": "ar", "delta": "25%"}, 0.1, None),
}


def measure(model: str, image: str, name: str, limit: float | None) -> dict[str, Any]:
    """One refinement: its open share and its time."""
    kind = KINDS[name]
    question = make_question(model, image, SPECS, **kind.options)
    _ = question.agreement
    limits = Limits(limit or kind.seconds or 60.0)
    begun, spent = time.perf_counter(), time.process_time()
    result = run(question, "refine", until=kind.open, budget=Budget(limits))
    seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
    row = {
        "model": model, "image": image, "kind": name, "undecided": result.areas["undecided"][0], "seconds": seconds,
        "cpu_seconds": cpu, "boxes": len(result.tiling.boxes),
    }  # fmt: skip
    print(row, flush=True)
    return row


def medians(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The medians of every network and kind, and whether enough was decided in time."""
    found = []
    for model, name in dict.fromkeys((row["model"], row["kind"]) for row in rows):
        own = [row for row in rows if (row["model"], row["kind"]) == (model, name)]
        middle = {key: statistics.median(row[key] for row in own) for key in ("undecided", "seconds", "cpu_seconds")}
        kind = KINDS[name]
        is_met = (
            None if kind.seconds is None else middle["undecided"] <= kind.open and middle["seconds"] <= kind.seconds
        )
        found.append({"model": model, "kind": name, "images": len(own), **middle, "is_met": is_met})
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all problems; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS, help="may be given twice; default: both")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="may be given several times; default: all")
    parser.add_argument("--images", type=int, default=len(INDEXES))
    parser.add_argument("--limit", type=float, help="seconds for one refinement; default: the target, 60 for distance")
    parser.add_argument("--out", type=Path, default=RESULTS / "turned_light.json")
    options = parser.parse_args(arguments)
    rows = [
        measure(model, image_name(model, index), name, options.limit)
        for model in options.model or MODELS
        for name in options.kind or KINDS
        for index in INDEXES[: options.images]
    ]
    found = medians(rows)
    print_table([{key: f"{value:.4g}" if isinstance(value, float) else str(value) for key, value in row.items()}
                 for row in found])  # fmt: skip
    write_json(options.out, "rotation × brightness: decided shares", repetitions=1, medians=found, problems=rows)
    return 1 if any(row["is_met"] is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
