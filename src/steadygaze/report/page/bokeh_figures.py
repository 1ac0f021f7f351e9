"""The figures of the interactive map that Bokeh draws: axes, zoom and pan; and its library for the page.

The page fills the figures in: this module gives them their frames, and the profiles of a single parameter.
"""

from functools import cache
from typing import Any, Literal

import numpy as np
from bokeh import models
from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, PlainText, Range1d
from bokeh.models.annotations import Span
from bokeh.plotting import figure
from bokeh.resources import Resources

from ...results.result import Result
from ..drawing.colours import DELTA_LINE, FAINT_INK, INK
from ..figures.strip import Profile, line_through, profile

HEIGHT, STRIP, CURVE, TOOLBAR = 560, 64, 225, 34

FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"

BAND = "#8fa9c4"

FETCHED = (
    "https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-svg.js",
    "https://maps.googleapis.com/maps/api/js",
    "https://cdn.jsdelivr.net/npm/@tabler/icons-webfont@latest",
)
"""Addresses in Bokeh's library from which parts that no page here uses would fetch more; they are taken out."""


@cache
def library_script() -> str:
    """Bokeh's library, without the addresses in it."""
    # The first is the library; the second would only write its log level to the console.
    library = Resources(mode="inline", components=["bokeh"]).js_raw[0]
    for address in FETCHED:
        library = library.replace(address, "")
    return library


def figure_item(result: Result, element: str) -> object:
    """The figures as plain data that Bokeh's library embeds into an element of the page."""
    return renumbered(json_item(make_frames(result), element))  # type: ignore[arg-type]


def renumbered(item: object, numbers: dict[str, str] | None = None) -> object:
    """The answer of `json_item` with models numbered in order: Bokeh itself continues its count from figure to figure.

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


def make_frames(result: Result) -> models.LayoutDOM:
    """The figure of a map, or with one parameter a strip with the profiles of margin and inconsistency below it."""
    domain = result.question.compound.domain
    if domain.dimension == 1:
        return _profile_frames(result)
    frame = _frame(domain.low[:2], domain.high[:2], HEIGHT)
    _add_map(frame)
    _name_axes(frame, domain.names[0], domain.names[1])
    return frame


def _frame(low: np.ndarray, high: np.ndarray, height: int, x_range: Range1d | None = None) -> figure:
    """An empty figure that can be panned and zoomed within its limits."""
    ends = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    x, y = (_range(*pair) for pair in ends)
    dimensions: Literal["both", "width"] = "both" if height == HEIGHT else "width"
    # With Ctrl only: the page around the map must scroll.
    wheel = models.WheelZoomTool(dimensions=dimensions, modifiers={"ctrl": True})
    pan, box = models.PanTool(dimensions=dimensions), models.BoxZoomTool(dimensions=dimensions)
    frame = figure(
        height=height, sizing_mode="stretch_width", x_range=x_range or x, y_range=y, min_border=4,
        tools=[pan, wheel, box, models.ResetTool()], toolbar_location="right", outline_line_color=None,
        background_fill_color=None,
    )  # fmt: skip
    frame.toolbar.logo = None
    frame.toolbar.active_scroll = wheel
    for axis in frame.axis:
        axis.major_label_text_font = axis.axis_label_text_font = FONT
        axis.major_label_text_font_size, axis.axis_label_text_font_size = "12px", "13px"
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.minor_tick_line_color = None
        axis.major_tick_in, axis.major_tick_out = 0, 5
    frame.grid.visible = False
    return frame


def _range(low: float, high: float) -> Range1d:
    """A range with limits, never so small that positions lose their digits."""
    return Range1d(start=low, end=high, bounds=(low, high), min_interval=1e-6 * (high - low))


def _name_axes(frame: figure, below: str, beside: str) -> None:
    # As plain text: Bokeh parses "$$" as mathematics and would fetch a library for it.
    frame.xaxis.axis_label, frame.yaxis.axis_label = PlainText(text=below), PlainText(text=beside)


def _add_map(frame: figure) -> None:
    """The picture, the marks and the selected theta, which the page fills in."""
    frame.name = "sg-map"
    pixel = np.zeros((1, 1), dtype=np.uint32)
    picture = ColumnDataSource({"image": [pixel], "x": [0.0], "y": [0.0], "dw": [1.0], "dh": [1.0]}, name="sg-picture")
    frame.image_rgba(image="image", x="x", y="y", dw="dw", dh="dh", source=picture, level="image")
    lines = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": [], "colour": []}, name="sg-lines")
    frame.segment(
        x0="x0", y0="y0", x1="x1", y1="y1", source=lines, line_color="colour", line_width=1.4, line_cap="round"
    )
    # Marks are overlays: Bokeh then repaints only them, not the picture and the lines below.
    marks = ColumnDataSource({"x": [], "y": [], "marker": []}, name="sg-marks")
    frame.scatter(
        x="x", y="y", marker="marker", source=marks, size=9, fill_color="white", line_color=INK, line_width=1.4,
        level="overlay",
    )  # fmt: skip
    chosen = ColumnDataSource({"x": [], "y": []}, name="sg-chosen")
    ring: dict[str, Any] = {"x": "x", "y": "y", "source": chosen, "size": 15, "fill_color": None, "level": "overlay"}
    frame.scatter(marker="circle", line_color="white", line_width=4, **ring)
    frame.scatter(marker="circle_cross", line_color=INK, line_width=1.8, **ring)
    frame.add_tools(models.CrosshairTool(line_color=INK, line_alpha=0.25))


def _profile_frames(result: Result) -> models.LayoutDOM:
    domain = result.question.compound.domain
    low, high = float(domain.low[0]), float(domain.high[0])
    shared = _range(low, high)
    strip = _frame(np.array([low, 0.0]), np.array([high, 1.0]), STRIP, shared)
    _add_map(strip)
    strip.yaxis.visible = strip.xaxis.visible = False
    curves = profile(result.answer, line_through(result.answer, 0, domain.low))
    frames = [strip, _curve_frame("margin", curves, curves.margin, curves.margin_bounds, shared)]
    if result.is_measured:
        values, bounds = curves.inconsistency, curves.inconsistency_bounds
        frames.append(_curve_frame("inconsistency", curves, values, bounds, shared))
        frames[-1].yaxis.axis_label = PlainText(text=result.question.attention.measure.loss_noun)
    frames[-1].xaxis.axis_label = PlainText(text=domain.names[0])
    # The plots have the same width beside the axis, so one theta is one vertical line; the tools of one plot serve all,
    # because they share their range.
    for frame in frames:
        frame.min_border_left = 74
        if frame is not frames[1]:
            frame.toolbar_location, frame.min_border_right = None, TOOLBAR
    for frame in frames[1:-1]:
        frame.xaxis.major_label_text_font_size = "0px"
    return column(frames, sizing_mode="stretch_width", spacing=4)


def _curve_frame(name: str, curves: Profile, values: np.ndarray, bounds: np.ndarray, shared: Range1d) -> figure:
    """One profile: the curve if it is known, otherwise a band between the bounds."""
    known = np.concatenate([values, bounds.ravel(), [0.0]])
    known = known[np.isfinite(known)]
    room = 0.06 * (known.max() - known.min()) or 1.0
    ends = np.array([known.min() - (room if known.min() < 0.0 else 0.0), known.max() + room])
    frame = _frame(np.array([0.0, ends[0]]), np.array([1.0, ends[1]]), CURVE, shared)
    frame.name = f"sg-{name}"
    if np.isfinite(bounds).any():
        frame.varea(x=curves.theta, y1=bounds[:, 0], y2=bounds[:, 1], fill_color=BAND, fill_alpha=0.55)
    frame.line(x=curves.theta, y=values, line_color=INK, line_width=1.8)
    colour = DELTA_LINE if name == "inconsistency" else FAINT_INK
    frame.add_layout(Span(location=0.0, dimension="width", line_color=colour, line_width=1.6, name=f"sg-{name}-level"))
    where: dict[str, Any] = {"location": float("nan"), "dimension": "height", "line_dash": "dotted"}
    frame.add_layout(Span(line_color=INK, name=f"sg-{name}-at", **where))
    _name_axes(frame, "", name)
    return frame
