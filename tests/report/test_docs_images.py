"""The pictures of the README are those of the script, and small."""

import runpy
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_pictures_are_there_and_small() -> None:
    script = runpy.run_path(str(DOCS / "make_images.py"))
    assert "map" in script["PICTURES"]
    for name in script["PICTURES"]:
        path = DOCS / "images" / f"{name}.png"
        assert path.stat().st_size <= 300_000
        with Image.open(path) as picture:
            assert picture.size[0] == script["WIDTH"]
    for kind in script["KINDS"]:
        path = DOCS / "images" / f"figure-{kind}.png"
        assert path.stat().st_size <= 200_000
        with Image.open(path) as picture:
            assert picture.size[0] == script["EXAMPLE_WIDTH"]


def test_every_picture_of_the_documentation_is_small() -> None:
    large = [path.name for path in (DOCS / "images").glob("*.png") if path.stat().st_size > 300_000]
    assert not large
