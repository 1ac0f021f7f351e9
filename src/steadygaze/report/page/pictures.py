"""Pictures as data URIs: pixels, attention maps and figures become PNG inside the page. Decides nothing."""

import base64
import io
import re
from collections.abc import Callable
from html import escape

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from ..colours import MAP_SHADES
from ..files import figure_bytes


def image_uri(image: np.ndarray) -> str:
    """An image (C, H, W) with pixels in [0,1]: colour for three channels, otherwise the mean of all as grey."""
    values = np.rint(255.0 * np.clip(image, 0.0, 1.0)).astype(np.uint8)
    if len(values) == 3:
        return _png_uri(np.ascontiguousarray(np.moveaxis(values, 0, 2)))
    return _png_uri(np.rint(255.0 * np.clip(image.mean(axis=0), 0.0, 1.0)).astype(np.uint8))


def map_uri(values: np.ndarray, top: float) -> str:
    """A map (H, W) in two colours from −top to top, white at 0."""
    scaled = 0.5 + 0.5 * np.clip(values / top if top > 0.0 else np.zeros_like(values), -1.0, 1.0)
    return _png_uri(np.rint(255.0 * matplotlib.colormaps[MAP_SHADES](scaled)[:, :, :3]).astype(np.uint8))


def figure_uri(make: Callable[[], Figure]) -> str:
    """A figure of `report` as PNG."""
    return _data_uri(figure_bytes(make, "png"))


def inline_svg(make: Callable[[], Figure], title: str) -> str:
    """A figure as an SVG element for the body of a page: markup that holds no text of users, and its title."""
    text = figure_bytes(make, "svg").decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # The size comes from the page; the view box keeps the proportions.
    head, rest = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(title)}">{rest}'


def _png_uri(pixels: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return _data_uri(buffer.getvalue())


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
