"""What several results have in common and what differs: their names in the comparison, and what a reader should know.

Reads the questions of results. Compares no answers.
"""

from collections.abc import Sequence
from typing import Any

from ..errors import OptionError
from ..problem import Problem
from ..results.domain_result import DomainResult

KINDS = ("network", "image", "perturbation", "attention", "delta")
"""What can differ between two results."""


def check_comparable(results: Sequence[object]) -> tuple[DomainResult, ...]:
    """The results as they are, if there are two or more and each is a proof over a whole domain; else OptionError."""
    if len(results) < 2:
        raise OptionError(f"a comparison takes two results or more, not {len(results)}; give more directories")
    for place, result in enumerate(results, start=1):
        if not isinstance(result, DomainResult):
            raise OptionError(
                f"result {place} is a {type(result).__name__}, which has no shares of the whole domain; give maps or "
                "refinements (verify with --method map or refine)"
            )
    return tuple(result for result in results if isinstance(result, DomainResult))


def find_differences(results: Sequence[DomainResult]) -> tuple[str, ...]:
    """Which of `KINDS` are not the same for all results."""
    keys: dict[str, list[Any]] = {
        "network": [_network(result.problem) for result in results],
        "image": [_pixels(result.problem) for result in results],
        "perturbation": [specs(result) for result in results],
        "attention": [result.problem.attention for result in results],
        "delta": [result.delta for result in results if result.is_measured],
    }
    return tuple(kind for kind in KINDS if any(key != keys[kind][0] for key in keys[kind][1:]))


def specs(result: DomainResult) -> tuple[str, ...]:
    """The perturbations of a result, as canonical texts: equal ones span the same domain."""
    return tuple(perturbation.spec for perturbation in result.problem.perturbed.perturbations)


def name_results(results: Sequence[DomainResult], differs: Sequence[str]) -> tuple[str, ...]:
    """A name for each result that says no more than what tells them apart; equal names are numbered."""
    shown = [kind for kind in ("network", "image", "perturbation") if kind in differs]
    if not shown:
        shown = [kind for kind in ("attention", "delta") if kind in differs] or ["network"]
    texts = [", ".join(describe(result, kind) for kind in shown) for result in results]
    numbers = [texts[: place + 1].count(text) for place, text in enumerate(texts)]
    return tuple(
        text if texts.count(text) == 1 else f"{text} ({number})" for text, number in zip(texts, numbers, strict=True)
    )


def describe(result: DomainResult, kind: str) -> str:
    """One part of the question of a result, in words."""
    problem = result.problem
    if kind == "perturbation":
        return " + ".join(specs(result))
    if kind == "attention":
        options = problem.attention
        classes = "all" if options.classes is None else ",".join(str(number) for number in options.classes)
        return f"filter {options.filter.name}, distance {options.distance.name}, classes {classes}"
    text = {"network": problem.model_name, "image": problem.image_name, "delta": f"δ = {result.delta}"}[kind]
    # Names come from files, and may hold what a terminal obeys.
    return "".join(letter if letter.isprintable() else " " for letter in text)


def make_notes(results: Sequence[DomainResult], names: Sequence[str], differs: Sequence[str]) -> tuple[str, ...]:
    """Sentences that a reader of the comparison should know, because they limit what it says."""
    notes = []
    first = results[0].problem
    is_measured = all(result.is_measured for result in results)
    if len({result.problem.property for result in results}) > 1:
        asked = _each(names, [result.problem.property.value for result in results])
        notes.append(f"The properties that were asked for differ ({asked}), so the verdicts do not mean the same.")
    elif not differs:
        notes.append("All results answer the same question.")
    if len({result.problem.label for result in results}) > 1 or any(
        result.problem.names != first.names for result in results
    ):
        labels = _each(names, [result.problem.names[result.label] for result in results])
        notes.append(f"The labels of the unperturbed images differ ({labels}); CR means that each keeps its own.")
    if "delta" in differs:
        deltas = _each(names, [f"δ = {result.delta}" for result in results])
        notes.append(f"The thresholds differ ({deltas}): AR does not mean the same; give one for all with --delta.")
    elif results[0].delta.is_relative and is_measured and ("network" in differs or "image" in differs):
        values = _each(names, [f"{result.answer.delta:.5g}" for result in results])
        notes.append(f"δ = {results[0].delta} is relative to each result's own original maps ({values}).")
    if "attention" in differs:
        ways = _each(names, [describe(result, "attention") for result in results])
        notes.append(f"The attention maps are compared in different ways ({ways}).")
    if "perturbation" in differs:
        notes.append("The domains differ, so shares are shares of different domains, and there is no difference map.")
        if len({tuple(sorted(specs(result))) for result in results}) == 1:
            notes.append("Only the order of the perturbations differs; verify in the same order for difference maps.")
    for name, result in zip(names, results, strict=True):
        if not result.is_complete:
            notes.append(f"{name}: partial, as the run was ended ({result.stopped}); the rest counts as undecided.")
        if not result.is_measured:
            notes.append(f"{name}: attention was not measured (--property cr).")
    return tuple(notes)


def _network(problem: Problem) -> tuple[object, ...]:
    """What a network is told by: its file, and what it expects of pixels."""
    preprocessing = getattr(problem.model.replay, "preprocessing", None)
    given = () if preprocessing is None else (preprocessing.mean, preprocessing.std, preprocessing.scale)
    return problem.model.sha256, problem.model_name, *(str(numbers) for numbers in given)


def _pixels(problem: Problem) -> tuple[object, ...]:
    x0 = problem.perturbed.x0
    return x0.shape, x0.tobytes()


def _each(names: Sequence[str], texts: Sequence[str]) -> str:
    """What each result says, by its name; a text that is the name already is said once."""
    return ", ".join(text if text == name else f"{name}: {text}" for name, text in zip(names, texts, strict=True))
