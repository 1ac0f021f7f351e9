"""Does `--method boundary` find exactly the components of the outermost boundary in the map?

    python benchmarks/boundaries.py                      # 300 problems on FNN-100 … 800 and CNN-S, cr and ar
    python benchmarks/boundaries.py --only M-FNN-100     # some problems

Components are compared by the regions (knot cell and pattern) along them, on the inner and on the outer side. Uses one
thread. Ends with exit code 1 if a component differs, or if a search fails. (`every_search.py` counts the regions that
gbs visits.)
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

from dataclasses import replace

from one_search import run_search
from paper_problems import SIZES, Asked, problems_of, question_of, restricted
from steadygaze.boundary import find_boundary
from steadygaze.engines import run
from steadygaze.engines.search.visited import make_key
from steadygaze.labels import Property
from steadygaze.results.result import Result
from timing import RESULTS, exit_code, print_table, write_json

NETWORKS = [f"{data}-{size}" for size in (*SIZES, "CNN-S") for data in "MF"]


def keys_of(result: Result) -> list[bytes]:
    """The key of every region of a map, in the form that the traversal uses."""
    regions, cells = result.tiling.answers.regions, result.tiling.answers.compound.programs
    clips = [row.tobytes() for row in regions.clips]
    patterns = [row.tobytes() for row in regions.patterns]
    return [
        make_key(int(cell), clips[clip][: int(cells[cell].program.byte_start[2])], patterns[pattern])
        for cell, clip, pattern in zip(regions.cell, regions.clip, regions.pattern, strict=True)
    ]


def differences(result: Result, keys: Sequence[bytes], found: Result, wanted: Property) -> list[str]:
    """Errors in the components that a search found, in words; empty if they are those of the map."""
    answers = result.tiling.answers
    exact = find_boundary(answers.compound, result.stopped, result.answer.joint, wanted)
    expected = {
        (frozenset(keys[i] for i in part.inner), frozenset(keys[i] for i in part.outer)) for part in exact.components
    }
    wrong = []
    if found.tiling.components is None or found.tiling.failures or found.stopped:
        wrong.append(f"the search did not end well: {found.tiling.failures} failures, stopped by {found.stopped}")
    elif {(part.inner, part.outer) for part in found.tiling.components} != expected:
        wrong.append(f"{len(found.tiling.components)} components, not the {len(expected)} of the map")
    return wrong


def compare(asked: Asked, model: Any, properties: Sequence[str]) -> tuple[list[dict[str, Any]], Any]:
    """Compare one problem for every property: rows, and the model for the next problem."""
    problem = question_of(asked, "both", model=model)
    result = run(problem, "map", threads=1)
    keys = keys_of(result)
    rows = []
    for name in properties:
        question = replace(problem, property=Property(name))
        found = run_search(question, "boundary")
        wrong = differences(result, keys, found, Property(name))
        components = None if found.tiling.components is None else len(found.tiling.components)
        counts = {"regions": len(keys), "visited": found.region_count, "components": components}
        seconds = sum(found.seconds.values())
        rows.append({"asked": str(asked), "property": name, "seconds": seconds, "wrong": wrong} | counts)
    return rows, problem.model


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of problems")
    parser.add_argument("--properties", nargs="*", default=["cr", "ar"])
    parser.add_argument("--out", type=Path, default=RESULTS / "boundaries.json")
    options = parser.parse_args()
    rows, table = [], []
    for network in NETWORKS:
        own, model = [], None
        for asked in restricted(problems_of(network), options.only):
            found, model = compare(asked, model, options.properties)
            own += found
        for name in options.properties if own else []:
            part = [row for row in own if row["property"] == name]
            table.append(
                {
                    "network": network,
                    "property": name,
                    "problems": str(len(part)),
                    "differ": str(sum(bool(row["wrong"]) for row in part)),
                    "components": str(sum(row["components"] or 0 for row in part)),
                    "visited (median)": f"{median(row['visited'] for row in part):.0f}",
                    "regions": f"{median(row['regions'] for row in part):.0f}",
                    "seconds": f"{sum(row['seconds'] for row in part):.1f}",
                }
            )
            print(" ".join(f"{key} {value}" for key, value in table[-1].items()), flush=True)
        rows += own
    print_table(table)
    write_json(options.out, str(__doc__).splitlines()[0], repetitions=1, problems=rows)
    return exit_code([f"{row['asked']} {row['property']}: {wrong}" for row in rows for wrong in row["wrong"]])


if __name__ == "__main__":
    raise SystemExit(main())
