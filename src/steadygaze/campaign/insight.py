"""One table of what a campaign shows, whose values may be shares with proved bounds or ranks; as text, CSV and data.

Computes means of bounds, and nothing else.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

from . import table


@dataclass(frozen=True)
class Share:
    """A share of the domain, or a mean of such shares, between proved bounds."""

    low: float
    high: float

    def __str__(self) -> str:
        """The share for people.

        >>> str(Share(0.25, 0.25)), str(Share(0.25, 0.5))
        ('25.0 %', '25.0 to 50.0 %')
        """
        from ..report.wording import percent_between  # noqa: PLC0415 (matplotlib is slow to import)

        return percent_between(self.low, self.high)


@dataclass(frozen=True)
class Ranks:
    """The first and the last rank that proved bounds allow."""

    first: int
    last: int

    def __str__(self) -> str:
        """The ranks for people.

        >>> str(Ranks(2, 2)), str(Ranks(1, 3))
        ('2', '1 to 3')
        """
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Insight:
    """A table: its name, what it tells, what a reader has to know, and its lines, all with the same columns."""

    name: str
    title: str
    note: str
    lines: tuple[dict[str, Any], ...]


def mean_share(bounds: Iterable[tuple[float, float]]) -> Share:
    """The mean of shares that are known between bounds (at least one), between the means of the bounds.

    >>> mean_share([(0.0, 0.5), (1.0, 1.0)])
    Share(low=0.5, high=0.75)
    """
    lows, highs = zip(*bounds, strict=True)
    return Share(math.fsum(lows) / len(lows), math.fsum(highs) / len(highs))


def ratio_share(parts: Sequence[tuple[float, float]], wholes: Sequence[tuple[float, float]]) -> Share | None:
    """How much of the sum of some shares the sum of their parts is; None where the whole may be nothing.

    >>> ratio_share([(0.1, 0.2)], [(0.4, 0.5)]), ratio_share([(0.0, 0.0)], [(0.0, 0.1)])
    (Share(low=0.2, high=0.5), None)
    """
    low, high = (math.fsum(bounds[end] for bounds in parts) for end in (0, 1))
    least, most = (math.fsum(bounds[end] for bounds in wholes) for end in (0, 1))
    return Share(low / most, min(1.0, high / least)) if least > 0.0 else None


def to_text(insight: Insight) -> str:
    """The table for people, with its title and note."""
    heads = f"{insight.name}: {insight.title}\n"
    note = f"({insight.note})\n" if insight.note else ""
    return heads + (table.to_text(insight.lines) if insight.lines else "no problem to tell it from\n") + note


def to_csv(insight: Insight) -> str:
    """The table as CSV; a share has two columns `_low` and `_high`, a rank `_first` and `_last`; unknown is empty."""
    names: dict[str, None] = {}
    flat = []
    for line in insight.lines:
        row: dict[str, Any] = {}
        for name, value in line.items():
            if isinstance(value, Share | Ranks):
                row |= {f"{name}_{part.name}": getattr(value, part.name) for part in fields(value)}
            else:
                row[name] = value
        flat.append(row)
        names |= dict.fromkeys(row)
    # A share that is not known in a line has two empty columns, not one of its own.
    kept = [name for name in names if f"{name}_low" not in names]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(kept)
    writer.writerows([table.cell(row.get(name)) for name in kept] for row in flat)
    return stream.getvalue()


def as_data(insight: Insight) -> dict[str, Any]:
    """The table as plain data; shares are `[low, high]`, ranks `[first, last]`."""
    lines = [
        {name: list(astuple(value)) if isinstance(value, Share | Ranks) else value for name, value in line.items()}
        for line in insight.lines
    ]
    return {"name": insight.name, "title": insight.title, "note": insight.note, "lines": lines}
