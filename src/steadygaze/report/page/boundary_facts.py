"""The outermost boundary of a result as rows of text and a picture. Decides nothing."""

from dataclasses import dataclass
from typing import Any

from ...boundary import Boundary
from ...errors import OptionError
from ...results.boundary_summary import summarise_boundary
from ...results.domain_result import DomainResult
from ..boundary_figure import boundary_figure
from ..wording import counted
from .facts import Row, limited
from .pictures import figure_uri
from .rounding import percent_down, percent_up, rounded, rounded_up
from .sentences import Summary, theta_text

MOST_ROWS = 10


@dataclass(frozen=True)
class BoundaryFacts:
    """What a page says of a boundary; `reason` is why there is none, and everything else is empty then."""

    reason: str = ""
    sentence: str = ""
    facts: tuple[Row, ...] = ()
    components: tuple[tuple[str, ...], ...] = ()
    more_components: int = 0
    enclaves: tuple[tuple[str, ...], ...] = ()
    more_enclaves: int = 0
    picture: str = ""


def describe_boundary(result: DomainResult) -> BoundaryFacts:
    """The boundary of the property that was asked for."""
    try:
        found = result.boundary()
    except OptionError as error:
        return BoundaryFacts(reason=str(error))
    summary = _cautious(result, summarise_boundary(result, found))
    components, more_components = limited(summary["components"], MOST_ROWS)
    enclaves, more_enclaves = limited(summary["enclaves"], MOST_ROWS)
    return BoundaryFacts(
        sentence=_sentence(summary),
        facts=tuple(_facts(summary, found)),
        components=tuple(
            (
                str(number),
                rounded(part["measure"], 4),
                "yes" if part["touches_border"] else "no",
                f"{len(part['inner_regions']):,} / {len(part['outer_regions']):,}",
                percent_up(part["share_beyond"]),
            )
            for number, part in enumerate(components, start=1)
        ),
        more_components=more_components,
        enclaves=tuple(
            (
                str(number),
                percent_up(part["share"]),
                percent_down(part["satisfying_share"]),
                theta_text(summary, part["nearest"]["theta"]),
                rounded(part["nearest"]["distance"], 4),
            )
            for number, part in enumerate(enclaves, start=1)
        ),
        more_enclaves=more_enclaves,
        picture=figure_uri(lambda: boundary_figure(result, found)),
    )


def _cautious(result: DomainResult, summary: dict[str, Any]) -> dict[str, Any]:
    """The summary with shares that are proved: without the strips of pieces that are too close to a threshold."""
    name = {"cr": "CR", "ar": "AR", "both": "CR&AR"}[summary["property"]]
    strips = summary["undecided"]["strip_share"]
    lower = {key: max(0.0, summary[key] - strips) for key in ("reachable_share", "enclosed_share")}
    return summary | lower | {"satisfying_share": min(summary["satisfying_share"], result.areas[name][0])}


def _sentence(summary: Summary) -> str:
    what = {
        "cr": "the label is kept",
        "ar": "the attention is kept",
        "both": "label and attention are kept",
    }[summary["property"]]
    if not summary["starts"]:
        nothing = f"Nothing around the unperturbed image is proved to be a place where {what}"
        return f"{nothing}, so no part counts as reachable."
    if summary["verdict"] == "robust" and not summary["components"] and not summary["enclaves"]:
        return f"All of the space can be reached from the unperturbed image while {what}: there is no boundary."
    share = percent_down(summary["reachable_share"])
    enclaves = len(summary["enclaves"])
    inside = (
        f" It encloses {counted(enclaves, 'enclave')}: parts inside of it where that does not hold, or is not decided."
        if enclaves
        else ""
    )
    return f"At least {share} of the space can be reached from the unperturbed image while {what} all the way.{inside}"


def _facts(summary: Summary, found: Boundary) -> list[Row]:
    undecided = summary["undecided"]
    rows = [
        ("satisfies the property", f"at least {percent_down(summary['satisfying_share'])}"),
        ("of it not reachable from the unperturbed image", percent_up(summary["unreachable_share"])),
        ("inside the outermost boundary, enclaves included", f"at least {percent_down(summary['enclosed_share'])}"),
    ]
    if summary["farthest"] is not None:
        rows.append(("farthest reachable", theta_text(summary, summary["farthest"]["theta"])))
    if undecided["pieces_beside"]:
        text = f"{undecided['pieces_beside']:,}; if they satisfy the property, more can be reached"
        rows.append(("undecided pieces beside the boundary", text))
    if undecided["strip_share"] > 0.0:
        rows.append(("too close to a threshold to call", f"share at most {rounded_up(undecided['strip_share'], 2)}"))
    if not found.is_certain and undecided["share"] > 0.0:
        rows.append(("undecided, counts as not kept", f"share at most {rounded_up(undecided['share'], 2)}"))
    return rows
