"""The plan of a run: `--method` with the options that belong to it, checked before anything is read or computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..engines.refine.refine_result import Goal, Until
from ..engines.search.paper_searches import METHODS as SEARCHES
from ..errors import OptionError
from .command_options import CORNER

W_DELTA = 0.2
"""As in the paper's runs."""

_REFINE = (("refine",), "only a refinement may end before everything is decided, and continue later")
_OWNERS = {
    "until": _REFINE,
    "goal": _REFINE,
    "resume": _REFINE,
    "require": (("auto", "map", "refine"), "it asks for shares of the domain, which searches do not give"),
    "threads": (("auto", "map", "refine"), "a search runs in one thread"),
    "w_delta": (("gbs",), "it tells how near to the boundary gbs follows it"),
    "line": (("gbs", "boundary"), "it tells where gbs and boundary start to search"),
}
"""The methods that take an option, and why others do not."""


@dataclass(frozen=True)
class MethodPlan:
    """How to answer a question: `w_delta` and `line` are for searches, `until` and `goal` for refinements.

    `reason` tells why the method was taken if none was given.
    """

    method: str = "auto"
    w_delta: float = W_DELTA
    line: str | Sequence[float] = CORNER
    until: Until = 0.001
    goal: Goal = "map"
    reason: str | None = None

    @property
    def is_search(self) -> bool:
        """Whether regions are visited one by one; other methods prove something of the whole domain."""
        return self.method in SEARCHES

    @property
    def name(self) -> str | None:
        """The method as part of the name of the result's directory; None for a map and for a method not asked for."""
        return None if self.method in ("auto", "map") or self.reason is not None else self.method

    @classmethod
    def check(cls, method: str = "auto", *, property: str = "both", **options: Any) -> "MethodPlan":
        """Refuse options that do not belong to the method; None stands for an option that was not given.

        >>> MethodPlan.check("gbs", w_delta=0.5).w_delta
        0.5
        >>> plan = MethodPlan.check(until="exact", line=None)
        >>> plan.method, plan.until, plan.reason
        ('refine', 'exact', '--until was given')
        """
        given = {name: value for name, value in options.items() if value is not None}
        reason = None
        refining = [name for name in given if _OWNERS[name] is _REFINE]
        if method == "auto" and refining:
            method, reason = "refine", f"--{refining[0]} was given"
        for name in given:
            owners, why = _OWNERS[name]
            if method not in owners:
                where = "without --method" if method == "auto" else f"with --method {method}"
                others = " or ".join(owner for owner in owners if owner != "auto")
                raise OptionError(
                    f"--{name.replace('_', '-')} does not go {where}: {why}; leave it out, or take --method {others}"
                )
        if "w_delta" in given and property == "cr":
            raise OptionError(
                "--w-delta does not go with --property cr: the boundary of the label has no width; take ar or both, or "
                "leave it out"
            )
        chosen = {name: value for name, value in given.items() if name in cls.__dataclass_fields__}
        return cls(method, reason=reason, **chosen)
