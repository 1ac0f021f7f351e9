"""Rules of this folder: shared code in `tests/support`, fixtures in conftest.py, and no test imports a test."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
SUPPORT = TESTS / "support"
FILES = sorted(TESTS.rglob("*.py"))
FOLDERS = [path for path in TESTS.iterdir() if path.is_dir() and path != SUPPORT]

# Oracles read questions (weights, knot cells, perturbations), and name the types that they build for tests.
READ_BY_ORACLES = ("steadygaze.compound", "steadygaze.network", "steadygaze.perturbation", "steadygaze.question")
TYPES_BUILT_BY_ORACLES = ("Inconsistency", "RecomputedCurves", "LabelOutcome")


def imports(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Every module that a file imports, at its top and inside functions, and the names taken from it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), [alias.name for alias in node.names]


def test_every_file_is_a_test_or_support_or_a_conftest():
    for path in FILES:
        is_test = path.name.startswith("test_") or path.name == "conftest.py"
        assert is_test != (SUPPORT in path.parents), f"{path}: shared code belongs to tests/support, tests beside it"


def test_no_test_imports_another():
    folders = {folder.name for folder in FOLDERS} | {"tests", "conftest"}
    benchmarks = {path.stem for path in (TESTS.parent / "benchmarks").glob("*.py")}
    for path in FILES:
        for module, names in imports(path):
            parts = [*module.split("."), *names]
            assert parts[0] not in folders - benchmarks, f"{path} imports {module}: move it to tests/support"
            assert not any(part.startswith("test_") for part in parts), f"{path} imports {module}: a test"


def test_conftest_files_hold_fixtures_and_hooks_alone():
    for path in TESTS.rglob("conftest.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_fixture = isinstance(node, ast.FunctionDef) and "fixture" in "".join(
                map(ast.unparse, node.decorator_list)
            )
            is_hook = isinstance(node, ast.FunctionDef) and node.name.startswith("pytest_")
            is_other = isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
            assert is_fixture or is_hook or is_other, f"{path}: {node.lineno}"


def test_folders_shadow_no_module():
    """Pytest puts `tests` on the path. Folders without `__init__.py` give way to every module of the same name."""
    assert SUPPORT.name not in sys.stdlib_module_names
    assert not [folder for folder in FOLDERS if (folder / "__init__.py").exists()]


def test_oracles_share_no_code_with_the_engines():
    for path in (SUPPORT / "oracles").glob("*.py"):
        for module, names in imports(path):
            assert not module.startswith(("support.readers", "support.stand_ins")), f"{path} imports {module}"
            if module.startswith("steadygaze") and not module.startswith(READ_BY_ORACLES):
                assert names and set(names) <= set(TYPES_BUILT_BY_ORACLES), f"{path} imports {module}"
