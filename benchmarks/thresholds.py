"""Which thresholds of each property of attention distinguish networks, by proved shares?

    python benchmarks/thresholds.py                                  # JSON and the table in docs
    python benchmarks/thresholds.py --models M-FNN-100 M-FNN-100-plain --images 1 --page "" --out /tmp/thresholds.json

Every network is mapped once for each property, image and domain; the stored map answers all thresholds. A number is the
proved share of AR, averaged over images and domains. `apart` is the largest proved difference between two networks: the
lower bound of one minus the upper bound of the other.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paper_problems import INDEXES, image_name, specs
from steadygaze.budget import Budget, Limits
from steadygaze.engines import run
from steadygaze.labels import Label
from steadygaze.question import make_question
from timing import CHECKOUT, RESULTS, print_table, write_json

QUESTION = "thresholds that distinguish networks"
MODELS = ("M-FNN-100-plain", "M-FNN-100", "M-FNN-100-object", "M-CNN-S-plain", "M-CNN-S", "M-CNN-S-object", "M-MAXPOOL")
DOMAINS = ("BP", "TB")
MASK = "auto:bright=0.2,grow=1"
ASKED: dict[str, dict[str, Any]] = {
    "distance": {"delta": "25%"},
    "object": {"attention": "object", "tau": 0.5, "mask": MASK},
    "pointing": {"attention": "pointing", "mask": MASK},
    "alike": {"attention": "alike", "gamma": 0.9},
    "topk": {"attention": "topk", "top": "50:0.8"},
}
THRESHOLDS: dict[str, tuple[str, ...]] = {
    "distance": ("10%", "25%", "50%", "100%", "200%"),
    "object": ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "90%"),
    "pointing": (),
    "alike": ("0.2", "0.5", "0.7", "0.9", "0.99"),
    "topk": ("50:0.2", "50:0.4", "50:0.6", "50:0.8"),
}
BEGIN, END = "<!-- thresholds: written by benchmarks/thresholds.py -->", "<!-- end of thresholds -->"
Bounds = tuple[float, float]


def shares_of(model: str, name: str, indexes: Sequence[int], seconds: float) -> dict[str, Bounds]:
    """Bounds of the share of AR of one network by threshold, averaged over images and domains."""
    sums: dict[str, list[Bounds]] = {}
    for index in indexes:
        for domain in DOMAINS:
            question = make_question(
                model, image_name(model, index), specs(domain), property="ar", **ASKED[name]
            )  # fmt: skip
            result = run(question, "map", threads=1, budget=Budget(Limits(timeout_seconds=seconds)))
            for text in THRESHOLDS[name] or ("",):
                own = result.with_threshold(text) if text else result
                sums.setdefault(text, []).append(own.areas[Label.AR])
    return {
        text: (sum(low for low, _ in found) / len(found), sum(high for _, high in found) / len(found))
        for text, found in sums.items()
    }


def apart(shares: Mapping[str, Bounds]) -> float:
    """The largest proved difference between two networks.

    >>> round(apart({"a": (0.1, 0.2), "b": (0.7, 0.8)}), 3)
    0.5
    """
    pairs = [low - high for a, (low, _) in shares.items() for b, (_, high) in shares.items() if a != b]
    return max([0.0, *pairs])


def rows_of(found: Mapping[str, Mapping[str, Mapping[str, Bounds]]]) -> list[dict[str, str]]:
    """One row for each property and threshold."""
    rows = []
    for name, networks in found.items():
        for text in THRESHOLDS[name] or ("",):
            own = {model: shares[text] for model, shares in networks.items()}
            cells = {model: f"{100.0 * low:.0f} %" for model, (low, _) in own.items()}
            rows.append({"property": name, "threshold": text, **cells, "apart": f"{100.0 * apart(own):.0f} points"})
    return rows


def write_page(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Replace the table between the two marks of a page."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    lines = ["| " + " | ".join(row) + " |" for row in (list(rows[0]), ["---"] * len(rows[0]), *map(_cells, rows))]
    path.write_text("\n".join([before + BEGIN, "", *lines, "", END]) + rest.split(END)[1], encoding="utf-8")


def _cells(row: Mapping[str, str]) -> list[str]:
    return list(row.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Map, print the table, write JSON and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--properties", nargs="+", choices=list(ASKED), default=list(ASKED))
    parser.add_argument("--images", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120.0, help="seconds for each map; the rest stays open")
    parser.add_argument("--page", default=str(CHECKOUT / "docs" / "attention.md"), help="empty: no page")
    parser.add_argument("--out", type=Path, default=RESULTS / "thresholds.json")
    options = parser.parse_args(arguments)
    found: dict[str, dict[str, dict[str, Bounds]]] = {}
    for name in options.properties:
        for model in options.models:
            own = shares_of(model, name, INDEXES[: options.images], options.seconds)
            found.setdefault(name, {})[model] = own
            print(name, model, own, flush=True)
    rows = rows_of(found)
    print_table(rows)
    write_json(options.out, QUESTION, repetitions=options.images, shares=found, rows=rows)
    if options.page:
        write_page(Path(options.page), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
