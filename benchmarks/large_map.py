"""How much time and memory do maps of millions of regions take, and how fast do they answer afterwards?

    python benchmarks/large_map.py                                 # the thirty problems of M-CNN-M
    python benchmarks/large_map.py --models F-CNN-M --only TB      # problems whose name contains a phrase
    python benchmarks/large_map.py --only :69995 --resume          # again, beside the other rows of this commit

The command line makes every map in its own process, with both labels, self-check, one picture and its files. `overhead`
is the wall time over the time for walk, attention and labels. Then another process loads the stored result, answers for
another threshold and looks up thetas. Ends with exit code 1 if a map is not complete or its exit code is not that of a
verdict.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from paper_problems import problems_of, restricted, stored
from timing import RESULTS, print_table, write_json

SPECS = {
    "BP": ("brightness", "patch:x=12,y=12,w=4,h=4"),
    "TP": ("translate:dy=1", "patch:x=12,y=12,w=4,h=4"),
    "TB": ("translate:dy=1", "brightness"),
}
TARGETS = {
    "peak_gib": 3.0,
    "seconds": 240.0,
    "regions_per_second": 40_000,
    "bytes": 400,
    "show_seconds": 10.0,
    "at_ms": 50,
}
"""Per map; the rate counts above a million regions."""

VERDICTS = (0, 3, 10)

ASK = """
import json, sys, time
import numpy as np
import steadygaze
result = steadygaze.load(sys.argv[1])
start = time.perf_counter()
areas = result.with_delta("50%").areas["AR"]
show = time.perf_counter() - start
domain = result.question.perturbed.domain
thetas = domain.low + np.random.default_rng(1).random((20, domain.dimension)) * domain.widths
result.at(thetas[0])
spent = []
for theta in thetas[1:]:
    start = time.perf_counter()
    result.at(theta)
    spent.append(time.perf_counter() - start)
print(json.dumps({"show_seconds": show, "at_ms": 1000 * float(np.median(spent)), "at_most_ms": 1000 * max(spent)}))
"""


def run_map(model: str, image: str, domain: str, folder: Path, threads: int) -> dict[str, Any]:
    """One map by the command line, and facts from its files."""
    perturbations = [word for spec in SPECS[domain] for word in ("--perturb", spec)]
    command = [
        sys.executable, "-m", "steadygaze", "verify", model, "--image", image, *perturbations, "--delta", "3.0",
        "--method", "map", "--threads", str(threads), "--out", str(folder), "--quiet", "--pictures", "png",
    ]  # fmt: skip
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    row: dict[str, Any] = {
        "model": model, "image": image, "domain": domain, "exit": os.waitstatus_to_exitcode(status), "seconds": wall,
        "peak_gib": usage.ru_maxrss / 2**20,
    }  # fmt: skip
    if row["exit"] not in VERDICTS:
        return row
    content = json.loads((folder / "result.json").read_text())
    phases = json.loads((folder / "timings.json").read_text())["seconds"]
    engine = sum(phases.get(name, 0.0) for name in ("walk", "attention", "labels"))
    regions, size = content["regions"], sum(path.stat().st_size for path in folder.glob("regions*"))
    row |= {
        "regions": regions, "complete": content["complete"], "regions_per_second": regions / wall,
        "overhead": wall / engine, "bytes": size / max(regions, 1), "phases": phases,
        "undecided": content["area"]["undecided"][1],
    }  # fmt: skip
    asked = subprocess.run([sys.executable, "-c", ASK, str(folder)], capture_output=True, text=True, check=True)
    return row | json.loads(asked.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["M-CNN-M"])
    parser.add_argument(
        "--only", nargs="*", default=[], help="problems whose name contains one of these, e.g. TP :69990"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS / "large_map.json")
    parser.add_argument("--resume", action="store_true", help="keep other rows of an earlier run at this commit")
    options = parser.parse_args()
    threads = options.threads
    problems = [asked for model in options.models for asked in restricted(problems_of(model), options.only)]
    found: list[dict[str, Any]] = stored(options.out, "maps", [], threads=threads) if options.resume else []
    rows = {(row["model"], row["domain"], row["image"]): row for row in found}
    for asked in problems:
        with tempfile.TemporaryDirectory() as folder:
            row = run_map(asked.model, asked.image, asked.domain, Path(folder) / "map", threads)
        rows[asked.model, asked.domain, asked.image] = row
        print_table([_cells(row)])
        question = (__doc__ or "").partition("\n")[0]
        write_json(
            options.out,
            question,
            repetitions=1,
            targets=TARGETS,
            options={"threads": threads},
            maps=list(rows.values()),
        )
    return 0 if all(row.get("complete") for row in rows.values()) else 1


def _cells(row: dict[str, Any]) -> dict[str, str]:
    numbers = {
        "regions": ",.0f", "seconds": ".1f", "regions_per_second": ",.0f", "overhead": ".2f", "peak_gib": ".2f",
        "bytes": ".0f", "show_seconds": ".1f", "at_ms": ".0f",
    }  # fmt: skip
    texts = {name: format(row[name], spec) for name, spec in numbers.items() if name in row}
    return {"problem": f"{row['model']} {row['domain']} {row['image']}", "exit": str(row["exit"]), **texts}


if __name__ == "__main__":
    sys.exit(main())
