"""All engines by method, the dispatcher that chooses and runs them, and the loader of their results.

A new engine is a folder with an `Engine`, and its method in `ENGINES` and `PlainMethod`. Engines are imported when they
are used.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ..budget import Budget
from ..errors import OptionError, StoreError, did_you_mean
from ..labels import Property
from ..products import products_on_one_thread
from .contract import (
    AUTO,
    MAP,
    REFINE,
    WHY,
    Engine,
    ProgressReport,
    RunOptions,
    RunWords,
    changing_maps,
)

if TYPE_CHECKING:
    from ..question import Question
    from ..results.result import Result
    from ..results.tiling import Tiling


class Engines(Mapping[str, Engine]):
    """Engines by method, each given as module:name in this package; the name is a class or a tuple of engines."""

    def __init__(self, **places: str) -> None:
        self.places = places

    def __getitem__(self, method: str) -> Engine:
        """The engine of a method."""
        return _engine(method, self.places[method])

    def __iter__(self) -> Iterator[str]:
        """The methods."""
        return iter(self.places)

    def __len__(self) -> int:
        """The number of methods."""
        return len(self.places)


@cache
def _engine(method: str, place: str) -> Engine:
    module, _, name = place.partition(":")
    found = getattr(import_module(f"{__name__}.{module}"), name)
    return found() if isinstance(found, type) else {engine.method: engine for engine in found}[method]


ENGINES = Engines(
    map="map.map_engine:MapEngine",
    refine="refine.refine_engine:RefineEngine",
    bfs="search.search_engines:SEARCHES",
    gbs="search.search_engines:SEARCHES",
    boundary="search.search_engines:SEARCHES",
)
METHODS = (AUTO, *ENGINES)
PlainMethod = Literal["bfs"]
"""Methods without options of their own; in `verify`, other methods have overloads that name their options."""


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
            raise OptionError(
                f"method {method!r} is not known; expected {', '.join(METHODS)}.{did_you_mean(method, METHODS)}"
            )
        reason = None
        if method == AUTO:
            refining = [name for name in options.given if name in ENGINES[REFINE].takes - ENGINES[MAP].takes]
            if refining:
                method, reason = REFINE, f"--{refining[0]} was given"
        for name in options.given:
            if not any(name in ENGINES[one].takes for one in ((MAP, REFINE) if method == AUTO else (method,))):
                owners = " or ".join(engine.method for engine in ENGINES.values() if name in engine.takes)
                fault = f"needs --method {owners}" if method == AUTO else f"does not go with --method {method}"
                remedy = (
                    "leave it out, or add the method" if method == AUTO else f"leave it out, or use --method {owners}"
                )
                raise OptionError(f"--{name.replace('_', '-')} {fault}: {WHY[name]}; {remedy}")
        if needs_shares and method != AUTO and not ENGINES[method].gives_shares:
            owners = " or ".join(engine.method for engine in ENGINES.values() if engine.gives_shares)
            raise OptionError(
                f"--require does not go with --method {method}, which visits part of the domain and bounds no shares; "
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
        """The method's part of the result directory's name; None for a map or a method chosen automatically."""
        return None if self.method in (AUTO, MAP) or self.reason is not None else self.method

    def settle(self, question: "Question", budget: Budget) -> "RunPlan":
        """The plan with a method that accepts the question; OptionError if the requested method does not."""
        if self.method == AUTO:
            from .refine.planning import choose_method  # noqa: PLC0415 (not needed with a given method)

            # The first reason holds for every property: a map of a curved image does not exist.
            changing = None if question.perturbed.is_curved else changing_maps(question)
            if changing is not None:
                return replace(self, method=REFINE, reason=changing)
            with budget.clock.phase("plan"):
                choice = choose_method(question.compound, budget=budget)
            return replace(self, method=choice.method, reason=choice.reason)
        refusal = ENGINES[self.method].why_not(question)
        if refusal is not None:
            raise OptionError(refusal)
        return self

    def run(
        self, question: "Question", budget: Budget | None = None, progress: ProgressReport | None = None
    ) -> "Result":
        """Answer a question with the engine of the plan, or with a suitable one if the method is "auto"."""
        budget = budget or Budget()
        import numpy as np  # noqa: PLC0415 (not needed to check options)

        from ..results.sample_check import confirmed  # noqa: PLC0415 (likewise)

        with products_on_one_thread():
            with budget.clock.phase("check model"):
                _ = question.agreement  # refuses a model file that computes something else
            plan = self.settle(question, budget)
        engine = ENGINES[plan.method]  # loads its libraries
        # NaN and infinity decide nothing.
        with products_on_one_thread(), budget.running(), np.errstate(over="ignore", invalid="ignore"):
            with budget.clock.phase("prepare"):
                result = engine.run(question, budget, plan.options, progress)
            with budget.clock.phase("self-check"):
                return confirmed(result)


def run(
    question: "Question",
    method: str = AUTO,
    *,
    budget: Budget | None = None,
    progress: ProgressReport | None = None,
    **options: Unpack[RunWords],
) -> "Result":
    """Answer a question with a method and options as in `RunOptions`: shorthand for tests and benchmarks."""
    return RunPlan.check(method, RunOptions(**options), property=question.property).run(question, budget, progress)


def load(directory: str | Path, *, model: str | Path | None = None) -> "Result":
    """Load the stored result of any method; maps and refinements still answer for any δ.

    Reads the model again from its path, or from `model`; its hash must match. Raises StoreError.
    """

    from ..results import store  # noqa: PLC0415 (not needed to check options)

    def restore(content: dict[str, Any], folder: Path, question: "Question") -> "Tiling[Any]":
        method = content.get("method", MAP)
        if method not in ENGINES:
            raise StoreError(
                f"{folder}: its method {str(method)[:20]!r} is not known; expected {', '.join(ENGINES)}; update "
                "steadygaze, or run the verification again"
            )
        return ENGINES[method].restore(content, folder, question)

    return store.load(directory, restore, model=model)
