"""The versions that rows of a campaign come from: packages that compute, the source that solves, its commit."""

import platform
import subprocess
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PACKAGES = ("steadygaze", "numpy", "scipy", "numba", "onnxruntime", "highspy")
SILENT = ("cli", "report", "compare", "requirement.py", "pytest_plugin.py", "campaign/figures.py",
          "campaign/junit.py", "campaign/overview.py", "campaign/panels.py", "campaign/plan_file.py",
          "campaign/plan_tables.py", "campaign/set_requirement.py", "campaign/tables.py")  # fmt: skip
"""Parts of the source that only show answers; plan files are compared with the stored plan instead."""


@cache
def made_by() -> dict[str, str]:
    """Versions of the packages that compute, and a digest of the source that solves problems.

    A campaign continues only with the versions it started with. They do not include the processor.
    """
    digest = sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in SILENT and name.partition("/")[0] not in SILENT:
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    versions = {name: version(name) for name in PACKAGES}
    return versions | {"python": platform.python_version(), "source": digest.hexdigest()[:16]}


def commit() -> str | None:
    """The commit of the source, with `+changes` if files differ from it; None if unknown."""
    try:
        # An installed copy may lie inside another repository, which does not track it.
        _git("ls-files", "--error-unmatch", "__init__.py")
        return _git("rev-parse", "HEAD") + ("+changes" if _git("status", "--porcelain", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
