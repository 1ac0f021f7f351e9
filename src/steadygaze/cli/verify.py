"""`steadygaze verify`: from the options to a stored result, pictures, a summary and an exit code."""

from dataclasses import replace

from .. import api
from ..budget import Budget, Limits
from ..engines.refine.planning import choose_method
from ..engines.refine.refine_files import load_to_resume
from ..engines.refine.refine_result import RefineResult
from ..engines.refine.run_refinement import refine
from ..problem import Problem
from ..results import store
from ..results.domain_result import DomainResult
from ..verdict import Verdict
from . import options as o
from .deliver import Delivered, Target, print_notes, save_and_draw, save_and_draw_search, tell
from .interrupt import stopping_on_signals
from .labels import check_expected, read_class_names, with_bundled_names
from .methods import Plan
from .numbers import number, numbers, whole_number
from .progress import Display, showing_progress
from .requirement import Requirement


def verify(
    model: o.ModelOption,
    image: o.ImageOption,
    perturb: o.PerturbOption,
    property: o.PropertyOption = "both",
    delta: o.DeltaOption = "25%",
    filter: o.FilterOption = "identity",
    dist: o.DistOption = "l2",
    classes: o.ClassesOption = "all",
    require: o.RequireOption = None,
    method: o.MethodOption = None,
    until: o.UntilOption = None,
    goal: o.GoalOption = None,
    resume: o.ResumeOption = None,
    w_delta: o.WDeltaOption = None,
    line: o.LineOption = None,
    mean: o.MeanOption = None,
    std: o.StdOption = None,
    scale: o.ScaleOption = None,
    class_names: o.ClassNamesOption = None,
    expect: o.ExpectOption = None,
    timeout: o.TimeoutOption = None,
    max_regions: o.MaxRegionsOption = None,
    memory: o.MemoryOption = None,
    threads: o.ThreadsOption = None,
    out: o.OutOption = None,
    force: o.ForceOption = False,
    json: o.JsonOption = False,
    quiet: o.QuietOption = False,
    debug: o.DebugOption = False,
) -> int:
    """Prove where an image keeps its label and its attention: by a map, a refinement or a search.

    Exit code: 0 robust (or --require is met), 10 not robust (or not met), 3 undecided, 2 bad input, 70 internal error.
    """
    plan = Plan.parse(
        method, w_delta=w_delta, line=line, until=until, goal=goal, resume=resume, property=property, require=require,
        threads=threads,
    )  # fmt: skip
    requirement = None if require is None else Requirement.parse(require)
    budget = Budget(
        Limits(number("timeout", timeout), whole_number("max-regions", max_regions), number("memory", memory))
    )
    workers = whole_number("threads", threads)
    with stopping_on_signals(budget):
        with showing_progress(budget, is_wanted=not quiet and not json) as display:
            problem = api.make_problem(
                model, image, perturb,
                property=property, delta=delta, filter=filter, dist=dist, classes=classes,
                mean=numbers("mean", mean), std=numbers("std", std), scale=number("scale", scale) or 1.0,
                names=None if class_names is None else read_class_names(class_names),
            )  # fmt: skip
            if class_names is None:
                problem = with_bundled_names(problem, image)
            if expect is not None:
                check_expected(problem, expect)
            earlier = None if resume is None else load_to_resume(resume, problem)
            directory = out or resume or store.default_directory(problem, method=plan.name)
            target = Target.check(directory, force=force or (resume is not None and out is None))
            delivered = _answer(problem, _settled(plan, problem, budget), target, budget, display, workers, earlier)
        if not quiet:
            print_notes(delivered.summary["notes"])
        if json or not quiet:
            tell(delivered, requirement=requirement, is_json=json)
    if requirement is not None:
        return requirement.judge(delivered.summary["area"]).exit_code
    return Verdict(delivered.summary["verdict"]).exit_code


def _settled(plan: Plan, problem: Problem, budget: Budget) -> Plan:
    """The plan with a method chosen where none was given."""
    if plan.method != "auto":
        return plan
    choice = choose_method(problem.compound, budget=budget)
    return replace(plan, method=choice.method, reason=choice.reason)


def _answer(
    problem: Problem,
    plan: Plan,
    target: Target,
    budget: Budget,
    display: Display,
    workers: int | None,
    earlier: RefineResult | None,
) -> Delivered:
    """Map, refine or search, then store and draw."""
    if plan.search is None:
        result: DomainResult
        if plan.method == "refine":
            result = refine(
                problem, until=plan.until, goal=plan.goal, budget=budget, threads=workers, progress=display.advance,
                resume=earlier,
            )  # fmt: skip
        else:
            result = api.solve(problem, budget=budget, threads=workers, progress=display.report)
        display.say_writing()
        return save_and_draw(result, target, reason=plan.reason)
    found = api.explore(
        problem, method=plan.search, w_delta=plan.w_delta, line=plan.line, budget=budget, progress=display.count
    )
    display.say_writing()
    return save_and_draw_search(found, target)
