"""From a result to its interactive map: markup, scripts and styles for a page that needs no network.

Bokeh gives axes, zoom and pan in figures that the page fills in; assets/*.js rasterise the pieces, recolour them for
another δ or view, and compute image, logits and attention maps of a theta from the embedded weights. The page marks as
proved only the claims of the result. Names from users are escaped. Python callbacks would need `eval`: there are none.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...attention.measures import NO_ATTENTION
from ...attention.measures.distance import DISTANCE
from ...attention.methods import GradientMethod
from ...labels import Joint, Label
from ...question import Question
from ...results.label_grid import SIDE, GridPlane, LabelGrid
from ...results.result import Result
from ...tolerances import MAX_MAP_PARAMETERS
from ...words import counted, shown_at_zero, shown_value
from ..drawing.exhibits import NEARER
from ..thresholds import Thresholds
from ..titles import border_text, share_not_reached
from . import fill, read_asset, visible
from .bokeh_figures import figure_item, library_script
from .merged_areas import GRID, MOST_LINES, NO_AREA, Merged, merge_grid, merge_tiles
from .network_data import Arrays, ThetaData, curve_script, describe_network, fits_page, outward, pack, store_points
from .tiles import (
    Plane,
    Tiles,
    Winners,
    make_planes,
    make_tiles,
    palette,
    shade_tables,
    shown_top,
    tile_winners,
    top_of_most,
    unit_values,
)

MOST_UNITS = 50_000
"""With more regions and boxes, merged areas are embedded instead of the pieces."""
SCRIPTS = (
    "data.js", "curve.js", "network.js", "stored.js", "map.js", "paint.js", "pictures.js", "panel.js", "controls.js",
    "link.js", "explorer.js",
)  # fmt: skip
"""In this order: each uses those before it."""

FIXED = 2.0**32 - 1
"""Positions in the unit square are whole numbers up to this: finer than float32, in as many bytes."""


@dataclass(frozen=True)
class Explorer:
    """The interactive map as escaped markup: `head` (scripts and styles) and `html` (for the body).

    A note in the body says which parts are proved. `has_weights`: whether the weights of the network are in it.
    """

    html: str
    head: str
    has_weights: bool = False


def make_explorer(result: Result, steps: Thresholds, *, weights: bool = True) -> Explorer | None:
    """The interactive map of a result of one to three parameters with its thresholds; None for four and more.

    It claims what the result proves; see `thresholds` for other steps of the δ slider. Without `weights`, and for
    networks that are too large, the page shows stored thetas.
    """
    if result.question.compound.domain.dimension > MAX_MAP_PARAMETERS:
        return None
    is_small = fits_page(result)
    network = describe_network(result) if weights and is_small else None
    stored = None if network is not None else store_points(result)
    if result.answer.grid is not None:
        (arrays, facts), winners = _describe_grid(result, result.answer.grid, steps), _all_winners(result)
    else:
        tiles = make_tiles(result)
        (arrays, facts), winners = _describe_map(result, tiles, steps), tile_winners(result, tiles)
    facts |= _describe_question(result, steps) | {"palette": palette(result, winners)}
    for name, prefix, data in (("network", "net", network), ("stored", "stored", stored)):
        facts[name] = None if data is None else data.facts
        arrays |= {} if data is None else {f"{prefix}.{key}": item for key, item in data.arrays.items()}
    arrays |= shade_tables()
    facts["note"] = _note(result, facts, stored, is_small=is_small)
    head = _head(result.question)
    return Explorer(_html(result, arrays, facts), head, has_weights=network is not None)


def _describe_map(result: Result, tiles: Tiles, steps: Thresholds) -> tuple[Arrays, dict[str, Any]]:
    """The pieces or merged areas, their labels at every step, and the planes that show them."""
    compound = result.question.compound
    planes = make_planes(compound, tiles)
    values, spans = unit_values(result, tiles)
    facts: dict[str, Any] = {
        "boxes": tiles.boxes,
        "top": shown_top(values, tiles),
        "largest": float(values[np.isfinite(values)].max(initial=0.0)),
        "isMerged": _is_large(tiles, planes),
        "moving": compound.perturbed.moving_axis,
        "planes": _describe_planes(planes),
        "gridSide": GRID,
        "mostLines": MOST_LINES,
    }
    if facts["isMerged"]:
        merged = merge_tiles(result, tiles, planes, steps, values, spans)
        return _area_arrays(merged), facts | {"boxes": 0, "moving": None}
    arrays: Arrays = {
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


def _describe_grid(result: Result, grid: LabelGrid, steps: Thresholds) -> tuple[Arrays, dict[str, Any]]:
    """The merged areas of a map in chunks, from its grid."""
    values = np.concatenate([plane.inconsistency.ravel() for plane in grid.planes]).astype(np.float64)
    values = values[np.isfinite(values)]
    facts: dict[str, Any] = {
        "boxes": 0,
        "top": top_of_most(values, np.ones(len(values))),
        "largest": float(values.max(initial=0.0)),
        "isMerged": True,
        "moving": None,
        "planes": _describe_planes(grid.planes),
        "gridSide": SIDE,
        "mostLines": MOST_LINES,
    }
    return _area_arrays(merge_grid(result, grid, steps)), facts


def _describe_planes(planes: Sequence[Plane | GridPlane]) -> list[dict[str, Any]]:
    names = ("axis", "value", "t")
    return [
        {
            "axes": list(plane.axes),
            "held": None if plane.held is None else dict(zip(names, plane.held, strict=True)),
        }
        for plane in planes
    ]


def _area_arrays(merged: Merged) -> Arrays:
    arrays: Arrays = {}
    for number, plane in enumerate(merged.planes):
        arrays[f"cells.{number}"] = ("u2", np.where(plane.areas < 0, NO_AREA, plane.areas))
        arrays[f"lines.{number}"] = ("f4", plane.lines)
        arrays[f"lineKinds.{number}"] = ("u1", plane.kinds)
    return arrays | merged.arrays


def _all_winners(result: Result) -> Winners:
    """The winners of a map in chunks: the label is lost where another class wins."""
    shares = result.answer.winner_shares
    lost = shares.copy()
    lost[result.label] = 0.0
    return Winners(shares, lost)


def _is_large(tiles: Tiles, planes: tuple[Plane, ...]) -> bool:
    """Whether some plane shows more than a page can handle quickly."""
    most = max(len(plane.piece) for plane in planes)
    return most > MOST_UNITS if len(planes) > 1 or not most else len(np.unique(tiles.unit)) > MOST_UNITS


def _unit_reach(result: Result, tiles: Tiles) -> np.ndarray:
    """Proved bounds (U, 2) of the inconsistency over every unit."""
    reach = np.tile([0.0, np.inf], (tiles.boxes + tiles.regions, 1))
    joint = result.answer.joint
    if result.is_measured:
        reach[joint.pieces.region] = result.answer.reach
    return np.maximum(reach, 0.0)


def _describe_question(result: Result, steps: Thresholds) -> dict[str, Any]:
    question = result.question
    domain = question.compound.domain
    return {
        "names": [visible(name) for name in question.names],
        "label": result.label,
        "classes": question.attention.chosen(question.model.classes).tolist(),
        "domain": {
            "names": list(domain.names),
            "low": domain.low.tolist(),
            "high": domain.high.tolist(),
            "shownAtZero": [shown_at_zero(name) for name in domain.names],
        },
        "isMeasured": result.is_measured,
        "jointWords": {one: one.sentence for one in Joint},
        "deltas": steps.deltas.tolist(),
        "texts": list(steps.texts),
        "chosen": steps.chosen,
        "areas": {name: bounds.tolist() for name, bounds in steps.areas.items()},
        "notReached": share_not_reached(result),
        "marks": marks_of(result),
        "measure": describe_measure(result, steps),
        "isPartial": not result.is_complete,
    }


def _note(result: Result, facts: dict[str, Any], stored: ThetaData | None, *, is_small: bool) -> str:
    """The note on which parts of the shown map are proved, and which are only computed."""
    has_slider = len(facts["deltas"]) > 1
    first = f"Colours, labels and shares are proved{' at every step of the slider' if has_slider else ''}."
    if facts["isMerged"]:
        side = facts["gridSide"]
        lines = "" if result.answer.grid is not None else ", with the boundaries themselves on top"
        first = (
            f"This map is too large to show piece by piece ({counted(result.region_count, 'region')}; the limit is "
            f"{MOST_UNITS:,}): areas with the same labels are merged on a grid of {side} × {side} points{lines}; each "
            "colour is proved at its point, and the shares refer to the whole result."
        )
    if _has_bent_borders(result):
        first += (
            " Where the border of the kept attention bends within a region, the part around it is grey on this map; "
            "the shares count the labels proved there, and the picture below shows them."
        )
    if stored is None:
        return (
            f"{first} Image, logits and maps of a point are computed in this page from the network's own weights, in "
            "double precision: all weights of the network are inside this file."
        )
    method, why = result.question.attention.method, "The network is too large to compute in this page"
    if is_small:
        why = "The weights of the network are not in this page"
    elif not isinstance(method, GradientMethod):
        why = f"This page does not compute maps of {method.name}"
    return (
        f"{first} {why}: images and maps are stored for {stored.count} "
        "thetas with 8 bits, their logits and inconsistencies exactly; any other theta shows the nearest of them."
    )


def _has_bent_borders(result: Result) -> bool:
    """Whether regions may have borders of attention that the map shows as one strip for each region."""
    answers = None if result.answer.grid is not None else result.tiling.answers
    return answers is not None and answers.curves is not None and answers.curves.layout is not None


def _html(result: Result, arrays: Arrays, facts: dict[str, Any]) -> str:
    packed = pack(arrays)
    item = figure_item(result, "sg-figure")
    domain = facts["domain"]
    axes = sorted({plane["held"]["axis"] for plane in facts["planes"] if plane["held"]}, reverse=True)
    content = {
        "facts": facts,
        "channels": len(result.question.perturbed.x0),
        "parameters": [
            (name, shown_value(name, low), shown_value(name, high))
            for name, low, high in zip(domain["names"], domain["low"], domain["high"], strict=True)
        ],
        "has_zero": result.question.compound.domain.contains_zero,
        "class_names": [(number, facts["names"][number]) for number in facts["classes"]],
        "held_axes": [(axis, domain["names"][axis]) for axis in axes],
        "facts_json": script_json(facts | {"places": packed.places}),
        "figure_json": script_json(item),
        "block": packed.block,
    }
    return fill("explorer.html.j2", content)


def _head(question: Question) -> str:
    asked = question.attention
    scripts = [
        library_script(),
        asked.filter.script,
        read_asset("maps.js"),
        asked.measure.page_script,
        curve_script(question.perturbed.curve),
        *(read_asset(name) for name in SCRIPTS),
    ]
    styles = f"<style>\n{read_asset('explorer.css')}</style>"
    return "\n".join([styles, *(f"<script>\n{script}\n</script>" for script in scripts)])


def script_json(data: object) -> str:
    """JSON for a script element: it contains no tag, and infinite numbers and NaN become null.

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


def marks_of(result: Result) -> list[dict[str, object]]:
    """Thetas marked on the map: the unperturbed image, and the nearest proved violations."""
    domain = result.question.compound.domain
    marks: list[dict[str, object]] = []
    if domain.contains_zero:
        marks.append({"theta": [0.0] * domain.dimension, "text": "unperturbed image", "marker": "circle"})
    for name, what, marker in (
        (Label.CR, "the label changes", "triangle"),
        (Label.AR, "the attention changes", "diamond"),
    ):
        found = result.nearest[name]
        if found.theta is not None and (name == Label.CR or result.is_measured):
            word = "nearest point" if found.high - found.low < NEARER else "nearest point found"
            marks.append({"theta": found.theta.tolist(), "text": f"{word} where {what}", "marker": marker})
    return marks


def describe_measure(result: Result, steps: Thresholds) -> dict[str, Any]:
    """The property of attention in words; for each step of the slider those that name its threshold."""
    question = result.question
    measure, before = question.attention.measure, result.stated
    is_curve = question.perturbed.domain.dimension == 1  # the line lies across a curve of the loss
    stated = [
        before._replace(text=text, limit=float(limit)) for text, limit in zip(steps.texts, steps.deltas, strict=True)
    ]
    found: dict[str, Any] = {
        "form": measure.page_form, "symbol": measure.symbol_word, "noun": measure.noun, "lossNoun": measure.loss_noun,
        "border": border_text(measure, is_loss=is_curve), "lossBorder": border_text(measure, is_loss=True),
        "k": getattr(measure, "k", 0), "noAttention": NO_ATTENTION,
    }  # fmt: skip
    if measure != DISTANCE:
        found |= {
            "words": [measure.threshold_words(one, 5) if measure.option else "" for one in stated],
            "kept": [measure.clauses(one).kept for one in stated],
            "lost": [measure.clauses(one).lost for one in stated],
            "keptRows": [measure.kept_row(one) for one in stated],
            "lostRow": measure.short.lost,
        }
    return found
