"""`--method` and the options that go with it: from text to a plan, or an error that names the option.

Decides which options a method takes, before anything is read or computed. What a method does is not known here.
"""

import math
from dataclasses import dataclass
from difflib import get_close_matches

from ..errors import OptionError
from ..search.run import METHODS as SEARCHES

METHODS = ("map", *SEARCHES)
W_DELTA = 0.2
"""As in the paper's runs."""
CORNER = "corner"


@dataclass(frozen=True)
class Plan:
    """How a question is answered; `w_delta` and `line` are for searches that use them."""

    method: str = "map"
    w_delta: float = W_DELTA
    line: str | tuple[float, ...] = CORNER

    @property
    def search(self) -> str | None:
        """The search that visits regions one by one; None where the whole domain is mapped."""
        return None if self.method == "map" else self.method

    @classmethod
    def parse(
        cls,
        method: str,
        *,
        w_delta: str | None = None,
        line: str | None = None,
        property: str = "both",
        require: str | None = None,
        threads: str | None = None,
    ) -> "Plan":
        """Read the texts of the options; OptionError for what is wrong or does not go with the method.

        >>> Plan.parse("gbs", w_delta="0.5", line="0.5,1")
        Plan(method='gbs', w_delta=0.5, line=(0.5, 1.0))
        """
        if method not in METHODS:
            near = get_close_matches(method.lower(), METHODS, n=1, cutoff=0.4)
            guess = f" Did you mean {near[0]}?" if near else ""
            raise OptionError(f"--method {method!r} is not known.{guess} Expected {', '.join(METHODS)}")
        if method != "map":
            if require is not None:
                _refuse("require", method, "it asks for shares of the domain, which the map alone gives", "map")
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
        return cls(method, _width(w_delta), _line(line))


def _refuse(option: str, method: str, reason: str, other: str) -> None:
    raise OptionError(
        f"--{option} does not go with --method {method}: {reason}; leave it out, or take --method {other}"
    )


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
