"""Files of figures: valid, the same bytes every time, and without effect on the caller's settings."""

import io
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

import steadygaze.report
from steadygaze.api import verify
from steadygaze.errors import StoreError
from steadygaze.report.drawing.sheet import png_bytes
from steadygaze.report.figures import draw_result
from steadygaze.results.result import Result


@pytest.fixture(scope="module")
def result() -> Result:
    return verify("M-FNN-100", "mnist:69995", ["brightness:0..0.2", "patch:x=10,y=10,w=8,h=8:0..0.3"])


@pytest.fixture(scope="module")
def files(result: Result, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return draw_result(result, tmp_path_factory.mktemp("figure") / "new" / "map", formats=("png", "svg"))


def test_png_and_svg_are_written_and_valid(files: list[Path]) -> None:
    assert [path.name for path in files] == ["map.png", "map.svg"]
    with Image.open(files[0]) as picture:
        picture.verify()
        assert picture.size[0] == 1690
        assert not picture.info.get("Software")
    root = ET.parse(files[1]).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert b"<dc:date>" not in files[1].read_bytes()


def test_bytes_do_not_depend_on_the_callers_style_or_on_threads(
    result: Result, files: list[Path], tmp_path: Path
) -> None:
    with matplotlib.rc_context({"text.color": "red", "font.size": 30, "axes.grid": True, "svg.hashsalt": "mine"}):
        before = dict(matplotlib.rcParams)
        with ThreadPoolExecutor(2) as pool:
            drawn = list(
                pool.map(
                    lambda name: draw_result(result, tmp_path / name, formats=("png", "svg")), ("one.svg", "two.PNG")
                )
            )
        assert dict(matplotlib.rcParams) == before
    for again in drawn:
        assert [path.read_bytes() for path in again] == [path.read_bytes() for path in files]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "one.svg", "two.png", "two.svg"]


def test_a_place_that_cannot_be_written_is_refused(result: Result, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot be written \(.+\); choose another place"):
        draw_result(result, tmp_path / "file" / "map")
    assert (tmp_path / "file").read_text() == "in the way"


def test_pyplot_is_not_used() -> None:
    sources = Path(steadygaze.report.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "pyplot" in path.read_text(encoding="utf-8")]


def test_png_holds_the_pixels_as_they_are() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    with Image.open(io.BytesIO(png_bytes(pixels))) as picture:
        assert (picture.mode, picture.size) == ("RGB", (7, 5))
        assert np.array_equal(np.asarray(picture), pixels)
