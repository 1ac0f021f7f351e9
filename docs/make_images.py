"""Makes the pictures of the documentation from bundled data: `python docs/make_images.py` writes docs/images/*.png.

The figures are those that `steadygaze verify` and `steadygaze figure` draw, made smaller: 256 colours, 1,500 pixels
wide for the README, 1,000 for the examples of `figure`.
"""

import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from steadygaze.api import Drawn, draw, search, verify

FOLDER = Path(__file__).resolve().parent / "images"
WIDTH, EXAMPLE_WIDTH = 1500, 1000
COLOURS = 256

PICTURES = {
    "map": ("M-FNN-100", "mnist:69995", ["brightness:-0.5..0.5", "patch:x=10,y=10,w=8,h=8"]),
    "one-parameter": ("M-FNN-100", "mnist:69998", ["translate:dx=3:-3..3"]),
}
"""Name of the picture: model, image and perturbations, with default options."""

KINDS = ("path", "strip", "boundary", "curve", "columns", "tiling", "visited")
"""Kinds of figures with an example in the documentation; the example of map is in the README."""

ASKED: dict[str, dict[str, Any]] = {
    "object": {"tau": "0.5", "mask": "auto:bright=0.2,grow=1"},
    "pointing": {"mask": "auto:bright=0.2,grow=1"},
    "alike": {"gamma": 0.9},
    "topk": {"top": "50:0.8"},
}
"""Properties of attention with their options: the page on attention shows a map of each."""

PATCH = "patch:x=10,y=10,w=8,h=8"


def make_images(folder: Path) -> list[Path]:
    """Write all pictures into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, (model, image, perturbations) in PICTURES.items():
            (drawn,) = verify(model, image, perturbations).plot(Path(scratch) / name)
            made.append(folder / f"{name}.png")
            _shrink(drawn, made[-1], WIDTH)
        for name, options in ASKED.items():
            specs = ["brightness:-0.2..0.5", "translate:dx=2:0..1.5"]
            (drawn,) = verify("M-FNN-100", "mnist:69990", specs, attention=name, **options).plot(Path(scratch) / name)
            made.append(folder / f"attention-{name}.png")
            _shrink(drawn, made[-1], EXAMPLE_WIDTH)
        for kind in KINDS:
            (drawn,) = draw(kind, _example(kind), Path(scratch) / f"figure-{kind}")
            made.append(folder / f"figure-{kind}.png")
            _shrink(drawn, made[-1], EXAMPLE_WIDTH)
    return made


def _example(kind: str) -> list[Drawn]:
    """The results for the example of a kind of figure."""
    if kind == "visited":
        specs = ["translate:dx=2:0..0.5", "brightness:0..0.05"]
        return [search("M-FNN-100", "mnist:69992", specs, method="gbs", delta=3.0)]
    if kind == "curve":
        return [verify("M-FNN-100", "mnist:69990", ["brightness:0..0.5", PATCH], attention="object", **ASKED["object"])]
    if kind != "columns":
        return [verify("M-FNN-100", "mnist:69995", ["brightness:-0.5..0.5", PATCH])]
    return [
        verify(model, "mnist:69998", list(specs))
        for model in ("M-FNN-100", "M-FNN-200")
        for specs in (("brightness:0..0.2", f"{PATCH}:0..0.4"), ("translate:dx=1", f"{PATCH}:0..0.4"))
    ]


def _shrink(source: Path, target: Path, width: int) -> None:
    with Image.open(source) as picture:
        height = round(picture.height * width / picture.width)
        small = picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    # Colours by coverage, refined: the default, by frequency, changes the colours of small patches.
    few = small.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=8, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    for path in make_images(FOLDER):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
