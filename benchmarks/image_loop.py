"""How much time does `verify` save in a loop over images by reusing the network?

    python benchmarks/image_loop.py                  # M-FNN-100, ten images, five rounds
    python benchmarks/image_loop.py --model M-CNN-S --rounds 3

Maps every image twice in one process: with the model read again for each image, and with the model that `read_model`
keeps. Ends with exit code 1 if the two maps differ.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Read when numpy is imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from paper_problems import INDEXES, image_name
from steadygaze import verify
from steadygaze.network import model as reading
from steadygaze.results.result import Result
from timing import RESULTS, Spread, clock, exit_code, print_table, write_json

PERTURBATIONS = ("brightness:0..0.3", "patch:x=12,y=12,w=4,h=4")
"""The domain of the README's first map."""


def ask(model: str, image: str, *, reuses: bool) -> tuple[float, Result]:
    """Seconds of one call, and its result."""
    if not reuses:
        reading.forget_models()
    return clock(lambda: verify(model, image, PERTURBATIONS, method="map", threads=1))


def is_same(one: Result, other: Result) -> bool:
    """Whether two maps have the same arrays."""
    left, right = one.tiling.arrays(), other.tiling.arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="M-FNN-100")
    parser.add_argument("--images", type=int, default=len(INDEXES), help="number of the paper's ten images")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "image_loop.json")
    options = parser.parse_args(arguments)
    images = [image_name(options.model, index) for index in INDEXES[: options.images]]
    for image in images:  # compiles or loads the kernels, and reads the images
        ask(options.model, image, reuses=True)
    anew, reused, differ = [], [], set()
    for _ in range(options.rounds):
        totals = [0.0, 0.0]
        for image in images:
            before, first = ask(options.model, image, reuses=False)
            after, second = ask(options.model, image, reuses=True)
            totals = [totals[0] + before, totals[1] + after]
            if not is_same(first, second):
                differ.add(image)
        anew.append(1e3 * totals[0] / len(images))
        reused.append(1e3 * totals[1] / len(images))
    saved = Spread.of([1.0 - after / before for before, after in zip(anew, reused, strict=True)])
    row = {"model": options.model, "images": len(images), "anew_ms": Spread.of(anew), "reused_ms": Spread.of(reused)}
    print_table(
        [{"network": options.model, "images": str(len(images)), "ms, read anew": f"{row['anew_ms']:.1f}",
          "ms, reused": f"{row['reused_ms']:.1f}", "saved": f"{saved:.0%}"}]
    )  # fmt: skip
    rows = [row | {"saved": saved, "problems": sorted(differ)}]
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=options.rounds, rows=rows)
    return exit_code([f"{image}: reusing the model changes the map" for image in sorted(differ)])


if __name__ == "__main__":
    sys.exit(main())
