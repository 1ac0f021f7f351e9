"""`--method` and the options that go with it: from text to a plan, or an error that names the option.

Decides which options a method takes, before anything is read or computed. What a method does is not known here.
"""

import math
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from ..engines.search.paper_searches import METHODS as SEARCHES
from ..errors import OptionError

METHODS = ("auto", "map", "refine", *SEARCHES)
UNTIL, EXACT = 0.001, "exact"
GOALS = ("map", "verdict")
W_DELTA = 0.2
"""As in the paper's runs."""
CORNER = "corner"


@dataclass(frozen=True)
class Plan:
    """How a question is answered; `w_delta` and `line` are for searches that use them, `until` and `goal` for refine.

    `reason` says why refine was taken where no method was given.
    """

    method: str = "auto"
    w_delta: float = W_DELTA
    line: str | tuple[float, ...] = CORNER
    until: float | Literal["exact"] = UNTIL
    goal: Literal["map", "verdict"] = "map"
    reason: str | None = None

    @property
    def search(self) -> str | None:
        """The search that visits regions one by one; None for what proves something of the whole domain."""
        return self.method if self.method in SEARCHES else None

    @property
    def name(self) -> str | None:
        """What tells the result's directory from that of a map."""
        return None if self.method in ("auto", "map") or self.reason is not None else self.method

    @classmethod
    def parse(
        cls,
        method: str | None,
        *,
        w_delta: str | None = None,
        line: str | None = None,
        until: str | None = None,
        goal: str | None = None,
        resume: object = None,
        property: str = "both",
        require: str | None = None,
        threads: str | None = None,
    ) -> "Plan":
        """Read the texts of the options; OptionError for what is wrong or does not go with the method.

        >>> plan = Plan.parse("gbs", w_delta="0.5", line="0.5,1")
        >>> plan.method, plan.w_delta, plan.line
        ('gbs', 0.5, (0.5, 1.0))
        >>> plan = Plan.parse(None, until="exact")
        >>> plan.method, plan.until, plan.reason
        ('refine', 'exact', '--until was given')
        """
        given = [name for name, value in (("until", until), ("goal", goal), ("resume", resume)) if value is not None]
        reason = None
        method = "auto" if method is None else method
        if method == "auto" and given:
            method, reason = "refine", f"--{given[0]} was given"
        if method not in METHODS:
            near = get_close_matches(method.lower(), METHODS, n=1, cutoff=0.4)
            guess = f" Did you mean {near[0]}?" if near else ""
            raise OptionError(f"--method {method!r} is not known.{guess} Expected {', '.join(METHODS)}")
        if given and method != "refine":
            _refuse(given[0], method, "it belongs to refine, which need not decide everything", "refine")
        if method in SEARCHES:
            if require is not None:
                _refuse(
                    "require", method, "it asks for shares of the domain, which searches do not give", "map or refine"
                )
            if threads is not None:
                _refuse("threads", method, "a search runs in one thread", "map")
        if w_delta is not None and method != "gbs":
            _refuse("w-delta", method, "it says how near to the boundary gbs follows it", "gbs")
        if w_delta is not None and property == "cr":
            raise OptionError(
                "--w-delta does not go with --property cr: the boundary of the label has no width; take ar or both, or "
                "leave it out"
            )
        if line is not None and method not in ("gbs", "boundary"):
            _refuse("line", method, "it says where gbs and boundary start to search", "gbs or boundary")
        return cls(method, _width(w_delta), _line(line), _until(until), _goal(goal), reason)


def _refuse(option: str, method: str, reason: str, other: str) -> None:
    where = "without --method" if method == "auto" else f"with --method {method}"
    raise OptionError(f"--{option} does not go {where}: {reason}; leave it out, or take --method {other}")


def _width(text: str | None) -> float:
    if text is None:
        return W_DELTA
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise OptionError(f"--w-delta is {text!r}; expected a number of at least 0")
    return value


def _until(text: str | None) -> float | Literal["exact"]:
    if text is None:
        return UNTIL
    if text.strip().lower() == EXACT:
        return "exact"
    try:
        value = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < 1.0:
        raise OptionError(
            f"--until is {text!r}; expected the share of the domain that may stay undecided, such as 0.001 or 0.1%, or "
            "exact"
        )
    return value


def _goal(text: str | None) -> Literal["map", "verdict"]:
    if text in (None, "map"):
        return "map"
    if text == "verdict":
        return "verdict"
    raise OptionError(f"--goal is {text!r}; expected {' or '.join(GOALS)}")


def _line(text: str | None) -> str | tuple[float, ...]:
    if text is None or text.strip() == CORNER:
        return CORNER
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = (math.nan,)
    if not all(math.isfinite(value) for value in values):
        raise OptionError(
            f"--line is {text!r}; expected corner, or a theta: one number for each parameter, joined by commas: 0.5,1"
        )
    return values
