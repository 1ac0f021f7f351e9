"""Sphinx configuration: `make docs` builds the site from the repository's Markdown pages into build/site.

The source folder is the repository, so every link between pages works on the site as it does between files. The sidebar
follows the headings and links of docs/index.md. The Python reference follows `steadygaze.__all__`.
"""

import inspect
import json
import re
from enum import Enum
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

import steadygaze

project, author = "steadygaze", "The steadygaze authors"
version = release = steadygaze.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/notebooks/*.ipynb",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
]
exclude_patterns = [".*", "build", "demo", "src", "tests"]

myst_heading_anchors = 3  # the anchors that GitHub gives to headings
default_role = "py:obj"  # `name` in a docstring links to the name if the reference has it
autodoc_default_options = {"members": True, "inherited-members": "Exception,Enum,ABC"}
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True

smartquotes = False  # `--option` stays as it is

html_theme = "furo"
html_title = f"steadygaze {release}"
html_extra_path = ["site"]  # index.html, which leads to the root page
html_copy_source = False
html_show_copyright = False

CONSTRUCTED = {"Budget", "Limits"}
"""Classes that users construct; functions return all others, so their constructors are left out."""


def _kind(name: str) -> str:
    """The part of the Python reference that a public name belongs to."""
    member = getattr(steadygaze, name)
    if not inspect.isclass(member):
        return "functions"
    kinds = {Exception: "errors", Enum: "labels", steadygaze.Perturbation: "perturbations"}
    own = "limits" if name in CONSTRUCTED else "results"
    return next((kind for base, kind in kinds.items() if issubclass(member, base)), own)


def _reference(kind: str) -> str:
    """Directives for all public names of one kind."""
    directive = {"functions": "autofunction", "errors": "autoexception"}.get(kind, "autoclass")
    names = [name for name in steadygaze.__all__ if _kind(name) == kind]
    return "\n".join(["```{eval-rst}", *(f".. {directive}:: steadygaze.{name}" for name in names), "```"])


def _navigation(page: str) -> str:
    """A hidden table of contents for every heading of the index, with the pages that it links to."""
    parts = []
    for part in page.split("\n## ")[1:]:
        pages = re.findall(r"^\* \[.*?\]\((.*?)\.(?:md|ipynb)\)", part, flags=re.MULTILINE)
        caption = part.partition("\n")[0]
        parts += ["", "```{toctree}", ":hidden:", f":caption: {caption}", *pages, "```"]
    return "\n".join(parts)


def _complete(app: Sphinx, name: str, source: list[str]) -> None:
    """Fill in the generated parts of a page."""
    if name == root_doc:
        source[0] += _navigation(source[0])
    if name == "docs/python":
        source[0] = re.sub(r"<!-- public (\w+) -->", lambda found: _reference(found[1]), source[0])


def _shorten(
    app: Sphinx, what: str, name: str, member: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Write ArrayLike by its name, and leave out constructors that users do not call."""
    short = name.removeprefix("steadygaze.")
    if short in steadygaze.__all__ and _kind(short) in ("results", "labels"):
        return "", None
    return signature and signature.replace(stringify_annotation(ArrayLike, "smart"), "ArrayLike"), returned


class NotebookParser(MystParser):
    """Notebooks as pages: the text, and the code without outputs."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Read a notebook as the Markdown of its cells."""
        parts = []
        for cell in json.loads(inputstring)["cells"]:
            text = "".join(cell["source"])
            parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        super().parse("\n\n".join(parts), document)


def setup(app: Sphinx) -> None:
    """Register notebooks, and the hooks that complete pages and shorten signatures."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", _complete)
    app.connect("autodoc-process-signature", _shorten)
