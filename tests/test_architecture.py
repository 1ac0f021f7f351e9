"""ARCHITECTURE.md says which part may import which: the table is read from there and compared with the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.readers.architecture import part_ranks

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "steadygaze"


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A syntax tree without the blocks that only type checkers read."""
    if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from statements(child)


def imported_parts(path: Path) -> set[str]:
    """Parts that a module imports, also inside functions."""
    package = ["steadygaze", *path.relative_to(SOURCE).parent.parts]
    found = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module.split(".") if node.module else [])]
            names = [module] if len(module) > 1 else [[*module, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        else:
            continue
        found |= {name[1] for name in names if name[0] == "steadygaze" and len(name) > 1}
    return found


EXCEPTIONS = {"results/result.py": {"report"}}
"""Imports from below: the methods of a result that show it import when they are called."""

MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.name != "__init__.py")


def test_every_part_is_in_the_table():
    assert {part_of(path) for path in MODULES} == set(part_ranks())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    ranks = part_ranks()
    own = ranks[part_of(path)]
    upward = {name for name in imported_parts(path) if ranks[name] > own}
    assert upward == EXCEPTIONS.get(str(path.relative_to(SOURCE)), set())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_fit_on_a_few_screens(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


def test_files_named_in_the_text_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8") + (ROOT / "docs" / "paper.md").read_text(
        encoding="utf-8"
    )
    for name in re.findall(r"`((?:tests|benchmarks|docs)/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name
    files = [str(path.relative_to(ROOT)) for path in SOURCE.rglob("*.*")]
    for name in re.findall(r"`((?:\w+/)*\w+(?:\.\w+)*\.(?:py|js|j2))`", text):
        assert (ROOT / name).exists() or any(f"/{file}".endswith(f"/{name}") for file in files), name


def test_modules_named_in_paper_md_exist():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    for part, module in re.findall(r"`(network|perturbation|regions|attention|properties|results)\.(\w+)", text):
        folder = SOURCE / part / module
        assert folder.with_suffix(".py").exists() or folder.is_dir(), f"{part}.{module}"
