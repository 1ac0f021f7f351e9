"""How much of the domain does the refinement decide, in how much time and memory, and does any sample contradict it?

    python benchmarks/refine.py                                     # every part except the VGG; hours
    python benchmarks/refine.py --part cnn-m --only M- --images 3   # networks of MNIST, three images
    python benchmarks/refine.py --part vgg --vgg FOLDER             # makes FOLDER/vgg16.onnx unless it is there
    python benchmarks/refine.py --resume                            # problems missing in the lines of this commit

Parts: `cnn-m` (60 problems, three questions each), `cnn-m-exact` (30 problems, CR exactly, windows against the exact
engine), `map` (300 problems exactly, against the map in the same process), `cifar` (a network that others made), `vgg`
(276,480 neurons). Every problem runs in its own process (`one_refine.py`). Sampled thetas of every result are checked.
Ends with exit code 1 if any check fails, whatever the speed; a missed target is marked.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paper_problems import DOMAINS, INDEXES, SIZES, Asked, image_name, restricted
from timing import CHECKOUT, RESULTS, Spread, commit, exit_code, one_thread, print_table, write_json

PARTS = ("cnn-m", "cnn-m-exact", "map", "cifar", "vgg")
NETWORKS = {
    "cnn-m": ("M-CNN-M", "F-CNN-M"),
    "cnn-m-exact": ("M-CNN-M",),
    "map": tuple(f"{data}-{size}" for size in (*SIZES, "CNN-S") for data in "MF"),
}
CIFAR = "cifar10_small.onnx"

SAMPLES = dict.fromkeys(PARTS, 10_000) | {"vgg": 1_000}
"""Thetas checked in every result; a plain pass through the VGG takes a tenth of a second."""

TARGETS: dict[tuple[str, str], dict[str, float]] = {
    ("cnn-m", "cr 0.001"): {"least decided": 0.999, "most seconds": 20.0, "peak MiB": 2048.0},
    ("cnn-m", "ar 3.0 0.001"): {"least decided": 0.999, "median seconds": 30.0, "peak MiB": 2048.0},
    ("cnn-m", "ar 50% 0.001"): {"least decided": 0.999, "median seconds": 60.0, "peak MiB": 2048.0},
    ("cnn-m-exact", "cr exact"): {"most seconds": 120.0},
    ("map FNN", "both 3.0 exact"): {"median map/refine": 1.0},
    ("map CNN-S", "both 3.0 exact"): {"median map/refine": 3.0, "least bounded": 0.5},
    ("cifar", "cr 0.01"): {"median decided": 0.99, "median seconds": 60.0},
    ("vgg", "cr 0.001"): {"median decided": 0.9, "most seconds": 660.0},
}
"""Targets by group and question: shares and ratios are lower limits, seconds and memory upper limits."""


def problems_of(part: str, images: int) -> list[Asked]:
    """The problems of a part, for a number of images."""
    if part == "cifar":
        return [Asked(CIFAR, "BP", f"cifar10:{index}") for index in range(images)]
    if part == "vgg":
        return [Asked("VGG-16", "BP", image_name("M-", index)) for index in INDEXES[:images]]
    return [
        Asked(model, domain, image_name(model, index))
        for model in NETWORKS[part]
        for index in INDEXES[:images]
        for domain in DOMAINS
    ]


def run_problem(part: str, asked: Asked, options: argparse.Namespace) -> dict[str, Any]:
    """Refine one problem in its own process."""
    script = Path(__file__).resolve().parent / "one_refine.py"
    command = [sys.executable, str(script), part, asked.model, asked.domain, asked.image]
    command += ["--samples", str(SAMPLES[part] if options.samples is None else options.samples)]
    for name in ("threads", "windows", "timeout", "shared", "vgg"):
        if getattr(options, name) is not None:
            command += [f"--{name}", str(getattr(options, name))]
    outcome = subprocess.run(command, env=one_thread(), stdout=subprocess.PIPE, text=True, check=False)
    if outcome.returncode:
        row = {"question": "all", "wrong": [f"the process that refines it ended with code {outcome.returncode}"]}
        return {"part": part, "asked": str(asked), "rows": [row]}
    return dict(json.loads(outcome.stdout.splitlines()[-1]))


def group_of(entry: dict[str, Any]) -> str:
    """The group of a problem, which has the targets."""
    if entry["part"] != "map":
        return str(entry["part"])
    return "map CNN-S" if "CNN-S" in entry["asked"] else "map FNN"


def grouped(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each group of problems and question: spreads, errors, and the targets that are met."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in entries:
        for row in entry["rows"]:
            rows.setdefault((group_of(entry), row["question"]), []).append(row | {"asked": entry["asked"]})
    return [group(name, question, found) for (name, question), found in rows.items()]


def group(name: str, question: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All problems of a group with one question."""
    result: dict[str, Any] = {"group": name, "question": question, "problems": len(rows)}
    for field in ("seconds", "decided", "bounded", "boxes", "regions", "peak_mib", "map_seconds", "map_per_refine"):
        values = [row[field] for row in rows if row.get(field) is not None]
        result[field] = Spread.of(values) if values else None
    result["wrong"] = [f"{row['asked']}: {wrong}" for row in rows for wrong in row["wrong"]]
    result["is_met"] = is_met(result)
    return result


def is_met(found: dict[str, Any]) -> dict[str, bool]:
    """The targets that a group meets."""
    fields = {"decided": "decided", "bounded": "bounded", "seconds": "seconds", "MiB": "peak_mib",
              "map/refine": "map_per_refine"}  # fmt: skip
    met = {}
    for target, limit in TARGETS.get((found["group"], found["question"]), {}).items():
        which, _, what = target.partition(" ")
        spread: Spread | None = found[fields[what]]
        if spread is None:
            met[target] = False
            continue
        value = {"median": spread.median, "least": spread.low, "most": spread.high, "peak": spread.high}[which]
        met[target] = value < limit if what in ("seconds", "MiB") else value >= limit
    return met


def shown(found: dict[str, Any]) -> dict[str, str]:
    """A group as text: medians with smallest and largest in brackets; missed targets by name."""
    cells = {"group": found["group"], "question": found["question"], "problems": str(found["problems"])}
    for head, field, form in (
        ("s", "seconds", ".2f"),
        ("decided", "decided", ".5f"),
        ("by bounds", "bounded", ".3f"),
        ("boxes", "boxes", ",.0f"),
        ("regions", "regions", ",.0f"),
        ("map/refine", "map_per_refine", ".2f"),
    ):
        cells[head] = "" if found[field] is None else f"{found[field]:{form}}"
    cells["peak MiB"] = "" if found["peak_mib"] is None else f"{found['peak_mib'].high:.0f}"
    cells["missed"] = ", ".join(name for name, is_reached in found["is_met"].items() if not is_reached)
    cells[""] = "WRONG" if found["wrong"] else ""
    return cells


def finished(path: Path) -> list[dict[str, Any]]:
    """The problems that an earlier run at this commit has finished, from its lines."""
    if not path.exists():
        return []
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return [entry for entry in entries if entry["commit"] == commit() and entry["rows"][0]["question"] != "all"]


def make_vgg(options: argparse.Namespace) -> None:
    """Train the VGG unless its file is there."""
    script = Path(__file__).resolve().parent / "vgg.py"
    command = [sys.executable, str(script), str(options.vgg), "--data", str(options.shared / "data")]
    subprocess.run([*command, "--threads", str(options.threads)], stdout=sys.stderr, check=True)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", default=PARTS[:-1], choices=PARTS)
    parser.add_argument(
        "--only", nargs="*", default=[], help="problems whose name contains one of these, e.g. M- TP :69990"
    )
    parser.add_argument("--images", type=int, default=len(INDEXES), help="images of each network, at most ten")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--samples", type=int, help="thetas checked in every result: 10,000, on the VGG 1,000")
    parser.add_argument("--windows", type=int, default=6, help="windows compared in each problem of cnn-m-exact")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each question")
    parser.add_argument("--shared", type=Path, default=CHECKOUT.parent / "shared", help="folder with models and data")
    parser.add_argument("--vgg", type=Path, help="folder of the VGG's file; needed for its part")
    parser.add_argument("--resume", action="store_true", help="keep problems that a run at this commit has finished")
    parser.add_argument("--out", type=Path, default=RESULTS / "refine.json")
    options = parser.parse_args(arguments)
    if "vgg" in options.part and options.vgg is None:
        parser.error("--part vgg needs --vgg FOLDER, where its file of 59 MB is or will be")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    lines = options.out.with_suffix(".jsonl")
    entries = finished(lines) if options.resume else []
    done = {(entry["part"], entry["asked"]) for entry in entries}
    if "vgg" in options.part:
        make_vgg(options)
    lines.parent.mkdir(parents=True, exist_ok=True)
    lines.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    for part in options.part:
        for asked in restricted(problems_of(part, options.images), options.only):
            if (part, str(asked)) in done:
                continue
            entries.append(run_problem(part, asked, options) | {"commit": commit()})
            with lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entries[-1]) + "\n")
            for row in entries[-1]["rows"]:
                print(part, asked, row["question"], _brief(row), file=sys.stderr, flush=True)
    if not entries:
        print("no such problem: expected phrases such as BP, M-CNN-M or :69990 after --only", file=sys.stderr)
        return 2
    groups = grouped(entries)
    print_table([shown(found) for found in groups])
    fixed = {name: getattr(options, name) for name in ("threads", "samples", "windows", "timeout", "images")}
    targets = {f"{name}: {question}": limits for (name, question), limits in TARGETS.items()}
    write_json(
        options.out, (__doc__ or "").splitlines()[0], repetitions=1, options=fixed, targets=targets, groups=groups,
        problems=entries,
    )  # fmt: skip
    return exit_code([f"{found['question']} {line}" for found in groups for line in found["wrong"]])


def _brief(row: dict[str, Any]) -> str:
    if "decided" not in row:
        return "; ".join(row["wrong"])
    return f"{row['seconds']:.2f} s, {100 * row['decided']:.4f} % decided{', WRONG' if row['wrong'] else ''}"


if __name__ == "__main__":
    sys.exit(main())
