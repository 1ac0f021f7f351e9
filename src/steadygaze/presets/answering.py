"""Runs the questions of a preset one after another within one budget, gathers their answers, and stores them.

On disk, the result of each question has a folder, beside `preset.json` and one report that compares them.
"""

import base64
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..budget import Budget, Limits
from ..compare.comparison import Comparison, compare_results
from ..errors import OptionError, PerturbationError, StoreError, not_writable
from ..labels import Joint, Label, Verdict
from ..question import Question
from ..results.directory import atomic_file, write_json
from ..results.result import Result
from ..words import percent_up, share_text
from .lists import Preset, PresetQuestion

SCHEMA_VERSION = 1  # grows with every incompatible change
RESERVED = 0.1
"""The share of a time limit that is left for the comparison, its report and its pictures."""

LEAST_SECONDS = 0.05  # with less time left, a question is not begun
ANSWER, REPORT, PICTURE = "preset.json", "report.html", "comparison.png"

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
        return tuple(f"{one.name} has no answer: {one.reason}" for one in self.answers if one.result is None)

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
        target = check_preset_directory(directory, force=force)
        begin_preset(target, self.preset.name)
        for name, result in self.results.items():
            result.save(target / name, force=force)
        finish_preset(target, self)
        return target


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
        return PresetAnswer(question.name, specs, reason=str(error).removeprefix(f"{question.name}: "), is_skipped=True)
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


def check_preset_directory(directory: str | Path, *, force: bool) -> Path:
    """Return the place of a preset; StoreError, before anything is computed, if something else is there."""
    target = Path(directory)
    try:
        if target.exists() and not target.is_dir():
            raise StoreError(f"{directory}: is a file; choose another --out")
        names = [inside.name for inside in target.iterdir()] if target.exists() else []
    except OSError as error:
        raise StoreError(f"{directory}: cannot be read ({error.strerror}); choose another --out") from None
    if names and ANSWER not in names:
        raise StoreError(f"{directory}: exists already and holds no preset; choose another --out")
    if names and not force:
        raise StoreError(f"{directory}: exists already; choose another --out, or replace it with --force")
    return target


def begin_preset(target: Path, preset: str) -> None:
    """Make the directory, without the results of an earlier run there."""
    earlier = target / ANSWER
    try:
        if earlier.exists():
            for name in _question_names(earlier):
                shutil.rmtree(target / name, ignore_errors=True)
            for name in (REPORT, PICTURE):
                (target / name).unlink(missing_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        # An interrupted run leaves a directory that --force may replace.
        _write_answer(earlier, {"preset": preset, "questions": []})
    except OSError as error:
        raise not_writable(target, error) from None


def _question_names(path: Path) -> list[str]:
    """The folders of an earlier run: names without any separator."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        names = [str(one["name"]) for one in content["questions"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if name and Path(name).name == name]


def finish_preset(target: Path, found: PresetResult, *, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write `preset.json`, the report, and the picture of the comparison if pictures are wanted; the files written."""
    files = [target / ANSWER, target / REPORT]
    try:
        _write_answer(files[0], found.summary())
        if formats and found.comparison is not None:
            files += found.comparison.plot(target / PICTURE)
        with atomic_file(files[1]) as new:
            new.write_text(_page(found, files[2:]), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror or error})") from None
    return files


def _write_answer(path: Path, content: dict[str, Any]) -> None:
    with atomic_file(path) as new:
        write_json(new, content)


def _page(found: PresetResult, pictures: Sequence[Path]) -> str:
    """The report: one HTML file that links to the folders beside it."""
    from ..report.page import fill  # noqa: PLC0415 (jinja2 is slow to import)

    first = next(iter(found.results.values()), None)
    return fill(
        "preset.html.j2",
        {
            "preset": found.preset.name,
            "about": found.preset.text,
            "subject": "" if first is None else f"{first.question.model_name}, {first.question.image_name}",
            "verdict": found.verdict.value,
            "sentence": verdict_sentence(found),
            "rows": [_row(answer) for answer in found.answers],
            "picture": base64.b64encode(pictures[0].read_bytes()).decode() if pictures else "",
        },
    )


def verdict_sentence(found: PresetResult) -> str:
    """The number of questions with each verdict."""
    asked = [answer.verdict for answer in found.answers if answer.verdict is not None]
    counts = [f"{asked.count(verdict)} {verdict.value}" for verdict in Verdict if verdict in asked]
    return f"{len(asked)} questions: {', '.join(counts)}" if asked else "no question applies to this image"


def _row(answer: PresetAnswer) -> dict[str, Any]:
    result = answer.result
    return {
        "name": answer.name,
        "specs": " + ".join(answer.specs),
        "verdict": "skipped" if answer.verdict is None else answer.verdict.value,
        "reason": answer.reason or "",
        "has_folder": result is not None,
        "shares": ["", "", "", ""] if result is None else share_cells(result),
    }


def share_cells(result: Result) -> list[str]:
    """The shares of the domain that keep the label, the attention and both, and that are undecided, in words."""
    area = result.areas
    names: list[str] = [Label.CR, *([Label.AR, Joint.BOTH] if result.is_measured else [])]
    cells = [share_text(*area[name]) for name in names] + ["not measured"] * (3 - len(names))
    return [*cells, percent_up(area[Label.UNDECIDED][1])]
