"""Does memory grow only with the stored regions, and not with the network?

    python benchmarks/memory.py
    python benchmarks/memory.py --models M-FNN-100 M-CNN-S --limits 1000 20000

Maps translation × brightness of one image up to two limits of regions, each in its own process. The peaks of memory
give the cost of a region, and the fixed cost of network, compiled kernels and libraries.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timing import RESULTS, one_thread, print_table, write_json

MODELS = ("M-FNN-100", "M-FNN-800", "M-CNN-S", "M-CNN-M")
TARGET_MIB = 1024

PROBE = """
import json, sys
from timing import peak_mib
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.question import make_question
problem = make_question(sys.argv[1], sys.argv[2], ("translate:dy=1", "brightness"), delta=3.0)
before = peak_mib()
result = run(problem, "map", budget=Budget(Limits(max_regions=int(sys.argv[3]))), threads=1)
print(json.dumps({"regions": len(result.tiling.answers.regions), "loaded_mib": before, "peak_mib": peak_mib()}))
"""


def probe(model: str, image: str, limit: int) -> dict[str, Any]:
    """Regions and peak memory of one map that ends at a limit of regions."""
    command = [sys.executable, "-c", PROBE, model, image, str(limit)]
    folder = str(Path(__file__).resolve().parent)
    outcome = subprocess.run(
        command, env=one_thread() | {"PYTHONPATH": folder}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(outcome.stdout.splitlines()[-1])


def compare(model: str, image: str, limits: Sequence[int]) -> dict[str, Any]:
    """One row: the smallest and the largest map, and the cost of a region between them."""
    maps = [probe(model, image, limit) for limit in limits]
    small, large = maps[0], maps[-1]
    more = large["regions"] - small["regions"]
    growth = 1024 * (large["peak_mib"] - small["peak_mib"]) / more if more > 0 else None
    return {"model": model, "image": image, "maps": maps, "kib_per_region": growth}


def shown(row: dict[str, Any]) -> dict[str, str]:
    small, large = row["maps"][0], row["maps"][-1]
    growth = row["kib_per_region"]
    return {
        "network": row["model"],
        "loaded MiB": f"{small['loaded_mib']:.0f}",
        "regions": f"{small['regions']:,}",
        "peak MiB": f"{small['peak_mib']:.0f}",
        "more regions": f"{large['regions']:,}",
        "their peak MiB": f"{large['peak_mib']:.0f}{'' if large['peak_mib'] < TARGET_MIB else '!'}",
        "KiB/region": "" if growth is None else f"{growth:.2f}",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--image", default="mnist:69990")
    parser.add_argument("--limits", nargs=2, type=int, default=(1_000, 20_000))
    parser.add_argument("--out", type=Path, default=RESULTS / "memory.json")
    options = parser.parse_args(arguments)
    rows = [compare(model, options.image, options.limits) for model in options.models]
    print_table([shown(row) for row in rows])
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=1, target_mib=TARGET_MIB, rows=rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
