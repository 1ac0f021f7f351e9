"""Results in the cells of a notebook: the picture with the shares, and the interactive map in a frame of its own.

A cell is HTML that displays itself; nothing here needs IPython. The frame is sandboxed and may contact no address.
"""

from dataclasses import dataclass
from html import escape

from ...errors import OptionError
from ...results.description import verdict_sentences
from ...results.result import Result
from ...tolerances import MAX_MAP_PARAMETERS
from ..figures import result_png
from ..thresholds import make_thresholds
from . import ALLOWED, facts, fill
from .cards import png_uri
from .explorer import make_explorer


@dataclass(frozen=True)
class Cell:
    """HTML that a notebook displays when it is the last value of a cell."""

    html: str

    def __repr__(self) -> str:
        return f"Cell({len(self.html):,} characters of HTML; a notebook displays them)"

    def _repr_html_(self) -> str:
        return self.html


def result_html(result: Result) -> str:
    """The verdict, the picture of up to three parameters, and the shares or the counts of visited regions."""
    summary = result.described
    is_drawn = result.question.perturbed.domain.dimension <= MAX_MAP_PARAMETERS
    return fill(
        "cell.html.j2",
        {
            "summary": summary,
            "sentences": verdict_sentences(summary),
            "picture": png_uri(result_png(result)) if is_drawn else None,
            "shares": [] if summary.is_search else facts.share_rows(summary),
            "sums": [] if summary.is_search else facts.sum_rows(summary),
            "sets": facts.set_rows(summary) if summary.is_search else [],
        },
    )


def map_cell(result: Result, height: int) -> Cell:
    """The interactive map; OptionError for results that have none."""
    if result.tiling.is_search:
        raise OptionError("a search has no interactive map; use --method map or refine, or plot()")
    explorer = make_explorer(result, make_thresholds(result))
    if explorer is None:
        raise OptionError(
            f"the interactive map shows up to {MAX_MAP_PARAMETERS} parameters; leave some out, or draw a path or strip"
        )
    page = fill("map.html.j2", {"allowed": ALLOWED, "explorer": explorer})
    return Cell(
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="Interactive map" width="100%" '
        f'height="{int(height)}" style="border: 0"></iframe>'
    )
