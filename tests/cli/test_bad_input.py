"""Typical mistakes of newcomers: exit code 2, one line that says how to fix it, no traceback, and no files."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from steadygaze import zoo
from steadygaze.engines import RunPlan
from steadygaze.report import figures
from support.command_line import SMALL, Runner

AWAY = ("verify", "M-FNN-100", "--image", "mnist:69990", "--perturb", "brightness:0.1..0.2")
MODEL, IMAGE, PERTURB = ("M-FNN-100",), ("--image", "mnist:69990"), ("--perturb", "brightness:0..0.02")


@pytest.fixture
def files(place: Path) -> Path:
    """A directory with bad files."""
    (place / "text.onnx").write_text("no model", encoding="ascii")
    (place / "empty.onnx").write_bytes(b"")
    (place / "cut.onnx").write_bytes(zoo.model_path("M-FNN-100").read_bytes()[:5000])
    shutil.copy(zoo.image_path("mnist:69990"), place / "seven.png")
    (place / "cut.png").write_bytes((place / "seven.png").read_bytes()[:150])
    Image.new("L", (32, 20)).save(place / "wide.png")
    Image.new("RGB", (28, 28)).save(place / "colour.png")
    np.save(place / "nan.npy", np.full((28, 28), np.nan))
    np.save(place / "large.npy", np.full((28, 28), 200.0))
    (place / "latin.txt").write_bytes("\n".join(["caf\xe9"] * 10).encode("latin-1"))
    (place / "three.txt").write_text("a\nb\nc\n", encoding="ascii")
    (place / "gap.txt").write_text("a\n\nc\nd\ne\nf\ng\nh\ni\nj\n", encoding="ascii")
    (place / "folder").mkdir()
    (place / "folder" / "precious").write_text("mine", encoding="ascii")
    return place


def snapshot(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


CASES = [
    # models
    (("verify", "missing.onnx", *IMAGE, *PERTURB), "missing.onnx: no such file"),
    (("verify", "folder", *IMAGE, *PERTURB), "is a directory"),
    (("verify", "text.onnx", *IMAGE, *PERTURB), "text.onnx: not an ONNX model"),
    (("verify", "empty.onnx", *IMAGE, *PERTURB), "empty.onnx"),
    (("verify", "cut.onnx", *IMAGE, *PERTURB), "cut.onnx"),
    (("verify", "seven.png", *IMAGE, *PERTURB), "seven.png: not an ONNX model"),
    (("verify", "M-FNN-10", *IMAGE, *PERTURB), "Did you mean M-FNN-100?"),
    (("verify", "", *IMAGE, *PERTURB), "no bundled network ''"),
    # images
    (("verify", *MODEL, "--image", "missing.png", *PERTURB), "missing.png: no such file"),
    (("verify", *MODEL, "--image", "folder", *PERTURB), "folder: is a folder; give one image, or all"),
    (("verify", *MODEL, "--image", "text.onnx", *PERTURB), "not a PNG, JPEG or NPY"),
    (("verify", *MODEL, "--image", "cut.png", *PERTURB), "cut.png: cannot be read"),
    (("verify", *MODEL, "--image", "wide.png", *PERTURB), "28"),
    (("verify", *MODEL, "--image", "colour.png", *PERTURB), "convert it with --grey"),
    (("verify", *MODEL, "--image", "nan.npy", *PERTURB), "nan.npy: holds NaN"),
    (("verify", *MODEL, "--image", "large.npy", *PERTURB), "large.npy: has values from 200 to 200"),
    (("verify", *MODEL, "--image", "mnist:1", *PERTURB), "mnist:69990 to mnist:69999"),
    # pictures
    (("verify", *MODEL, *IMAGE, *PERTURB, "--pictures", "gif"), "--pictures is 'gif'; expected png, svg, pdf, several"),
    (("verify", *MODEL, *IMAGE, *PERTURB, "--pictures", "png,none"), "joined by commas, or none"),
    (("boundary", "nowhere", "--pictures", ""), "--pictures is ''"),
    # perturbations
    (("verify", *MODEL, *IMAGE, "--perturb", "patch:x=26,y=1,w=4,h=4"), "leave the image"),
    (("verify", *MODEL, *IMAGE, "--perturb", "brightness:0.5..0.1"), "inverted"),
    (("verify", *MODEL, *IMAGE, "--perturb", "brightness:0.5..0.5"), "0.5..0.5"),
    (("verify", *MODEL, *IMAGE, "--perturb", "brigthness"), "did you mean 'brightness'?"),
    (("verify", *MODEL, *IMAGE, "--perturb", "rotate:-5..5", "--method", "map"), "use --method refine"),
    (("verify", *MODEL, *IMAGE, "--perturb", "rotate:-5..5", "--method", "gbs"), "use --method refine"),
    (("verify", *MODEL, *IMAGE, "--perturb", "rotate:-5..5", "--until", "exact"), "a share such as --until 0.001"),
    (("verify", *MODEL, *IMAGE, "--perturb", "shift:dx=2,dy=2", "--method", "map"), "at once (a shift) are curved"),
    (
        ("verify", *MODEL, *IMAGE, "--perturb", "translate:dx=2", "--perturb", "haze", "--method", "map"),
        "translate:dx=2 with haze, which depends on the pixels, is curved; use --method refine",
    ),
    (("verify", *MODEL, *IMAGE, "--perturb", "scale:-0.5..1.1"), "hardly anything of the image is left"),
    (("verify", *MODEL, *IMAGE, "--perturb", "rotate:border=wrap"), "give zero or edge"),
    (("verify", *MODEL, *IMAGE, "--perturb", "hue"), "only images with red, green and blue have hues"),
    (("verify", *MODEL, *IMAGE, "--perturb", "shift:dx=0,dy=2"), "dx=0 moves along one axis only"),
    (
        (
            "verify",
            *MODEL,
            *IMAGE,
            *PERTURB,
            "--perturb",
            "darkness",
            "--perturb",
            "translate:dx=1",
            "--perturb",
            "patch:x=1,y=1,w=2,h=2",
            "--method",
            "map",
        ),
        "the map takes up to",
    ),
    # options
    (("verify", *MODEL, *IMAGE), "--perturb and --preset are missing; give one of them, see steadygaze verify --help"),
    (("verify", *MODEL, *IMAGE, "--preset", "lihgt"), "expected light, weather, camera, dirt. Did you mean light?"),
    (("verify", *MODEL, *IMAGE, *PERTURB, "--preset", "light"), "a preset has its own perturbations: leave one out"),
    (
        ("verify", *MODEL, *IMAGE, "--preset", "light", "--method", "bfs"),
        "does not go with --preset, which compares shares",
    ),
    (("verify", *MODEL, *IMAGE, "--preset", "light", "--resume", "folder"), "--resume does not go with --preset"),
    (("verify", *MODEL, *IMAGE, "--preset", "light", "--require", "CR>=0.5"), "--require does not go with --preset"),
    (("verify", *MODEL, *IMAGE, "--preset", "light", "--out", "folder", "--force"), "holds no preset"),
    (("verify", *MODEL, *IMAGE, "--preset", "light", "--expect", "3"), "but --expect is"),
    (("verify", *MODEL, *PERTURB), "Missing option '--image'"),
    (("verify", *IMAGE, *PERTURB), "Missing argument 'MODEL'"),
    ((*SMALL, "--delt", "3"), "--delta"),
    ((*SMALL, "surplus"), "surplus"),
    ((*SMALL, "--delta", "abc"), "delta 'abc'"),
    ((*SMALL, "--delta=-1"), "delta '-1'"),
    ((*SMALL, "--delta", "nan"), "delta 'nan'"),
    ((*SMALL, "--delta", "%"), "delta '%'"),
    ((*SMALL, "--property", "all"), "expected cr, ar or both"),
    ((*SMALL, "--filter", "median"), "filter 'median'"),
    ((*SMALL, "--dist", "l3"), "distance 'l3'"),
    ((*SMALL, "--classes", "11"), "numbers from 0 to 9"),
    ((*SMALL, "--classes", "3,3"), "numbers from 0 to 9"),
    ((*SMALL, "--classes", "x"), "numbers from 0 to 9"),
    ((*SMALL, "--threads", "0"), "--threads is '0'"),
    ((*SMALL, "--threads", "two"), "--threads is 'two'"),
    ((*SMALL, "--timeout", "0"), "--timeout is '0'"),
    ((*SMALL, "--timeout", "soon"), "--timeout is 'soon'"),
    ((*SMALL, "--timeout", "inf"), "--timeout is 'inf'"),
    ((*SMALL, "--max-regions", "1.5"), "--max-regions is '1.5'"),
    ((*SMALL, "--memory", "-1"), "--memory is '-1'"),
    ((*SMALL, "--mean", "a"), "--mean is 'a'"),
    ((*SMALL, "--mean", "0.1,0.2"), "mean has 2 numbers"),
    ((*SMALL, "--std", "0"), "std is"),
    ((*SMALL, "--std", "nan"), "--std is 'nan'"),
    ((*SMALL, "--scale", "0"), "--scale is '0'"),
    ((*SMALL, "--require", "nonsense"), "--require 'nonsense'"),
    ((*SMALL, "--expect", "8"), "mnist:69990: M-FNN-100 predicts 7, but --expect is 8"),
    ((*SMALL, "--expect", "10"), "no such class"),
    ((*SMALL, "--class-names", "latin.txt"), "latin.txt: is not UTF-8"),
    ((*SMALL, "--class-names", "three.txt"), "3 class names for 10 classes"),
    ((*SMALL, "--class-names", "gap.txt"), "gap.txt: line 2"),
    ((*SMALL, "--class-names", "missing.txt"), "missing.txt: cannot be read"),
    ((*SMALL, "--class-names", "folder"), "folder: cannot be read"),
    # methods
    (
        (*SMALL, "--method", "gsb"),
        "--method is 'gsb'; expected auto, map, refine, bfs, gbs, boundary. Did you mean gbs?",
    ),
    ((*SMALL, "--method", "bound"), "Did you mean boundary?"),
    ((*SMALL, "--method", ""), "--method is ''; expected auto"),
    ((*SMALL, "--method", "gbs", "--require", "CR>=1"), "--require does not go with --method gbs"),
    ((*SMALL, "--method", "gbs", "--threads", "2"), "--threads does not go with --method gbs"),
    ((*SMALL, "--w-delta", "0.2"), "--w-delta needs --method gbs: it sets"),
    ((*SMALL, "--method", "bfs", "--w-delta", "0.2"), "--w-delta does not go with --method bfs"),
    ((*SMALL, "--method", "boundary", "--w-delta", "0.2"), "--w-delta does not go with --method boundary"),
    ((*SMALL, "--line", "corner"), "--line needs --method gbs or boundary: it sets"),
    ((*SMALL, "--method", "bfs", "--line", "0.1"), "--line does not go with --method bfs"),
    ((*SMALL, "--method", "gbs", "--w-delta=-0.1"), "--w-delta is '-0.1'; expected a number of at least 0"),
    ((*SMALL, "--method", "gbs", "--w-delta", "nan"), "--w-delta is 'nan'"),
    ((*SMALL, "--method", "gbs", "--w-delta", "inf"), "--w-delta is 'inf'"),
    ((*SMALL, "--method", "gbs", "--w-delta", "wide"), "--w-delta is 'wide'"),
    ((*SMALL, "--method", "gbs", "--line", "diagonal"), "--line is 'diagonal'; expected corner, or a theta"),
    ((*SMALL, "--method", "gbs", "--line", "nan"), "--line is 'nan'"),
    ((*SMALL, "--method", "gbs", "--line", ""), "--line is ''"),
    ((*SMALL, "--method", "gbs", "--line", "0.3"), "the line to [0.3] leaves the domain from [0.0] to [0.2]"),
    (
        (*SMALL, "--method", "boundary", "--line", "0.1,0.1"),
        "has 2 numbers for 1 parameters (brightness)",
    ),
    ((*SMALL, "--method", "gbs", "--line", "0"), "the line ends at zero"),
    ((*SMALL, "--method", "gbs", "--property", "cr", "--w-delta", "0.1"), "--w-delta does not go with --property cr"),
    ((*SMALL, "--method", "gbs", "--property", "all"), "expected cr, ar or both"),
    ((*AWAY, "--method", "gbs"), "does not contain zero"),
    ((*AWAY, "--method", "boundary"), "does not contain zero"),
    ((*SMALL, "--method", "gbs", "--out", "folder"), "folder: exists already"),
    # directories
    ((*SMALL, "--out", "folder"), "folder: exists already"),
    ((*SMALL, "--out", "folder", "--force"), "folder: is not a steadygaze result"),
    ((*SMALL, "--out", "text.onnx"), "text.onnx: is a file"),
    ((*SMALL, "--out", "text.onnx/result"), "text.onnx/result: cannot be written"),
    (("show", "missing"), "missing: no such directory"),
    (("show", "folder"), "folder: is not a steadygaze result"),
    (("show", "text.onnx"), "text.onnx"),
    (("show", "folder", "--delta", "abc"), "delta 'abc'"),
    (("demo", "--out", "folder"), "folder: exists already"),
    (("demo", "--out", "text.onnx", "--force"), "text.onnx/brightness-patch: cannot be written"),
    # commands
    (("verfy",), "Did you mean 'verify'?"),
    (("--versoin",), "--version"),
    (("models", "surplus"), "surplus"),
]


@pytest.mark.parametrize(("arguments", "complaint"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_one_line_and_nothing_written(run: Runner, files: Path, arguments: tuple[str, ...], complaint: str):
    before = snapshot(files)
    result = run(*arguments)
    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith("steadygaze: ") and result.err.count("\n") == 1 and result.err.endswith("\n")
    assert complaint in result.err
    assert snapshot(files) == before


def test_a_directory_that_cannot_be_written_is_refused_before_the_run(
    run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(RunPlan, "run", lambda *_, **__: pytest.fail("computed too early"))
    assert run(*SMALL, "--out", "/dev/null/result").code == 2
    (place / "taken").mkdir()
    assert run(*SMALL, "--out", "taken").code == 2


def test_a_file_name_cannot_make_a_second_line(run: Runner):
    result = run("verify", "bad\nsteadygaze: fine\x1b[31m.onnx", *IMAGE, *PERTURB)
    assert result.code == 2 and result.err.count("\n") == 1 and "\x1b" not in result.err


def test_pictures_that_cannot_be_written_are_one_line(run: Runner, monkeypatch: pytest.MonkeyPatch, place: Path):
    def full_disk(result: object, path: Path, **options: object) -> list[Path]:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(figures, "draw_result", full_disk)
    result = run(*SMALL, "--out", "out")
    assert result.code == 2 and result.err.count("\n") == 1
    assert "result is stored, but its pictures cannot be written (No space left on device)" in result.err
    assert run("show", "out").code == 0


def test_an_empty_command_is_not_a_proof(run: Runner):
    result = run()
    assert result.code == 2 and result.out == "" and "Usage: steadygaze" in result.err


def test_debug_shows_the_traceback_and_the_line(run: Runner):
    result = run(*SMALL, "--delta", "abc", "--debug")
    assert result.code == 2 and "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("steadygaze: delta 'abc'")
