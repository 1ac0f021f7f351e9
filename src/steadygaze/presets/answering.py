"""Runs the questions of a preset one after another within one budget, and gathers their answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..budget import Budget, Limits
from ..compare.comparison import Comparison, compare_results
from ..errors import OptionError, PerturbationError
from ..labels import Verdict
from ..question import Question
from ..results.result import Result
from .lists import Preset, PresetQuestion

SCHEMA_VERSION = 1  # grows with every incompatible change
RESERVED = 0.1
"""The share of a time limit that is left for the comparison, its report and its pictures."""

LEAST_SECONDS = 0.05  # with less time left, a question is not begun

Asker = Callable[[Sequence[str]], Question]
Runner = Callable[[Question, Budget], Result]


@dataclass(frozen=True, eq=False)
class PresetAnswer:
    """The answer to one question: a result, or the reason why there is none.

    A question that does not apply to the image is skipped and does not count; one that was not begun is undecided.
    """

    name: str
    specs: tuple[str, ...]
    result: Result | None = None
    reason: str | None = None
    is_skipped: bool = False

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if the question was skipped."""
        if self.result is not None:
            return self.result.verdict
        return None if self.is_skipped else Verdict.UNDECIDED


@dataclass(frozen=True, eq=False)
class PresetResult:
    """The answers to all questions of a preset, as `verify_preset` returns them. Immutable."""

    preset: Preset
    answers: tuple[PresetAnswer, ...]

    @property
    def results(self) -> dict[str, Result]:
        """The results by the names of their questions."""
        return {answer.name: answer.result for answer in self.answers if answer.result is not None}

    @property
    def verdict(self) -> Verdict:
        """Not robust if any answer is, else undecided if any is or nothing was answered, else robust."""
        found = [answer.verdict for answer in self.answers if answer.verdict is not None]
        for verdict in (Verdict.NOT_ROBUST, Verdict.UNDECIDED):
            if verdict in found:
                return verdict
        return Verdict.ROBUST if found else Verdict.UNDECIDED

    @cached_property
    def comparison(self) -> Comparison | None:
        """The results side by side; None if there are fewer than two."""
        results = list(self.results.values())
        return compare_results(results) if len(results) > 1 else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Which questions were not answered, and why."""
        missing = [(answer.name, answer.reason) for answer in self.answers if answer.result is None]
        waiting = [(one.name, f"no family {' or '.join(one.keywords)} in this version") for one in self.preset.awaited]
        return tuple(f"{name} has no answer: {reason}" for name, reason in (*missing, *waiting))

    def summary(self) -> dict[str, Any]:
        """The answers as plain data, as `--json` prints them."""
        return {
            "schema_version": SCHEMA_VERSION,
            "preset": self.preset.name,
            "verdict": self.verdict.value,
            "questions": [_answer_data(answer) for answer in self.answers],
            "notes": list(self.notes),
            "comparison": None if self.comparison is None else self.comparison.summary(),
        }

    def save(self, directory: str | Path, *, force: bool = False) -> Path:
        """Store every result in a folder of its own, with `preset.json` and one report beside them."""
        from .files import save_preset  # noqa: PLC0415 (matplotlib is slow to import)

        return save_preset(self, directory, force=force)


def _answer_data(answer: PresetAnswer) -> dict[str, Any]:
    return {
        "name": answer.name,
        "specs": list(answer.specs),
        "verdict": None if answer.verdict is None else answer.verdict.value,
        "skipped": answer.is_skipped,
        "reason": answer.reason,
        "result": None if answer.result is None else answer.result.summary(),
    }


def run_preset(
    preset: Preset, shape: tuple[int, int, int], ask: Asker, run: Runner, budget: Budget,
    done: Callable[[PresetAnswer], None] | None = None,
) -> PresetResult:  # fmt: skip
    """Answer all questions for an image of this shape; `done` gets every answer at once.

    Each question may use an equal part of the remaining time, less the time for the comparison; time that it does not
    use goes to later questions.
    """
    answers: list[PresetAnswer] = []
    questions = preset.questions
    for number, question in enumerate(questions):
        answer = _answer(question, shape, ask, run, budget, len(questions) - number)
        answers.append(answer)
        if done is not None:
            done(answer)
    return PresetResult(preset, tuple(answers))


def _answer(
    question: PresetQuestion, shape: tuple[int, int, int], ask: Asker, run: Runner, budget: Budget, left: int
) -> PresetAnswer:
    specs = question.specs(*shape[1:])
    if budget.cancelled.is_set():
        return PresetAnswer(question.name, specs, reason="the run stopped before it began")
    try:
        asked = ask(specs)
    except PerturbationError as error:
        return PresetAnswer(question.name, specs, reason=str(error), is_skipped=True)
    whole = budget.limits.timeout_seconds
    seconds = (budget.seconds_left() - (0.0 if whole is None else RESERVED * whole)) / left
    if seconds < LEAST_SECONDS:
        return PresetAnswer(question.name, specs, reason="the time limit was reached before it began")
    limits = budget.limits
    timeout = None if limits.timeout_seconds is None else seconds
    own = Budget(Limits(timeout, limits.max_regions, limits.memory_gib), cancelled=budget.cancelled)
    try:
        return PresetAnswer(question.name, specs, run(asked, own))
    except OptionError as error:  # the method does not take these perturbations
        return PresetAnswer(question.name, specs, reason=str(error))


def image_shape(ask: Asker) -> tuple[int, int, int]:
    """The shape of the image as the network takes it, from a question about it."""
    channels, height, width = ask(["brightness:0..0.1"]).perturbed.x0.shape
    return channels, height, width


def refuse_options(options: dict[str, Any], method: str) -> None:
    """OptionError for methods and options that do not go with a preset; None means not given."""
    if method not in ("auto", "map", "refine"):
        raise OptionError(
            f"--method {method} does not go with --preset, which compares shares of the whole domain; use map or refine"
        )
    for name, value in options.items():
        if value is not None:
            raise OptionError(
                f"--{name} does not go with --preset, which asks several questions; leave it out, or give --perturb"
            )
