"""Draws docs/images/families.png: a strip of pictures for each family, from one end of its range to the other.

python docs/make_families.py
"""

import io
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image, ImageDraw

from steadygaze import zoo
from steadygaze.images import read_image
from steadygaze.perturbation import Perturbation, compose, find_families, parse_specs
from steadygaze.words import is_factor, shown_value

TARGET = Path(__file__).parent / "images" / "families.png"
STEPS = 7
LEVEL = 8  # colours are rounded to multiples of this, which nobody sees and which makes the file small
SPECS = (
    "brightness:-0.5..0.5", "brightness:channel=r", "darkness", "contrast:pivot=mean:-1..1", "saturation", "haze",
    'blend:image="other.npy"', "occlude:x=10,y=8,w=8,h=12", 'overlay:image="dirt.png"', "patch:x=10,y=8,w=8,h=12",
    "shadow:side=left,at=0.5,soft=0.3", "field:kind=x:-0.5..0.5", "field:kind=radial,mode=times:-1..1",
    "blur:sigma=1.5", "motion:dx=7,dy=3", "sharpen:sigma=1:0..3", 'kernel:file="edges.npy"',
    'direction:file="wave.npy":-0.5..0.5', "translate:dx=6:-6..6", "shift:dx=6,dy=6",
    "shift:dx=6,dy=6,interp=triangle", "rotate:-45..45",
    "rotate:border=edge:-45..45", "scale:0.5..1.5", "shear:-0.5..0.5", "shear:axis=y:-0.5..0.5", "hue:-180..180",
)  # fmt: skip
"""One or more specs of every family; `files` makes the files."""


def files(folder: Path) -> None:
    """Write the files that the specs read: another digit, dirt with transparency, a kernel and a wave."""
    np.save(folder / "other.npy", read_image(zoo.image_path("colour:69994")).pixels)
    dirt = Image.new("RGBA", (28, 28), (90, 60, 20, 0))
    draw = ImageDraw.Draw(dirt)
    for x, y, radius in ((6, 7, 3), (20, 5, 2), (17, 19, 5), (5, 22, 2)):
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(90, 60, 20, 230))
    dirt.save(folder / "dirt.png")
    np.save(folder / "edges.npy", np.array([[0.0, -1.0, 0.0], [-1.0, 5.0, -1.0], [0.0, -1.0, 0.0]]))
    np.save(folder / "wave.npy", np.sin(np.arange(28) / 2.0)[:, None] * np.ones(28))


def strips(image: np.ndarray, folder: Path) -> list[tuple[str, list[Perturbation], np.ndarray, np.ndarray]]:
    """The specs, their perturbations, thetas (STEPS, d) and images (STEPS, C, H, W)."""
    found = []
    for spec in SPECS:
        own = parse_specs([spec.replace('="', f'="{folder}/')])
        thetas = np.linspace([one.low for one in own], [one.high for one in own], STEPS)
        # One axis moves slower than the other, in opposite directions: there the two interpolations of a shift differ.
        thetas = thetas * [1.0, -0.75][: len(own)]
        found.append((spec, own, thetas, compose(own, image).images(thetas)))
    return found


def draw(target: Path = TARGET) -> None:
    """Draw all strips; every family must have one."""
    with tempfile.TemporaryDirectory() as name:
        files(Path(name))
        found = strips(read_image(zoo.image_path("colour:69990")).pixels, Path(name))
    missing = set(find_families()) - {one.keyword for _, own, _, _ in found for one in own}
    if missing:
        raise SystemExit(f"no strip for {', '.join(sorted(missing))}: add a spec")
    figure = Figure(figsize=(9.0, 0.62 * len(found)))
    for row, (spec, own, thetas, images) in enumerate(found):
        height = 1.0 / len(found)
        axes = figure.add_axes((0.40, 1.0 - (row + 0.95) * height, 0.59, 0.9 * height))
        axes.imshow(np.hstack([np.moveaxis(picture, 0, 2) for picture in images]), interpolation="nearest")
        axes.set_axis_off()
        place = 1.0 - (row + 0.5) * height
        figure.text(0.01, place + 0.1 * height, spec, va="bottom", fontsize=8, family="monospace")
        first, last = (_shown(own, theta) for theta in thetas[[0, -1]])
        ends = f"{'factor' if is_factor(own[0].name) else 'theta'} from {first} to {last}"
        figure.text(0.01, place - 0.1 * height, ends, va="top", fontsize=7, color="0.35")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    with Image.open(drawn) as picture:
        levels = np.round(np.asarray(picture.convert("RGB")) / LEVEL) * LEVEL
    Image.fromarray(np.minimum(levels, 255).astype(np.uint8)).save(target, optimize=True)


def _shown(own: list[Perturbation], theta: np.ndarray) -> str:
    """A theta (d,) as text."""
    numbers = [f"{shown_value(one.name, value):g}" for one, value in zip(own, theta, strict=True)]
    return numbers[0] if len(numbers) == 1 else f"({', '.join(numbers)})"


if __name__ == "__main__":
    draw()
