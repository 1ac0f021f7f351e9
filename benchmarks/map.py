"""What does a region of the full map cost, compared with the printed search and with one pass of the affine form?

    python benchmarks/map.py                                  # five networks, three domains, one image
    python benchmarks/map.py --models M-FNN-100 --seconds 3   # a short look
    python benchmarks/map.py --images mnist:69990 mnist:69991

Every map is measured in its own process (`one_map.py`), on one thread. Ends with exit code 1 if a count or a label is
wrong, whatever the speed; a missed target is shown and stored.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timing import RESULTS, exit_code, one_thread, print_table, write_json

MODELS = ("M-FNN-100", "M-FNN-200", "M-FNN-400", "M-FNN-800", "M-CNN-S")
DOMAINS = ("BP", "TP", "TB")
TARGETS = {"times_printed": 20_000, "region_per_pass": 0.5, "peak_mib": 1024}
STAGES = ("layout", "walk", "driver", "measure", "labels")


def run_one(model: str, domain: str, image: str, *, repetitions: int, seconds: float, samples: int) -> dict[str, Any]:
    """Measure one map in its own process."""
    script = Path(__file__).resolve().parent / "one_map.py"
    command = [sys.executable, str(script), model, domain, image]
    command += ["--repetitions", str(repetitions), "--seconds", str(seconds), "--samples", str(samples)]
    outcome = subprocess.run(command, env=one_thread(), stdout=subprocess.PIPE, text=True, check=False)
    if outcome.returncode:
        failed = f"the process that measures it ended with code {outcome.returncode}"
        return {"model": model, "domain": domain, "image": image, "problems": [failed]}
    return compared(json.loads(outcome.stdout.splitlines()[-1]))


def compared(row: dict[str, Any]) -> dict[str, Any]:
    """Add derived values: rates, ratios, and the targets that are met."""
    row["regions_per_second"] = row["regions"] / row["seconds"]["engine"]["median"]
    reached = {
        "region_per_pass": row["region_per_pass"]["median"] <= TARGETS["region_per_pass"],
        "peak_mib": row["peak_mib"] < TARGETS["peak_mib"],
    }
    if "printed" in row:
        rate = row["printed"]["popped"] / row["printed"]["seconds"]
        row["printed"]["patterns_per_second"] = rate
        row["times_printed"] = row["regions_per_second"] / rate
        reached["times_printed"] = row["times_printed"] >= TARGETS["times_printed"]
    return row | {"is_met": reached}


def shown(row: dict[str, Any]) -> dict[str, str]:
    """A row as text; a number that misses its target is marked."""
    cells = dict.fromkeys(
        ("map", "regions", "s", "s with check", "regions/s", "µs/region", "printed/s", "times printed", "pass µs",
         "region/pass", "peak MiB", ""), "",
    )  # fmt: skip
    cells["map"] = f"{row['model']} {row['domain']} {row['image']}"
    if row["problems"]:
        cells[""] = "WRONG"
    if "seconds" not in row:
        return cells
    engine = row["seconds"]["engine"]["median"]
    ratio, missed = row["region_per_pass"], {name: "" if met else "!" for name, met in row["is_met"].items()}
    cells["regions"] = f"{row['regions']:,}"
    cells["s"], cells["s with check"] = f"{engine:.3f}", f"{row['seconds']['with_check']['median']:.3f}"
    cells["regions/s"], cells["µs/region"] = f"{row['regions_per_second']:,.0f}", f"{1e6 * engine / row['regions']:.2f}"
    cells["pass µs"] = f"{1e6 * row['pass_seconds']['median']:.1f}"
    span = f"({ratio['low']:.2f}–{ratio['high']:.2f})"
    cells["region/pass"] = f"{ratio['median']:.2f} {span}{missed['region_per_pass']}"
    cells["peak MiB"] = f"{row['peak_mib']:.0f}{missed['peak_mib']}"
    if "printed" in row:
        cells["printed/s"] = f"{row['printed']['patterns_per_second']:.2f}"
        cells["times printed"] = f"{row['times_printed']:,.0f}{missed['times_printed']}"
    return cells


def shown_stages(row: dict[str, Any]) -> dict[str, str]:
    """Where the time of a map goes, in milliseconds."""
    cells = {"map": f"{row['model']} {row['domain']} {row['image']}", "patterns": f"{row['patterns']:,}"}
    for name in ("engine", *STAGES):
        cells[name] = f"{1e3 * row['seconds'][name]['median']:.1f}"
    return cells


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--domains", nargs="+", default=DOMAINS, choices=DOMAINS)
    parser.add_argument("--images", nargs="+", default=("mnist:69990",))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="time of the printed search; 0: leave it out")
    parser.add_argument("--samples", type=int, default=1000, help="thetas at which the labels are compared")
    parser.add_argument("--out", type=Path, default=RESULTS / "map.json")
    options = parser.parse_args(arguments)
    limits = {"repetitions": options.repetitions, "seconds": options.seconds, "samples": options.samples}
    rows = []
    for image in options.images:
        for model in options.models:
            for domain in options.domains:
                rows.append(run_one(model, domain, image, **limits))
                print(f"{model} {domain} {image}", file=sys.stderr)
    print_table([shown(row) for row in rows])
    measured = [row for row in rows if "seconds" in row]
    if measured:
        print("\nmilliseconds of each stage (median):")
        print_table([shown_stages(row) for row in measured])
    question = (__doc__ or "").splitlines()[0]
    write_json(options.out, question, **limits | {"targets": TARGETS, "rows": rows})
    return exit_code(
        [f"{row['model']} {row['domain']} {row['image']}: {problem}" for row in rows for problem in row["problems"][:5]]
    )


if __name__ == "__main__":
    sys.exit(main())
