"""Skipped tests in one line, by reason."""

from collections import Counter
from collections.abc import Iterable
from typing import Any


def skipped_line(reports: Iterable[Any]) -> str:
    """The number of skipped tests for every reason, the most frequent first, with one of their files."""
    reasons: Counter[str] = Counter()
    places: dict[str, str] = {}
    for report in reports:
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = " ".join(reason.removeprefix("Skipped: ").split())
        reasons[reason] += 1
        places.setdefault(reason, report.nodeid.partition("::")[0])
    if not reasons:
        return "skipped: none"
    return "skipped: " + "; ".join(f"{count} ({places[reason]} …): {reason}" for reason, count in reasons.most_common())
