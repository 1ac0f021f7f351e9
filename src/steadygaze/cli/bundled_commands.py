"""Commands on bundled data: `demo` makes two maps, `models` lists the networks."""

import sys
import time
from pathlib import Path
from typing import Annotated

from .. import zoo
from ..errors import StoreError
from ..labels import Verdict
from . import command_options as o
from .quick_drawing import import_matplotlib
from .stored_commands import PAGE
from .verify_command import check_writable, print_answer, store_and_draw, with_bundled_names

MODEL, IMAGE, DELTA = "M-FNN-100", "mnist:69992", "3.0"
"""A nine; δ as in the paper."""

MAPS = {
    # The patch darkens the stroke below the loop: the network first uses other evidence for the nine, then loses it.
    "brightness-patch": ("brightness:0..0.3", "patch:x=10,y=14,w=8,h=8,tone=-1"),
    "translation-brightness": ("translate:dx=2:0..1.5", "brightness:0..0.3"),
}
DIRECTORY = Path("demo")


def demo(
    out: Annotated[Path, o.option("--out DIR", "The directory for the results and the pictures.")] = DIRECTORY,
    force: o.ForceOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Map a bundled network on a bundled image, with pictures and reports.

    Needs only this package. The exit code is 0 for any verdict.
    """
    started = time.perf_counter()
    if out.exists() and not force:
        raise StoreError(f"{out}: exists already; choose another --out, or replace its results with --force")
    import_matplotlib()
    from ..budget import Budget  # noqa: PLC0415 (slow to import)
    from ..engines import RunPlan  # noqa: PLC0415 (slow to import)
    from ..question import make_question  # noqa: PLC0415 (slow to import)
    from ..report.page.html import write_report  # noqa: PLC0415 (slow to import)
    from .run_progress import showing_progress, stopping_on_signals  # noqa: PLC0415 (slow to import)

    for name in MAPS:
        check_writable(out / name, force=force)
    print(f"Two maps of {MODEL} on {IMAGE}; the first run compiles for up to half a minute.", file=sys.stderr)
    pages: list[Path] = []
    for name, specs in MAPS.items():
        budget = Budget()
        with stopping_on_signals(budget), showing_progress(budget, is_wanted=True) as display:
            question = with_bundled_names(make_question(MODEL, IMAGE, specs, delta=DELTA), IMAGE)
            result = RunPlan("map").run(question, budget, display.advance)
            delivered = store_and_draw(result, out / name, force=force)
            pages.append(write_report(result, out / name / PAGE, force=True, directory=out / name))
        print_answer(delivered)
        print(f"{'report':8}{pages[-1]}\n")
        if budget.cancelled.is_set():
            return Verdict.UNDECIDED.exit_code
    print(f"Done in {time.perf_counter() - started:.1f} s. Open {pages[0]} in a browser first.")
    return 0


def models() -> int:
    """List the bundled networks: neurons, accuracy, training."""
    from rich import box  # noqa: PLC0415 (slow to import)
    from rich.console import Console  # noqa: PLC0415 (slow to import)
    from rich.table import Table  # noqa: PLC0415 (slow to import)

    from ..words import share_text  # noqa: PLC0415 (slow to import)

    table = Table("name", "dataset", "layers", "neurons", "accuracy", "training", box=box.SIMPLE_HEAD)
    table.columns[0].no_wrap = True
    for column in table.columns[3:5]:
        column.justify = "right"
    for model in zoo.models():
        accuracy = share_text(model.accuracy)
        table.add_row(model.name, model.dataset, model.layers, f"{model.neurons:,}", accuracy, model.training)
    console = Console()
    if not console.is_terminal:
        console.width = 200  # programs that read the output get whole rows
    console.print(table)
    references: dict[str, list[str]] = {}
    for image in zoo.images():
        references.setdefault(image.reference.partition(":")[0], []).append(image.reference)
    ranges = ", ".join(f"{own[0]} to {own[-1]}" for own in references.values())
    console.print(f"Bundled images: {ranges}", highlight=False)
    return 0
