"""What made the rows of a campaign: versions of what computes, a digest of our own source, and its commit if known.

A campaign goes on only with what it began with, so that all its rows are of one make. Reads files and asks git.
"""

import platform
import subprocess
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("steadygaze", "numpy", "scipy", "numba", "onnxruntime", "highspy")
SILENT = ("cli", "report", "compare")
"""Parts that tell and draw answers, and have no say in them."""
SILENT_MODULES = ("example", "figures", "insight", "insights", "pace", "panels", "plan_file", "series", "table")
"""The same of campaigns; what a file makes of a plan is compared with the plan itself."""
PACKAGE = Path(__file__).resolve().parents[1]


@cache
def made_by() -> dict[str, str]:
    """Versions, and a digest of the source that solves problems; which processor it runs on is not known here."""
    digest = sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0]
        if part in SILENT or (part == "campaign" and path.stem in SILENT_MODULES):
            continue
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    versions = {name: version(name) for name in PACKAGES}
    return versions | {"python": platform.python_version(), "source": digest.hexdigest()[:16]}


def commit() -> str | None:
    """The commit that the source is from, with `+changes` where it differs from it; None where that is not known."""
    try:
        # An installed copy may lie inside the repository of something else, which does not track it.
        _git("ls-files", "--error-unmatch", "__init__.py")
        return _git("rev-parse", "HEAD") + ("+changes" if _git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
