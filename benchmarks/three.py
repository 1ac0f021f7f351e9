"""How long does a map of three parameters take: with labels alone, and with everything that a run delivers?

    python benchmarks/three.py
    python benchmarks/three.py --images mnist:69990 mnist:69999 --samples 200

Maps M-FNN-100 under translation, patch and brightness, [0, 1] each, δ = 3.0; every image in its own process, on one
thread. *s* is the map with all labels, *s with check* adds the self-check, and *s in all* adds summary, witnesses,
stored result and pictures. Ends with exit code 1 if sampled thetas contradict a label; a missed target is shown and
stored.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timing import RESULTS, clock, exit_code, one_thread, peak_mib, print_table, write_json

SPECS = ("translate:dx=1", "patch:x=12,y=12,w=4,h=4", "brightness")
SMALL = ("translate:dx=1:0..0.01", "patch:x=12,y=12,w=4,h=4:0..0.01", "brightness:0..0.01")
IMAGES = tuple(f"mnist:{index}" for index in range(69990, 70000))
TARGET_SECONDS = 15.0


def measure(model: str, image: str, samples: int) -> dict[str, Any]:
    """All measurements of one map, in this process."""
    os.environ.update(one_thread())
    from steadygaze.engines import run  # noqa: PLC0415 (a process that starts others must stay small)
    from steadygaze.question import make_question  # noqa: PLC0415

    problem = make_question(model, image, SPECS, delta=3.0)
    with tempfile.TemporaryDirectory() as folder:
        warm = run(make_question(problem.model, image, SMALL, delta=3.0), "map", threads=1)
        deliver(warm, Path(folder) / "small")  # compiles or loads the kernels
        result = run(problem, "map", threads=1)
        peak = peak_mib()
        spent, _ = clock(lambda: deliver(result, Path(folder) / "map"))
    check = result.seconds["self-check"]
    engine = sum(result.seconds[name] for name in ("prepare", "walk", "attention", "labels") if name in result.seconds)
    return {
        "model": model,
        "image": image,
        "regions": len(result.tiling.answers.regions),
        "pieces": len(result.answer.joint.pieces),
        "verdict": result.verdict.value,
        "shares": result.areas,
        "seconds": {"engine": engine, "with_check": engine + check, "in_all": engine + check + spent},
        "peak_mib": peak,
        "is_met": engine < TARGET_SECONDS,
        "contradictions": contradictions(result, samples),
    }


def deliver(result: Any, folder: Path) -> None:
    """The work of the command line on a result."""
    result.save(folder)
    result.plot(folder / "map")


def contradictions(result: Any, samples: int) -> list[str]:
    """Labels of pieces that a plain forward or backward pass at random thetas contradicts."""
    import numpy as np  # noqa: PLC0415

    from steadygaze.labels import Kept  # noqa: PLC0415

    compound, joint, delta = result.tiling.answers.compound, result.answer.joint, result.answer.delta
    found = []
    for place in np.random.default_rng(0).random((samples, compound.domain.dimension)):
        theta = compound.domain.low + place * compound.domain.widths
        piece, plain = joint.polytopes.deepest(compound.to_unit(theta[None])[0]), result.at(theta)
        if piece is None:
            found.append(f"no piece holds theta {theta.tolist()}")
            continue
        keeps, attention = bool(joint.pieces.keeps_label[piece]), joint.attention[piece]
        if abs(plain.margin) > 1e-9 and keeps != (plain.margin > 0.0):
            found.append(f"label kept: {keeps}, but the margin is {plain.margin:.6g} at {theta.tolist()}")
        is_clear = abs(plain.inconsistency - delta) > 1e-9 and attention != Kept.UNKNOWN
        if is_clear and (attention == Kept.YES) != (plain.inconsistency < delta):
            found.append(f"attention {Kept(attention).name}, but ai is {plain.inconsistency:.6g} at {theta.tolist()}")
    return found


def run_one(model: str, image: str, samples: int) -> dict[str, Any]:
    """Measure one map in its own process."""
    command = [sys.executable, __file__, "--only", "--models", model, "--images", image, "--samples", str(samples)]
    outcome = subprocess.run(command, env=one_thread(), stdout=subprocess.PIPE, text=True, check=False)
    if outcome.returncode:
        failed = f"the process that measures it ended with code {outcome.returncode}"
        return {"model": model, "image": image, "contradictions": [failed]}
    return json.loads(outcome.stdout.splitlines()[-1])


def shown(row: dict[str, Any]) -> dict[str, str]:
    """A row as text; a number that misses its target is marked."""
    cells = dict.fromkeys(
        ("map", "regions", "pieces", "s", "s with check", "s in all", "µs/region", "peak MiB", ""), ""
    )
    cells["map"] = f"{row['model']} {row['image']}"
    cells[""] = "WRONG" if row["contradictions"] else ""
    if "seconds" not in row:
        return cells
    seconds = row["seconds"]
    cells["regions"], cells["pieces"] = f"{row['regions']:,}", f"{row['pieces']:,}"
    cells["s"] = f"{seconds['engine']:.2f}{'' if row['is_met'] else '!'}"
    cells["s with check"], cells["s in all"] = f"{seconds['with_check']:.2f}", f"{seconds['in_all']:.2f}"
    cells["µs/region"] = f"{1e6 * seconds['engine'] / row['regions']:.1f}"
    cells["peak MiB"] = f"{row['peak_mib']:.0f}"
    return cells


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=("M-FNN-100",))
    parser.add_argument("--images", nargs="+", default=IMAGES)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RESULTS / "three.json")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.only:
        print(json.dumps(measure(options.models[0], options.images[0], options.samples)))
        return 0
    rows = [run_one(model, image, options.samples) for model in options.models for image in options.images]
    print_table([shown(row) for row in rows])
    question = str(__doc__).splitlines()[0]
    write_json(options.out, question, repetitions=1, target_seconds=TARGET_SECONDS, specs=SPECS, rows=rows)
    return exit_code([f"{row['model']} {row['image']}: {one}" for row in rows for one in row["contradictions"]])


if __name__ == "__main__":
    sys.exit(main())
