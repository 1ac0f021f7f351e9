"""What happens to a result: it is stored, drawn and told, and becomes an exit code. Checks a directory before a run."""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..results import store
from ..results.result import Result
from .describe import describe
from .requirement import Requirement
from .wording import Summary

PICTURES = "map"
"""Name of the pictures inside a result's directory, without ending."""


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


def save_and_draw(result: Result, target: Target) -> list[Path]:
    """Store a result and draw its map beside it; returns the paths of the pictures."""
    directory = result.save(target.directory, force=target.force)
    try:
        return [Path(path) for path in result.plot(directory / PICTURES)]
    except OSError as error:
        raise StoreError(
            f"{directory}: the result is stored, but its pictures cannot be written ({error.strerror or error})"
        ) from None


def tell(
    result: Result,
    target: Target,
    pictures: Sequence[Path],
    *,
    requirement: Requirement | None = None,
    is_json: bool = False,
) -> None:
    """Print a stored result on stdout, for people or as JSON."""
    summary = result.summary()
    if is_json:
        output = {"directory": str(target.directory), "pictures": [str(path) for path in pictures]}
        print_json(summary, seconds=result.seconds, requirement=requirement, output=output)
        return
    describe(summary, seconds=result.seconds, requirement=requirement, directory=target.directory, pictures=pictures)


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
