"""The colours of all pictures, and views of regions: a colour for each label, and the rows of the table that name it.

Lightness falls from both kept to neither kept, and no two neighbours differ only in red against green, so figures are
readable in grey print. Draws nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba, to_rgba_array

from ...attention.measures import Measure
from ...labels import Joint, Label
from ...results.label_counts import COLUMNS, ROWS
from ...results.tiling import TileLabels
from ...words import share_text

INK = "#1f2328"

FAINT_INK = "#6b7077"

PAPER = "#ffffff"


KEPT = "#d3e4f3"

UNKNOWN = "#bcbcbc"

NOT_REACHED = "#ececec"

HATCH_INK = "#a3a3a3"

HATCH = "/////"
HATCHED: dict[str, Any] = {"facecolor": NOT_REACHED, "edgecolor": HATCH_INK, "hatch": "//////"}
"""How unreached parts of the domain look."""

JOINT: dict[str, str] = {
    Joint.BOTH: KEPT,
    Joint.LABEL_ALONE: "#f0a63c",
    Joint.ATTENTION_ALONE: "#9170b8",
    Joint.NEITHER: "#4b1a45",
}

DELTA_LINE = "#0b4f8a"

MIXED = "#2f8f83"
"""A region where a property holds in part."""
SEARCHED, FOLLOWED = "#ecd9a0", "#3f5f8f"
"""Regions that a search met on its line, and regions that it met while following a boundary."""
BOX_INK = "#8a4b00"
"""Edges of boxes."""
CHANGED = "#9170b8"
"""A piece whose label changes to an unknown class, or to several."""
CHANGED_INK = JOINT[Joint.NEITHER]
"""Words about a lost label."""
WINNERS = ("#6a1f5d", "#cf6a9b", "#1c6f72", "#b3a641", "#35468c")

OTHER_WINNER = "#85858a"


AR_SHADES = LinearSegmentedColormap.from_list("attention kept", ["#f1f7fc", "#a3c6e3"])

IR_SHADES = LinearSegmentedColormap.from_list("attention not kept", ["#f6b550", "#d9741c", "#7a2c05"])

MAP_SHADES = "RdBu_r"

PATTERN_SHADES = LinearSegmentedColormap.from_list(
    "patterns", ["#26456e", "#6c8ebf", "#b9cbe3", "#f4efe6", "#e6c98b", "#c08a3e", "#7a4f1d"], N=1 << 16
)

OTHER, UNDECIDED = "in part", str(Label.UNDECIDED)


@dataclass(frozen=True)
class Row:
    """A row of a table: a swatch (a colour, shades, a line, or hatched), its meaning, and a share or nothing.

    `is_hatched` marks unreached parts, `hatch` is laid over a colour; `frame` is the width of the outline.
    """

    text: str
    share: str = ""
    colour: str = NOT_REACHED
    shades: Colormap | None = None
    is_hatched: bool = False
    hatch: str = ""
    is_line: bool = False
    is_dashed: bool = False
    frame: float = 0.5


Lines = tuple[tuple[np.ndarray, str, float], ...]
"""Lines of one picture: segments in t, colour, width."""


@dataclass(frozen=True, eq=False)
class View:
    """One way to look at a tiling: a colour (P, 4) for each piece, the rows of its table, the lines of every section.

    Pieces in `is_hatched` (P,) have lines over them: they stay distinct in grey print.
    """

    title: str
    colours: np.ndarray
    is_hatched: np.ndarray
    rows: tuple[Row, ...]
    lines: tuple[Lines, ...] = ()


@dataclass(frozen=True, eq=False)
class Kind:
    """One set of labels: a colour and a meaning for each; `optional` labels have a row only if they occur."""

    title: str
    colours: dict[str, str]
    meanings: dict[str, str]
    hatched: frozenset[str] = frozenset()
    optional: frozenset[str] = field(default=frozenset((OTHER, UNDECIDED)))


CLASSIFICATION = Kind(
    "Classification: is the label kept?",
    {Label.CR: KEPT, Label.MR: JOINT[Joint.ATTENTION_ALONE], Label.CB: MIXED, UNDECIDED: UNKNOWN},
    {Label.CR: "CR  label kept", Label.MR: "MR  label changed", Label.CB: "CB  both occur", UNDECIDED: UNDECIDED},
    hatched=frozenset((Label.CB, UNDECIDED)),
)

ATTENTION = Kind(
    "Attention: is the map as expected?",
    {Label.AR: KEPT, Label.IR: JOINT[Joint.LABEL_ALONE], Label.AB: MIXED, UNDECIDED: UNKNOWN},
    {Label.AR: "AR  differs by ≤ δ", Label.IR: "IR  differs by more", Label.AB: "AB  both occur", UNDECIDED: UNDECIDED},
    hatched=frozenset((Label.AB, UNDECIDED)),
)


def attention_kind(measure: Measure) -> Kind:
    """The labels of the attention, with the words of a property."""
    words = {str(name): f"{name}  {text}" for name, text in zip((Label.AR, Label.IR), measure.short, strict=True)}
    return replace(ATTENTION, title=f"Attention: {measure.asks}", meanings=ATTENTION.meanings | words)


BOTH = Kind(
    "Both together",
    {**JOINT, OTHER: MIXED, UNDECIDED: UNKNOWN},
    {
        **{name: f"{name}  {name.sentence}" for name in Joint},
        OTHER: "CB or AB  in part",
        UNDECIDED: UNDECIDED,
    },
    hatched=frozenset((OTHER, UNDECIDED)),
)

PHASE = Kind(
    "Phase: how was it reached?",
    {"searching": SEARCHED, "following": FOLLOWED},
    {"searching": "searching for the boundary", "following": "following the boundary"},
)


def make_region_view(
    kind: Kind, names: Sequence[str], numbers: np.ndarray, shares: np.ndarray, *, is_counted: np.ndarray | None = None
) -> View:
    """The view of regions, each with the number (R,) of its label's name, and a share (R,) of the domain.

    Rows count regions and add up shares. Only the regions in `is_counted` (R,) count, if it is given.
    """
    labels = list(kind.colours)
    label = np.array([labels.index(name) for name in names])[numbers]
    counts = np.bincount(label if is_counted is None else label[is_counted], minlength=len(labels)).tolist()
    sums = np.bincount(label, shares, minlength=len(labels)).tolist()
    rows = [
        Row(kind.meanings[name], f"{count:,} · {share_text(min(total, 1.0))}", kind.colours[name],
            hatch=HATCH if name in kind.hatched else "")
        for name, count, total in zip(labels, counts, sums, strict=True)
        if count or name not in kind.optional
    ]  # fmt: skip
    is_hatched = np.array([name in kind.hatched for name in labels])
    return View(kind.title, to_rgba_array(list(kind.colours.values()))[label], is_hatched[label], tuple(rows))


def make_tile_view(tiles: TileLabels, by: str, measure: Measure, *, is_counted: np.ndarray | None = None) -> View:
    """The view of the units of a tiling by their label ("cr"), attention ("ar"), or both."""
    # The last name is that of labels that were not asked for.
    names: dict[str, Sequence[str]] = {"cr": (*ROWS, UNDECIDED), "ar": (*COLUMNS, UNDECIDED)}
    names["both"] = [joint_label(*pair) for pair in product(names["cr"], names["ar"])]
    numbers = {"cr": tiles.classification, "ar": tiles.attention}
    numbers["both"] = len(names["ar"]) * tiles.classification + tiles.attention
    kind = {"cr": CLASSIFICATION, "ar": attention_kind(measure), "both": BOTH}[by]
    return make_region_view(kind, names[by], numbers[by], tiles.shares, is_counted=is_counted)


def joint_label(classification: str, attention: str) -> str:
    """Both labels of a region as one.

    >>> joint_label("CR", "IR"), joint_label("CB", "AR"), joint_label("undecided", "AB")
    ('CR&IR', 'in part', 'undecided')
    """
    labels = classification, attention
    if UNDECIDED in labels:
        return UNDECIDED
    name = "&".join(labels)
    return name if name in JOINT else OTHER


def winner_colours(ranked: list[int], label: int) -> dict[int, str]:
    """A colour for the label and for each class that wins somewhere; classes come by falling share.

    >>> winner_colours([8], 9)[9] == KEPT, len(set(winner_colours(list(range(8)), 9).values()))
    (True, 7)
    """
    colours = {winner: OTHER_WINNER for winner in ranked}
    colours |= dict(zip(ranked, WINNERS, strict=False))
    return colours | {label: KEPT}


def attention_colours(
    inconsistency: np.ndarray, is_kept: np.ndarray, is_unknown: np.ndarray, delta: float, top: float
) -> np.ndarray:
    """RGBA rows (P, 4): shades of one colour from 0 to δ where the attention is kept, of another up to `top` above.

    >>> attention_colours(np.array([0.0]), np.array([True]), np.array([False]), 0.0, 0.0).shape
    (1, 4)
    """
    below = np.clip(inconsistency / delta if delta > 0.0 else np.zeros_like(inconsistency), 0.0, 1.0)
    above = np.clip((inconsistency - delta) / max(top - delta, 1e-300), 0.0, 1.0)
    shades = np.arange(AR_SHADES.N)
    table = np.concatenate([AR_SHADES(shades), IR_SHADES(shades), [to_rgba(UNKNOWN)]])
    place = np.where(is_kept, below, above)
    is_open = is_unknown | np.isnan(place)
    number = np.where(is_open, 0.0, np.minimum(place * len(shades), shades[-1])).astype(np.intp)
    return table[np.where(is_open, len(table) - 1, number + len(shades) * ~is_kept)]
