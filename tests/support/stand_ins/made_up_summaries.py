"""Turns a few facts into the summary of a map of brightness from 0 to 1, robust for both properties."""

from typing import Any

import msgspec

from steadygaze.results.summary import Summary

NOWHERE = {"low": None, "high": None, "theta": None}
"""The entry for no nearest violation."""

SHARES = ("CR", "MR", "AR", "IR", "CR&AR", "CR&IR", "MR&AR", "MR&IR", "undecided")


def made_summary(**changes: Any) -> Summary:
    """The summary with some facts replaced; `area`, `nearest` and `domain` only in the keys given."""
    plain = {
        "schema_version": 1, "method": "map", "kind": "map", "verdict": "robust", "status": "Robust",
        "property": "both", "label": 8, "label_name": "8", "delta": {"text": "25%", "value": 2.5, "map_size": 10.0},
        "model": {"name": "a model", "sha256": "", "classes": 10}, "image": {"name": "an image", "shape": [1, 2, 2]},
        "attention": {"filter": "identity", "distance": "l2", "classes": "all"}, "sliver_share": 0.0,
        "sets": {"CR": 5, "MR": 0, "CB": 0, "AR": 5, "IR": 0, "AB": 0}, "guarantee": "", "complete": True,
        "stopped": None, "notes": [],
    }  # fmt: skip
    parts: dict[str, dict[str, Any]] = {
        "area": {name: [1.0, 1.0] if name in ("CR", "AR", "CR&AR") else [0.0, 0.0] for name in SHARES},
        "nearest": {"CR": NOWHERE, "AR": NOWHERE},
        "domain": {"names": ["brightness"], "low": [0.0], "high": [1.0], "specs": []},
    }
    for name, part in parts.items():
        parts[name] = part | changes.pop(name, {})
    return msgspec.convert(plain | parts | changes, Summary)


def made_search(**changes: Any) -> Summary:
    """The summary of a search that visited 12 regions, a quarter of the domain, and found no violation."""
    visited = {
        "method": "gbs", "kind": "search", "visited": 12, "visited_share": 0.25, "verdict": "undecided", "failures": 0,
        "sets": {"CR": 12, "MR": 0, "CB": 0, "AR": 12, "IR": 0, "AB": 0},
        "undecided": {"classification": 0, "attention": 0},
    }  # fmt: skip
    return made_summary(**visited | changes)
