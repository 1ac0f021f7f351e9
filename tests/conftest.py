"""The order of tests; the last line of a run lists the skipped tests and the reasons."""

import pytest

from support.skipped_tests import skipped_line


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process compiles the loops of maps while the other runs tests that need none, so no loop is compiled
    twice."""
    first = ("tests/attacks/test_deceiving.py", "tests/test_api_signatures.py")
    order = (*first, "tests/exact/", "tests/perturbation/", "tests/network/")
    items.sort(key=lambda item: next((i for i, name in enumerate(order) if item.nodeid.startswith(name)), len(order)))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print after the line with the numbers; worker processes print nothing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not config.option.collectonly:
        reporter.write_line(skipped_line(reporter.stats.get("skipped", [])))
