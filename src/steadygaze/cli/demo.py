"""`steadygaze demo`: the main job on bundled data, twice: brightness with a patch, and with a translation."""

import sys
import time
from pathlib import Path

from .. import api
from ..budget import Budget
from ..errors import StoreError
from ..results.result import Result
from ..verdict import Verdict
from . import options as o
from .deliver import Target, save_and_draw, tell
from .interrupt import stopping_on_signals
from .labels import with_bundled_names
from .progress import showing_progress
from .report import PAGE

MODEL, IMAGE, DELTA = "M-FNN-100", "mnist:69992", "3.0"
"""A nine; δ as in the paper."""

MAPS = {
    # The patch darkens the stroke below the loop: first other evidence is used for the nine, then it is no nine.
    "brightness-patch": ("brightness:0..0.3", "patch:x=10,y=14,w=8,h=8,tone=-1"),
    "translation-brightness": ("translate:dx=2:0..1.5", "brightness:0..0.3"),
}


def demo(
    out: o.DemoOutOption = o.DEMO_DIRECTORY,
    force: o.ForceOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Map a bundled network on a bundled image, with pictures and reports.

    Needs nothing but this package. The exit code is 0 whatever the verdicts are.
    """
    started = time.perf_counter()
    if out.exists() and not force:
        raise StoreError(f"{out}: exists already; choose another --out, or replace its results with --force")
    targets = {name: Target.check(out / name, force=force) for name in MAPS}
    print(f"Two maps of {MODEL} on {IMAGE}; the first run compiles for up to half a minute.", file=sys.stderr)
    pages: list[Path] = []
    for name, specs in MAPS.items():
        budget = Budget()
        with stopping_on_signals(budget), showing_progress(budget, is_wanted=True) as display:
            problem = with_bundled_names(api.make_problem(MODEL, IMAGE, specs, delta=DELTA), IMAGE)
            result = api.solve(problem, budget=budget, progress=display.report)
            display.say_writing()
            delivered = save_and_draw(result, targets[name])
            pages.append(_report(result, delivered.directory))
        tell(delivered)
        print(f"{'report':8}{pages[-1]}\n")
        if budget.cancelled.is_set():
            return Verdict.UNDECIDED.exit_code
    print(f"Done in {time.perf_counter() - started:.1f} s. Open {pages[0]} in a browser first.")
    return 0


def _report(result: Result, directory: Path) -> Path:
    from ..report.page.html import write_report  # noqa: PLC0415 (matplotlib is slow to import)

    return write_report(result, directory / PAGE, force=True, directory=directory)
