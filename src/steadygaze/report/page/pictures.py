"""Pictures as data URIs: pixels, attention maps and figures become PNG inside the page. Decides nothing."""

import base64
import io
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from ..colours import MAP_SHADES
from ..files import write_figure

NAME = "picture"


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


def figure_uri(draw: Callable[[Path], Sequence[Path]]) -> str | None:
    """The PNG among the files that a function of `report` writes to a given path; None where it writes none."""
    with tempfile.TemporaryDirectory(prefix="steadygaze-") as folder:
        for file in draw(Path(folder) / NAME):
            if Path(file).suffix == ".png":
                return f"data:image/png;base64,{base64.b64encode(Path(file).read_bytes()).decode('ascii')}"
    return None


def inline_svg(make: Callable[[], Figure], title: str) -> str:
    """A figure as an SVG element for the body of a page: markup that holds no text of users, and its title."""
    with tempfile.TemporaryDirectory(prefix="steadygaze-") as folder:
        files = write_figure(make, Path(folder) / NAME, formats=("svg",))
        text = next(file for file in files if file.suffix == ".svg").read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # The size comes from the page; the view box keeps the proportions.
    head, rest = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'{head} role="img" aria-label="{label}">{rest}'


def _png_uri(pixels: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
