"""The functions of the package take explicit keyword arguments, and a misspelt one is named with the function."""

import inspect
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args, get_overloads, get_type_hints

import pytest

import steadygaze
from steadygaze import api
from steadygaze.engines import ENGINES
from steadygaze.engines.contract import RunOptions, RunWords
from steadygaze.question import make_question

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "function", [api.verify, api.search, make_question, api.draw, api.compare, api.export, api.load]
)
def test_no_argument_hides_in_a_dictionary(function):
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


@pytest.mark.parametrize("function", [api.verify, api.search])
def test_questions_take_the_same_options_everywhere(function):
    options = get_type_hints(api.QuestionOptions)
    own, made = (inspect.signature(one).parameters for one in (function, make_question))
    for name in options:
        assert own[name].default == made[name].default, name
    assert set(made) == {"model", "image", "perturbations", *options}


def test_typed_dictionaries_hold_all_options():
    assert set(RunWords.__annotations__) == set(RunOptions.__dataclass_fields__)
    asked = set(inspect.signature(api.verify).parameters) - {"model", "image", "perturbations"}
    assert set(api.VerifyOptions.__annotations__) == asked


def test_a_misspelt_option_is_named_with_the_function_that_was_called():
    with pytest.raises(TypeError, match=r"verify\(\) got an unexpected keyword argument 'delt'"):
        steadygaze.verify("M-FNN-100", "mnist:69990", "brightness", delt=3.0)
    with pytest.raises(TypeError, match=r"search\(\) got an unexpected keyword argument 'delt'"):
        steadygaze.search("M-FNN-100", "mnist:69990", "brightness", delt=3.0)


def test_the_method_tells_which_options_go_with_it():
    found = {}
    for one in get_overloads(api.verify):
        method, names = get_type_hints(one)["method"], set(inspect.signature(one).parameters)
        assert get_type_hints(one)["return"] is steadygaze.Result
        found |= dict.fromkeys(get_args(method), names & set(RunOptions.__dataclass_fields__))
    automatic = {"auto": set(ENGINES["map"].takes | ENGINES["refine"].takes)}
    assert found == {method: set(engine.takes) for method, engine in ENGINES.items()} | automatic


WRONG = (
    'verify("m", "i", "b", delt=3.0)',
    'verify("m", "i", "b", method="map", until=0.1)',
    'verify("m", "i", "b", method="bfs", w_delta=0.1)',
    'verify("m", "i", "b", w_delta=0.1)',
)
RIGHT = ('verify("m", "i", "b", method="gbs", w_delta=0.1)', 'verify("m", "i", "b", until="exact", delta="25%")')


TORCH = (
    "module, image = torch.nn.Linear(3, 3), torch.zeros(1, 3)",
    'verify(module, image, "b")',
    'search(module, "i", "b")',
    "read_model(module, image_shape=(1, 1, 3))",
)
WRONG_TORCH = ('verify(image, image, "b")', 'verify({}, "i", "b")', 'search("m", module, "b")', "read_model(image)")


CALLS = ("from steadygaze import verify", *WRONG, *RIGHT)
TORCH_CALLS = ("import torch", "from steadygaze import read_model, search, verify", *TORCH, *WRONG_TORCH)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The output of mypy for both lists of calls, each a file.

    One run, with the settings and the cache of `make lint`: without a cache, reading the package, numpy and torch takes
    a minute.
    """
    folder = tmp_path_factory.mktemp("calls")
    files = {"calls.py": CALLS} | ({"torch_calls.py": TORCH_CALLS} if find_spec("torch") else {})
    for name, lines in files.items():
        (folder / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *(str(folder / name) for name in files)]
    environment = os.environ | {"MYPYPATH": "src"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT).stdout


def lines_with_errors(name, told):
    """The numbers of the lines of a file in which mypy finds an error, from 1 on."""
    return {int(number) for number in re.findall(rf"^\S*\b{name}\.py:(\d+): error", told, flags=re.MULTILINE)}


def test_a_type_checker_finds_wrong_options(told):
    assert lines_with_errors("calls", told) == set(range(2, 2 + len(WRONG))), told


def test_a_type_checker_knows_torch_modules_and_tensors(told):
    pytest.importorskip("torch")
    right = len(TORCH_CALLS) - len(WRONG_TORCH)
    assert lines_with_errors("torch_calls", told) == set(range(right + 1, len(TORCH_CALLS) + 1)), told
