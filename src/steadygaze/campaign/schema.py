"""The columns of a campaign's results: name, type and meaning of each, in order. docs/campaign.md is made from them.

One row stands for one problem. Nothing is computed here.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "whole", "number"]
SHARES = ("CR", "MR", "AR", "IR", "CR&AR", "CR&IR", "MR&AR", "MR&IR")
LABELS = ("CR", "MR", "CB")
SETS = (*LABELS, "AR", "IR", "AB")
PERCENTS = ("10%", "25%", "50%", "100%")


@dataclass(frozen=True)
class Column:
    """One column; a value that is not known, or does not apply, is empty."""

    name: str
    kind: Kind
    meaning: str


def share_column(share: str) -> str:
    """The start of the names of a share's two columns.

    >>> share_column("CR&IR")
    'cr_ir'
    """
    return share.lower().replace("&", "_")


def percent_column(percent: str) -> str:
    """The start of the names of the two columns for AR at a share of the original maps' size.

    >>> percent_column("25%")
    'ar_at_25'
    """
    return f"ar_at_{percent.rstrip('%')}"


def _bounds(start: str, what: str) -> list[Column]:
    return [
        Column(f"{start}_low", "number", f"{what}: proved lower bound"),
        Column(f"{start}_high", "number", f"{what}: proved upper bound"),
    ]


QUESTION = (
    Column("key", "text", "the name of the problem, unique in the campaign; also that of its file in `rows/`"),
    Column("model", "text", "the network, as the plan spells it"),
    Column("neurons", "whole", "its number of ReLUs"),
    Column("group", "text", "what models and images of the plan have in common; may be empty"),
    Column("image", "text", "the image, as the plan spells it"),
    Column("combination", "text", "the name of the perturbations in the plan"),
    Column("perturbations", "text", "their specs, joined by blanks"),
    Column("method", "text", "`map`, `refine`, `bfs`, `gbs` or `boundary`"),
    Column("property", "text", "`cr`, `ar` or `both`"),
    Column("algorithm", "text", "method and property in the paper's words, such as `gbs-CRAR`"),
    Column("delta", "text", "the threshold as given, absolute or in percent"),
    Column("filter", "text", "`identity`, `abs`, `mean`, or steps joined by `+`"),
    Column("dist", "text", "`l1` or `l2`"),
    Column("classes", "text", "the classes whose maps are compared: `all`, `predicted`, or their numbers"),
    Column("until", "text", "of `refine`: the share that may stay undecided, or `exact`"),
    Column("w_delta", "number", "of `gbs`: how far from δ a region still counts as near the boundary"),
    Column("limit_seconds", "number", "the time limit"),
    Column("limit_gib", "number", "the memory limit in GiB"),
)
ANSWER = (
    Column(
        "status",
        "text",
        "`Robust` (nothing that was visited or decided violates the property), `NotRobust`, `Timeout` or `Failed`",
    ),
    Column("verdict", "text", "what is proved of the whole domain: `robust`, `not robust` or `undecided`"),
    Column("reason", "text", "why the status is `Timeout` or `Failed`"),
    Column("label", "whole", "the predicted class of the unperturbed image"),
    Column("delta_value", "number", "the threshold as an absolute number"),
    Column("map_size", "number", "the size of the original attention maps"),
    Column("regions", "whole", "regions that were found or visited one by one; of a refinement those of mapped boxes"),
    Column("boxes", "whole", "boxes of a refinement"),
    Column("visited_share", "number", "the share of the domain that was visited, mapped or decided"),
    Column(
        "face_checks", "whole", "facets that a search looked across; 0 for a map or a refinement, which look at none"
    ),
    Column("lps", "whole", "linear programs that were solved"),
    Column(
        "undecided",
        "number",
        "the share of the domain left undecided: by a map in label or attention, by a refinement in the property asked",
    ),
    *(
        column
        for share in SHARES
        for column in _bounds(share_column(share), f"share of the domain that is {share.replace('&', ' and ')}")
    ),
    *(
        column
        for percent in PERCENTS
        for column in _bounds(percent_column(percent), f"share that is AR at δ = {percent} of `map_size`")
    ),
    *(Column(f"regions_{name.lower()}", "whole", f"regions labelled {name}") for name in SETS),
    Column("regions_cr_ir", "whole", "regions labelled CR and IR at once: right label, other evidence"),
    *(
        column
        for name in ("CR", "AR")
        for column in _bounds(
            f"nearest_{name.lower()}", f"distance of the nearest violation of {name}, each axis scaled to 1"
        )
    ),
    Column("components", "whole", "of `boundary`: components of the outermost boundary"),
    Column(
        "sliver_share",
        "number",
        "bound of the share of the domain on kinks, where the attention is undecided; of a search, of what was cut off",
    ),
)
MEASURED = (
    Column("seconds", "number", "time for the problem: reading, solving, self-checks"),
    Column("peak_mib", "number", "the most memory that the worker process held meanwhile, in MiB"),
)
COLUMNS = (*QUESTION, *ANSWER, *MEASURED)
EMPTY_ANSWER: dict[str, None] = dict.fromkeys(column.name for column in ANSWER)
