"""All engines by method, the one dispatcher that chooses and runs them, and the loader of their results.

A new engine is a folder with an `Engine`, and one line in `ENGINES`.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..budget import Budget
from ..errors import OptionError, StoreError
from ..labels import Property
from ..question import Question
from ..results import store
from ..results.result import Result
from ..results.tiling import Tiling
from .contract import WHY, Engine, ProgressReport, RunOptions
from .map.whole_map import MapEngine
from .refine.planning import choose_method
from .refine.refine_engine import RefineEngine
from .search.search_engines import SEARCHES

ENGINES: dict[str, Engine] = {engine.method: engine for engine in (MapEngine(), RefineEngine(), *SEARCHES)}
AUTO = "auto"
METHODS = (AUTO, *ENGINES)


@dataclass(frozen=True)
class RunPlan:
    """A method with its options, checked before anything is read or computed.

    reason: why the method was taken if none was given.
    """

    method: str = AUTO
    options: RunOptions = field(default_factory=RunOptions)
    reason: str | None = None

    @classmethod
    def check(
        cls, method: str, options: RunOptions, *, property: str | Property = Property.BOTH, needs_shares: bool = False
    ) -> "RunPlan":
        """Refuse a method that does not exist, and options that do not belong to it.

        >>> RunPlan.check("gbs", RunOptions(w_delta=0.5)).options.w_delta
        0.5
        >>> plan = RunPlan.check("auto", RunOptions(until="exact"))
        >>> plan.method, plan.reason
        ('refine', '--until was given')
        """
        if method not in METHODS:
            raise OptionError(f"method {method!r} is not known; expected {', '.join(METHODS)}")
        reason, takes = None, RefineEngine.takes | MapEngine.takes
        if method == AUTO:
            refining = [name for name in options.given if name in RefineEngine.takes - MapEngine.takes]
            if refining:
                method, reason = RefineEngine.method, f"--{refining[0]} was given"
        if method != AUTO:
            takes = ENGINES[method].takes
        for name in options.given:
            if name not in takes:
                where = "without --method" if method == AUTO else f"with --method {method}"
                owners = " or ".join(engine.method for engine in ENGINES.values() if name in engine.takes)
                raise OptionError(
                    f"--{name.replace('_', '-')} does not go {where}: {WHY[name]}; leave it out, or take --method "
                    f"{owners}"
                )
        if needs_shares and method != AUTO and not ENGINES[method].gives_shares:
            owners = " or ".join(engine.method for engine in ENGINES.values() if engine.gives_shares)
            raise OptionError(
                f"--require does not go with --method {method}: it asks for shares of the domain, which searches do "
                f"not give; leave it out, or take --method {owners}"
            )
        if options.w_delta is not None and Property.parse(property) is Property.CR:
            raise OptionError(
                "--w-delta does not go with --property cr: the boundary of the label has no width; take ar or both, or "
                "leave it out"
            )
        return cls(method, options, reason)

    @property
    def name(self) -> str | None:
        """The method as part of the name of the result's directory; None for a map and for a method not asked for."""
        return None if self.method in (AUTO, MapEngine.method) or self.reason is not None else self.method

    def settle(self, question: Question, budget: Budget) -> "RunPlan":
        """The plan with an engine that accepts the question; OptionError if the one asked for does not."""
        if self.method == AUTO:
            choice = choose_method(question.compound, budget=budget)
            return replace(self, method=choice.method, reason=choice.reason)
        refusal = ENGINES[self.method].why_not(question)
        if refusal is not None:
            raise OptionError(refusal)
        return self

    def run(self, question: Question, budget: Budget | None = None, progress: ProgressReport | None = None) -> Result:
        """Answer a question by the engine of the plan, or by the one that fits it."""
        budget = budget or Budget()
        _ = question.agreement  # a model file that computes something else is refused here
        plan = self.settle(question, budget)
        with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity decide nothing
            return ENGINES[plan.method].run(question, budget, plan.options, progress)


def run(
    question: Question,
    method: str = AUTO,
    *,
    budget: Budget | None = None,
    progress: ProgressReport | None = None,
    **options: Any,
) -> Result:
    """Answer a question by a method with options as in `RunOptions`: `RunPlan` in one call."""
    return RunPlan.check(method, RunOptions(**options), property=question.property).run(question, budget, progress)


def load(directory: str | Path, *, model: str | Path | None = None) -> Result:
    """The stored result of any method: it answers as after the run, maps and refinements for any δ.

    The model is read again from its place, or from `model`; its hash must be the same. Raises StoreError.
    """

    def restore(content: dict[str, Any], folder: Path, question: Question) -> Tiling[Any]:
        method = content.get("method", MapEngine.method)
        if method not in ENGINES:
            raise StoreError(f"{folder}: its method {str(method)[:20]!r} is not known; expected {', '.join(ENGINES)}")
        return ENGINES[method].restore(content, folder, question)

    return store.load(directory, restore, model=model)
