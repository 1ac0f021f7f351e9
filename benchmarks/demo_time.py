"""How long does the demo take after installation, with and without compilation?

    python benchmarks/demo_time.py

Runs `steadygaze demo` twice. The first run starts with an empty folder for compiled kernels and fills it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from timing import RESULTS, clock, print_table, write_json

TARGETS = {"first run": 60.0, "second run": 6.0}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "demo_time.json")
    options = parser.parse_args(arguments)
    program = Path(sys.executable).parent / "steadygaze"
    rows, codes = [], []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder) / "kernels")}
        command = [str(program), "demo", "--out", str(Path(folder) / "demo"), "--force"]
        for run, target in TARGETS.items():
            seconds, outcome = clock(
                lambda: subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            )
            codes.append(outcome.returncode)
            rows.append({"run": run, "seconds": seconds, "target": target, "is_met": seconds < target})
            if outcome.returncode:
                print(f"{run}: exit code {outcome.returncode}\n{outcome.stderr}", file=sys.stderr)
    print_table(
        [
            {"demo": row["run"], "s": f"{row['seconds']:.1f}", "below": f"{row['target']:g}",
             "": "" if row["is_met"] else "missed"}
            for row in rows
        ]
    )  # fmt: skip
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=1, rows=rows)
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
