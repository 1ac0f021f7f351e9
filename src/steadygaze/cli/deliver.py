"""What happens to a result: it is stored, drawn and told, and becomes an exit code. Checks a directory before a run."""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..results import store
from ..results.domain_result import DomainResult
from ..search import SearchResult
from ..search.store import save_search
from ..search.summary import summarise_search
from .describe import describe
from .describe_search import describe_search
from .requirement import Requirement
from .wording import Summary

PICTURES, SEARCH_PICTURES = "map", "search"
"""Names of the pictures inside a result's directory, without ending."""


@dataclass(frozen=True)
class Target:
    """A directory that a result may be written to; `force` lets it replace a result."""

    directory: Path
    force: bool

    @classmethod
    def check(cls, directory: Path, *, force: bool) -> "Target":
        """Refuse, before anything is computed, a directory that could not be written afterwards."""
        place = store.check_directory(directory, force=force).parent
        while not place.exists() and place != place.parent:
            place = place.parent
        try:
            with tempfile.TemporaryDirectory(prefix=".steadygaze-", dir=place):
                pass
        except OSError as error:
            raise StoreError(f"{directory}: cannot be written ({error.strerror}); choose another --out") from None
        return cls(directory, force)


@dataclass(frozen=True)
class Delivered:
    """An answer that is stored and drawn: its plain data, where everything is, and why its method was picked."""

    summary: Summary
    seconds: dict[str, float]
    directory: Path
    pictures: tuple[Path, ...]
    reason: str | None = None


def save_and_draw(result: DomainResult, target: Target, *, reason: str | None = None) -> Delivered:
    """Store a map or a refinement and draw it beside; `reason` is why its method was taken."""
    directory = result.save(target.directory, force=target.force)
    pictures = _drawn(directory, lambda: result.plot(directory / PICTURES))
    return Delivered(result.summary(), result.seconds, target.directory, pictures, reason)


def save_and_draw_search(result: SearchResult, target: Target) -> Delivered:
    """Store a search and draw it beside; there are no pictures of four parameters."""
    from ..report.figures import visited  # noqa: PLC0415 (matplotlib is slow to import)

    directory = save_search(result, target.directory, force=target.force)
    pictures = _drawn(directory, lambda: visited.draw_search(result, directory / SEARCH_PICTURES))
    return Delivered(summarise_search(result), {"total": result.seconds}, target.directory, pictures)


def _drawn(directory: Path, draw: Callable[[], Sequence[Path]]) -> tuple[Path, ...]:
    try:
        return tuple(Path(path) for path in draw())
    except OSError as error:
        raise StoreError(
            f"{directory}: the result is stored, but its pictures cannot be written ({error.strerror or error})"
        ) from None


def tell(delivered: Delivered, *, requirement: Requirement | None = None, is_json: bool = False) -> None:
    """Print a stored answer on stdout, for people or as JSON."""
    summary, seconds, directory, pictures = (
        delivered.summary, delivered.seconds, delivered.directory, delivered.pictures,
    )  # fmt: skip
    if is_json:
        output: dict[str, Any] = {"directory": str(directory), "pictures": [str(path) for path in pictures]}
        if delivered.reason is not None:
            output["picked"] = delivered.reason
        print_json(summary, seconds=seconds, requirement=requirement, output=output)
    elif store.is_search(summary):
        describe_search(summary, seconds=seconds, directory=directory, pictures=pictures)
    else:
        describe(
            summary, seconds=seconds, requirement=requirement, directory=directory, pictures=pictures,
            reason=delivered.reason,
        )  # fmt: skip


def print_json(
    summary: Summary,
    *,
    seconds: dict[str, float],
    requirement: Requirement | None = None,
    output: dict[str, Any] | None = None,
) -> None:
    """Print one JSON object on stdout: the summary, `seconds`, and what was asked and written beside it."""
    content = dict(summary) | {"seconds": seconds}
    if requirement is not None:
        content["require"] = {"text": requirement.text, "outcome": requirement.judge(summary["area"]).value}
    if output is not None:
        content["output"] = output
    print(json.dumps(content, indent=2, allow_nan=False))


def print_notes(notes: Sequence[str]) -> None:
    """Print what a reader should know on stderr, one line each."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
