"""`steadygaze compare`: stored results beside each other, told, drawn and as JSON. Computes no map."""

import json as json_text

from .. import api
from ..errors import OptionError
from ..problem import Delta
from ..results import store
from . import options as o
from .compare_text import describe_comparison
from .deliver import print_notes


def compare(
    directories: o.ComparedDirectoriesOption,
    delta: o.ComparedDeltaOption = None,
    out: o.ComparisonOutOption = None,
    force: o.ForceFilesOption = False,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Compare stored maps and refinements: several networks, images or perturbations beside each other.

    Tells the shares of each, ranks networks by what they keep and perturbations by the risk they pose, and, where all
    have the same domain, says where the first keeps label and attention and another does not. The exit code is 0.
    """
    from ..compare.comparison_figure import check_place, save_comparison  # noqa: PLC0415 (matplotlib is slow to import)

    if delta is not None:
        Delta.parse(delta)  # refused before a large map is read
    if out is not None:
        check_place(out, force=force)
    if len(directories) < 2:
        raise OptionError("a comparison takes two directories or more; give another one")
    for directory in directories:
        summary = store.read_summary(directory)
        if store.is_search(summary):
            raise OptionError(
                f"{directory}: holds a search ({summary['method']}), which has no shares of the whole domain; verify "
                "with --method map or refine"
            )
    comparison = api.compare(directories, delta=delta)
    summary = comparison.summary()
    files = [] if out is None else save_comparison(comparison, out, force=force)
    if json:
        output = {"files": [str(path) for path in files]}
        print(json_text.dumps(summary | {"output": output}, indent=2, allow_nan=False))
        return 0
    print_notes(summary["notes"])
    describe_comparison(summary, files=files)
    return 0
