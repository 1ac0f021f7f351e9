"""How long do searches with three parameters take, image by image?

    python benchmarks/search_three.py
    python benchmarks/search_three.py --images mnist:69990 --searches gbs:cr boundary:cr

Searches M-FNN-100 under translation, patch and brightness, [0, 1] each, δ = 3.0, on one thread in one process. The
first search of each kind, which compiles or loads the kernels, does not count. *s* is wall-clock time; *cpu s* is CPU
time, which other work on the machine disturbs less. Ends with exit code 1 if a search contradicts itself, a plain pass
or the full map; a missed target is shown and stored.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read when numpy is imported: everything runs on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from one_search import run_search
from paper_problems import INDEXES, Asked, image_name, question_of
from search_check import digest, map_contradictions, own_contradictions, plain_contradictions
from steadygaze.engines import run
from steadygaze.network.model import Model
from timing import RESULTS, clock, exit_code, print_table, write_json

TARGETS = {"gbs": 2.0, "boundary": 20.0}
"""The most seconds of a search of each kind."""


def measure(asked: Asked, search: str, model: Model, *, shift: str, timeout: float, samples: int) -> dict[str, Any]:
    """One search, and its errors by its own regions, by plain passes and by the full map."""
    method, wanted = search.split(":")
    question = question_of(asked, wanted, shift=shift, model=model)
    cpu = time.process_time()
    seconds, found = clock(lambda: run_search(question, method, timeout=timeout))
    cpu = time.process_time() - cpu
    kept = digest(found, samples)
    wrong = own_contradictions(found) + plain_contradictions(kept)
    if kept.status not in ("robust", "notrobust"):
        wrong.append(f"did not end: {kept.status} after {seconds:.1f} s")
    if samples:
        wrong += map_contradictions(kept, run(question_of(asked, "both", shift=shift, model=model), "map", threads=1))
    return {
        "asked": str(asked),
        "search": search,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "visited": kept.visited,
        "visited_share": kept.visited_share,
        "lps": found.tiling.lps,
        "failures": found.tiling.failures,
        "status": kept.status,
        "is_met": seconds < TARGETS[method],
        "wrong": wrong,
    }


def shown(row: dict[str, Any]) -> dict[str, str]:
    """A row as text; a time that misses its target is marked."""
    return {
        "problem": row["asked"],
        "search": row["search"],
        "visited": f"{row['visited']:,}",
        "share": f"{row['visited_share']:.3g}",
        "programs": f"{row['lps']:,}",
        "s": f"{row['seconds']:.2f}{'' if row['is_met'] else '!'}",
        "cpu s": f"{row['cpu_seconds']:.2f}",
        "": "WRONG" if row["wrong"] else "",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="M-FNN-100")
    parser.add_argument("--images", nargs="+", help="default: the last ten of the set")
    parser.add_argument("--searches", nargs="+", default=["gbs:cr", "gbs:ar", "boundary:cr", "boundary:ar"])
    parser.add_argument("--shift", default="dx=1", help="the translation by one pixel: dx=1 or dy=1")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--samples", type=int, default=40, help="visited regions that a map checks; 0: no maps")
    parser.add_argument("--out", type=Path, default=RESULTS / "search_three.json")
    options = parser.parse_args(arguments)
    images = options.images or [image_name(options.model, index) for index in INDEXES]
    limits = {name: getattr(options, name) for name in ("shift", "timeout", "samples")}
    model = question_of(Asked(options.model, "TPB", images[0]), "cr").model
    for search in options.searches:
        measure(Asked(options.model, "TP", images[0]), search, model, **limits | {"samples": 0})
        measure(Asked(options.model, "TPB", images[0]), search, model, **limits | {"samples": 0, "timeout": 1.0})
    rows = []
    for image in images:
        for search in options.searches:
            rows.append(measure(Asked(options.model, "TPB", image), search, model, **limits))
            print(rows[-1]["asked"], search, f"{rows[-1]['seconds']:.2f} s", file=sys.stderr)
    print_table([shown(row) for row in rows])
    write_json(
        options.out, (__doc__ or "").splitlines()[0], repetitions=1, options=limits, targets=TARGETS, rows=rows,
    )  # fmt: skip
    return exit_code([f"{row['asked']} {row['search']}: {wrong}" for row in rows for wrong in row["wrong"][:5]])


if __name__ == "__main__":
    sys.exit(main())
