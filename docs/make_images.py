"""Makes the pictures of the README from bundled data: `python docs/make_images.py` writes docs/images/*.png.

The figures are those that `steadygaze verify` draws, made smaller: 1,500 pixels wide, 256 colours.
"""

import tempfile
from pathlib import Path

from PIL import Image

from steadygaze.api import verify

FOLDER = Path(__file__).resolve().parent / "images"
WIDTH = 1500
COLOURS = 256

PICTURES = {
    "map": ("M-FNN-100", "mnist:69995", ["brightness:-0.5..0.5", "patch:x=10,y=10,w=8,h=8"]),
    "one-parameter": ("M-FNN-100", "mnist:69998", ["translate:dx=3:-3..3"]),
}
"""Name of the picture: model, image and perturbations, everything else as by default."""


def make_images(folder: Path) -> list[Path]:
    """Write all pictures into a folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, (model, image, perturbations) in PICTURES.items():
            drawn, _ = verify(model, image, perturbations).plot(Path(scratch) / name)
            made.append(folder / f"{name}.png")
            _shrink(drawn, made[-1])
    return made


def _shrink(source: Path, target: Path) -> None:
    with Image.open(source) as picture:
        height = round(picture.height * WIDTH / picture.width)
        small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
    # Colours by coverage, refined: the default, by frequency, turns the colours of small patches into others.
    few = small.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=8, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    for path in make_images(FOLDER):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
