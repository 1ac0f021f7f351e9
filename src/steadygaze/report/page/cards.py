"""Parts of a page with pictures: cards of single thetas, and the outermost boundary. Pictures become data URIs.

A card shows image, actual and expected map, their difference, and the prediction. Nothing is decided here.
"""

import base64
import io
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageDraw

from ...boundary import Boundary
from ...errors import OptionError
from ...labels import Label
from ...properties.nearest import Nearest
from ...results.boundary_summary import BoundarySummary, reach_sentence, summarise_boundary
from ...results.claims import Violation
from ...results.label_counts import COLUMNS, ROWS
from ...results.result import Result
from ...results.strayed import place_text, strayed_pixels
from ...results.summary import Summary
from ...words import counted, margin_text, named_theta, percent_down, percent_up, rounded, rounded_down, rounded_up
from ..drawing.colours import MAP_SHADES
from ..drawing.exhibits import CLOSEST_VIOLATION, ShownMaps, is_apart
from ..drawing.outlines import Outline, image_outlines, map_outlines
from ..drawing.sheet import figure_bytes
from ..figures.boundary import boundary_figure
from ..titles import KEPT_WORDS

ENLARGED = 8
"""Sides of pixels in pictures with outlines."""
ROUNDING = 1e-7
"""Parameters below this share of their range are shown as 0."""
MOST_ROWS = 10
"""Components and enclaves of a boundary that a page lists."""


Wish = tuple[str, str, np.ndarray]
"""A theta that a page may show: a title, the reason, and the theta."""


def make_cards(result: Result, summary: Summary) -> list[dict[str, Any]]:
    """The unperturbed image, the nearest violations, and the witness of the same label with other evidence."""
    wishes: list[Wish] = []
    for name, title in ((Label.AR, "Nearest attention violation"), (Label.CR, "Nearest label violation")):
        found = result.nearest[name]
        if found.theta is not None and (name == Label.CR or result.is_measured):
            where = "outside of kinks " if name == Label.AR and result.sliver_share else ""
            wishes.append((title, _nearest_text(found, where), found.theta))
    for witness in result.witnesses:
        if witness.kind is Violation.EVIDENCE:
            wishes.append(("Same label, other evidence", "A replayed witness, see below.", witness.point.theta))
    return _cards(result, summary, wishes, has_maps=result.is_measured)


def make_search_cards(result: Result, summary: Summary) -> list[dict[str, Any]]:
    """The unperturbed image, and a theta in the nearest visited region that violates everywhere, for each kind."""
    domain, tiles = result.question.perturbed.domain, result.tiling.tiles(result.answer)
    inside = np.clip(result.tiling.arrays()["inside"], domain.low, domain.high)
    wishes: list[Wish] = []
    violated = (
        ("Attention violation", tiles.attention == COLUMNS.index(Label.IR)),
        ("Label violation", tiles.classification == ROWS.index(Label.MR)),
    )
    for title, chosen in violated:
        thetas = inside[chosen]
        if len(thetas):
            nearest = thetas[np.argmin(np.linalg.norm(thetas / domain.widths, axis=1))]
            wishes.append((title, "Inside the visited region of this kind whose inner point is nearest to 0.", nearest))
    return _cards(result, summary, wishes, has_maps=tiles.has_labels[1])


def _nearest_text(found: Nearest, where: str) -> str:
    """The distance of a violation, and how near another could be in the part of the domain that `where` names.

    Distances divide every parameter by its range.
    """
    distance = f"At distance {rounded(found.high)} from 0"
    if found.high - found.low <= 1e-5 * max(found.high, 1e-300):
        return f"{distance}; {where}nothing nearer violates, up to rounding."
    if found.low > 0.0:
        return f"{distance}; {where}nothing below {rounded_down(found.low, 5)} violates."
    return f"{distance}; a nearer one may exist."


def _cards(result: Result, summary: Summary, wishes: Sequence[Wish], *, has_maps: bool) -> list[dict[str, Any]]:
    """A card for the unperturbed image, if the domain contains it, and for wishes that keep their distance."""
    question, measure = result.question, summary.measure
    domain, shown, delta = question.perturbed.domain, ShownMaps.of(question), summary.delta.value
    chosen: list[Wish] = []
    for wish in wishes:
        if is_apart(wish[2], [theta for _, _, theta in chosen], domain.widths, CLOSEST_VIOLATION):
            chosen.append(wish)
    if domain.contains_zero:
        chosen = [("Unperturbed image", "Without any perturbation.", np.zeros(domain.dimension)), *chosen]
    points = [result.at(theta) for _, _, theta in chosen]
    pairs = [shown.pair(point) for point in points]
    maps = [np.stack([actual, expected, actual - expected]) for actual, expected in pairs]
    size = max((float(np.abs(values).max()) for values in maps), default=1.0)
    cards = []
    for (title, reason, theta), point, values in zip(chosen, points, maps, strict=True):
        words = "label kept" if point.label == question.label else "label changed"
        # On a border both labels are correct within rounding; the words for the margin say so.
        facts = [("predicts", f"{question.names[point.label]} ({words})"), ("margin", margin_text(point.margin))]
        pictures = [
            {"title": "image", "text": "the perturbed image", "uri": image_uri(point.image, image_outlines(point))}
        ]
        if has_maps:
            facts.append((measure.noun, measure.compared(point.inconsistency, delta)))
            lines = (map_outlines(result, point), image_outlines(point), ())
            for name, picture, outlines in zip(
                ("actual map", "expected map", "difference"), values, lines, strict=True
            ):
                text = f"{name} of class {shown.name}"
                pictures.append({"title": name, "text": text, "uri": map_uri(picture, size, outlines)})
            place = place_text(strayed_pixels(result, point), point.weights) if point.inconsistency > delta else ""
            facts += [("attention gained", place)] if place else []
        card = {
            "title": title,
            "reason": reason,
            "theta": named_theta(summary.domain.names, _without_rounding(theta, domain.widths)),
            "facts": facts,
        }
        cards.append(card | {"pictures": pictures, "scale": rounded_up(size, 2), "is_original": not theta.any()})
    return cards


def _without_rounding(theta: np.ndarray, widths: np.ndarray) -> list[float]:
    """A theta (d,) whose parameters are 0 if they are only rounding beside the widths (d,) of the domain.

    >>> _without_rounding(np.array([-1.0878e-8, 0.5]), np.ones(2))
    [0.0, 0.5]
    """
    return np.where(np.abs(theta) < ROUNDING * widths, 0.0, theta).tolist()


def describe_boundary(result: Result) -> dict[str, Any]:
    """The boundary of the question's property, in words and rows, or the reason for none."""
    try:
        found = result.boundary()
    except OptionError as error:
        return {"reason": str(error)}
    summary = summarise_boundary(result, found)
    components = [
        (rounded(part["measure"], 4), "yes" if part["touches_border"] else "no",
         f"{len(part['inner_regions']):,} / {len(part['outer_regions']):,}", percent_up(part["share_beyond"]))
        for part in summary.components[:MOST_ROWS]
    ]  # fmt: skip
    enclaves = [
        (percent_up(part["share"]), percent_down(part["satisfying_share"]),
         named_theta(summary.domain.names, part["nearest"]["theta"]), rounded(part["nearest"]["distance"], 4))
        for part in summary.enclaves[:MOST_ROWS]
    ]  # fmt: skip
    return {
        "reason": "",
        "sentence": _boundary_sentence(summary),
        "facts": _boundary_rows(summary, found),
        "components": [(str(place), *row) for place, row in enumerate(components, start=1)],
        "more_components": len(summary.components) - len(components),
        "enclaves": [(str(place), *row) for place, row in enumerate(enclaves, start=1)],
        "more_enclaves": len(summary.enclaves) - len(enclaves),
        "picture": figure_uri(lambda: boundary_figure(result, found)),
    }


def _boundary_sentence(summary: BoundarySummary) -> str:
    text = reach_sentence(summary, KEPT_WORDS[summary.property])
    if not summary.enclaves:
        return text
    enclaves = counted(len(summary.enclaves), "enclave")
    return f"{text} The reachable part encloses {enclaves}, where the property does not hold or is undecided."


def _boundary_rows(summary: BoundarySummary, found: Boundary) -> list[tuple[str, str]]:
    undecided = summary.undecided
    rows = [
        ("satisfies the property", f"at least {percent_down(summary.satisfying_share)}"),
        ("satisfies it, but not reachable from the unperturbed image", percent_up(summary.unreachable_share)),
        ("inside the outermost boundary, enclaves included", f"at least {percent_down(summary.enclosed_share)}"),
    ]
    if summary.farthest is not None:
        rows.append(("farthest reachable", named_theta(summary.domain.names, summary.farthest["theta"])))
    if undecided["pieces_beside"]:
        text = f"{undecided['pieces_beside']:,}; more can be reached if any of them satisfies the property"
        rows.append(("undecided pieces beside the boundary", text))
    if undecided["strip_share"] > 0.0:
        rows.append(("too close to a threshold to decide", f"at most {percent_up(undecided['strip_share'])}"))
    if not found.is_certain and undecided["share"] > 0.0:
        rows.append(("undecided, counts as not kept", f"at most {percent_up(undecided['share'])}"))
    return rows


def image_uri(image: np.ndarray, outlines: Sequence[Outline] = ()) -> str:
    """An image (C, H, W) with pixels in [0,1]: colour for three channels, otherwise the mean of all as grey."""
    values = np.rint(255.0 * np.clip(image, 0.0, 1.0)).astype(np.uint8)
    if len(values) == 3:
        return _png_uri(np.ascontiguousarray(np.moveaxis(values, 0, 2)), outlines)
    return _png_uri(np.rint(255.0 * np.clip(image.mean(axis=0), 0.0, 1.0)).astype(np.uint8), outlines)


def map_uri(values: np.ndarray, top: float, outlines: Sequence[Outline] = ()) -> str:
    """A map (H, W) in two colours from −top to top, white at 0."""
    scaled = 0.5 + 0.5 * np.clip(values / top if top > 0.0 else np.zeros_like(values), -1.0, 1.0)
    return _png_uri(np.rint(255.0 * matplotlib.colormaps[MAP_SHADES](scaled)[:, :, :3]).astype(np.uint8), outlines)


def figure_uri(make: Callable[[], Figure]) -> str:
    """A figure of `report` as PNG."""
    return png_uri(figure_bytes(make, "png"))


def inline_svg(make: Callable[[], Figure], title: str) -> str:
    """A figure as an SVG element for the body of a page: markup that holds no text of users, and its title."""
    text = figure_bytes(make, "svg").decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # The size comes from the page; the view box keeps the proportions.
    head, rest = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(title)}">{rest}'


def _png_uri(pixels: np.ndarray, outlines: Sequence[Outline] = ()) -> str:
    """Pixels as PNG; enlarged if they have outlines, to keep the lines thin."""
    buffer, picture = io.BytesIO(), Image.fromarray(pixels)
    if outlines:
        picture = picture.convert("RGB").resize(
            (ENLARGED * picture.width, ENLARGED * picture.height), Image.Resampling.NEAREST
        )
        for edges, colour in outlines:
            for start, end in np.minimum(ENLARGED * edges, np.array(picture.size) - 1):
                ImageDraw.Draw(picture).line([*start.tolist(), *end.tolist()], fill=colour, width=2)
    picture.save(buffer, format="PNG", optimize=True)
    return png_uri(buffer.getvalue())


def png_uri(png: bytes) -> str:
    """The bytes of a PNG as an address inside a page."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
