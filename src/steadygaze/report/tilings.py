"""From a map, a refinement or a search to its tiles: regions and boxes with a colour by label or by pattern, and edges.

Every label is one that the result holds. Draws nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.colors import to_rgba

from ..engines.refine.boxes import State
from ..engines.refine.refine_result import RefineResult
from ..engines.search import SearchResult
from ..errors import OptionError
from ..properties.joint import Kept
from ..regions.region import Cut
from ..results.answer import Answer
from ..results.domain_result import DomainResult
from ..results.result import Result
from .colours import BOX_INK, INK, PAPER, PATTERN_SHADES
from .extent import share_not_reached
from .region_labels import ATTENTION, BOTH, CLASSIFICATION, UNDECIDED, Kind, joint_label, make_region_view
from .search_sections import make_search_sections
from .sections import Section, make_sections
from .sheet import Row
from .wording import counted, percent

KINDS: dict[str, Kind] = {"cr": CLASSIFICATION, "ar": ATTENTION, "both": BOTH}
BY = (*KINDS, "pattern")
"""What tiles may be coloured by."""

PATTERN_TITLE = "Activation patterns of the classifier"
GOLDEN = 0.6180339887498949
"""Steps of this size spread any number of patterns over the shades, and neighbouring numbers far apart."""

MIXED_BOX = "#e3e3e3"
"""Of a box, which may hold many patterns."""


@dataclass(frozen=True, eq=False)
class Tiling:
    """Tiles (T of them) as they are drawn: colours (T, 4), which are hatched (T,), and the rows of the table.

    The pieces of a section are tiles; box_edges are segments (S, 2, 2) in t for every section, where boxes end.
    """

    title: str
    sections: tuple[Section, ...]
    colours: np.ndarray
    is_hatched: np.ndarray
    rows: tuple[Row, ...]
    box_edges: tuple[np.ndarray, ...]
    has_gaps: bool


@dataclass(frozen=True, eq=False)
class _Tiles:
    """What is known of T tiles: both labels ("" where not asked for), shares (T,), pattern (T,), −1 for a box."""

    classification: Sequence[str]
    attention: Sequence[str]
    shares: np.ndarray
    pattern: np.ndarray


def make_tiling(result: DomainResult | SearchResult, by: str) -> Tiling:
    """The tiles of up to three parameters, coloured by "cr", "ar", "both" or "pattern"."""
    if isinstance(result, SearchResult):
        sections, tiles = make_search_sections(result), _tiles_of_search(result)
        nothing = np.zeros((0, 2, 2))
        box_edges, rows = tuple(nothing for _ in sections), [_region_row(len(result))]
        if result.summary()["visited_share"] < 1.0:
            rows.append(Row("not visited", percent(1.0 - result.summary()["visited_share"]), PAPER))
        has_gaps = False
    else:
        sections, box_edges = _tile_sections(result)
        tiles = _tiles_of_domain(result)
        rows, missing = _edge_rows(result), share_not_reached(result)
        has_gaps = missing > 0.0
        if has_gaps:
            rows.append(Row("not reached", percent(missing), is_hatched=True))
    title, colours, is_hatched, own = _by_pattern(tiles) if by == "pattern" else _by_label(tiles, by)
    return Tiling(title, sections, colours, is_hatched, (*own, *rows), box_edges, has_gaps)


def _by_label(tiles: _Tiles, by: str) -> tuple[str, np.ndarray, np.ndarray, tuple[Row, ...]]:
    is_empty = not len(tiles.shares)
    has_label, has_attention = (is_empty or any(labels) for labels in (tiles.classification, tiles.attention))
    if (by != "ar" and not has_label) or (by != "cr" and not has_attention):
        missing, other = ("label", "ar") if not has_label else ("attention", "cr")
        raise OptionError(f"this result has no {missing} of its regions, as it was not asked for; take --by {other}")
    labels = {
        "cr": tiles.classification,
        "ar": tiles.attention,
        "both": [joint_label(*pair) for pair in zip(tiles.classification, tiles.attention, strict=True)],
    }[by]
    view = make_region_view(KINDS[by], labels, tiles.shares, is_counted=tiles.shares > 0.0)
    return view.kind.title, view.colours, view.is_hatched, view.rows


def _by_pattern(tiles: _Tiles) -> tuple[str, np.ndarray, np.ndarray, tuple[Row, ...]]:
    is_box = tiles.pattern < 0
    colours = PATTERN_SHADES((tiles.pattern * GOLDEN) % 1.0)
    colours[is_box] = to_rgba(MIXED_BOX)
    count = len(np.unique(tiles.pattern[~is_box]))
    rows = [Row("shades by pattern", counted(count, "pattern"), shades=PATTERN_SHADES)]
    if is_box.any():
        boxes = tiles.shares[is_box & (tiles.shares > 0.0)]
        rows.append(Row("boxes: any pattern", f"{len(boxes):,} · {percent(min(float(boxes.sum()), 1.0))}", MIXED_BOX))
    return PATTERN_TITLE, colours, np.zeros(len(colours), dtype=bool), tuple(rows)


def _tiles_of_search(found: SearchResult) -> _Tiles:
    arrays = found.arrays
    pattern = np.unique(arrays["pattern"], axis=0, return_inverse=True)[1].reshape(-1) if len(found) else np.zeros(0)
    classification = found.classification if any(found.classification) else [""] * len(found)
    return _Tiles(classification, found.attention, arrays["volume"], pattern.astype(np.int64))


def _tiles_of_domain(result: DomainResult) -> _Tiles:
    if isinstance(result, RefineResult):
        return _tiles_of_refinement(result)
    assert isinstance(result, Result)
    return _tiles_of_answer(result.answer)


def _tiles_of_answer(answer: Answer) -> _Tiles:
    regions = answer.answers.regions
    attention = answer.attentions.tolist() if answer.answers.curves is not None else [""] * len(regions)
    return _Tiles(answer.classifications.tolist(), attention, regions.polytopes.volumes, regions.pattern)


def _tiles_of_refinement(result: RefineResult) -> _Tiles:
    """Boxes, then regions; a box that was mapped exactly has no share of its own."""
    answer, boxes = result.answer, result.boxes
    names = {Kept.YES: 0, Kept.NO: 1, Kept.UNKNOWN: 2}
    classification = [("CR", "MR", UNDECIDED)[names[Kept(code)]] for code in answer.label_codes]
    attention = [("AR", "IR", UNDECIDED)[names[Kept(code)]] for code in answer.attention_codes]
    if not result.is_measured:
        attention = [""] * len(boxes)
    shares = np.where(boxes.state == State.EXACT, 0.0, boxes.volumes)
    own = _Tiles(classification, attention, shares, np.full(len(boxes), -1))
    if answer.exact is None:
        return own
    exact = _tiles_of_answer(answer.exact)
    return _Tiles(
        [*own.classification, *exact.classification],
        [*own.attention, *(exact.attention if result.is_measured else [""] * len(exact.shares))],
        np.concatenate([own.shares, exact.shares]),
        np.concatenate([own.pattern, exact.pattern]),
    )


def _tile_sections(result: DomainResult) -> tuple[tuple[Section, ...], tuple[np.ndarray, ...]]:
    """The sections with tiles as their pieces: outlines are edges of regions; and the edges of boxes."""
    pieces = result.answer.joint.pieces
    sections, box_edges = [], []
    for section in make_sections(result):
        polygons = section.polygons
        kind = pieces.cuts[np.abs(polygons.edges) - 1, 0]
        segments = np.stack([polygons.points, polygons.points[polygons.following]], axis=1)
        is_first = polygons.edges > 0
        outlines = segments[is_first & np.isin(kind, (Cut.NEURON, Cut.KNOT))]
        sections.append(replace(section, piece=pieces.region[section.piece], outlines=outlines))
        box_edges.append(segments[is_first & (kind == Cut.SPLIT)])
    return tuple(sections), tuple(box_edges)


def _region_row(count: int) -> Row:
    return Row("edges of regions", counted(count, "region"), INK, is_line=True)


def _edge_rows(result: DomainResult) -> list[Row]:
    rows = [_region_row(result.region_count)]
    if isinstance(result, RefineResult):
        count = int((result.boxes.state != State.EXACT).sum())
        own = [Row("edges of boxes", counted(count, "box", "boxes"), BOX_INK, is_line=True)] if count else []
        rows = (rows if result.region_count else []) + own
    return rows
