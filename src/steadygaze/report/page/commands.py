"""The command lines that give a result and its report again, as text. Runs nothing."""

import shlex
from pathlib import Path

import numpy as np

from ... import zoo
from ...engines.refine.refine_result import RefineResult
from ...engines.search import SearchResult
from ...errors import SteadygazeError
from ...images import read_image
from ...problem import Problem
from ...results.domain_result import DomainResult
from ...results.store import describe_stored

PROGRAM = "steadygaze"


def verify_command(result: DomainResult | SearchResult, directory: Path | None) -> str:
    """The command that asks the same question again, by the same method and without limits.

    A bundled image is named; of any other the pixels that are stored in the directory are taken.
    """
    problem = result.problem
    delta = result.delta if isinstance(result, DomainResult) else problem.delta
    stored = describe_stored(problem, delta)["model"]
    words = [PROGRAM, "verify", stored["bundled"] or stored["path"], "--image", _image(problem, directory)]
    for perturbation in problem.perturbed.perturbations:
        words += ["--perturb", perturbation.spec]
    words += ["--property", problem.property.value, "--delta", str(delta)]
    words += ["--filter", problem.attention.filter.name, "--dist", problem.attention.distance.name.lower()]
    classes = problem.attention.classes
    words += ["--classes", "all" if classes is None else ",".join(str(number) for number in classes)]
    words += [*_preprocessing(stored), *_method(result)]
    return "".join(f" \\\n    {word}" if word.startswith("--") else f" {word}" for word in map(shlex.quote, words))[1:]


def report_command(result: DomainResult | SearchResult, directory: Path | None) -> str:
    """The command that makes this report again from the stored result."""
    words = [PROGRAM, "report", "DIR" if directory is None else str(directory)]
    if isinstance(result, DomainResult) and result.delta != result.problem.delta:
        words += ["--delta", str(result.delta)]
    return shlex.join([*words, "--force"])


def _image(problem: Problem, directory: Path | None) -> str:
    if directory is None or _is_bundled(problem):
        return problem.image_name
    return str(directory / "image.npy")


def _is_bundled(problem: Problem) -> bool:
    """Whether the image's name means its pixels; a file may be called like a bundled image, and be another one."""
    if not zoo.is_reference(problem.image_name):
        return False
    try:
        pixels = read_image(zoo.image_path(problem.image_name)).pixels
    except SteadygazeError:
        return False
    return np.array_equal(pixels.ravel(), problem.perturbed.x0.ravel())


def _preprocessing(stored: dict) -> list[str]:
    words = []
    for name, usual in (("mean", 0.0), ("std", 1.0)):
        values = stored[name] if isinstance(stored[name], list) else [stored[name]]
        if any(value != usual for value in values):
            words += [f"--{name}={','.join(repr(float(value)) for value in values)}"]
    return words if stored["scale"] == 1.0 else [*words, "--scale", f"{stored['scale']:g}"]


def _method(result: DomainResult | SearchResult) -> list[str]:
    words = ["--method", result.method]
    if isinstance(result, RefineResult):
        return [*words, "--until", str(result.until), "--goal", result.goal]
    if isinstance(result, SearchResult):
        if result.method == "gbs" and result.problem.property.value != "cr":
            words += ["--w-delta", repr(result.w_delta)]
        if result.line is not None:
            # Rounding may have moved its end out of the domain.
            domain = result.problem.perturbed.domain
            end = np.clip(result.line, domain.low, domain.high)
            words += [f"--line={','.join(repr(float(value)) for value in end)}"]
    return words
