"""`models` and `--version`."""

from importlib.metadata import version

import steadygaze
from steadygaze import zoo
from support.command_line import Runner


def test_every_bundled_network_is_listed(run: Runner):
    result = run("models")
    assert (result.code, result.err) == (0, "")
    lines = {line.split()[0]: line for line in result.out.splitlines() if line.strip()}
    for model in zoo.models():
        line = lines[model.name]
        for fact in (
            model.dataset,
            model.layers,
            f"{model.neurons:,}",
            f"{100 * model.accuracy:.2f} %",
            model.training,
        ):
            assert fact in line
    assert "mnist:69990 to mnist:69999" in result.out


def test_version(run: Runner):
    result = run("--version")
    assert (result.code, result.out) == (0, f"steadygaze {version('steadygaze')}\n")
    assert steadygaze.__version__ == version("steadygaze")


def test_public_names_are_there():
    assert sorted(steadygaze.__all__) == steadygaze.__all__
    for name in steadygaze.__all__:
        assert getattr(steadygaze, name).__module__.startswith("steadygaze.")
