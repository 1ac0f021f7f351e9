"""`steadygaze compare`: prints, draws and saves stored results side by side. Computes no map."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError
from . import command_options as o

DirectoriesOption = Annotated[list[Path], typer.Argument(
    metavar="DIR1 DIR2 ...",
    help="Two or more directories that verify wrote; difference maps are against the first.",
)]  # fmt: skip
OutOption = Annotated[Path | None, o.option(
    "--out DIR|FILE", "A directory for comparison.json, .png, .svg and .pdf, or a file with one of these endings.",
    default="nothing is written",
)]  # fmt: skip


def compare(
    directories: DirectoriesOption,
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    out: OutOption = None,
    force: o.ForceFilesOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Compare stored maps and refinements: several networks, images or perturbations side by side.

    Shows the shares of each, and ranks networks by how much they keep and perturbations by their risk. If all have the
    same domain, it shows where the first keeps label and attention and another does not. A threshold holds for all
    results; without one, each answers for its own. The exit code is 0.
    """
    if len(directories) < 2:
        raise OptionError("a comparison needs two or more directories; give another one")
    from .. import api  # noqa: PLC0415 (slow to import)
    from ..results import store  # noqa: PLC0415 (slow to import)
    from .comparison_text import describe_comparison  # noqa: PLC0415 (slow to import)
    from .printing import print_json, print_notes  # noqa: PLC0415 (slow to import)

    for directory in directories:
        stored = store.read_summary(directory)
        if stored.is_search:
            raise OptionError(
                f"{directory}: holds a search ({stored.method}), which has no shares of the whole domain; verify "
                "with --method map or refine"
            )
    if out is not None:
        from ..compare.comparison_figure import check_place, save_comparison  # noqa: PLC0415 (slow to import)

        check_place(out, force=force)
    comparison = api.compare(directories, delta=delta, tau=tau, gamma=gamma, top=top)
    summary = comparison.summary()
    files = [] if out is None else save_comparison(comparison, out, force=force)
    if json:
        print_json(summary | {"output": {"files": [str(path) for path in files]}})
    else:
        print_notes(summary["notes"])
        describe_comparison(summary, files=files)
    return 0
