"""`steadygaze compare`: prints, draws and saves stored results side by side. Computes no map."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OptionError
from ..labels import Joint
from ..requirement import NAMES, read_share
from . import command_options as o

DirectoriesOption = Annotated[list[Path], typer.Argument(
    metavar="DIR1 DIR2 ...",
    help="Two or more directories that verify wrote; difference maps compare each with the first.",
)]  # fmt: skip
OutOption = Annotated[Path | None, o.option(
    "--out DIR|FILE", "A directory for comparison.json, .png, .svg and .pdf, or a file with one of these endings.",
    default="nothing is written",
)]  # fmt: skip
FailIfWorseOption = Annotated[float | None, o.option(
    "--fail-if-worse NUMBER",
    "Exit with code 10 if the share of a later result is proved to be worse than that of the first, the baseline, by "
    "more than this number, and with code 3 if the bounds leave it open.", o.QUESTION,
    read=o.share_number,
)]  # fmt: skip
ShareOption = Annotated[str | None, o.option(
    "--share NAME",
    f"With --fail-if-worse: the share to compare, one of {', '.join(NAMES)}. A smaller share is worse for CR, AR and "
    "CR&AR, a larger one for the others.", o.QUESTION, default=Joint.BOTH, read=read_share,
)]  # fmt: skip


def compare(
    directories: DirectoriesOption,
    delta: o.OtherDeltaOption = None,
    tau: o.OtherTauOption = None,
    gamma: o.OtherGammaOption = None,
    top: o.OtherTopOption = None,
    fail_if_worse: FailIfWorseOption = None,
    share: ShareOption = None,
    out: OutOption = None,
    force: o.ForceFilesOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Compare stored results: several networks, images or perturbations side by side.

    Shows the shares of each result, ranks networks by how much they keep, and perturbations by their risk. If all
    results have the same domain, it also shows where the first keeps label and attention and another does not. A given
    threshold applies to all results; otherwise each keeps its own. A search can be compared if it bounds shares of the
    whole domain, as bfs does. The exit code is 0, unless --fail-if-worse is given.
    """
    if len(directories) < 2:
        raise OptionError("compare got one directory, and needs two or more; give another one")
    if share is not None and fail_if_worse is None:
        raise OptionError("--share needs --fail-if-worse NUMBER; give both, or leave --share out")
    from .. import api  # noqa: PLC0415 (slow to import)
    from ..compare.comparison import WorseningGate  # noqa: PLC0415 (slow to import)
    from ..results import store  # noqa: PLC0415 (slow to import)
    from .comparison_text import describe_comparison, describe_gate  # noqa: PLC0415 (slow to import)
    from .printing import print_json, print_notes  # noqa: PLC0415 (slow to import)

    for directory in directories:
        stored = store.read_summary(directory)
        if not stored.knows_shares:
            raise OptionError(
                f"{directory}: holds a search ({stored.method}), which bounds no shares of the whole domain; verify "
                "with --method map, refine or bfs"
            )
    if out is not None:
        from ..compare.comparison_figure import check_place, save_comparison  # noqa: PLC0415 (slow to import)

        check_place(out, force=force)
    comparison = api.compare(directories, delta=delta, tau=tau, gamma=gamma, top=top)
    files = [] if out is None else save_comparison(comparison, out, force=force)
    gate = None if fail_if_worse is None else WorseningGate.of(comparison, share or Joint.BOTH, fail_if_worse)
    if json:
        judged = {} if gate is None else {"fail_if_worse": gate.plain()}
        print_json(comparison.summary() | judged | {"output": {"files": [str(path) for path in files]}})
    else:
        print_notes(comparison.notes)
        describe_comparison(comparison, files=files)
        if gate is not None:
            describe_gate(gate)
    return 0 if gate is None else gate.outcome.exit_code
