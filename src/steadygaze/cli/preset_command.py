"""`steadygaze verify --preset NAME`: runs the questions of a preset, stores each result, and compares them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..budget import Budget
from ..engines import RunPlan
from ..labels import Joint, Label, Verdict
from ..presets.answering import (
    PresetAnswer,
    PresetResult,
    begin_preset,
    check_preset_directory,
    finish_preset,
    image_shape,
    run_preset,
    share_cells,
    verdict_sentence,
)
from ..presets.lists import find_preset
from ..results.store import directory_name
from .printing import numbers_table, print_json, print_notes, print_places, print_verdict
from .run_progress import showing_progress

if TYPE_CHECKING:
    from ..question import Question
    from ..results.result import Result

Deliver = Callable[["Result", Path], object]


def verify_preset(
    name: str,
    *,
    model: str,
    image: str,
    ask: "Callable[[Sequence[str]], Question]",
    plan: RunPlan,
    budget: Budget,
    out: Path | None,
    deliver: Deliver,
    formats: Sequence[str],
    force: bool,
    is_json: bool,
    is_quiet: bool,
) -> int:
    """Run a preset; `ask` makes the question of perturbations, `deliver` stores a result in a directory."""
    preset = find_preset(name)
    directory = check_preset_directory(out or directory_name(model, image, "preset", name), force=force)
    is_begun = False

    def run(question: "Question", own: Budget) -> "Result":
        nonlocal is_begun
        if not is_begun:  # model and image are known to be readable
            begin_preset(directory, name)
            is_begun = True
        with showing_progress(own, is_wanted=not is_quiet and not is_json) as display, own.running():
            return plan.settle(question, own).run(question, own, display.advance)

    def done(answer: PresetAnswer) -> None:
        if answer.result is not None:
            deliver(answer.result, directory / answer.name)

    found = run_preset(preset, image_shape(ask), ask, run, budget, done)
    if not is_begun:
        begin_preset(directory, name)
    files = finish_preset(directory, found, formats=formats)
    if is_json:
        print_json(found.summary() | {"output": {"directory": str(directory), "files": [str(path) for path in files]}})
    elif not is_quiet:
        print_notes(found.notes)
        _describe(found, files)
    return found.verdict.exit_code


def _describe(found: PresetResult, files: Sequence[Path]) -> None:
    console = Console(highlight=False, emoji=False)
    print_verdict(console, found.verdict, verdict_sentence(found))
    table = numbers_table(found.preset.name, "verdict", Label.CR, Label.AR, Joint.BOTH)
    table.columns[1].min_width = max(len(verdict.value) for verdict in Verdict)
    for answer in found.answers:
        verdict = "skipped" if answer.verdict is None else answer.verdict.value
        shares = [""] * 3 if answer.result is None else share_cells(answer.result)[:3]
        table.add_row(answer.name, Text(verdict), *shares)
    console.print(table)
    print_places(console, "written", files)
