"""The colours of the maps: one for every label, lightness falling from both kept to neither kept.

Chosen so that neighbours differ in lightness (print without colour) and not in red against green alone. Turns codes,
winners and inconsistencies into RGBA rows; draws nothing.
"""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgba

INK = "#1f2328"
FAINT_INK = "#6b7077"
PAPER = "#ffffff"

KEPT = "#d3e4f3"
UNKNOWN = "#bcbcbc"
NOT_REACHED = "#ececec"
HATCH_INK = "#a3a3a3"

JOINT = {"CR&AR": KEPT, "CR&IR": "#f0a63c", "MR&AR": "#9170b8", "MR&IR": "#4b1a45"}
DELTA_LINE = "#0b4f8a"
MIXED = "#2f8f83"
"""Of a region in which a property holds in part."""

SEARCHED, FOLLOWED = "#ecd9a0", "#3f5f8f"
"""Of regions that a search met on its line, and of those that it met while following a boundary."""

BOX_INK = "#8a4b00"
"""Of the edges of boxes."""

CHANGED = "#9170b8"
"""Of a piece where the label changes, but not to one known class."""

WINNERS = ("#6a1f5d", "#cf6a9b", "#1c6f72", "#b3a641", "#35468c")
OTHER_WINNER = "#85858a"

AR_SHADES = LinearSegmentedColormap.from_list("attention kept", ["#f1f7fc", "#a3c6e3"])
IR_SHADES = LinearSegmentedColormap.from_list("attention not kept", ["#f6b550", "#d9741c", "#7a2c05"])
MAP_SHADES = "RdBu_r"
PATTERN_SHADES = LinearSegmentedColormap.from_list(
    "patterns", ["#26456e", "#6c8ebf", "#b9cbe3", "#f4efe6", "#e6c98b", "#c08a3e", "#7a4f1d"], N=1 << 16
)


def winner_colours(ranked: list[int], label: int) -> dict[int, str]:
    """A colour for the label and for each class that wins somewhere, given by falling share.

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
    colours = np.where(is_kept[:, None], AR_SHADES(below), IR_SHADES(above))
    colours[is_unknown] = to_rgba(UNKNOWN)
    return colours
