"""How fast is the subdivision in three dimensions, on random networks and on an image with three perturbations?

    python benchmarks/solids.py                                # all tasks, five pairs; ten images
    python benchmarks/solids.py w50d2-3d --pairs 1 --images    # one task, once; no images

The published times of relu_edge_subdivision (float32) come with the times of the reference splitter on the task of the
same kind in two dimensions. They are scaled by the time of the reference in this run. The reference had a range of
times there; the larger one makes the scaled time, and so the target, shorter. Uses one thread. Ends with exit code 1 if
a count, the logits of a region or a map is wrong, whatever the speed; a missed target is shown and stored.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

# Read when numpy is imported: both sides run on one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import reference_splitter
from random_networks import TASKS, complaints, enumerate_regions, load_tasks
from reference_splitter import Layers
from steadygaze.errors import InternalError
from steadygaze.question import make_question
from steadygaze.regions import solid_kernels
from steadygaze.regions.check import check_map
from steadygaze.regions.subdivide import subdivide
from timing import RESULTS, Spread, Stopwatch, clock, clocked, exit_code, print_table, write_json

SPECS = ("translate:dx=1", "patch:x=12,y=12,w=4,h=4", "brightness")
IMAGES = tuple(f"mnist:{number}" for number in range(69990, 70000))
MODEL = "M-FNN-100"


class Published(NamedTuple):
    """Seconds of relu_edge_subdivision, and of the reference splitter on a task beside it (least and most)."""

    seconds: float
    task: str
    reference: tuple[float, float]


PUBLISHED = {
    "w50d2-3d": Published(0.17, "w50d2", (0.04, 0.10)),
    "w50d8-3d": Published(3.0, "w50d8", (0.21, 0.25)),
    "w50d2-he-3d": Published(0.13, "w50d2-he", (0.04, 0.08)),
}


def measure(name: str, layers: Layers, expected: int, *, flat: Layers | None, pairs: int) -> dict[str, Any]:
    """One row of the first table: alternating runs of the reference on `flat` and of the engine."""
    watch, engine, walk, reference = Stopwatch(), [], [], []
    problems = complaints(layers, enumerate_regions(layers), expected)  # also compiles or loads the kernels
    for _ in range(pairs):
        if flat is not None:
            reference.append(clock(lambda: reference_splitter.regions(flat))[0])
        with clocked(watch, advance=solid_kernels):
            seconds, regions = clock(lambda: enumerate_regions(layers))
        engine.append(seconds)
        walk.append(watch.lap("advance"))
        if len(regions) != expected:
            problems.append(f"{len(regions)} regions, {expected} expected")
    row: dict[str, Any] = {
        "task": name,
        "regions": expected,
        "seconds": Spread.of(engine),
        "walk_seconds": Spread.of(walk),
        "problems": sorted(set(problems)),
    }
    if flat is not None:
        published = PUBLISHED[name]
        strict = [published.seconds * seconds / max(published.reference) for seconds in reference]
        times_faster = Spread.of([s / e for s, e in zip(strict, engine, strict=True)])
        row |= {
            "published_seconds": published.seconds,
            "reference_task": published.task,
            "reference_seconds": Spread.of(reference),
            "scaled_seconds": Spread.of(strict),
            "times_faster": times_faster,
            "is_met": times_faster.median >= 1.0,
        }
    return row


def measure_map(image: str) -> dict[str, Any]:
    """One row of the second table: the regions of an image with translation, patch and brightness, and their check."""
    compound = make_question(MODEL, image, SPECS).compound
    layout, _ = clock(lambda: compound.programs)
    seconds, regions = clock(lambda: subdivide(compound, threads=1))
    row: dict[str, Any] = {
        "image": image, "regions": len(regions), "layout_seconds": layout, "seconds": seconds,
        "sliver_volume": regions.accuracy.slivers, "problems": [],
    }  # fmt: skip
    try:
        row["check_seconds"], checked = clock(lambda: check_map(compound, regions))
        row["tiling_error"] = checked.tiling_error
    except InternalError as error:
        row["problems"].append(str(error))
    return row


def shown(row: dict[str, Any]) -> dict[str, str]:
    """A row of the first table as text."""
    is_compared = "is_met" in row
    return {
        "task": row["task"],
        "regions": f"{row['regions']:,}",
        "µs/region": f"{1e6 * row['seconds'].median / row['regions']:.2f}",
        "ms": f"{1e3 * row['seconds'].median:.1f}",
        "walk ms": f"{1e3 * row['walk_seconds'].median:.1f}",
        "reference ms": f"{1e3 * row['reference_seconds'].median:.1f}" if is_compared else "",
        "published, scaled ms": f"{1e3 * row['scaled_seconds'].median:.0f}" if is_compared else "",
        "times faster": f"{row['times_faster']:.1f}" if is_compared else "",
        "": "WRONG" if row["problems"] else ("" if row.get("is_met", True) else "missed"),
    }


def shown_map(row: dict[str, Any]) -> dict[str, str]:
    """A row of the second table as text."""
    return {
        "image": row["image"],
        "regions": f"{row['regions']:,}",
        "s": f"{row['seconds']:.2f}",
        "µs/region": f"{1e6 * row['seconds'] / row['regions']:.1f}",
        "check s": f"{row['check_seconds']:.2f}" if "check_seconds" in row else "",
        "": "WRONG" if row["problems"] else "",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="names of tasks; all of them if none is given")
    parser.add_argument("--pairs", type=int, default=5, help="alternating runs of reference and engine")
    parser.add_argument("--images", nargs="*", default=IMAGES, help="images to map; none after a bare --images")
    parser.add_argument("--folder", type=Path, default=TASKS, help="where tasks.json and the .npz files are")
    parser.add_argument("--out", type=Path, default=RESULTS / "solids.json")
    options = parser.parse_args(arguments)
    tasks = load_tasks(options.folder, options.tasks, dimension=3)
    wanted = sorted({PUBLISHED[name].task for name in tasks if name in PUBLISHED})
    flat = {name: layers for name, (layers, _) in load_tasks(options.folder, wanted).items()} if wanted else {}
    rows = []
    for name, (layers, expected) in tasks.items():
        beside = flat[PUBLISHED[name].task] if name in PUBLISHED else None
        rows.append(measure(name, layers, expected, flat=beside, pairs=options.pairs))
    print_table([shown(row) for row in rows])
    maps = [measure_map(image) for image in options.images]
    if maps:
        print(f"\n{MODEL}, {' + '.join(SPECS)}")
        print_table([shown_map(row) for row in maps])
    write_json(options.out, summary, repetitions=options.pairs, rows=rows, model=MODEL, perturbations=SPECS, maps=maps)
    found = [(row.get("task") or row["image"], problem) for row in [*rows, *maps] for problem in row["problems"]]
    return exit_code([f"{name}: {problem}" for name, problem in found])


if __name__ == "__main__":
    sys.exit(main())
