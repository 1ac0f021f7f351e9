"""From a result to its interactive map: markup, scripts and styles for a page that needs no network.

Bokeh gives axes, zoom and pan; assets/*.js rasterise the pieces, recolour them for another δ or view, and compute
image, logits and attention maps of a theta from the embedded weights. What is shown as proved is what the result says.
Everything that users named is escaped. Nothing is written to disk here.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.embed import json_item
from bokeh.resources import Resources

from ...attention.filters import Filter
from ...results.domain_result import DomainResult
from ...tolerances import MAX_MAP_PARAMETERS
from ..extent import share_not_reached
from ..wording import counted
from .filling import fill, read_asset
from .frames import make_frames, marks_of
from .merged_tiles import GRID, MOST_LINES, NO_AREA, MergedPlane, merge_tiles
from .network_data import NetworkData, describe_network
from .pack import outward, pack
from .shading import palette, shown_top, tables, unit_values
from .stored_points import StoredPoints, store_points
from .thresholds import Thresholds
from .tiles import Plane, Tiles, make_planes, make_tiles
from .visible import visible

MOST_UNITS = 50_000
"""Regions and boxes up to which the pieces themselves are embedded; beyond that areas are merged."""

SCRIPTS = (
    "data.js", "network.js", "stored.js", "map.js", "paint.js", "pictures.js", "panel.js", "controls.js", "link.js",
    "explorer.js",
)  # fmt: skip
"""In this order: each uses those before it."""

FIXED = 2.0**32 - 1
"""Positions in the unit square are whole numbers up to this one: finer than float32, in the same space."""

Arrays = dict[str, tuple[str, np.ndarray]]


@dataclass(frozen=True)
class Explorer:
    """The interactive map as parts of a page: `head` (scripts and styles) and `html` (for the body).

    Both are markup with everything escaped. A note in the body says what is exact and what is not.
    """

    html: str
    head: str


def make_explorer(result: DomainResult, steps: Thresholds) -> Explorer | None:
    """Make the interactive map of a result of one to three parameters with its thresholds; there is none of four.

    What it says to be proved is what the result proves; at other steps of the δ slider than its own, see `thresholds`.
    """
    if result.problem.compound.domain.dimension > MAX_MAP_PARAMETERS:
        return None
    tiles = make_tiles(result)
    network = describe_network(result)
    stored = None if network is not None else store_points(result)
    arrays, facts = _describe_map(result, tiles, steps)
    facts |= _describe_question(result, steps)
    facts |= {"palette": palette(result, tiles), "network": None, "stored": None}
    if network is not None:
        arrays |= {f"net.{name}": item for name, item in network.arrays.items()}
        facts["network"] = network.facts
    if stored is not None:
        arrays |= {f"stored.{name}": item for name, item in stored.arrays.items()}
        facts["stored"] = stored.facts
    arrays |= tables()
    facts["note"] = _note(result, facts, network, stored)
    return Explorer(_html(result, arrays, facts), _head(result.problem.attention.filter))


def _describe_map(result: DomainResult, tiles: Tiles, steps: Thresholds) -> tuple[Arrays, dict[str, Any]]:
    """The pieces or merged areas, their labels at every step, and the planes that show them."""
    compound = result.problem.compound
    planes = make_planes(compound, tiles)
    values, spans = unit_values(result, tiles)
    facts: dict[str, Any] = {
        "boxes": tiles.boxes,
        "top": shown_top(values, tiles),
        "largest": float(values[np.isfinite(values)].max(initial=0.0)),
        "isMerged": max(len(plane.piece) for plane in planes) > 0 and _is_large(tiles, planes),
        "moving": compound.perturbed.moving_axis,
        "planes": [_describe_plane(plane) for plane in planes],
        "gridSide": GRID,
        "mostLines": MOST_LINES,
    }
    if facts["isMerged"]:
        merged = merge_tiles(result, tiles, planes, steps, values, spans)
        facts |= {"boxes": 0, "moving": None}
        arrays = _merged_arrays(merged.planes) | merged.arrays
        return arrays, facts
    arrays = {
        "unit": ("u4", tiles.unit),
        "winner": ("i2", tiles.winner),
        "label": ("u1", tiles.label),
        "margin": ("f4", outward(tiles.margin)),
        "reach": ("f4", outward(_unit_reach(result, tiles))),
        "keptFrom": ("u2", steps.kept_from),
        "lostUntil": ("u2", steps.lost_until),
        "values": ("f4", values),
        "spans": ("f4", spans),
        "slabStarts": ("u4", steps.slab_starts),
        "slabUnit": ("u4", steps.slab_unit),
        "slabs": ("f8", steps.slabs),
    }
    for number, plane in enumerate(planes):
        arrays[f"points.{number}"] = ("u4", np.round(np.clip(plane.points, 0.0, 1.0) * FIXED))
        arrays[f"counts.{number}"] = ("u2", np.diff(plane.starts))
        arrays[f"piece.{number}"] = ("u4", plane.piece)
    return arrays, facts


def _is_large(tiles: Tiles, planes: tuple[Plane, ...]) -> bool:
    """Whether some plane shows more than a page can handle quickly."""
    if len(planes) > 1:
        return max(len(plane.piece) for plane in planes) > MOST_UNITS
    return len(np.unique(tiles.unit)) > MOST_UNITS


def _describe_plane(plane: Plane) -> dict[str, Any]:
    held = None
    if plane.held is not None:
        axis, value, t = plane.held
        held = {"axis": axis, "value": value, "t": t}
    return {"axes": list(plane.axes), "held": held}


def _merged_arrays(planes: tuple[MergedPlane, ...]) -> Arrays:
    arrays: Arrays = {}
    for number, plane in enumerate(planes):
        arrays[f"cells.{number}"] = ("u2", np.where(plane.areas < 0, NO_AREA, plane.areas))
        arrays[f"lines.{number}"] = ("f4", plane.lines)
        arrays[f"lineKinds.{number}"] = ("u1", plane.kinds)
    return arrays


def _unit_reach(result: DomainResult, tiles: Tiles) -> np.ndarray:
    """Proved bounds (U, 2) of the inconsistency over every unit."""
    reach = np.tile([0.0, np.inf], (tiles.boxes + tiles.regions, 1))
    joint = result.answer.joint
    if result.is_measured:
        reach[joint.pieces.region] = result.answer.reach
    return np.maximum(reach, 0.0)


def _describe_question(result: DomainResult, steps: Thresholds) -> dict[str, Any]:
    problem = result.problem
    domain = problem.compound.domain
    return {
        "names": [visible(name) for name in problem.names],
        "label": result.label,
        "classes": problem.attention.chosen(problem.model.classes).tolist(),
        "domain": {"names": list(domain.names), "low": domain.low.tolist(), "high": domain.high.tolist()},
        "isMeasured": result.is_measured,
        "deltas": steps.deltas.tolist(),
        "texts": list(steps.texts),
        "chosen": steps.chosen,
        "areas": {name: bounds.tolist() for name, bounds in steps.areas.items()},
        "notReached": share_not_reached(result),
        "marks": marks_of(result),
        "isPartial": not result.is_complete,
    }


def _note(result: DomainResult, facts: dict[str, Any], network: NetworkData | None, stored: StoredPoints | None) -> str:
    """What is exact, what falls back."""
    count = counted(result.region_count, "region")
    if facts["isMerged"]:
        first = (
            f"This map is too large to be shown piece by piece ({count}; the limit is {MOST_UNITS:,}): areas with the "
            f"same labels are merged on a grid of {GRID} × {GRID} points, with the boundaries themselves on top; each "
            "colour is what is proved at its point, and the shares are those of the whole result."
        )
    else:
        first = "Colours, labels and shares are what is proved, at every step of the slider."
    if stored is None:
        second = (
            "Image, logits and maps of a point are computed in this page from the network's own weights, in double "
            "precision."
        )
    else:
        second = (
            f"The network is too large to be computed in this page: images and maps are stored for {stored.count} "
            "thetas with 8 bits, their logits and inconsistencies exactly; other thetas show the nearest of them."
        )
    return f"{first} {second}"


def _html(result: DomainResult, arrays: Arrays, facts: dict[str, Any]) -> str:
    packed = pack(arrays)
    item = renumbered(json_item(make_frames(result), "sg-figure"))  # type: ignore[arg-type]
    domain = facts["domain"]
    content = {
        "facts": facts,
        "channels": len(result.problem.perturbed.x0),
        "parameters": list(zip(domain["names"], domain["low"], domain["high"], strict=True)),
        "has_zero": all(low <= 0.0 <= high for low, high in zip(domain["low"], domain["high"], strict=True)),
        "class_names": [(number, facts["names"][number]) for number in facts["classes"]],
        "held_axes": _held_axes(facts),
        "facts_json": script_json(facts | {"places": packed.places}),
        "figure_json": script_json(item),
        "block": packed.block,
    }
    return fill("explorer.html.j2", content)


def _held_axes(facts: dict[str, Any]) -> list[tuple[int, str]]:
    axes = sorted({plane["held"]["axis"] for plane in facts["planes"] if plane["held"]}, reverse=True)
    return [(axis, facts["domain"]["names"][axis]) for axis in axes]


def _head(steps: Filter) -> str:
    # The first is the library; the second would only write its log level to the console.
    library = Resources(mode="inline", components=["bokeh"]).js_raw[0]
    scripts = [library, steps.script, *(read_asset(name) for name in SCRIPTS)]
    styles = f"<style>\n{read_asset('explorer.css')}</style>"
    return "\n".join([styles, *(f"<script>\n{script}\n</script>" for script in scripts)])


def renumbered(item: object, numbers: dict[str, str] | None = None) -> object:
    """What `json_item` gives, with models numbered in their order: Bokeh goes on counting from one figure to the next.

    >>> renumbered({"id": "p1007", "of": [{"id": "p1003"}, {"id": "p1007"}]})
    {'id': 'm1', 'of': [{'id': 'm2'}, {'id': 'm1'}]}
    """
    known = {} if numbers is None else numbers
    if isinstance(item, list | tuple):
        return [renumbered(part, known) for part in item]
    if not isinstance(item, dict):
        return item
    return {
        key: known.setdefault(part, f"m{len(known) + 1}")
        if key in ("id", "root_id") and isinstance(part, str)
        else renumbered(part, known)
        for key, part in item.items()
    }


def script_json(data: object) -> str:
    """JSON that may stand in a script element: no tag can begin in it. What is not finite becomes null.

    >>> script_json({"name": "</script>", "bound": float("inf")})
    '{"name":"\\\\u003c/script>","bound":null}'
    """
    text = json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _finite(data: object) -> object:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
