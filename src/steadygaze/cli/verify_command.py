"""`steadygaze verify`: runs a verification, stores and draws the result, prints a summary."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..class_names import bundled_names, find_label, read_class_names
from ..errors import OptionError, StoreError, not_writable
from . import command_options as o
from .quick_drawing import import_matplotlib

if TYPE_CHECKING:
    from ..question import Question
    from ..requirement import Requirement
    from ..results.result import Result
    from ..results.summary import Summary

DRAWING_SECONDS = 2.0
"""A run with less time than this before its limit draws no pictures."""


def verify(
    model: o.ModelOption,
    image: o.ImageOption,
    perturb: o.PerturbOption = None,
    preset: o.PresetOption = None,
    property: o.PropertyOption = "both",
    attention: o.AttentionOption = "distance",
    delta: o.DeltaOption = None,
    tau: o.TauOption = None,
    gamma: o.GammaOption = None,
    top: o.TopOption = None,
    mask: o.MaskOption = None,
    explain: o.ExplainOption = "gradient",
    filter: o.FilterOption = "identity",
    dist: o.DistOption = None,
    classes: o.ClassesOption = None,
    require: o.RequireOption = None,
    method: o.MethodOption = "auto",
    until: o.UntilOption = None,
    goal: o.GoalOption = None,
    resume: o.ResumeOption = None,
    w_delta: o.WDeltaOption = None,
    line: o.LineOption = None,
    mean: o.MeanOption = None,
    std: o.StdOption = None,
    scale: o.ScaleOption = None,
    output: o.OutputOption = None,
    fit: o.FitOption = None,
    grey: o.GreyOption = False,
    rgb: o.RgbOption = False,
    class_names: o.ClassNamesOption = None,
    expect: o.ExpectOption = None,
    timeout: o.TimeoutOption = None,
    max_regions: o.MaxRegionsOption = None,
    memory: o.MemoryOption = None,
    threads: o.ThreadsOption = None,
    out: o.OutOption = None,
    force: o.ForceOption = False,
    pictures: o.PicturesOption = None,
    json: o.JsonOption = False,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Prove where an image keeps its label and its attention, by a map, a refinement or a search.

    Exit code: 0 robust (or --require is met), 10 not robust (or not met), 3 undecided, 2 bad input, 70 internal error.
    """
    from ..budget import Budget, Limits  # noqa: PLC0415 (slow to import)
    from ..engines import RunPlan  # noqa: PLC0415 (slow to import)
    from ..engines.contract import RunOptions  # noqa: PLC0415 (slow to import)

    if (perturb is None) == (preset is None):
        raise OptionError(
            "--perturb and --preset were given, but a preset has its own perturbations: leave one out"
            if perturb
            else "--perturb and --preset are missing; give one of them, see steadygaze verify --help"
        )
    if preset is not None:
        from ..presets.answering import refuse_options  # noqa: PLC0415 (slow to import)
        from ..presets.lists import find_preset  # noqa: PLC0415 (slow to import)

        find_preset(preset)
        refuse_options({"resume": resume, "require": require}, method)
    options = RunOptions(until=until, goal=goal, resume=resume, w_delta=w_delta, line=line, threads=threads)
    plan = RunPlan.check(method, options, property=property, needs_shares=require is not None and require.needs_shares)
    budget = Budget(Limits(timeout, max_regions, memory))
    budget.clock.start_with_process()
    with budget.clock.phase("start"):
        from ..question import make_question  # noqa: PLC0415 (slow to import)
        from ..results import store  # noqa: PLC0415 (slow to import)
        from .printing import print_notes  # noqa: PLC0415 (slow to import)
        from .run_progress import showing_progress, stopping_on_signals  # noqa: PLC0415 (slow to import)

    def ask(specs: Sequence[str]) -> "Question":
        question = make_question(
            model, image, specs,
            property=property, attention=attention, delta=delta, tau=tau, gamma=gamma, top=top, mask=mask,
            explain=explain, filter=filter, dist=dist, classes=classes,
            mean=mean, std=std, scale=scale or 1.0, output=output, fit=fit, grey=grey, rgb=rgb,
            names=None if class_names is None else read_class_names(class_names),
        )  # fmt: skip
        if class_names is None:
            question = with_bundled_names(question, image)
        if expect is not None:
            _check_expected(question, expect)
        return question

    formats = choose_formats(pictures, is_read=not json and not quiet)
    if preset is not None:
        from .preset_command import verify_preset  # noqa: PLC0415 (slow to import)

        def deliver(result: "Result", place: Path) -> Delivered:
            return store_and_draw(result, place, force=force, formats=formats)

        with stopping_on_signals(budget), budget.running():
            return verify_preset(
                preset, model=model, image=image, ask=ask, plan=plan, budget=budget, out=out, deliver=deliver,
                formats=formats, force=force, is_json=json, is_quiet=quiet,
            )  # fmt: skip
    with stopping_on_signals(budget), budget.running(), budget.clock.phase("read"):
        with showing_progress(budget, is_wanted=not quiet and not json) as display:
            question = ask(perturb or ())
            directory = out or resume or store.default_directory(question, method=plan.name)
            force = force or (resume is not None and out is None)
            check_writable(directory, force=force)
            plan = plan.settle(question, budget)
            result = plan.run(question, budget, display.advance)
            delivered = store_and_draw(result, directory, force=force, formats=formats, reason=plan.reason)
        if not quiet:
            print_notes(delivered.notes)
        if json or not quiet:
            print_answer(delivered, requirement=require, is_json=json)
    return exit_code(delivered.summary, require)


def exit_code(summary: "Summary", requirement: "Requirement | None") -> int:
    """The exit code of an answer: that of its requirement, or of its verdict if nothing is required."""
    if requirement is not None:
        return requirement.judge(summary.area, summary.verdict).exit_code
    return summary.verdict.exit_code


@dataclass(frozen=True)
class Delivered:
    """A stored and drawn answer: its summary, notes, files, and the reason for its method."""

    summary: "Summary"
    seconds: dict[str, float]
    directory: Path
    pictures: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    reason: str | None = None


def check_writable(directory: Path, *, force: bool) -> None:
    """Refuse a directory that cannot be written, before anything is computed."""
    from ..results import store  # noqa: PLC0415 (slow to import)

    place = store.check_directory(directory, force=force).parent
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryDirectory(prefix=".steadygaze-", dir=place):
            pass
    except OSError as error:
        raise not_writable(directory, error) from None


def choose_formats(given: tuple[str, ...] | None, *, is_read: bool) -> tuple[str, ...]:
    """The formats of the pictures: as given, else one PNG if a person reads the answer.

    >>> choose_formats(None, is_read=True), choose_formats(None, is_read=False), choose_formats(("svg",), is_read=False)
    (('png',), (), ('svg',))
    """
    return (("png",) if is_read else ()) if given is None else given


def store_and_draw(
    result: "Result", directory: Path, *, force: bool, formats: Sequence[str] = ("png",), reason: str | None = None
) -> Delivered:
    """Store a result and draw its pictures beside it; `reason` says why its method was chosen.

    A run that must end draws nothing, and adds a note.
    """
    from ..results.store import write_timings  # noqa: PLC0415 (slow to import)

    summary, folder = result.described, result.save(directory, force=force)
    notes = list(summary.notes)
    if formats and result.budget is not None and result.budget.seconds_left() < DRAWING_SECONDS:
        kind = "visited" if summary.is_search else "map"
        notes.append(f"no picture was drawn because the run had to end; steadygaze figure {kind} {directory} draws one")
        formats = ()
    if formats:
        with result.phase("pictures"):
            import_matplotlib()
    try:
        pictures = tuple(result.plot(folder / picture_name(summary), formats=formats)) if formats else ()
    except OSError as error:
        raise StoreError(
            f"{folder}: the result is stored, but its pictures cannot be written ({error.strerror or error})"
        ) from None
    write_timings(result, folder)
    return Delivered(summary, result.seconds, directory, pictures, tuple(notes), reason)


def picture_name(summary: "Summary") -> str:
    """The name of the pictures inside a result's directory, without ending."""
    return "search" if summary.is_search else "map"


def print_answer(delivered: Delivered, *, requirement: "Requirement | None" = None, is_json: bool = False) -> None:
    """Print a stored answer on stdout, as text or as JSON."""
    from .printing import describe, judged, print_json  # noqa: PLC0415 (slow to import)

    summary, seconds, reason = delivered.summary, delivered.seconds, delivered.reason
    directory, pictures = delivered.directory, delivered.pictures
    if not is_json:
        describe(
            summary, seconds=seconds, requirement=requirement, directory=directory, pictures=pictures, reason=reason
        )
        return
    output = {"directory": str(directory), "pictures": [str(path) for path in pictures]}
    picked = {} if reason is None else {"picked": reason}
    print_json(
        {**summary.plain(), "notes": list(delivered.notes), "seconds": seconds}
        | judged(summary, requirement)
        | {"output": output | picked}
    )


def with_bundled_names(question: "Question", image: str) -> "Question":
    """Name the classes after the data set of a bundled image, if the network has as many classes."""
    names = bundled_names(image, question.model.classes)
    return question if names is None else replace(question, names=names)


def _check_expected(question: "Question", expected: str) -> None:
    """Raise OptionError unless the predicted label is the expected one, given as name or number."""
    from ..words import class_text  # noqa: PLC0415 (slow to import)

    wanted = find_label(expected, question.names)
    if question.label != wanted:
        found, missed = (class_text(question.names[label], label) for label in (question.label, wanted))
        raise OptionError(
            f"{question.image_name}: {question.model_name} predicts {found}, but --expect is {missed}; check the "
            "image, the order of the classes, and --mean, --std and --scale"
        )
