"""How tight are enclosures of rotated pixels, and how long does one take for a whole image?

    python benchmarks/enclosures.py

Rotates a bundled image over boxes of 0.25° and 1°, and compares the width of every pixel whose range exceeds 0.01 with
that range, sampled at 201 angles. Times are those of the fastest of many calls, in CPU time of this process.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steadygaze.inputs import given_image
from steadygaze.perturbation import compose, parse_spec
from timing import RESULTS, print_table, write_json

IMAGES = {"mnist:69990": 2.0, "colour:69990": 10.0}  # with the most milliseconds for one box
DEGREES = (0.25, 1.0)
WIDEST = 1.3  # times the true range, in the median
STARTS = np.arange(-30.0, 29.0, 3.7)
CALLS = 50


def measure(name: str, most: float, degrees: float) -> dict[str, object]:
    """The median ratio of widths to ranges, and the milliseconds of one box."""
    perturbed = compose([parse_spec("rotate:-30..30")], given_image(name)[0])
    assert perturbed.curve is not None
    ratios, seconds = [], []
    for start in STARTS:
        low = perturbed.domain.to_unit(np.array([[start]]))
        box = perturbed.box(low, low + degrees / 60.0)
        found = perturbed.curve.enclose(box)
        images = perturbed.unclipped(np.linspace(start, start + degrees, 201)[:, None]).reshape(201, -1)
        true = images.max(axis=0) - images.min(axis=0)
        width = 2.0 * (np.abs(found.coefficients[0, 1:]).sum(axis=0) + found.radius[0])
        ratios.append((width / np.maximum(true, 1e-9))[true > 0.01])
        for _ in range(CALLS):
            begun = time.process_time()
            perturbed.curve.enclose(box)
            seconds.append(time.process_time() - begun)
    ratio, milliseconds = float(np.median(np.concatenate(ratios))), 1e3 * min(seconds)
    median = 1e3 * float(np.median(seconds))
    is_met = ratio <= WIDEST and median <= most
    return {"image": name, "degrees": degrees, "ratio": ratio, "milliseconds": milliseconds,
            "median_milliseconds": median, "target": most, "is_met": is_met}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all images and boxes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "enclosures.json")
    options = parser.parse_args(arguments)
    rows = [measure(name, most, degrees) for name, most in IMAGES.items() for degrees in DEGREES]
    print_table([{key: f"{value:.3g}" if isinstance(value, float) else str(value) for key, value in row.items()}
                 for row in rows])  # fmt: skip
    write_json(options.out, "enclosures of rotated pixels", repetitions=CALLS, rows=rows)
    return 0 if all(row["is_met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
