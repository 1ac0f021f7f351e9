"""Requirements: turns `CR&AR>=0.9 and MR<=1%`, or `robust`, into terms, and judges them by proved bounds.

A requirement is met if every share between the proved bounds satisfies it, and not met if none does.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction

from .errors import OptionError
from .labels import SHARES, Label, Verdict

NAMES = (*SHARES, Label.UNDECIDED)
ROBUST = Verdict.ROBUST.value
"""The term that asks for the verdict instead of a share."""

_TERM = re.compile(r"(?P<name>[^<>=]*)(?P<sign>[<>=]+)(?P<number>[^<>=]*)")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SIGNS: Mapping[str, Callable[..., bool]] = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
_WORDS = {"at least": ">=", "more than": ">", "at most": "<=", "less than": "<"}

Areas = Mapping[str, Sequence[float]]
"""Proved bounds (low, high) of the shares of the domain."""


class Outcome(StrEnum):
    """Whether the proved bounds meet a requirement."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> int:
        """The exit code: that of the verdict with the same consequence."""
        return {Outcome.MET: Verdict.ROBUST, Outcome.NOT_MET: Verdict.NOT_ROBUST}.get(self, Verdict.UNDECIDED).exit_code

    @classmethod
    def of(cls, verdict: Verdict) -> "Outcome":
        """The outcome of the requirement to be robust."""
        return {Verdict.ROBUST: cls.MET, Verdict.NOT_ROBUST: cls.NOT_MET}.get(verdict, cls.UNDECIDED)

    @classmethod
    def all_of(cls, outcomes: Iterable["Outcome"]) -> "Outcome":
        """The outcome of several requirements together: NOT_MET if one is, else UNDECIDED if one is.

        >>> Outcome.all_of([Outcome.MET, Outcome.UNDECIDED]), Outcome.all_of([])
        (<Outcome.UNDECIDED: 'undecided'>, <Outcome.MET: 'met'>)
        """
        found = set(outcomes)
        return next((one for one in (cls.NOT_MET, cls.UNDECIDED) if one in found), cls.MET)


@dataclass(frozen=True)
class Inequality:
    """A sign and a number in [0,1] to compare a share with."""

    sign: str
    number: float

    def __str__(self) -> str:
        """The comparison for people.

        >>> str(Inequality(">=", 0.9)), str(Inequality("<=", 0.1))
        ('0.9', 'at most 0.1')
        """
        return {">=": "", ">": "more than ", "<=": "at most ", "<": "less than "}[self.sign] + f"{self.number:g}"

    @property
    def asks_more(self) -> bool:
        """Whether larger shares are better."""
        return self.sign in (">=", ">")

    def judge(self, low: float | Fraction, high: float | Fraction) -> Outcome:
        """Met when every number between the bounds satisfies it, not met when none does."""
        compare = _SIGNS[self.sign]
        worst, best = (low, high) if self.asks_more else (high, low)
        if compare(worst, self.number):
            return Outcome.MET
        return Outcome.UNDECIDED if compare(best, self.number) else Outcome.NOT_MET


@dataclass(frozen=True)
class Term:
    """One comparison: the share `name`, a sign, and a number in [0,1]."""

    name: str
    sign: str
    number: float

    @property
    def inequality(self) -> Inequality:
        """The sign and the number."""
        return Inequality(self.sign, self.number)

    def judge(self, area: Areas, verdict: Verdict) -> Outcome:
        """Judge the proved bounds of the share."""
        low, high = area[self.name]
        return self.inequality.judge(low, high)


@dataclass(frozen=True)
class RobustTerm:
    """The term `robust`: the property of the question holds everywhere."""

    name = ROBUST

    def judge(self, area: Areas, verdict: Verdict) -> Outcome:
        """Judge the verdict."""
        return Outcome.of(verdict)


@dataclass(frozen=True)
class Requirement:
    """Terms that must all hold; `text` is the user's spelling.

    >>> requirement = Requirement.parse("CR&AR >= 90% and MR < 0.01")
    >>> requirement.judge({"CR&AR": (0.9, 1.0), "MR": (0.0, 0.1)})
    <Outcome.UNDECIDED: 'undecided'>
    >>> requirement.judge({"CR&AR": (0.2, 0.8), "MR": (0.0, 0.1)})
    <Outcome.NOT_MET: 'not met'>
    >>> Requirement.parse("robust").judge({}, Verdict.ROBUST)
    <Outcome.MET: 'met'>
    """

    text: str
    terms: tuple[Term | RobustTerm, ...]

    @classmethod
    def parse(cls, text: str, source: str = "--require") -> "Requirement":
        """Read terms joined by `and` or commas; OptionError names the mistake, and the `source` of the text."""
        parts = re.split(r",|\band\b", text, flags=re.IGNORECASE)
        return cls(text, tuple(_read_part(f"{source} {text!r}", part.strip()) for part in parts))

    @property
    def needs_shares(self) -> bool:
        """Whether a term asks for a share of the domain, not only for the verdict."""
        return any(isinstance(term, Term) for term in self.terms)

    def judge(self, area: Areas, verdict: Verdict = Verdict.UNDECIDED) -> Outcome:
        """Judge the bounds (low, high) of the shares, and the verdict."""
        return Outcome.all_of(term.judge(area, verdict) for term in self.terms)


def read_term(source: str, part: str) -> Term:
    """One comparison such as `CR&AR>=0.9`; an error starts with the `source`."""
    for words, sign in _WORDS.items():
        part = re.sub(rf"\b{words}\b", sign, part, flags=re.IGNORECASE)
    match = _TERM.fullmatch(part)
    if match is None:
        raise OptionError(
            f"{source}: {part!r} is not a comparison; expected for example 'CR&AR>=0.9', several joined by 'and', or "
            f"'{ROBUST}'"
        )
    sign = match["sign"]
    if sign not in _SIGNS:
        raise OptionError(f"{source}: {sign!r} is not a comparison; expected one of {', '.join(_SIGNS)}")
    return Term(read_share(source, match["name"].strip()), sign, _read_number(source, match["number"].strip()))


def read_share(source: str, word: str) -> str:
    """The name of a share, in any case and order; an error starts with the `source`.

    >>> read_share("--share", "ar & cr")
    'CR&AR'
    """
    known = {name.lower(): name for name in NAMES}
    parts = "".join(word.lower().split()).split("&")
    for spelling in ("&".join(parts), "&".join(reversed(parts))):
        if spelling in known:
            return known[spelling]
    near = get_close_matches(word.lower(), known, n=1)
    guess = f" Did you mean {known[near[0]]}?" if near else ""
    raise OptionError(f"{source}: there is no share {word!r}.{guess} Expected one of {', '.join(NAMES)}")


def _read_part(source: str, part: str) -> Term | RobustTerm:
    return RobustTerm() if part.lower() == ROBUST else read_term(source, part)


def _read_number(source: str, word: str) -> float:
    digits = word.removesuffix("%").strip()
    if not _NUMBER.fullmatch(digits):
        raise OptionError(f"{source}: {word!r} is not a share; expected a number in 0..1 or a percentage")
    number = float(digits) / 100.0 if word.endswith("%") else float(digits)
    if number > 1.0:
        raise OptionError(f"{source}: {word} is more than the whole domain; expected at most 1 or 100%")
    return number
