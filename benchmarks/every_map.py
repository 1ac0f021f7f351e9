"""Can every problem of the paper on FNN-100 … 800 and CNN-S be mapped, and how much stays undecided?

    python benchmarks/every_map.py                      # 300 problems, about five minutes
    python benchmarks/every_map.py M-FNN-100 F-CNN-S    # some networks only

Also measures time and memory, on one thread. Networks run one after another in one process, so the peak memory covers
all maps up to then. Ends with exit code 1 if a problem fails or a map is not complete; every map passes the self-check
of a run. `undecided` is the share of the domain where the label or the attention at δ = 3.0 is undecided, kinks
included.
"""

import argparse
import os
from pathlib import Path
from statistics import median

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

from steadygaze.engines import run
from steadygaze.errors import SteadygazeError
from steadygaze.question import make_question
from timing import clock, peak_mib, print_table, write_json

NETWORKS = [f"{data}-{size}" for size in ("FNN-100", "FNN-200", "FNN-400", "FNN-800", "CNN-S") for data in "MF"]
DOMAINS = {
    "BP": ["brightness", "patch:x=12,y=12,w=4,h=4"],
    "TP": ["translate:dy=1", "patch:x=12,y=12,w=4,h=4"],
    "TB": ["translate:dy=1", "brightness"],
}

TARGETS = {"median": 1e-6, "most": 1e-4}
"""Targets: the median and the maximum of the undecided share over all problems."""


def run_network(name: str) -> dict[str, object]:
    """All thirty problems of one network: failures, regions, seconds with checks, peak memory."""
    failures, regions, undecided, seconds = [], [], [], 0.0
    model: object = name
    for index in range(69990, 70000):
        for domain, specs in DOMAINS.items():
            image = f"{'mnist' if name.startswith('M') else 'fashion'}:{index}"
            try:
                problem = make_question(model, image, specs, delta=3.0)
                model = problem.model
                spent, result = clock(lambda problem=problem: run(problem, "map", threads=1))
            except SteadygazeError as error:
                failures.append(f"{image} {domain}: {error}")
                continue
            seconds += spent
            regions.append(len(result.regions))
            undecided.append(result.answer.shares.undecided)
            if not result.is_complete:
                failures.append(f"{image} {domain}: not complete")
    peak = peak_mib()
    found = {"network": name, "failures": failures, "regions": regions, "undecided": undecided}
    return found | {"seconds": seconds, "peak_mib": peak}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "every_map.json")
    options = parser.parse_args()
    rows = [run_network(name) for name in options.networks]
    print_table(
        [
            {
                "network": str(row["network"]),
                "maps": str(len(row["regions"])),
                "failures": str(len(row["failures"])),
                "most regions": f"{max(row['regions'], default=0):,}",
                "undecided": f"{median(row['undecided'] or [1.0]):.1e}",
                "most undecided": f"{max(row['undecided'], default=1.0):.1e}",
                "seconds": f"{row['seconds']:.1f}",
                "peak MiB": f"{row['peak_mib']:.0f}",
            }
            for row in rows
        ]
    )
    for row in rows:
        for failure in row["failures"]:
            print(f"{row['network']} {failure}")
    question = str(__doc__).splitlines()[0]
    shares = [share for row in rows for share in row["undecided"]] or [1.0]
    reached = {"median": median(shares), "most": max(shares)}
    is_met = {name: reached[name] < target for name, target in TARGETS.items()}
    print(f"undecided: {reached['median']:.2g} in the median, {reached['most']:.2g} at most; targets met: {is_met}")
    total = sum(row["seconds"] for row in rows)
    write_json(
        options.out, question, repetitions=1, networks=rows, total_seconds=total, undecided=reached, is_met=is_met
    )
    return 1 if any(row["failures"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
