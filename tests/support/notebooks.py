"""Runs the cells of a notebook in order, in one namespace, and keeps the text that each cell would display.

No kernel is needed: the notebooks contain plain Python, and a display is `_repr_html_`, or `repr` without it.
"""

import ast
import json
from pathlib import Path
from typing import Any


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook file of format 4."""
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    return content["cells"]


def run_cells(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The names that a notebook defines, and for every code cell the text that it displays; empty for none."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for number, cell in enumerate(read_cells(path), 1):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"{path.name}, cell {number}")
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}, cell {number}", "exec"), names)
        shown.append("")
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"{path.name}, cell {number}", "eval"), names)
            shown[-1] = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
    return names, shown
