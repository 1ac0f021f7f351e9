"""The last line of a run tells which tests were skipped, and why."""

import pytest

from support.skipped_tests import skipped_line


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print after the line with the numbers; processes that only run tests for another one print nothing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not config.option.collectonly:
        reporter.write_line(skipped_line(reporter.stats.get("skipped", [])))
