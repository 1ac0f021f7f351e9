"""How much do correlations help on deep networks? Shares of a domain that bounds alone decide, by depth.

Bounds the boxes of a fixed grid for the bundled fully connected networks of 2 to 16 layers, with no, some and many
generators per layer. Generators keep the relaxation errors of single neurons apart; without them, these errors add up
as intervals. Prints the share of boxes with a decided label, the multiplications per box, and the choice of `refine`.
All numbers are counts and do not depend on the machine.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import paper_problems
from steadygaze.bounds.bounder import Bounder
from steadygaze.engines import run
from timing import commit

ROOMS = (0, 8, 64)
LEVELS = (4, 5, 6)
"""Grids of 16, 32 and 64 boxes along each axis; the finer ones use every second and every fourth box."""


def grid(level: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners low and high (256, 2) of boxes with sides of 2^-level, spread evenly over the unit square."""
    side, step = 2.0**-level, 2.0 ** (level - 4)
    places = np.arange(16) * step * side
    low = np.stack(np.meshgrid(places, places, indexing="ij"), axis=-1).reshape(-1, 2)
    return low, low + side


def measure(model: str, index: int) -> dict:
    """Decided shares and multiplications of one problem (brightness and patch), for every room and level."""
    asked = paper_problems.Asked(model, "BP", paper_problems.image_name(model, index))
    question = paper_problems.question_of(asked, "cr")
    bounder = Bounder(question.model.graph, question.perturbed, question.label, question.attention)
    work = sum(step.work for steps in bounder.segments for step in steps)
    found: dict = {"model": model, "image": asked.image, "layers": len(bounder.segments) - 1, "shares": {}}
    for room in ROOMS:
        for level in LEVELS:
            low, high = grid(level)
            seen = [
                bounder.with_room(room).bound(0, low[i : i + 32], high[i : i + 32], np.zeros(32, dtype=bool))
                for i in range(0, 256, 32)
            ]
            margin = np.concatenate([one.margin for one in seen])
            unstable = float(np.concatenate([one.unstable for one in seen]).mean())
            decided = float(((margin[:, 0] > 0.0) | (margin[:, 1] < 0.0)).mean())
            rows = 4.0 + min(room, unstable / found["layers"]) * found["layers"] / 2.0
            found["shares"][f"{room}/{level}"] = {"decided": decided, "unstable": unstable, "work": rows * work}
    result = run(question, "refine", until=0.001)
    found["refine"] = {
        "undecided": result.areas["undecided"][1],
        "boxes": len(result.tiling.boxes),
        "regions": 0 if result.tiling.answers is None else len(result.tiling.answers.regions),
        "relaxation": result.tiling.relaxation or "handed over at once",
    }
    return found


def main() -> None:
    """Measure and print a table; write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "depth.json")
    arguments = parser.parse_args()
    rows = []
    print(f"{'network':10s} {'image':12s} " + " ".join(f"{r:>3d}/{2**-level:<7.4g}" for r in ROOMS for level in LEVELS))
    with threadpool_limits(limits=1):
        for size in paper_problems.SIZES:
            for index in paper_problems.INDEXES[: arguments.images]:
                row = measure(f"M-{size}", index)
                rows.append(row)
                shares = " ".join(f"{part['decided']:11.3f}" for part in row["shares"].values())
                print(f"{row['model']:10s} {row['image']:12s} {shares}  refine: {row['refine']}", flush=True)
    arguments.output.write_text(json.dumps({"commit": commit(), "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
