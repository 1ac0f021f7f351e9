"""The answer of a search in words: what the verdict rests on, how the search went, what was visited.

Turns the plain data of a summary into text, and says no more than was proved. Prints nothing.
"""

from ..tolerances import MAX_MAP_PARAMETERS
from ..verdict import Status
from .wording import Summary, number_text, robust_text, sentence, share_text, theta_text, within_text

METHODS = {
    "bfs": "all regions, from one to the next (bfs)",
    "gbs": "along the line, then along the boundary (gbs)",
    "boundary": "the boundary alone (boundary)",
}


def count_text(count: int, word: str) -> str:
    """A number of things.

    >>> count_text(1, "region"), count_text(12345, "region")
    ('1 region', '12,345 regions')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def search_verdict_text(summary: Summary) -> str:
    """What is proved of the whole domain; where nothing is, why, and what to do."""
    if summary["verdict"] == "robust":
        return robust_text(summary)
    if summary["verdict"] == "not robust":
        between = "a refinement proves a violation between the visited regions; take --method refine to see where"
        return sentence("; ".join(_violations(summary)) or between)
    if summary.get("confirmation") is not None:
        return (
            "Every visited region satisfies the property, and they cover the domain up to tolerances, but a refinement "
            "could not confirm it for every theta. Give it more time, or move the ranges a little."
        )
    share = share_text(summary["visited_share"])
    if summary["status"] == Status.ROBUST.value:
        return (
            f"Every visited region satisfies the property, but they cover {share} of the domain. That is no proof: "
            f"{_proving(summary)} to decide the rest."
        )
    if summary["stopped"]:
        return (
            f"No violation is proved, but the search was stopped ({summary['stopped']}) with {share} of the domain "
            "visited. Give it more time, regions or memory, or take smaller ranges."
        )
    lost = [f"{count_text(summary['failures'], 'region')} or programs were lost"] if summary["failures"] else []
    open_labels = sum(count or 0 for count in summary["undecided"].values())
    lost += [f"{count_text(open_labels, 'label')} are within the error bounds"] if open_labels else []
    reason = " and ".join(lost) or "part of the domain was not reached"
    return sentence(f"no violation is proved, but {reason}. {_proving(summary)}, or move the ranges a little")


def status_text(summary: Summary) -> str:
    """How the search ended, in the paper's words, and what they mean."""
    return f"{summary['status']}: {Status(summary['status']).meaning}"


def method_text(summary: Summary) -> str:
    """How regions were visited, and with which options."""
    parts = [METHODS[summary["method"]]]
    if summary["line"] is not None:
        parts.append(f"line to {theta_text(summary['line'], summary['domain']['names'])}")
    if summary["w_delta"] is not None:
        parts.append(f"w^δ = {number_text(summary['w_delta'])}")
    return "; ".join(parts)


def visited_text(summary: Summary, seconds: float | None) -> str:
    """How much was visited, in which time."""
    text = f"{count_text(summary['visited'], 'region')}, {share_text(summary['visited_share'])} of the domain"
    if summary["following"]:
        text += f", {summary['following']:,} of them reached by following the boundary"
    return text if seconds is None else f"{text}, in {seconds:.1f} s"


def work_text(summary: Summary) -> str:
    """What the search did for it."""
    return f"{count_text(summary['face_checks'], 'face check')}, {count_text(summary['lps'], 'linear program')}"


def boundary_texts(summary: Summary) -> list[str]:
    """The components of the outermost boundary, one line each; empty for other methods."""
    parts = summary["components"]
    if parts is None:
        return ["not known, as the search was stopped"] if summary["method"] == "boundary" else []
    found = f"{count_text(len(parts), 'component')}{'' if parts else ': nothing that touches the border was found'}"
    if summary["failures"]:
        found += " found; others may be missing, as regions were lost"
    lines = [
        f"component {place}: {count_text(part['inner'], 'region')} along its inner side, {part['outer']:,} along the "
        "outer"
        for place, part in enumerate(parts, start=1)
    ]
    return [found, *lines]


def _violations(summary: Summary) -> list[str]:
    sets, visited = summary["sets"], count_text(summary["visited"], "visited region")
    whole = {"MR": "the label changes", "IR": f"the attention maps are not {within_text(summary)}"}
    wanted = {"cr": ("MR",), "ar": ("IR",), "both": ("MR", "IR")}[summary["property"]]
    parts = []
    for name in wanted:
        everywhere, partly = sets[name] or 0, sets[{"MR": "CB", "IR": "AB"}[name]] or 0
        places = [f"on {everywhere:,} of {visited}"] * (everywhere > 0)
        more = " more" if everywhere else f" of {visited}"
        places += [f"on part of {partly:,}{more}"] * (partly > 0)
        if places:
            parts.append(f"{whole[name]} {' and '.join(places)}")
    return parts


def _proving(summary: Summary) -> str:
    """What to take in place of a search that proves nothing."""
    if summary["method"] == "bfs":
        return "take --method map" if len(summary["domain"]["names"]) <= MAX_MAP_PARAMETERS else "take smaller ranges"
    return "take --method map or bfs" if len(summary["domain"]["names"]) <= MAX_MAP_PARAMETERS else "take --method bfs"
