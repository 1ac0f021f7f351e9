"""`steadygaze show`: a stored answer again, of a map or refinement also for another delta. Computes nothing else."""

from pathlib import Path

from .. import api
from ..errors import OptionError
from ..problem import Delta
from ..results import store
from ..verdict import Verdict
from . import options as o
from .deliver import PICTURES, SEARCH_PICTURES, print_json, print_notes
from .describe import describe
from .describe_search import describe_search


def show(
    directory: o.DirectoryOption,
    delta: o.OtherDeltaOption = None,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Show a stored answer again; that of a map or a refinement also for another delta.

    The exit code is that of the verdict, as for verify.
    """
    if delta is None:
        summary, seconds = store.read_summary(directory), store.read_seconds(directory)
        if store.is_search(summary):
            store.read_checked(directory)  # its regions are all that the answer rests on
    else:
        Delta.parse(delta)  # refused before a large map is read
        _refuse_search(directory)
        result = api.load(directory).with_delta(delta)
        summary, seconds = result.summary(), result.seconds
    if json:
        print_json(summary, seconds=seconds)
    else:
        print_notes(summary["notes"])
        # The pictures show the threshold of the run, not another one.
        name, tell = (SEARCH_PICTURES, describe_search) if store.is_search(summary) else (PICTURES, describe)
        pictures = sorted(directory.glob(f"{name}.*")) if delta is None else []
        tell(summary, seconds=seconds, directory=directory, pictures=pictures)
    return Verdict(summary["verdict"]).exit_code


def _refuse_search(directory: Path) -> None:
    summary = store.read_summary(directory)
    if store.is_search(summary):
        raise OptionError(
            f"{directory}: holds a search ({summary['method']}), which answers δ = {summary['delta']['text']} alone; "
            "leave --delta out, or run verify with another --delta or with --method map"
        )
