"""The section of docs/evaluation.md about networks that look at the object, from a campaign of the plan `object`."""

from collections.abc import Callable, Mapping, Sequence
from math import floor
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from steadygaze.words import percent_down

Record = Mapping[str, Any]
Shares = Mapping[tuple[str, str], Sequence[float]]
"""Proved shares of AR, ascending, by network and combination."""

PICTURE = "object.png"
INK, LINE = "#1f2328", "#d0d7de"
COLOURS = ("#b8503a", "#c89b3c", "#4f86c0")


def proved_shares(records: Sequence[Record]) -> dict[tuple[str, str], list[float]]:
    """The proved shares of AR, ascending, by network and combination; 0 for problems without an answer."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        found.setdefault((record["model"], record["combination"]), []).append(record["ar_low"] or 0.0)
    return {key: sorted(shares) for key, shares in found.items()}


def object_section(shares: Shares, opening: str, table: Callable[..., list[str]]) -> list[str]:
    """The lines of the section; opening: names the campaign; table: writes heads and rows as Markdown."""
    models, combinations = (list(dict.fromkeys(key[place] for key in shares)) for place in (0, 1))
    rows = [
        [*key, str(len(own)), *(percent_down(share) for share in (median(own), own[0], own[-1]))]
        for key, own in shares.items()
    ]
    differences = [median(shares[models[-1], one]) - median(shares[models[0], one]) for one in combinations]
    # Rounded down: at least so many.
    apart = [
        f"{floor(1000.0 * difference) / 10.0:g} percentage points on {one}"
        for one, difference in zip(combinations, differences, strict=True)
    ]
    return [
        "## Networks that look at the object",
        "",
        f"{opening} AR means here that at least half of the gradient's mass lies on the digit "
        "(`--attention object --tau 0.5 --mask auto:bright=0.2,grow=1`). Shares are proved, and rounded down.",
        "",
        *table(["network", "combination", "images", "AR (median)", "(least)", "(most)"], rows, left={0, 1}),
        f"The medians of {models[-1]} exceed those of {models[0]} by at least {' and '.join(apart)}.",
        "",
        f"![The proved share of AR of every image, by network](images/evaluation/{PICTURE})",
        "",
    ]


def object_picture(shares: Shares, folder: Path) -> Path:
    """Draw the proved share of every image, and the median, by network and combination."""
    models, combinations = (list(dict.fromkeys(key[place] for key in shares)) for place in (0, 1))
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    [panels] = figure.subplots(1, len(combinations), sharey=True, squeeze=False)
    panels[0].set_ylabel("proved share of AR [%]", color=INK)
    for combination, axes in zip(combinations, panels, strict=True):
        for row, model in enumerate(models):
            own = shares[model, combination]
            axes.plot([row] * len(own), [100.0 * share for share in own], "o", ms=5, alpha=0.6, color=COLOURS[row % 3])
            axes.hlines(100.0 * median(own), row - 0.3, row + 0.3, color=INK)
        axes.set_xticks(range(len(models)), models, color=INK)
        axes.set_xlim(-0.6, len(models) - 0.4)
        axes.set_ylim(-4, 104)
        axes.set_title(combination, color=INK)
        axes.grid(axis="y", color=LINE)
        axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / PICTURE, dpi=150)
    return folder / PICTURE
