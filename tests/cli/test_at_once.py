"""Help, versions and wrong input are answered without the libraries that take long to import."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

from steadygaze.cli import main

SLOW = (
    "numba", "scipy", "matplotlib", "onnxruntime", "onnx", "bokeh", "jinja2", "pyarrow", "flint", "highspy",
    "llvmlite", "pydantic", "torch",
)  # fmt: skip
QUESTION = ("--image", "mnist:69990", "--perturb", "brightness")
MODEL = ("verify", "M-FNN-100")

SCRIPT = f"""
import sys
from steadygaze.cli import main
code = main(sys.argv[1:])
print(code, *[name for name in {SLOW} if name in sys.modules], file=sys.stderr)
"""


def run(place: Path, script: str, *arguments: str) -> str:
    """The last line that a fresh process prints on stderr."""
    done = subprocess.run(
        (sys.executable, "-c", script, *arguments), cwd=place, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stderr.splitlines()[-1]


ANSWERS = [
    (("--version",), 0),
    (("--help",), 0),
    ((), 2),
    (("verify", "--help"), 0),
    (("campaign", "--help"), 0),
    (("campaign", "run", "--help"), 0),
    (("figure", "--help"), 0),
    (("completion", "bash"), 0),
    (("models",), 0),
    (("nonsense",), 2),
    ((*MODEL, *QUESTION, "--nonsense"), 2),
    ((*MODEL, *QUESTION, "--method", "mpa"), 2),
    ((*MODEL, *QUESTION, "--pictures", "gif"), 2),
    ((*MODEL, *QUESTION, "--timeout", "soon"), 2),
    ((*MODEL, *QUESTION, "--require", "CR is 1"), 2),
    ((*MODEL, *QUESTION, "--delta", "-1"), 2),
    ((*MODEL, "--image", "mnist:69990", "--perturb", "brigthness"), 2),
    ((*MODEL, "--image", "mnist:69990", "--perturb", "brightness:1..0"), 2),
    ((*MODEL, "--image", "mnist:1", "--perturb", "brightness"), 2),
    ((*MODEL, "--image", "nowhere.png", "--perturb", "brightness"), 2),
    (("verify", "M-FNN-1", *QUESTION), 2),
    (("verify", "nowhere.onnx", *QUESTION), 2),
    (("show", "nowhere"), 2),
    (("report", "nowhere"), 2),
    (("boundary", "nowhere"), 2),
    (("compare", "one"), 2),
    (("figure", "map", "nowhere", "--format", "gif"), 2),
    (("export", "nowhere"), 2),
    (("campaign", "status", "nowhere"), 2),
    (("campaign", "run", "nowhere.toml", "--out", "out"), 2),
]
"""Arguments of a command, and its exit code."""

FORKS = f"""
import json, os, sys
from steadygaze.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if os.fork() == 0:
        kept = os.dup(1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = main(arguments)
        sys.stdout.flush()
        os.dup2(kept, 1)
        print(code, *[name for name in {SLOW} if name in sys.modules], flush=True)
        os._exit(0)
    os.wait()
"""


def test_answers_need_nothing_slow(tmp_path: Path):
    """Every command runs in its own process, which has imported only the command line."""
    given = json.dumps([arguments for arguments, _ in ANSWERS])
    command = (sys.executable, "-c", FORKS, given)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    found = dict(zip([" ".join(arguments) for arguments, _ in ANSWERS], done.stdout.splitlines(), strict=True))
    assert found == {" ".join(arguments): str(code) for arguments, code in ANSWERS}


@pytest.mark.parametrize("names", ["steadygaze", "steadygaze, steadygaze.cli"])
def test_the_import_needs_nothing_slow(tmp_path: Path, names):
    found = f"[name for name in {(*SLOW, 'numpy')} if name in sys.modules]"
    script = f"import sys, {names}\ndir(steadygaze)\nprint({found}, file=sys.stderr)"
    assert run(tmp_path, script) == "[]"


def test_a_map_without_a_picture_needs_neither_numba_nor_scipy_nor_matplotlib(tmp_path: Path):
    """Its code is on disk after the first run."""
    question = (*MODEL, "--image", "mnist:69990", "--perturb", "brightness:0..0.1", "--pictures", "none", "--force")
    for _ in range(2):
        found = run(tmp_path, SCRIPT, *question, "--out", "out").split()
    assert found[0] in ("0", "10") and not {*found} & {"numba", "scipy", "matplotlib", "bokeh", "pydantic"}


def test_public_names_are_those_of_their_modules():
    import steadygaze
    from steadygaze.api import verify

    assert steadygaze.verify is verify and "verify" in dir(steadygaze)
    assert all(getattr(steadygaze, name) is not None for name in steadygaze.__all__)
    assert steadygaze.__version__
    with pytest.raises(AttributeError, match="nonsense"):
        _ = steadygaze.nonsense


def test_parts_do_not_hide_public_names(tmp_path: Path):
    script = (
        "import sys, steadygaze, steadygaze.compare.comparison, steadygaze.api\n"
        "print(steadygaze.compare is steadygaze.api.compare, file=sys.stderr)"
    )
    assert run(tmp_path, script) == "True"


HELP_TEXTS = """
import sys
from steadygaze.cli.quick_drawing import import_matplotlib
if sys.argv[1] == "quick":
    import_matplotlib()
from matplotlib import artist, lines
from matplotlib.figure import Figure
from steadygaze.report.drawing.sheet import Sheet, figure_bytes

def make():
    sheet = Sheet(2, 2)
    sheet.write(0.2, 0.2, "theta")
    axes = sheet.axes(0.5, 0.5, 1, 1)
    axes.plot([0, 1], [1, 0])
    axes.tick_params(grid_color="red", grid_linewidth=2.0)
    axes.grid(True)
    return sheet.figure

class Later(artist.Artist):
    pass

texts = [kind.set.__doc__ or "" for kind in (lines.Line2D, Later)]
print(*["zorder" in text for text in texts], hash(figure_bytes(make, "svg")), file=sys.stderr)
"""


def test_commands_draw_the_same_without_the_help_texts_of_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    quick, usual = (run(tmp_path, HELP_TEXTS, how).split() for how in ("quick", "usual"))
    assert (quick[:2], usual[:2]) == (["False", "True"], ["True", "True"])
    assert quick[2] == usual[2]


FORMULAS = """
import sys
from steadygaze.cli.quick_drawing import LATER, import_matplotlib
if sys.argv[1] == "quick":
    import_matplotlib()
    print(sorted(name for name in LATER if name in sys.modules), end=" ", file=sys.stderr)
import io
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
figure = Figure(figsize=(2, 1))
figure.text(0.1, 0.5, "$\\\\theta^2$", fontproperties=FontProperties("serif:bold"))
stream = io.BytesIO()
figure.savefig(stream, format="png")
print(hash(stream.getvalue()), FontProperties("serif:bold"), file=sys.stderr)
"""


def test_parts_of_matplotlib_that_commands_leave_out_are_there_when_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    quick, usual = (run(tmp_path, FORMULAS, how).split() for how in ("quick", "usual"))
    assert quick == ["[]", *usual]


@pytest.mark.parametrize("ends", [False, True])
def test_a_process_that_ends_does_not_search_for_cycles(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a caller who gives arguments goes on, and gets Python's usual number back."""
    usual = gc.get_threshold()
    monkeypatch.setattr(sys, "argv", ["steadygaze", "--version"])
    try:
        main() if ends else main(["--version"])
        assert (gc.get_threshold() != usual) == ends
    finally:
        gc.set_threshold(*usual)
