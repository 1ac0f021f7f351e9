"""All engines by method, the dispatcher that chooses and runs them, and the loader of their results.

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

    reason: why this method was chosen if none was given.
    """

    method: str = AUTO
    options: RunOptions = field(default_factory=RunOptions)
    reason: str | None = None

    @classmethod
    def check(
        cls, method: str, options: RunOptions, *, property: str | Property = Property.BOTH, needs_shares: bool = False
    ) -> "RunPlan":
        """Refuse an unknown method, and options that it does not have.

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
                    f"--{name.replace('_', '-')} does not go {where}: {WHY[name]}; leave it out, or use --method "
                    f"{owners}"
                )
        if needs_shares and method != AUTO and not ENGINES[method].gives_shares:
            owners = " or ".join(engine.method for engine in ENGINES.values() if engine.gives_shares)
            raise OptionError(
                f"--require does not go with --method {method}: it visits part of the domain and bounds no shares; "
                f"leave it out, or use --method {owners}"
            )
        if options.w_delta is not None and Property.parse(property) is Property.CR:
            raise OptionError(
                "--w-delta does not go with --property cr: the boundary of the label has no width; use ar or both, or "
                "leave it out"
            )
        return cls(method, options, reason)

    @property
    def name(self) -> str | None:
        """The method in the name of the result's directory; None for a map or a method chosen automatically."""
        return None if self.method in (AUTO, MapEngine.method) or self.reason is not None else self.method

    def settle(self, question: Question, budget: Budget) -> "RunPlan":
        """The plan with an engine that accepts the question; OptionError if the requested one does not."""
        if self.method == AUTO:
            choice = choose_method(question.compound, budget=budget)
            return replace(self, method=choice.method, reason=choice.reason)
        refusal = ENGINES[self.method].why_not(question)
        if refusal is not None:
            raise OptionError(refusal)
        return self

    def run(self, question: Question, budget: Budget | None = None, progress: ProgressReport | None = None) -> Result:
        """Answer a question with the engine of the plan, or with a suitable one."""
        budget = budget or Budget()
        _ = question.agreement  # refuses a model file that computes something else
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
    """Answer a question with a method and options as in `RunOptions`; shorthand for `RunPlan`."""
    return RunPlan.check(method, RunOptions(**options), property=question.property).run(question, budget, progress)


def load(directory: str | Path, *, model: str | Path | None = None) -> Result:
    """Load the stored result of any method; maps and refinements still answer for any δ.

    Reads the model again from its path, or from `model`; its hash must match. Raises StoreError.
    """

    def restore(content: dict[str, Any], folder: Path, question: Question) -> Tiling[Any]:
        method = content.get("method", MapEngine.method)
        if method not in ENGINES:
            raise StoreError(f"{folder}: its method {str(method)[:20]!r} is not known; expected {', '.join(ENGINES)}")
        return ENGINES[method].restore(content, folder, question)

    return store.load(directory, restore, model=model)
