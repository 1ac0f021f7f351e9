"""The Bokeh figures of the interactive map, empty where the page fills them in: axes, zoom, pan, marks, profiles.

Turns a result into models; what happens in them is written in assets/explorer.js, which finds them by their names. No
callback is written here: those would need `eval` in the page.
"""

from typing import Any, Literal

import numpy as np
from bokeh.layouts import column
from bokeh.models import (
    BoxZoomTool,
    ColumnDataSource,
    CrosshairTool,
    LayoutDOM,
    PanTool,
    PlainText,
    Range1d,
    ResetTool,
    WheelZoomTool,
)
from bokeh.models.annotations import Span
from bokeh.plotting import figure

from ...results.domain_result import DomainResult
from ..colours import DELTA_LINE, FAINT_INK, INK
from ..exhibits import NEARER
from ..lines import line_through
from ..values import Profile, profile

HEIGHT, STRIP, CURVE, TOOLBAR = 560, 64, 225, 34
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
BAND = "#8fa9c4"


def make_frames(result: DomainResult) -> LayoutDOM:
    """The figure of a map, or with one parameter a strip with the profiles of margin and inconsistency below it."""
    domain = result.problem.compound.domain
    if domain.dimension == 1:
        return _profile_frames(result)
    frame = _frame(domain.low[:2], domain.high[:2], HEIGHT)
    _add_map(frame)
    _name_axes(frame, domain.names[0], domain.names[1])
    return frame


def marks_of(result: DomainResult) -> list[dict[str, object]]:
    """Thetas that are marked on the map: the unperturbed image, and the nearest violations that are proved."""
    domain = result.problem.compound.domain
    marks: list[dict[str, object]] = []
    if domain.contains_zero:
        marks.append({"theta": [0.0] * domain.dimension, "text": "unperturbed image", "marker": "circle"})
    looks = {"CR": ("the label changes", "triangle"), "AR": ("the attention changes", "diamond")}
    for name, (what, marker) in looks.items():
        if name == "AR" and not result.is_measured:
            continue
        found = result.nearest[name]
        if found.theta is not None:
            word = "nearest point" if found.high - found.low < NEARER else "nearest point found"
            theta = [float(value) for value in found.theta]
            marks.append({"theta": theta, "text": f"{word} where {what}", "marker": marker})
    return marks


def _frame(low: np.ndarray, high: np.ndarray, height: int, x_range: Range1d | None = None) -> figure:
    """An empty figure that can be panned and zoomed within its limits."""
    ends = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    x, y = (_range(*pair) for pair in ends)
    dimensions: Literal["both", "width"] = "both" if height == HEIGHT else "width"
    # With Ctrl only: the map stands in a page that is longer than the window and must scroll.
    wheel = WheelZoomTool(dimensions=dimensions, modifiers={"ctrl": True})
    tools = [PanTool(dimensions=dimensions), wheel, BoxZoomTool(dimensions=dimensions), ResetTool()]
    frame = figure(
        height=height, sizing_mode="stretch_width", x_range=x_range or x, y_range=y, tools=tools, min_border=4,
        toolbar_location="right", outline_line_color=None, background_fill_color=None,
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
    """A range that cannot be left, or made so small that positions lose their digits."""
    return Range1d(start=low, end=high, bounds=(low, high), min_interval=1e-6 * (high - low))


def _name_axes(frame: figure, below: str, beside: str) -> None:
    # As plain text: Bokeh takes "$$" for mathematics and would fetch the library for it.
    frame.xaxis.axis_label, frame.yaxis.axis_label = PlainText(text=below), PlainText(text=beside)


def _add_map(frame: figure) -> None:
    """The picture, the marks and the selected theta, all to be filled in by the page."""
    frame.name = "sg-map"
    pixel = np.zeros((1, 1), dtype=np.uint32)
    picture = ColumnDataSource({"image": [pixel], "x": [0.0], "y": [0.0], "dw": [1.0], "dh": [1.0]}, name="sg-picture")
    frame.image_rgba(image="image", x="x", y="y", dw="dw", dh="dh", source=picture, level="image")
    lines = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": [], "colour": []}, name="sg-lines")
    frame.segment(
        x0="x0", y0="y0", x1="x1", y1="y1", source=lines, line_color="colour", line_width=1.4, line_cap="round"
    )
    # Marks are overlays: Bokeh then repaints them alone, and not the picture and the lines below them.
    marks = ColumnDataSource({"x": [], "y": [], "marker": []}, name="sg-marks")
    frame.scatter(
        x="x", y="y", marker="marker", source=marks, size=9, fill_color="white", line_color=INK, line_width=1.4,
        level="overlay",
    )  # fmt: skip
    chosen = ColumnDataSource({"x": [], "y": []}, name="sg-chosen")
    ring: dict[str, Any] = {"x": "x", "y": "y", "source": chosen, "size": 15, "fill_color": None, "level": "overlay"}
    frame.scatter(marker="circle", line_color="white", line_width=4, **ring)
    frame.scatter(marker="circle_cross", line_color=INK, line_width=1.8, **ring)
    frame.add_tools(CrosshairTool(line_color=INK, line_alpha=0.25))


def _profile_frames(result: DomainResult) -> LayoutDOM:
    domain = result.problem.compound.domain
    low, high = float(domain.low[0]), float(domain.high[0])
    shared = _range(low, high)
    strip = _frame(np.array([low, 0.0]), np.array([high, 1.0]), STRIP, shared)
    _add_map(strip)
    strip.yaxis.visible = strip.xaxis.visible = False
    curves = profile(result.answer, line_through(result.answer, 0, domain.low))
    frames = [strip, _curve_frame("margin", curves, curves.margin, curves.margin_bounds, shared)]
    if result.is_measured:
        frames.append(_curve_frame("inconsistency", curves, curves.inconsistency, curves.inconsistency_bounds, shared))
    frames[-1].xaxis.axis_label = PlainText(text=domain.names[0])
    # The plots stand below each other with the same width beside the axis, so that one theta is one vertical line; the
    # tools of one of them serve all, since they share their range.
    for frame in frames:
        frame.min_border_left = 74
        if frame is not frames[1]:
            frame.toolbar_location, frame.min_border_right = None, TOOLBAR
    for frame in frames[1:-1]:
        frame.xaxis.major_label_text_font_size = "0px"
    return column(frames, sizing_mode="stretch_width", spacing=4)


def _curve_frame(name: str, curves: Profile, values: np.ndarray, bounds: np.ndarray, shared: Range1d) -> figure:
    """One profile: the curve where it is known, a band between the bounds where only they are."""
    known = np.concatenate([values, bounds.ravel(), [0.0]])
    known = known[np.isfinite(known)]
    room = 0.06 * (known.max() - known.min()) or 1.0
    ends = np.array([known.min() - (room if known.min() < 0.0 else 0.0), known.max() + room])
    frame = _frame(np.array([0.0, ends[0]]), np.array([1.0, ends[1]]), CURVE, shared)
    frame.name = f"sg-{name}"
    if np.isfinite(bounds).any():
        frame.varea(x=curves.theta, y1=bounds[:, 0], y2=bounds[:, 1], fill_color=BAND, fill_alpha=0.55)
    frame.line(x=curves.theta, y=values, line_color=INK, line_width=1.8)
    level = Span(location=0.0, dimension="width", line_color=DELTA_LINE if name == "inconsistency" else FAINT_INK)
    level.line_width, level.name = 1.6, f"sg-{name}-level"
    where = Span(location=float("nan"), dimension="height", line_color=INK, line_dash="dotted", name=f"sg-{name}-at")
    frame.add_layout(level)
    frame.add_layout(where)
    _name_axes(frame, "", name)
    return frame
