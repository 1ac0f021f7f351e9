"""docs/cli.md agrees with the commands, and every command and option has a help text."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from typer.main import get_command

from steadygaze.cli import app
from support.command_line import SEARCHES, SMALL, Runner

FOLDER = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cli", FOLDER / "make_cli.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_fresh(maker: ModuleType):
    written = (FOLDER / "cli.md").read_text(encoding="utf-8")
    assert written == maker.reference(), "docs/cli.md is stale: run python docs/make_cli.py"


def test_every_command_and_option_is_documented():
    written = (FOLDER / "cli.md").read_text(encoding="utf-8")
    program = get_command(app)
    assert {"demo", "models", "verify", "show", "boundary"} <= set(program.commands)
    for name, command in program.commands.items():
        assert f"## steadygaze {name}\n" in written and command.help
        for parameter in command.params:
            assert parameter.help, f"{name} {parameter.name} has no help"
            if parameter.param_type_name == "option":
                assert f"`{parameter.opts[0]}" in written


def test_the_options_of_the_issue_are_there():
    options = {
        "verify": "image perturb property delta filter dist classes mean std scale class-names expect require timeout "
        "max-regions memory threads out force json quiet debug method w-delta line",
        "show": "delta json",
        "boundary": "property delta json",
        "demo": "out force",
    }
    commands = get_command(app).commands
    for name, words in options.items():
        spelt = {spelling for parameter in commands[name].params for spelling in parameter.opts}
        assert {f"--{word}" for word in words.split()} <= spelt


RARE = {"ties", "zero_attention_share", "strayed"}
"""Keys that only some networks or properties of attention have."""


def documented(*tables: dict[str, str]) -> set[str]:
    return {key for table in tables for name in table for key in name.split(", ")}


def test_every_key_of_the_json_is_documented(maker: ModuleType, run: Runner):
    printed = run(*SMALL, "--require", "CR>=0.5", "--json").json
    others = documented(maker.REFINE_KEYS, maker.SEARCH_KEYS)
    assert documented(maker.JSON_KEYS) - RARE | others == set(printed)
    assert all(printed[key] is None for key in others)


def test_a_map_of_a_network_with_windows_tells_the_share_of_ties(maker: ModuleType, run: Runner):
    question = ("verify", "M-MAXPOOL", "--image", "mnist:69990", "--perturb", "brightness:0..0.01")
    printed = run(*question, "--method", "map", "--json").json
    assert documented(maker.JSON_KEYS) - {"require", "zero_attention_share", "strayed"} <= set(printed)
    low, high = printed["ties"]["share"]
    assert 0.0 <= low <= high <= 1.0


def test_every_key_of_the_json_of_a_refinement_is_documented(maker: ModuleType, run: Runner):
    printed = run(*SMALL, "--method", "refine", "--json").json
    own, others = documented(maker.REFINE_KEYS), documented(maker.SEARCH_KEYS)
    assert documented(maker.JSON_KEYS) - {"require", *RARE} | own | others == set(printed)
    assert {key for key in own | others if printed[key] is not None} == own


@pytest.mark.parametrize("method", SEARCHES)
def test_every_key_of_the_json_of_a_search_is_documented(maker: ModuleType, run: Runner, method: str):
    printed = run(*SMALL, "--method", method, "--json").json
    others = documented(maker.REFINE_KEYS)
    assert documented(maker.JSON_KEYS, maker.SEARCH_KEYS) - {"require", *RARE} | others == set(printed)
    unknown = {key for key in printed if printed[key] is None} - documented(maker.SEARCH_KEYS)
    assert unknown == others | set(maker.UNKNOWN_TO_SEARCHES) | {"stopped"}
