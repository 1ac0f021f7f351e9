"""The table of parts in ARCHITECTURE.md."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def part_ranks() -> dict[str, int]:
    """Rank of every part named in the table, from top to bottom."""
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: rank for rank, row in enumerate(rows) for name in re.findall(r"`(\w+)`", row)}
