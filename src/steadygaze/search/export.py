"""From a search to the rows of an export: the regions that were visited. Nothing is known of the rest of the domain."""

import numpy as np
from scipy.spatial import HalfspaceIntersection

from ..errors import OptionError
from ..results.export import NOTE
from ..results.table import Block, Part, Table, shape_columns
from .store import StoredSearch


def search_table(stored: StoredSearch, what: str) -> Table:
    """The visited regions; they are not split into pieces."""
    summary, arrays = stored.summary, stored.arrays
    if what != "regions":
        raise OptionError(
            f"a search ({summary['method']}) has regions alone, which are not split into {what}; leave --what out, or "
            "verify with --method map"
        )
    names = ("method", "property", "label", "domain", "model", "image", "attention", "delta", "complete")
    facts = {"note": NOTE, "rows": what, **{name: summary[name] for name in names}}
    classification, attention = stored.classification, stored.attention
    label = int(summary["label"])

    def make(start: int, stop: int) -> Block:
        rows = np.arange(start, stop)
        unknown = np.full(len(rows), np.nan)
        corners = [_corners(stored, row) for row in range(start, stop)]
        starts = np.concatenate([[0], np.cumsum([len(points) for points in corners])])
        margin, reach = (np.array(arrays[name][rows]) for name in ("margin", "inconsistency"))
        margin[[not classification[row] for row in rows]] = np.nan
        reach[[not attention[row] for row in rows]] = np.nan
        return {
            "kind": ["region"] * len(rows),
            "number": rows,
            "classification": [classification[row] or None for row in rows],
            "attention": [attention[row] or None for row in rows],
            "winner": np.array([label if classification[row] == "CR" else -1 for row in rows]),
            "share": arrays["volume"][rows],
            "label_open": unknown,
            "attention_open": unknown,
            "margin_low": margin[:, 0],
            "margin_high": margin[:, 1],
            "inconsistency_low": reach[:, 0],
            "inconsistency_high": reach[:, 1],
            "delta": np.full(len(rows), float(summary["delta"]["value"])),
            **shape_columns(np.concatenate(corners), starts, arrays["inside"][rows]),
        }

    return Table((Part(len(stored), make),), len(summary["domain"]["names"]), facts)


def _corners(stored: StoredSearch, region: int) -> np.ndarray:
    """The corners (V, d) of a region in theta, from its half-spaces, none of which is redundant."""
    halfspaces, inside = stored.halfspaces(region), stored.arrays["inside"][region]
    normals, offsets = halfspaces[:, :-1], halfspaces[:, -1]
    if len(inside) == 1:
        return np.sort(-offsets / normals[:, 0])[:, None]
    if len(inside) > 2:
        return HalfspaceIntersection(-halfspaces, inside).intersections
    order = np.argsort(np.arctan2(normals[:, 1], normals[:, 0]), kind="stable")
    first, second = order, np.roll(order, -1)
    crossing = normals[first, 0] * normals[second, 1] - normals[first, 1] * normals[second, 0]
    x = normals[first, 1] * offsets[second] - normals[second, 1] * offsets[first]
    y = normals[second, 0] * offsets[first] - normals[first, 0] * offsets[second]
    return np.stack([x, y], axis=1) / crossing[:, None]
