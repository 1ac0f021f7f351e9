"""How long does a user wait for an answer that needs almost no computation?

    python benchmarks/latency.py

Starts every command in fresh processes, and divides its median time by that of `python -c "import numpy"` in the same
run. The commands alternate, so a busy machine slows all of them alike. Code is compiled before the clock starts.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from timing import RESULTS, Spread, clock, print_table, write_json

PROGRAM = str(Path(sys.executable).parent / "steadygaze")
MAP = (
    PROGRAM, "verify", "M-FNN-100", "--image", "mnist:69990",
    "--perturb", "brightness:0..0.3", "--perturb", "patch:x=12,y=12,w=4,h=4", "--out", "out", "--force",
)  # fmt: skip
BASE = "import numpy"
COMMANDS = {
    BASE: (sys.executable, "-c", "import numpy"),
    "steadygaze --version": (PROGRAM, "--version"),
    "an unknown model": (PROGRAM, "verify", "M-FNN-1", "--image", "mnist:69990", "--perturb", "brightness"),
    "first map, no picture": (*MAP, "--pictures", "none"),
    "first map, one PNG": MAP,
}
TARGETS = {"steadygaze --version": 2.0, "first map, no picture": 7.0, "first map, one PNG": 12.0}
CODES = {BASE: 0, "steadygaze --version": 0, "an unknown model": 2}
"""Exit codes; 10 for the others: the network is not robust."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "latency.json")
    options = parser.parse_args(arguments)
    # Python keeps its compiled bytecode, as for a user.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for repetition in range(options.repetitions + 1):
            for name, command in COMMANDS.items():
                taken, done = clock(
                    lambda command=command: subprocess.run(  # type: ignore[misc]
                        command, cwd=folder, env=environment, capture_output=True, check=False
                    )
                )
                if done.returncode != CODES.get(name, 10):
                    wrong.append(f"{name}: exit code {done.returncode}\n{done.stderr.decode()}")
                if repetition:  # the first round compiles
                    seconds[name].append(taken)
    print("\n".join(wrong), file=sys.stderr, end="")
    base = Spread.of(seconds[BASE]).median
    rows = []
    for name, values in seconds.items():
        spread, target = Spread.of(values), TARGETS.get(name)
        ratio = spread.median / base
        rows.append(
            {"command": name, "seconds": spread, "ratio": ratio, "target": target,
             "is_met": None if target is None else ratio <= target}
        )  # fmt: skip
    print_table(
        [
            {"command": row["command"], "s": f"{row['seconds']:.3f}", "ratio": f"{row['ratio']:.2f}",
             "at most": "" if row["target"] is None else f"{row['target']:g}",
             "": "missed" if row["is_met"] is False else ""}
            for row in rows
        ]
    )  # fmt: skip
    write_json(options.out, (__doc__ or "").splitlines()[0], repetitions=options.repetitions, rows=rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
