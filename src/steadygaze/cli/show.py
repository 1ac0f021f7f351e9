"""`steadygaze show`: a stored answer again, also for another delta. Computes no map."""

from ..problem import Delta
from ..results import store
from ..verdict import Verdict
from . import options as o
from .deliver import PICTURES, print_json, print_notes
from .describe import describe


def show(
    directory: o.DirectoryOption,
    delta: o.OtherDeltaOption = None,
    json: o.JsonOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Show a stored answer again, also for another delta.

    The exit code is that of the verdict, as for verify.
    """
    if delta is None:
        summary, seconds = store.read_summary(directory), store.read_seconds(directory)
    else:
        Delta.parse(delta)  # refused before a large map is read
        result = store.load(directory).with_delta(delta)
        summary, seconds = result.summary(), result.seconds
    if json:
        print_json(summary, seconds=seconds)
    else:
        print_notes(summary["notes"])
        # The pictures show the threshold of the run, not another one.
        pictures = sorted(directory.glob(f"{PICTURES}.*")) if delta is None else []
        describe(summary, seconds=seconds, directory=directory, pictures=pictures)
    return Verdict(summary["verdict"]).exit_code
