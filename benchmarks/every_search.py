"""Does every search of the paper's problems end, in how much time and memory, and how much of the domain does it visit?

    python benchmarks/every_search.py                             # 240 problems on FNN-100 … 800, five searches each
    python benchmarks/every_search.py --cnn-m                     # and gbs for cr on M-CNN-M, thirty problems
    python benchmarks/every_search.py --sizes FNN-100 --only BP   # some sizes, some problems
    python benchmarks/every_search.py --resume                    # networks missing in the results of this commit

Every network is searched in its own process (`one_search.py`), on one thread. Ends with exit code 1 if a search does
not end, or if its own regions, a plain pass or the full map (not for M-CNN-M) contradict a region, a label or a status.
A missed target is shown and stored.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from paper_problems import PROPERTIES, SHIFT, SIZES, stored
from timing import RESULTS, Spread, exit_code, one_thread, print_table, write_json

SEARCHES = ("gbs:cr", "gbs:ar", "gbs:both", "boundary:cr", "boundary:ar")
LARGE = "M-CNN-M"
TARGETS = {"seconds": 60.0, "peak_mib": 4096.0}
"""The limits for every problem of M-CNN-M, where the paper ran out of memory."""
COLUMNS = ("asked", "status", "seconds", "visited", "visited_share", "regions", "face_checks", "lps", "failures")


def run_network(model: str, searches: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    """Search all problems of one network in its own process: {model, peak_mib, rows}."""
    script = Path(__file__).resolve().parent / "one_search.py"
    command = [sys.executable, str(script), model, "--searches", *searches, "--only", *options.only]
    command += ["--timeout", str(options.timeout), "--samples", str(options.samples), "--shift", options.shift]
    command += ["--no-maps"] if model == LARGE else []
    outcome = subprocess.run(command, env=one_thread(), stdout=subprocess.PIPE, text=True, check=False)
    if outcome.returncode:
        row = dict.fromkeys(COLUMNS) | {"asked": model, "search": "all"}
        row["wrong"] = [f"the process that searches it ended with code {outcome.returncode}"]
        return {"model": model, "peak_mib": None, "rows": [row]}
    return dict(json.loads(outcome.stdout.splitlines()[-1]))


def grouped(network: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a network by search: every column is a list, and errors start with the name of their problem."""
    groups = []
    for search in dict.fromkeys(row["search"] for row in network["rows"]):
        rows = [row for row in network["rows"] if row["search"] == search]
        group: dict[str, Any] = {"model": network["model"], "search": search, "peak_mib": network["peak_mib"]}
        group |= {name: [row[name] for row in rows] for name in COLUMNS}
        group["wrong"] = [f"{row['asked']}: {wrong}" for row in rows for wrong in row["wrong"]]
        group["is_met"] = is_met(group)
        groups.append(group)
    return groups


def is_met(group: dict[str, Any]) -> dict[str, bool]:
    """The targets that a group meets; only M-CNN-M has targets."""
    if group["model"] != LARGE:
        return {}
    times, peak = group["seconds"], group["peak_mib"]
    return {
        "seconds": all(value is not None and value < TARGETS["seconds"] for value in times),
        "peak_mib": peak is not None and peak < TARGETS["peak_mib"],
    }


def shown(group: dict[str, Any]) -> dict[str, str]:
    """A group as text: medians with smallest and largest in brackets; a missed target is marked."""
    cells = dict.fromkeys(
        ("network", "search", "ended", "robust", "s", "visited", "share visited", "of the map", "peak MiB", ""), ""
    )
    status = group["status"]
    ended = [word in ("robust", "notrobust") for word in status]
    cells |= {"network": group["model"], "search": group["search"], "ended": f"{sum(ended)} of {len(status)}"}
    cells["robust"] = str(status.count("robust"))
    missed = {name: "" if met else "!" for name, met in group["is_met"].items()}
    for head, values, form in (
        ("s", group["seconds"], ".2f"),
        ("visited", group["visited"], ",.0f"),
        ("share visited", group["visited_share"], ".3f"),
    ):
        known = [value for value in values if value is not None]
        cells[head] = f"{Spread.of(known):{form}}" if known else ""
    cells["s"] += missed.get("seconds", "")
    parts = [v / r for v, r in zip(group["visited"], group["regions"], strict=True) if v is not None and r]
    cells["of the map"] = f"{100 * median(parts):.1f} %" if parts else ""
    if group["peak_mib"] is not None:
        cells["peak MiB"] = f"{group['peak_mib']:.0f}{missed.get('peak_mib', '')}"
    cells[""] = "WRONG" if group["wrong"] else ""
    return cells


def against_gbs(groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The regions that `boundary` visits over those of gbs with w^δ = 0.2, problem by problem, for each property."""
    visits: dict[str, dict[str, int]] = {}
    for group in groups:
        for asked, count in zip(group["asked"], group["visited"], strict=True):
            if count:
                visits.setdefault(group["search"], {})[asked] = count
    rows = []
    for wanted in PROPERTIES:
        gbs, boundary = visits.get(f"gbs:{wanted}", {}), visits.get(f"boundary:{wanted}", {})
        common = [asked for asked in gbs if asked in boundary]
        if common:
            row: dict[str, Any] = {"property": wanted, "problems": len(common)}
            row["gbs"] = Spread.of([gbs[asked] for asked in common])
            row["boundary"] = Spread.of([boundary[asked] for asked in common])
            row["boundary_per_gbs"] = Spread.of([boundary[asked] / gbs[asked] for asked in common])
            rows.append(row)
    return rows


def networks_of(options: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """Networks and the searches of each."""
    chosen = [(f"{data}-{size}", list(options.searches)) for size in options.sizes for data in "MF"]
    return [*chosen, *([(LARGE, ["gbs:cr"])] if options.cnn_m else [])]


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=SIZES, choices=SIZES)
    parser.add_argument("--cnn-m", action="store_true", help=f"{LARGE} too; with --sizes and nothing after it: alone")
    parser.add_argument("--searches", nargs="+", default=SEARCHES, help="method:property, for example boundary:ar")
    parser.add_argument(
        "--only", nargs="*", default=[], help="problems whose name contains one of these, e.g. TP :69990"
    )
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for each search")
    parser.add_argument("--samples", type=int, default=40, help="visited regions that are checked, for each search")
    parser.add_argument("--shift", default=SHIFT, help="the translation by one pixel: dx=1 or dy=1")
    parser.add_argument("--resume", action="store_true", help="keep networks of an earlier run at this commit")
    parser.add_argument("--out", type=Path, default=RESULTS / "every_search.json")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    fixed = {name: list(getattr(options, name)) for name in ("searches", "only")}
    fixed |= {"timeout": options.timeout, "samples": options.samples, "shift": options.shift}
    groups: list[dict[str, Any]] = stored(options.out, "groups", [], **fixed) if options.resume else []
    question = (__doc__ or "").splitlines()[0]
    for model, searches in networks_of(options):
        if any(group["model"] == model and group["asked"] != [model] for group in groups):
            continue
        groups = [group for group in groups if group["model"] != model]
        groups += [group for group in grouped(run_network(model, searches, options)) if group["asked"]]
        print(model, file=sys.stderr)
        write_json(
            options.out, question, repetitions=1, options=fixed, targets=TARGETS, groups=groups,
            boundary_against_gbs=against_gbs(groups),
        )  # fmt: skip
    if not groups:
        print("no such problem: expected phrases such as BP, M-FNN-100 or :69990 after --only", file=sys.stderr)
        return 2
    print_table([shown(group) for group in groups])
    compared = against_gbs(groups)
    if compared:
        print("\nregions visited by boundary and by gbs with w^δ = 0.2 (median, smallest and largest):")
        print_table(
            [
                {"property": row["property"], "problems": str(row["problems"]), "gbs": f"{row['gbs']:,.0f}",
                 "boundary": f"{row['boundary']:,.0f}", "boundary/gbs": f"{row['boundary_per_gbs']:.3f}"}
                for row in compared
            ]
        )  # fmt: skip
    return exit_code([f"{group['search']} {wrong}" for group in groups for wrong in group["wrong"]])


if __name__ == "__main__":
    sys.exit(main())
