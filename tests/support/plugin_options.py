"""The options that load the pytest plugin of steadygaze in a separate run."""

from importlib.metadata import entry_points

PLUGIN = "steadygaze.pytest_plugin"


def plugin_options() -> tuple[str, ...]:
    """Empty if the installed package registers the plugin: pytest refuses to load it twice."""
    is_installed = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    return ("-p", "no:cacheprovider") if is_installed else ("-p", PLUGIN, "-p", "no:cacheprovider")
