"""Does the traversal, which crosses facets from region to region, find all regions?

    python benchmarks/traversal_counts.py                # all twelve random networks, about two minutes
    python benchmarks/traversal_counts.py w50d2 w50d2-3d

Uses one thread, and clipping in two and three dimensions. Ends with exit code 1 if a count is wrong, a region is lost,
or the volumes do not add up to 1.
"""

import argparse
import os
from collections import deque
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

from random_networks import TASKS, load_tasks
from reference_splitter import Layers
from steadygaze.compound import plain_program
from steadygaze.engines.search.traversal import Traversal
from timing import RESULTS, clock, print_table, write_json


def visit_all(traversal: Traversal) -> tuple[int, float]:
    """Cross every facet of every region, breadth first: the number of regions, and the sum of their volumes."""
    first = traversal.region_at(np.zeros(traversal.dimension))
    seen, queue, volume = {first.key}, deque([first]), 0.0
    while queue:
        region = queue.popleft()
        volume += region.volume
        for facet in range(len(region.halfspaces)):
            key = traversal.key_beyond(region, facet)
            beyond = None if key is None or key in seen else traversal.cross(region, facet)
            if beyond is not None and beyond.key not in seen:
                seen.add(beyond.key)
                queue.append(beyond)
    return len(seen), volume


def run(name: str, layers: Layers, regions: int) -> dict[str, object]:
    traversal = Traversal([plain_program(layers)], layers[0][0].shape[1])
    seconds, (found, volume) = clock(lambda: visit_all(traversal))
    is_right = found == regions and abs(volume - 1.0) < 1e-9 and not traversal.fallbacks + traversal.programs.failures
    counts = {"regions": found, "expected": regions, "volume": volume, "lps": traversal.programs.solved}
    return {"task": name, "seconds": seconds, "is_right": is_right} | counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = load_tasks(TASKS, []) | load_tasks(TASKS, [], dimension=3)
    parser.add_argument("tasks", nargs="*", default=list(tasks))
    parser.add_argument("--out", type=Path, default=RESULTS / "traversal_counts.json")
    options = parser.parse_args()
    rows = [run(name, *tasks[name]) for name in options.tasks]
    print_table(
        [
            {
                "task": str(row["task"]),
                "regions": f"{row['regions']:,}",
                "expected": f"{row['expected']:,}",
                "seconds": f"{row['seconds']:.2f}",
                "LPs a region": f"{row['lps'] / row['regions']:.1f}",
                "": "" if row["is_right"] else "wrong",
            }
            for row in rows
        ]
    )
    write_json(options.out, str(__doc__).splitlines()[0], repetitions=1, tasks=rows)
    return 0 if all(row["is_right"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
