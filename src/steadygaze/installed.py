"""The versions of installed packages, without the parser of mail headers that the standard library reads them with."""

import re
import sys
from functools import cache
from pathlib import Path


def installed_version(name: str) -> str | None:
    """The version of an installed package; None if it is not installed.

    >>> installed_version("no-such-package") is None
    True
    """
    key = _normalised(name)
    for place in sys.path:
        for folder in _distributions(place).get(key, ()):
            version = _stated_version(folder / "METADATA")
            if version is not None:
                return version
    return _asked_version(name)


@cache
def _distributions(place: str) -> dict[str, list[Path]]:
    """The folders that describe installed packages in a folder of modules, by the names of the packages."""
    found: dict[str, list[Path]] = {}
    try:
        folders = sorted(Path(place).glob("*.dist-info"))
    except OSError:
        return found
    for folder in folders:
        found.setdefault(_normalised(folder.name.partition("-")[0]), []).append(folder)
    return found


def _stated_version(file: Path) -> str | None:
    """The version in the headers of a description: each takes a line, and a blank line ends them."""
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                head, _, value = line.partition(":")
                if head.lower() == "version":
                    return value.strip()
                if not line.strip():
                    break
    except (OSError, UnicodeDecodeError):
        pass
    return None


def _asked_version(name: str) -> str | None:
    """The answer of the standard library, which also knows packages in archives and of other formats."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (slow to import)

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
