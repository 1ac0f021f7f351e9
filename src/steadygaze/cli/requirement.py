"""`--require`: turns `CR&AR>=0.9 and MR<=1%` into comparisons, and judges them against proved bounds of the shares."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from ..errors import OptionError
from ..labels import SHARES, Label, Verdict

NAMES = (*SHARES, Label.UNDECIDED)

_TERM = re.compile(r"(?P<name>[^<>=]*)(?P<sign>[<>=]+)(?P<number>[^<>=]*)")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SIGNS: Mapping[str, Callable[..., bool]] = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


class Outcome(Enum):
    """Whether the proved bounds meet a requirement."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> int:
        """The exit code: that of the verdict with the same consequence."""
        return {Outcome.MET: Verdict.ROBUST, Outcome.NOT_MET: Verdict.NOT_ROBUST}.get(self, Verdict.UNDECIDED).exit_code


@dataclass(frozen=True)
class Term:
    """One comparison: the share `name`, a sign, and a number in [0,1]."""

    name: str
    sign: str
    number: float

    def judge(self, area: Mapping[str, Sequence[float]]) -> Outcome:
        """Met when every share between the bounds satisfies it, not met when none does."""
        low, high = area[self.name]
        compare = _SIGNS[self.sign]
        worst, best = (low, high) if self.sign in (">=", ">") else (high, low)
        if compare(worst, self.number):
            return Outcome.MET
        return Outcome.UNDECIDED if compare(best, self.number) else Outcome.NOT_MET


@dataclass(frozen=True)
class Requirement:
    """Comparisons that must all hold; `text` is the user's spelling.

    >>> requirement = Requirement.parse("CR&AR >= 90% and MR < 0.01")
    >>> requirement.judge({"CR&AR": (0.9, 1.0), "MR": (0.0, 0.1)})
    <Outcome.UNDECIDED: 'undecided'>
    >>> requirement.judge({"CR&AR": (0.2, 0.8), "MR": (0.0, 0.1)})
    <Outcome.NOT_MET: 'not met'>
    """

    text: str
    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> "Requirement":
        """Read comparisons joined by `and` or commas; OptionError names the mistake."""
        return cls(text, tuple(_read_term(text, part) for part in re.split(r",|\band\b", text, flags=re.IGNORECASE)))

    def judge(self, area: Mapping[str, Sequence[float]]) -> Outcome:
        """Judge the bounds (low, high) of the shares: NOT_MET if one term is, else UNDECIDED if one term is."""
        outcomes = {term.judge(area) for term in self.terms}
        for outcome in (Outcome.NOT_MET, Outcome.UNDECIDED):
            if outcome in outcomes:
                return outcome
        return Outcome.MET


def _read_term(text: str, part: str) -> Term:
    match = _TERM.fullmatch(part.strip())
    if match is None:
        raise OptionError(
            f"--require {text!r}: {part.strip()!r} is not a comparison; expected for example 'CR&AR>=0.9', "
            "several joined by 'and'"
        )
    sign = match["sign"]
    if sign not in _SIGNS:
        raise OptionError(f"--require {text!r}: {sign!r} is not a comparison; expected one of {', '.join(_SIGNS)}")
    return Term(_read_name(text, match["name"].strip()), sign, _read_number(text, match["number"].strip()))


def _read_name(text: str, word: str) -> str:
    known = {name.lower(): name for name in NAMES}
    parts = "".join(word.lower().split()).split("&")
    for spelling in ("&".join(parts), "&".join(reversed(parts))):
        if spelling in known:
            return known[spelling]
    near = get_close_matches(word.lower(), known, n=1)
    guess = f" Did you mean {known[near[0]]}?" if near else ""
    raise OptionError(f"--require {text!r}: there is no share {word!r}.{guess} Expected one of {', '.join(NAMES)}")


def _read_number(text: str, word: str) -> float:
    digits = word.removesuffix("%").strip()
    if not _NUMBER.fullmatch(digits):
        raise OptionError(f"--require {text!r}: {word!r} is not a share; expected a number in 0..1 or a percentage")
    number = float(digits) / 100.0 if word.endswith("%") else float(digits)
    if number > 1.0:
        raise OptionError(f"--require {text!r}: {word} is more than the whole domain; expected at most 1 or 100%")
    return number
