"""`steadygaze campaign figures` and `insights`: what a campaign that has ended shows. Decides nothing."""

import json as json_text
import sys

from ..campaign import tables
from ..campaign.plan_file import read_plan
from ..campaign.stored_campaign import Store
from ..errors import OptionError
from . import campaign_options as o
from .figure import parse_formats
from .options import DebugOption, JsonOption
from .table_files import put_table, refuse_existing

FORMATS = ("text", "json", "csv")


def figures(
    directory: o.CampaignOption,
    out: o.FiguresOutOption = None,
    format: o.FigureFormatOption = None,
    plan: o.FilesPlanOption = None,
    force: o.ReplaceFilesOption = False,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> int:
    """Draw figures (A) to (G) of the paper's evaluation from a campaign.

    (A), (B): how problems ended, where attention is asked and for the label alone. (C): seconds against neurons. (D):
    regions by combination. (E), (F): seconds against regions and face checks. (G): the regions that a search visited;
    for it a cheap gbs problem is searched again. Problems that have not ended are left out, or shown as open.
    """
    from ..campaign.figures import draw_figures  # noqa: PLC0415 (matplotlib is slow to import)

    formats = parse_formats(format, None)
    given = None if plan is None else read_plan(plan)
    store = Store.open(directory)
    drawn = draw_figures(store, directory / "figures" if out is None else out, formats=formats, force=force, plan=given)
    if json:
        print(json_text.dumps({"pictures": [str(file) for file in drawn.files], "missing": drawn.missing}, indent=2))
        return 0
    for file in drawn.files:
        print(f"picture {file}")
    for letter, reason in drawn.missing.items():
        print(f"note: no figure ({letter}): {reason}", file=sys.stderr)
    return 0


def insights(
    directory: o.CampaignOption,
    table: o.InsightsTableOption = None,
    format: o.InsightsFormatOption = "text",
    out: o.InsightsOutOption = None,
    force: o.ReplaceOption = False,
    debug: DebugOption = False,
) -> int:
    """Make the tables that the paper argues in words, from the maps and refinements of a campaign.

    collapse: which perturbation takes most attention away, for every network. silent: how often the label is kept but
    the attention is not (CR and IR). delta: how the share of AR moves with δ; filter: and with filter and distance.
    ranking: how label and attention rank networks differently. Shares are means over images, with proved bounds.
    """
    if format not in FORMATS:
        raise OptionError(f"--format is {format!r}; expected {', '.join(FORMATS)}")
    if table is not None and table not in tables.TABLES:
        raise OptionError(f"--table is {table!r}; expected {', '.join(tables.TABLES)}")
    if format == "csv" and table is None:
        raise OptionError(f"--format csv is for one table; give --table and one of {', '.join(tables.TABLES)}")
    refuse_existing(out, force=force)
    store = Store.open(directory)
    found = tables.make_insights(tables.make_records(store))
    chosen = [one for one in found if table is None or one.name == table]
    if format == "csv":
        content = chosen[0].to_csv()
    elif format == "json":
        content = json_text.dumps([one.as_data() for one in chosen], indent=2, allow_nan=False) + "\n"
    else:
        content = "\n".join(one.to_text() for one in chosen)
    put_table(content, out)
    return 0
